//! The build script of the programs that run on devices: makes the linker pack their relocations, which otherwise take a
//! twentieth of a program, on the disk and in memory.

fn main() {
    println!("cargo::rerun-if-changed=../pack_relocations.rs");
    let of_target = |name: &str| std::env::var(name).unwrap_or_default();
    // The loader of the C library has supported them since 2.36 (Debian 12); a linker that does not know the option
    // ignores it.
    if of_target("CARGO_CFG_TARGET_OS") == "linux" && of_target("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

//! Makes the linker pack the relocations of the program: otherwise they are a twentieth of its
//! size.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of_target = |name: &str| std::env::var(name).unwrap_or_default();
    // Its loader has supported them since 2.36 (Debian 12); a linker that does not know the option
    // ignores it.
    if of_target("CARGO_CFG_TARGET_OS") == "linux" && of_target("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

//! Generates the functions that plugins call and that only send their arguments to the host.

fn main() -> anyhow::Result<()> {
    capability_codegen::write(capability_codegen::runtime)
}

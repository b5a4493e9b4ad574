//! Generates the calls whose arguments and answers are those of a function of `wit/`.

fn main() -> anyhow::Result<()> {
    capability_codegen::write(capability_codegen::protocol)
}

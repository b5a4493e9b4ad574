//! `cargo xtask test`: all tests of the workspace, with everything they need set up first.

use anyhow::Result;

use crate::cargo;
use crate::layout::{self, build_components, components_folder, crates_in};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Passed on to `cargo test`, for example a crate (`--package plan`) or a test's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let layout = layout::build(&layout::Arguments { release: false })?;

    println!("building the example and test components");
    let mut guests = crates_in("examples")?;
    guests.extend(crates_in("tests")?);
    build_components(&guests)?;

    println!("running the tests");
    let mut test = cargo::cargo(["test", "--no-fail-fast"]);
    test.env("SUPERVISOR_DIST", &layout.folder)
        .env("SUPERVISOR_TEST_GUESTS", components_folder());
    test.args(&arguments.rest);
    cargo::finish(test)?;
    if arguments.rest.is_empty() {
        // By itself, since its code generator must not be unified into the others.
        cargo::finish(cargo::cargo([
            "test",
            "--profile",
            "compiler",
            "--package",
            "supervisor-compile",
        ]))?;
    }
    Ok(())
}

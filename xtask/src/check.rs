//! The checks before a commit: formatting, names of types and locals, phrases, struct sizes, imports, citations of the contract,
//! lints and dependencies. Components are linted for the target that they run on.

use anyhow::Result;

use crate::cargo::{self, WASM_TARGET};
use crate::citations;
use crate::layout::{crates_in, packages_of_this_machine};
use crate::{doc_tests, import_circles, names, phrases, struct_sizes, supply_chain, text_files};

pub(crate) fn run() -> Result<()> {
    cargo::finish(cargo::cargo(["fmt", "--all", "--check"]))?;
    let files = text_files::all()?;
    names::check(&files)?;
    phrases::check(&files)?;
    struct_sizes::check(&files)?;
    import_circles::check(&files)?;
    doc_tests::check(&files)?;
    citations::check(files)?;
    // In one invocation, which checks each dependency once. The compiler's code generator is then part of everything,
    // which makes no difference to lints.
    let mut programs = cargo::cargo(["clippy", "--all-targets"]);
    programs.args(packages_of_this_machine(&[])?);
    programs.args(["--", "--deny", "warnings"]);
    cargo::finish(programs)?;
    cargo::add_target(WASM_TARGET)?;
    let mut components = cargo::cargo(["clippy", "--target", WASM_TARGET]);
    components.args(["--package", "supervisor-sdk"]);
    for package in crates_in("plugins")?
        .into_iter()
        .chain(crates_in("examples")?)
    {
        components.args(["--package", &package]);
    }
    components.args(["--", "--deny", "warnings"]);
    cargo::finish(components)?;
    supply_chain::check()
}

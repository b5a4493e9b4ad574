//! The checks before a commit: formatting, names of types and locals, phrases, struct sizes, imports, documentation
//! tests, citations of the contract, lints and dependencies. Components are linted for the target that they run on.

use std::process::Command;

use anyhow::Result;

use crate::cargo::{self, WASM_TARGET, repository};
use crate::citations;
use crate::crates::{crates_in, packages_of_this_machine};
use crate::text_files::TextFile;
use crate::{doc_tests, import_circles, names, phrases, struct_sizes, supply_chain, text_files};

/// The folders with files that `cargo fmt` does not find, because a macro declares their modules (`wit/modules.rs`).
const MODULES_OF_MACROS: [&str; 2] = ["host/plugins/src/provision/", "sdk/src/"];

pub(crate) fn run() -> Result<()> {
    cargo::finish(cargo::cargo(["fmt", "--all", "--check"]))?;
    let files = text_files::all()?;
    cargo::finish(rustfmt(&files))?;
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

/// Returns the command that checks the formatting of the files that `cargo fmt` does not find. Without `--check` it
/// formats them.
fn rustfmt(files: &[TextFile]) -> Command {
    let paths = files.iter().map(|file| &file.path);
    let modules = paths.filter(|path| {
        let mut folders = MODULES_OF_MACROS.iter();
        path.ends_with(".rs") && folders.any(|folder| path.starts_with(folder))
    });
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.current_dir(repository());
    rustfmt.args(["--edition", "2024", "--check"]).args(modules);
    rustfmt
}

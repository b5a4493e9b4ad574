//! The SDKs' own tests in languages that are not run by cargo.

use std::process::Command;

use anyhow::Result;

use crate::cargo::{finish, repository};
use crate::packages::program;

/// The folder of an SDK, a program, and the arguments with which it runs the tests there.
const SDKS: [(&str, &str, &[&str]); 2] = [
    (
        "sdk/python",
        "python3",
        &["-m", "unittest", "discover", "tests"],
    ),
    (
        "sdk/javascript",
        "node",
        &["--import", "./test/platform.js", "--test"],
    ),
];

/// Runs the tests of the SDKs. A missing program is reported together with the tests of plugins in other languages.
///
/// # Errors
/// Names the command that failed.
pub(crate) fn run() -> Result<()> {
    for (folder, name, arguments) in SDKS {
        let Some(program) = program(name) else {
            println!("skipped: the tests of {folder}, since `{name}` is missing");
            continue;
        };
        println!("the tests of {folder}");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(repository().join(folder));
        finish(command)?;
    }
    Ok(())
}

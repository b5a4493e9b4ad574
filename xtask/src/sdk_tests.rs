//! The SDKs' own tests in languages that are not run by cargo.

use std::process::Command;

use crate::cargo::repository;
use crate::packages::program;
use crate::test_programs::TestRun;

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

/// Returns the commands that run the tests of the SDKs. A missing program is reported together with the tests of plugins
/// in other languages.
pub(crate) fn commands() -> Vec<TestRun> {
    let mut commands = Vec::new();
    for (folder, name, arguments) in SDKS {
        let Some(program) = program(name) else {
            println!("skipped: the tests of {folder}, since `{name}` is missing");
            continue;
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(repository().join(folder));
        let name = folder.to_owned();
        commands.push(TestRun { name, command });
    }
    commands
}

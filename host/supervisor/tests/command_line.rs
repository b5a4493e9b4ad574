//! Tests of the program's command line. (`cargo xtask test` also needs this file so that cargo builds the program with
//! the tests and copies it into the layout for the black-box suites.)

use std::process::{Command, Output};

fn supervisor(arguments: &[&str]) -> std::io::Result<Output> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_supervisor"));
    program.args(arguments).output()
}

#[test]
fn help_names_the_commands_for_owners() {
    let help = supervisor(&["--help"]).unwrap();
    assert!(help.status.success());
    let text = String::from_utf8(help.stdout).unwrap();
    for command in ["run", "api-key", "plugins"] {
        let has_command = text.lines().any(|line| {
            let words = line.trim_start();
            words.split(' ').next() == Some(command)
        });
        assert!(has_command, "`{command}` is missing:\n{text}");
    }
}

#[test]
fn a_bad_argument_is_named_and_nothing_starts() {
    for (arguments, code, expected) in [
        (&["run", "--listen", "nowhere"][..], 1, "nowhere"),
        (&["run", "--listne", "127.0.0.1:0"], 2, "--listne"),
        (&["strat"], 2, "strat"),
    ] {
        let refused = supervisor(arguments).unwrap();
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}");
        let message = String::from_utf8(refused.stderr).unwrap();
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(refused.stdout.is_empty(), "{arguments:?}");
    }
}

/// `supervisor run 2>&1 | head -1`
#[test]
fn a_failure_that_nobody_reads_keeps_its_exit_code() {
    let (_, writer) = std::io::pipe().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_supervisor"));
    let ended = program
        .args(["run", "--listen", "nowhere"])
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(ended.code(), Some(1));
}

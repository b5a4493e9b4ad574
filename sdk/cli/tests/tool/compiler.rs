//! The compiler in the tool, which a layout has as a program of its own.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::author::{Author, TOOL};

#[test]
fn started_under_the_name_of_the_compiler_the_tool_is_the_compiler() {
    let author = Author::new();
    let link = author.path("supervisor-compile");
    symlink(TOOL, &link).unwrap();
    // As the compiler it has no commands.
    let output = Command::new(link)
        .arg("inspect")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    let (code, expected) = if cfg!(feature = "compiler") {
        (2, "--profile")
    } else {
        (1, "this build of supervisor-plugin contains no compiler")
    };
    assert_eq!(output.status.code(), Some(code), "{printed}");
    assert!(printed.contains(expected), "{printed}");
}

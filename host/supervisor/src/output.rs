//! The output of the commands that print a result and end.
//!
//! `println!` and `eprintln!` panic if nobody reads their output any more, as in `supervisor plugins list | head -1`.
//! The signal SIGPIPE, which ends other programs there, is not the way out: some of these commands write to a compiler,
//! and have to report it if that ends early.

use std::fmt::Display;
use std::io::{ErrorKind, Write as _, stderr, stdout};

use anyhow::{Context as _, Result};

/// Prints a part of the result, exactly as it is. If nobody reads it, that is not an error.
///
/// # Errors
/// It cannot be written, for example because a disk is full.
pub(crate) fn print(text: impl Display) -> Result<()> {
    let mut output = stdout().lock();
    match write!(output, "{text}").and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("failed to write to standard output"),
    }
}

/// Prints a line for people to standard error, as long as somebody reads it.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(stderr(), "{text}");
}

//! The output of the commands that print a result and end.
//!
//! `println!` and `eprintln!` panic if nobody reads their output any more, as in `supervisor plugins list | head -1`.
//! The signal SIGPIPE, which ends other programs there, is not the way out: some of these commands write to a compiler,
//! and have to report it if that ends early.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Whether somebody reads standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readership {
    /// As far as is known.
    Present,
    /// The reader has ended, as `head` does: a command that would print more can end.
    Gone,
}

/// Prints a part of the result, exactly as it is. If nobody reads it, that is not an error.
///
/// # Errors
/// It cannot be written, for example because a disk is full.
pub(crate) fn print(text: impl Display) -> Result<()> {
    print_while_read(text).map(|_| ())
}

/// Prints a result for programs: a JSON document on several lines.
///
/// # Errors
/// The same.
pub(crate) fn print_json(document: &Value) -> Result<()> {
    print(format_args!("{document:#}\n"))
}

/// Like [`print`], and returns whether somebody still reads: for commands that print without an end.
///
/// # Errors
/// The same.
pub(crate) fn print_while_read(text: impl Display) -> Result<Readership> {
    write_to(&mut stdout().lock(), text)
}

fn write_to(output: &mut impl Write, text: impl Display) -> Result<Readership> {
    match write!(output, "{text}").and_then(|()| output.flush()) {
        Ok(()) => Ok(Readership::Present),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Readership::Gone),
        Err(error) => Err(error).context("failed to write to standard output"),
    }
}

/// Prints a line for people to standard error, as long as somebody reads it.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Fails each write with this error.
    struct ErrorWriter(ErrorKind);

    impl Write for ErrorWriter {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_ended_is_no_error_and_a_full_disk_is() {
        let mut output = Vec::new();
        assert_eq!(write_to(&mut output, "a\n").unwrap(), Readership::Present);
        assert_eq!(output, b"a\n");
        let mut unread = ErrorWriter(ErrorKind::BrokenPipe);
        assert_eq!(write_to(&mut unread, "a").unwrap(), Readership::Gone);
        let full = write_to(&mut ErrorWriter(ErrorKind::StorageFull), "a").unwrap_err();
        assert_eq!(full.to_string(), "failed to write to standard output");
    }
}

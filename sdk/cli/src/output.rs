//! Output for people and programs: sentences, or with `--json` one document on standard output, or one for each event.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal as _, Write as _};

use anyhow::Error;
use serde_json::{Value, json};

/// How results are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    is_json: bool,
}

impl Output {
    pub(crate) fn new(is_json: bool) -> Output {
        Output { is_json }
    }

    /// Prints a result.
    pub(crate) fn result(&self, text: &str, document: &Value) {
        if self.is_json {
            print(&format!("{document:#}"));
        } else {
            print(text.trim_end());
        }
    }

    /// Prints progress, only for people.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_json {
            note_line(text);
        }
    }

    /// Prints what has happened in a command that runs until it is stopped: a line for people, or a document in one line.
    pub(crate) fn event(&self, text: impl Display, document: &Value) {
        if self.is_json {
            print(&document.to_string());
        } else {
            note_line(text);
        }
    }

    /// Prints why the command failed.
    pub(crate) fn error(&self, error: &Error) {
        if self.is_json {
            print(&format!("{:#}", json!({ "error": format!("{error:#}") })));
        } else {
            note_line(format_args!("error: {error:#}"));
        }
    }
}

/// Writes a line to standard output. A reader that has stopped, as `head` does, misses nothing. If the line cannot be
/// written for another reason, such as a full disk, the program ends with 1, since its result is lost.
fn print(text: &str) {
    if let Err(error) = writeln!(std::io::stdout().lock(), "{text}")
        && error.kind() != ErrorKind::BrokenPipe
    {
        note_line(format_args!(
            "error: cannot write to standard output: {error}"
        ));
        std::process::exit(1);
    }
}

/// Writes a line to standard error, as long as somebody reads it: with `2>&1` that is the same reader.
pub(crate) fn note_line(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Returns whether lines on standard error may have colours: it is a terminal, and its user has not turned them off
/// (<https://no-color.org>).
pub(crate) fn has_colours() -> bool {
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_off && std::io::stderr().is_terminal()
}

/// Formats a number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    const KB: f64 = 1000.0;
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let bytes = bytes as f64;
    if bytes < KB {
        format!("{bytes} B")
    } else if bytes < KB * KB {
        format!("{:.0} KB", bytes / KB)
    } else {
        format!("{:.2} MB", bytes / KB / KB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_at_most() {
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (36_400, "36 KB"),
            (1_070_000, "1.07 MB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}

//! A variable's name and value, as people and scripts pass them.

use std::io::{IsTerminal as _, Read as _};

use crate::ask;
use crate::failure::{Failure, Result};

/// The maximum number of bytes that are read from standard input; the cloud accepts 100,000
/// characters.
const MOST_BYTES: u64 = 1 << 20;

/// Checks that an argument is a name without a value.
pub(super) fn bare(name: String) -> Result<String> {
    if name.contains('=') {
        Err(Failure::usage(
            "the value is given twice: after `=`, and on standard input",
        ))
    } else {
        Ok(name)
    }
}

/// Reads standard input; at a terminal, the input is not shown.
pub(super) fn from_stdin() -> Result<String> {
    if std::io::stdin().is_terminal() {
        return ask::secret("Value", "what is piped to standard input");
    }
    let mut value = String::new();
    std::io::stdin()
        .take(MOST_BYTES)
        .read_to_string(&mut value)
        .map_err(|error| {
            Failure::failed("the value cannot be read from standard input").because(error)
        })?;
    let line = value.strip_suffix('\n').unwrap_or(&value);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// Parses `NAME VALUE` or `NAME=VALUE`.
pub(super) fn pair(name: String, value: Option<String>) -> Result<(String, String)> {
    match (name.split_once('='), value) {
        (None, Some(value)) => Ok((name, value)),
        (Some((name, value)), None) => Ok((name.to_owned(), value.to_owned())),
        (Some(_), Some(_)) => Err(Failure::usage(
            "the value is given twice: after `=`, and by itself",
        )),
        (None, None) => Err(Failure::usage(format!("the value of `{name}` is missing"))
            .hint("write `NAME VALUE` or `NAME=VALUE`; `NAME=` sets it to nothing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_a_name_and_a_value_in_one_word_or_two() {
        for (name, value, expected) in [
            ("A", Some("1"), Some(("A", "1"))),
            ("A=1", None, Some(("A", "1"))),
            ("A=", None, Some(("A", ""))),
            ("A=b=c", None, Some(("A", "b=c"))),
            ("A", Some("b=c"), Some(("A", "b=c"))),
            ("A", None, None),
            ("A=1", Some("2"), None),
        ] {
            let pair = pair(name.to_owned(), value.map(str::to_owned)).ok();
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(pair, expected, "{name} {value:?}");
        }
    }
}

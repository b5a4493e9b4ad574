//! Errors of the form of a TOML file, in words for the person who wrote it: those of the parser name types of Rust.
//!
//! The files are those of authors, `plugin.toml`, `device.toml` and tests, and those of a device's owner, the policy and
//! the supervisor's configuration file.

/// How the message about an unknown key begins.
const UNKNOWN_KEY: &str = "there is no key ";

/// The reason why a text is not TOML, or not of the form that it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormError {
    /// Where it is, in bytes from the beginning of the text.
    pub offset: usize,
    /// What is wrong there, in a sentence.
    pub message: String,
}

impl FormError {
    /// Translates an error of the parser.
    #[must_use]
    pub fn new(error: &toml::de::Error) -> FormError {
        FormError {
            offset: error.span().map_or(0, |span| span.start),
            message: FormError::in_words(error.message()),
        }
    }

    /// Returns whether it is about a key that the text must not have.
    #[must_use]
    pub(crate) fn is_unknown_key(&self) -> bool {
        self.message.starts_with(UNKNOWN_KEY)
    }

    /// Returns the message after its place in `text`, the parsed text: `line 2, column 1: …`.
    #[must_use]
    pub fn with_place(&self, text: &str) -> String {
        let (line, column) = line_and_column(text, self.offset);
        format!("line {line}, column {column}: {}", self.message)
    }

    /// Returns what a parser says without types of Rust: one of TOML, or one of JSON whose message has no place.
    #[must_use]
    pub fn in_words(message: &str) -> String {
        let message = message.trim_end();
        if let Some((name, names)) = split(message, "unknown field ") {
            return format!("{UNKNOWN_KEY}{name} here; the keys are {names}");
        }
        if let Some((name, names)) = split(message, "unknown variant ") {
            return format!("{name} is not known here; choose one of {names}");
        }
        if let Some(name) = message.strip_prefix("missing field ") {
            return format!("{name} is missing");
        }
        if message == "wanted string or table" {
            return "a string is expected".to_owned();
        }
        for kind in ["invalid type: ", "invalid value: "] {
            if let Some((found, expected)) = split(message, kind) {
                return format!(
                    "{} is expected, but this is {}",
                    noun(expected),
                    noun(found)
                );
            }
        }
        message.to_owned()
    }
}

/// Returns line and column, counted from 1 and in characters, as editors do.
#[must_use]
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// Splits `KIND x, expected one of a, b` into `x` and `a, b`.
fn split<'a>(message: &'a str, kind: &str) -> Option<(&'a str, &'a str)> {
    let (found, expected) = message.strip_prefix(kind)?.rsplit_once(", expected ")?;
    Some((found, expected.strip_prefix("one of ").unwrap_or(expected)))
}

/// Names a type or a value of the parser as TOML does.
fn noun(text: &str) -> String {
    let named = match text {
        "a map" | "map" => "a table",
        "a sequence" | "sequence" => "a list",
        "a boolean" => "`true` or `false`",
        "f64" => "a number",
        "u8" => "a whole number of at most 8 bits",
        "u16" => "a whole number of at most 16 bits",
        "u32" => "a whole number of at most 32 bits",
        "u64" => "a whole number of at most 64 bits",
        "path string" => "a path",
        "semver version" => "a version such as \"0.1.0\"",
        _ => {
            return match text.split_once(' ') {
                Some(("integer", value)) => format!("the number {value}"),
                Some(("floating", value)) => {
                    format!("the number {}", value.trim_start_matches("point "))
                }
                Some(("boolean", value)) => value.to_owned(),
                Some(("string", value)) => format!("the text {value}"),
                _ => text.to_owned(),
            };
        }
    };
    named.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_parser_are_reported_without_types_of_rust() {
        for (message, expected) in [
            (
                "unknown field `nme`, expected one of `name`, `version`",
                "there is no key `nme` here; the keys are `name`, `version`",
            ),
            (
                "unknown field `a, expected b`, expected `name` or `version`",
                "there is no key `a, expected b` here; the keys are `name` or `version`",
            ),
            (
                "unknown variant `stor`, expected one of `device`, `store`",
                "`stor` is not known here; choose one of `device`, `store`",
            ),
            ("missing field `name`", "`name` is missing"),
            (
                "invalid type: integer `5`, expected a string",
                "a string is expected, but this is the number `5`",
            ),
            (
                "invalid type: floating point `0.5`, expected semver version",
                "a version such as \"0.1.0\" is expected, but this is the number `0.5`",
            ),
            (
                "invalid type: string \"a, b\", expected a sequence",
                "a list is expected, but this is the text \"a, b\"",
            ),
            (
                "invalid type: sequence, expected a map",
                "a table is expected, but this is a list",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "a whole number of at most 32 bits is expected, but this is the number `-1`",
            ),
            (
                "invalid type: string \"yes\", expected a boolean",
                "`true` or `false` is expected, but this is the text \"yes\"",
            ),
            (
                "invalid type: boolean `true`, expected path string",
                "a path is expected, but this is `true`",
            ),
            ("wanted string or table", "a string is expected"),
            ("duplicate key", "duplicate key"),
            ("", ""),
        ] {
            assert_eq!(FormError::in_words(message), expected, "{message}");
        }
    }

    #[test]
    fn an_error_names_its_line_and_column() {
        let text = "a = true\nb = 5\n";
        let error = toml::from_str::<std::collections::BTreeMap<String, bool>>(text).unwrap_err();
        let shown = FormError::new(&error).with_place(text);
        assert_eq!(
            shown,
            "line 2, column 5: `true` or `false` is expected, but this is the number `5`"
        );
        let error = toml::from_str::<toml::Table>("a = 1\nb = \"x").unwrap_err();
        let shown = FormError::new(&error).with_place("a = 1\nb = \"x");
        assert!(shown.starts_with("line 2, column "), "{shown}");
    }

    #[test]
    fn a_place_counts_characters() {
        let text = "é = 1\nü = ö\n";
        for (offset, expected) in [
            (0, (1, 1)),
            (3, (1, 3)),
            (7, (2, 1)),
            (12, (2, 5)),
            (99, (3, 1)),
        ] {
            assert_eq!(line_and_column(text, offset), expected, "{offset}");
        }
    }
}

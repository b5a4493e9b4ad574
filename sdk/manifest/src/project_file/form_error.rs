//! Errors of the form of a `plugin.toml`, in words for its author: those of the parser name types of Rust.

/// The reason why a text does not have the form of a `plugin.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormError {
    /// Where it is, in bytes from the beginning of the text.
    pub offset: usize,
    /// What is wrong there, in a sentence.
    pub message: String,
}

impl FormError {
    pub(super) fn new(error: &toml::de::Error) -> FormError {
        FormError {
            offset: error.span().map_or(0, |span| span.start),
            message: in_words(error.message()),
        }
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

/// Says what the parser says, in words for an author.
fn in_words(message: &str) -> String {
    let message = message.trim_end();
    if let Some((name, names)) = split(message, "unknown field ") {
        return format!("there is no key {name} here; the keys are {names}");
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
        "u32" => "a whole number of at most 32 bits",
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
    fn what_the_parser_says_is_said_without_types_of_rust() {
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
            ("wanted string or table", "a string is expected"),
            ("duplicate key", "duplicate key"),
            ("", ""),
        ] {
            assert_eq!(in_words(message), expected, "{message}");
        }
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

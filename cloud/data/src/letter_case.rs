//! Upper and lower case in filters: `tolower` and `toupper`, the same on both databases.
//!
//! PostgreSQL's own `lower` depends on a collation, and which collations know more than ASCII depends on the version,
//! on how the server was built and on the system beneath it. SQLite knows only ASCII. So both use one table, that of
//! this program: the simple mapping of Unicode, one character to one, which PostgreSQL has in `C.UTF-8`. In SQLite it
//! is a function of each connection, in PostgreSQL a function of the database.

pub(crate) mod postgres;

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value, ValueRef};

/// The names of the functions in both databases.
pub(crate) const LOWER: &str = "platform_lower";
pub(crate) const UPPER: &str = "platform_upper";

/// The ranges with cased letters: between them are East Asian characters, after them pictographs.
const CASED: [RangeInclusive<char>; 3] = [
    '\u{80}'..='\u{2e7f}',
    '\u{a640}'..='\u{abff}',
    '\u{fb00}'..='\u{1efff}',
];

/// All letters beyond ASCII that have another case. They are computed once, since each start needs them twice.
static LETTERS: LazyLock<Vec<char>> = LazyLock::new(|| {
    let characters = CASED.into_iter().flatten();
    characters.filter(|it| has_case(*it)).collect()
});

fn has_case(character: char) -> bool {
    lower(character) != character || upper(character) != character
}

fn lower(character: char) -> char {
    // Only `İ` has two characters in lower case, and the first one is its simple mapping.
    character.to_lowercase().next().unwrap_or(character)
}

fn upper(character: char) -> char {
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next(), character) {
        (Some(one), None, _) => one,
        // Greek letters with an iota below, which the full mapping writes next to them.
        (_, _, '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}') => {
            after(character, 8)
        }
        (_, _, '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}') => after(character, 9),
        // `ß` and ligatures.
        _ => character,
    }
}

fn after(character: char, by: u32) -> char {
    char::from_u32(u32::from(character) + by).unwrap_or(character)
}

/// Adds the functions to a connection of SQLite.
///
/// # Errors
/// If SQLite does not accept the functions.
pub(crate) fn add_to(connection: &Connection) -> rusqlite::Result<()> {
    for (name, ascii, mapping) in [
        (
            LOWER,
            str::to_ascii_lowercase as fn(&str) -> String,
            lower as fn(char) -> char,
        ),
        (UPPER, str::to_ascii_uppercase, upper),
    ] {
        let flags = FunctionFlags::SQLITE_UTF8
            | FunctionFlags::SQLITE_DETERMINISTIC
            | FunctionFlags::SQLITE_INNOCUOUS;
        connection.create_scalar_function(name, 1, flags, move |arguments| {
            Ok(match arguments.get_raw(0) {
                ValueRef::Text(text) if text.is_ascii() => {
                    Value::Text(ascii(&String::from_utf8_lossy(text)))
                }
                ValueRef::Text(text) => {
                    let text = String::from_utf8_lossy(text);
                    Value::Text(text.chars().map(mapping).collect())
                }
                // Null, or a number, which has no case.
                _ => arguments.get(0)?,
            })
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_with_a_case_stands_where_none_is_looked_for() {
        let all = ('\u{80}'..=char::MAX).filter(|it| has_case(*it));
        assert!(all.eq(LETTERS.iter().copied()));
    }

    #[test]
    fn each_character_has_one_in_the_other_case() {
        let change = |text: &str, mapping: fn(char) -> char| -> String {
            text.chars().map(mapping).collect()
        };
        for (text, in_lower, in_upper) in [
            ("École", "école", "ÉCOLE"),
            ("Straße", "straße", "STRAßE"),
            ("ΣΊΣΥΦΟΣ", "σίσυφοσ", "ΣΊΣΥΦΟΣ"),
            ("Жук", "жук", "ЖУК"),
            ("İıſ", "iıſ", "İIS"),
            ("ᾳᾼ", "ᾳᾳ", "ᾼᾼ"),
            ("ŉﬁ", "ŉﬁ", "ŉﬁ"),
            ("日本 🙂", "日本 🙂", "日本 🙂"),
        ] {
            assert_eq!(change(text, lower), in_lower, "{text}");
            assert_eq!(change(text, upper), in_upper, "{text}");
        }
    }
}

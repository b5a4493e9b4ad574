//! Upper and lower case as functions of a PostgreSQL database.

use sha2::{Digest as _, Sha256};

use super::{LETTERS, LOWER, UPPER, lower, upper};
use crate::error::DataError;
use crate::setting;
use crate::statement::BuiltStatement;
use crate::transaction::Transaction;

/// Collations of PostgreSQL that, if they exist, also use the simple mapping: those of libc, and its own from version
/// 17.
const COLLATIONS: &str = "SELECT collname::text FROM pg_collation \
     WHERE collname IN ('C.UTF-8', 'C.utf8', 'pg_c_utf8') AND collnamespace = 'pg_catalog'::regnamespace \
     AND collencoding IN (-1, pg_char_to_encoding('UTF8')) ORDER BY collname";

/// Creates the functions of a PostgreSQL database, or replaces them if they differ from the expected ones.
///
/// # Errors
/// If a statement fails.
pub(crate) async fn add_to(transaction: &mut Transaction) -> Result<(), DataError> {
    let encoding = BuiltStatement::new("SELECT current_setting('server_encoding')", []);
    let encoding = transaction.texts(&encoding).await?.pop().flatten();
    let collations: Vec<String> = match encoding.as_deref() {
        Some("UTF8") => {
            let names = transaction
                .texts(&BuiltStatement::new(COLLATIONS, []))
                .await?;
            names.into_iter().flatten().collect()
        }
        _ => Vec::new(),
    };
    for (name, ascii, mapping) in [
        (LOWER, "lower", lower as fn(char) -> char),
        (UPPER, "upper", upper),
    ] {
        let beyond = match encoding.as_deref() {
            Some("UTF8") => Some(beyond_ascii(transaction, &collations, ascii, mapping).await?),
            // Other encodings do not have these letters.
            _ => None,
        };
        let ascii = format!("{ascii}($1 COLLATE \"C\")");
        let body = match beyond {
            None => ascii,
            Some(beyond) => format!(
                "CASE WHEN octet_length($1) = char_length($1) THEN {ascii} ELSE {beyond} COLLATE \"C\" END"
            ),
        };
        let script = format!(
            "CREATE OR REPLACE FUNCTION {name}(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE \
             AS $function$SELECT {body}$function$;"
        );
        let key = format!("function {name}");
        let digest = hex::encode(Sha256::digest(&script));
        if setting::read(transaction, &key).await?.as_ref() != Some(&digest) {
            transaction.script(script).await?;
            setting::write(transaction, &key, &digest).await?;
        }
    }
    Ok(())
}

/// Returns an expression for the case of the text `$1`, for all letters: a collation that agrees with the mapping once
/// the letters that it lacks are added, otherwise a list of all letters, which takes a hundred times as long.
async fn beyond_ascii(
    transaction: &mut Transaction,
    collations: &[String],
    function: &str,
    mapping: fn(char) -> char,
) -> Result<String, DataError> {
    let letters = LETTERS.as_slice();
    let expected: Vec<char> = letters.iter().map(|&it| mapping(it)).collect();
    for collation in collations {
        let by = |text: &str| format!("{function}({text} COLLATE \"{collation}\")");
        let answered = answer(transaction, &by("$1"), letters).await?;
        if answered.len() != expected.len() {
            continue;
        }
        let unknown = differing(letters, &expected, &answered);
        let expression = if unknown.0.is_empty() {
            by("$1")
        } else {
            by(&translated("$1", &unknown))
        };
        if answer(transaction, &expression, letters).await? == expected {
            return Ok(expression);
        }
    }
    let ascii = format!("{function}($1 COLLATE \"C\")");
    Ok(translated(&ascii, &differing(letters, &expected, letters)))
}

async fn answer(
    transaction: &mut Transaction,
    expression: &str,
    letters: &[char],
) -> Result<Vec<char>, DataError> {
    let text: String = letters.iter().collect();
    let select = BuiltStatement::new(format!("SELECT {expression}"), [text.into()]);
    let answer = transaction.texts(&select).await?.pop().flatten();
    Ok(answer.unwrap_or_default().chars().collect())
}

/// Returns the letters for which the database returned an unexpected case, and the expected case of each.
fn differing(letters: &[char], expected: &[char], answered: &[char]) -> (String, String) {
    let pairs = letters.iter().zip(expected).zip(answered);
    pairs
        .filter(|((_, expected), answered)| expected != answered)
        .map(|((letter, expected), _)| (*letter, *expected))
        .unzip()
}

fn translated(text: &str, (from, to): &(String, String)) -> String {
    format!("translate({text}, '{from}', '{to}')")
}

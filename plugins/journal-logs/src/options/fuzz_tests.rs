//! Bodies that nobody would send: each is refused with a message, or passes only allowed options to the
//! journal.

use fuzz::mutated;
use fuzz::values::changed;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"\"",
    "null",
    "true",
    "-1",
    "1.5",
    "1e400",
    "18446744073709551616",
    "\"all\":",
    "\"count\":",
    "\"unit\":",
    "\"since\":",
    "\"--",
    "\\u0000",
    "\\ud800",
];
const NAMES: &[&str] = &[
    "all",
    "follow",
    "count",
    "unit",
    "containerId",
    "format",
    "since",
    "until",
    "other",
];
const TEXTS: &[&str] = &[
    "",
    "-",
    "--output=export",
    "-u",
    "on",
    "1",
    "0",
    "yes",
    "99999999999999999999",
    "5.5",
    "json",
    "yesterday",
    "ssh.service",
    "a\u{0}b",
    "a\nb",
    " -x",
];

fn check(body: &[u8]) -> Result<(), TestCaseError> {
    match serde_json::from_slice::<JournalRequest>(body) {
        Ok(request) => {
            let options = request.options();
            prop_assert_ne!(options.count, Some(0));
            let texts = [
                options.unit,
                options.identifier,
                options.since,
                options.until,
                options.format,
            ];
            for text in texts.into_iter().flatten() {
                prop_assert!(
                    !text.is_empty() && text.len() <= LONGEST,
                    "{} bytes",
                    text.len()
                );
                // With a digit it is a time before now, such as `-1h`, and not an option.
                let rest = text.strip_prefix('-');
                let is_option =
                    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
                prop_assert!(!is_option && !text.contains('\0'), "{:?}", text);
            }
        }
        // If the SDK repeats a value from the request, it shortens it.
        Err(error) => prop_assert!(error.to_string().len() < 500 + body.len(), "{}", error),
    }
    Ok(())
}

#[test]
fn any_journal_query_is_refused_or_within_bounds() {
    let whole = json!({
        "all": true, "follow": "on", "count": "5", "unit": "ssh.service", "containerId": "abc",
        "format": "json", "since": "yesterday", "until": "today", "other": [],
    });
    let texts = mutated(vec![whole.to_string()], WORDS);
    let inputs = prop_oneof![
        texts,
        changed(vec![whole], NAMES, TEXTS).prop_map(|value| value.to_string()),
    ];
    fuzz::run("journal-options", 3000, &inputs, |body| {
        check(body.as_bytes())
    });
}

//! Fuzz tests with unusual compose files: each is accepted or refused quickly, and an accepted one can be sent.

use std::path::Path;
use std::time::{Duration, Instant};

use fuzz::{corpus, mutated};
use proptest::prelude::*;

use super::{Composition, MOST};

/// Files, one per line: typical ones, and ones that once caused problems.
const CORPUS: &str = include_str!("corpus.txt");
const WORDS: &[&str] = &[
    "services:",
    "\n  a:",
    "\n    image: x",
    "image: ./a.wasm",
    "image: file:",
    "build: .",
    "depends_on: [a]",
    "depends_on: { a: {} }",
    "networks: [n]",
    "volumes: ['v:/v']",
    "volumes: [{ type: volume, source: v }]",
    "volumes: { v: }",
    "networks: { n: }",
    "include: []",
    "secrets: {}",
    "configs:",
    "extends: a",
    "env_file: .env",
    "<<: *a",
    "&a ",
    "*a",
    "!!str ",
    "!!binary ",
    "!x ",
    "| \n",
    ">- \n",
    "---\n",
    "...\n",
    "? ",
    ": ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "'",
    "\"",
    "#",
    "\t",
    "\n",
    "%YAML 1.2\n",
    "0x7fffffffffffffff",
    "1e400",
    ".nan",
    ".inf",
    "2026-01-01",
    "no",
    "~",
    "null",
    "true",
    "\u{feff}",
];
/// Far longer than any file of a million bytes takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// Reads a compose file.
fn read(text: &str) -> Result<(), TestCaseError> {
    if text.len() as u64 > MOST {
        return Ok(());
    }
    let begun = Instant::now();
    match Composition::parse(text, Path::new("/srv")) {
        Ok(composition) => {
            prop_assert!(!composition.services.is_empty());
            let sent = composition.value.to_string();
            let back: serde_json::Value = serde_json::from_str(&sent)
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            // Numbers beyond 64 bits may come back as a neighbouring value.
            prop_assert_eq!(
                back["services"].as_object().map(serde_json::Map::len),
                Some(composition.services.len())
            );
        }
        Err(failure) => {
            prop_assert!(!failure.to_string().is_empty());
            prop_assert!(
                failure.to_string().len() < 4_000,
                "an error that repeats the file"
            );
        }
    }
    prop_assert!(
        begun.elapsed() < PATIENCE,
        "{} bytes took {:?}",
        text.len(),
        begun.elapsed()
    );
    Ok(())
}

#[test]
fn any_compose_file_is_read_or_refused() {
    let files = corpus(CORPUS);
    for file in &files {
        assert!(read(file).is_ok(), "{file}: {:?}", read(file));
    }
    fuzz::run("compose", 1000, &mutated(files, WORDS), |text| read(&text));
}

#[test]
fn a_compose_file_that_nests_or_repeats_itself_without_end_is_refused() {
    let deep = |open: &str, times: usize| {
        format!("services: {{ a: {{ image: x, y: {}", open.repeat(times))
    };
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, of) in "bcdefghij".chars().zip("abcdefghi".chars()) {
        let items = vec![format!("*{of}"); 10].join(", ");
        bomb.push_str(&format!("{name}: &{name} [{items}]\n"));
    }
    bomb.push_str("services: { s: { image: x, y: *j } }\n");
    let keys: String = (0..50_000)
        .map(|number| format!("x{number}: 1\n"))
        .collect();
    for text in [
        deep("[", 100_000),
        deep("{ a: ", 100_000),
        deep("- ", 100_000),
        bomb,
        keys,
    ] {
        assert!(read(&text).is_ok(), "{:.60}: {:?}", text, read(&text));
    }
}

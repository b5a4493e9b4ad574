//! Unlikely input for parsers, statements and endpoints.
//!
//! A target is a test like any other: [`run`] calls it with a limited number of inputs, the same ones each time, so it
//! takes seconds and never fails by chance. With `FUZZ_SECONDS` (which `cargo xtask fuzz` sets) it receives new ones
//! for that time. Inputs that once made it fail are lines of a file next to it, the corpus, which is tried first and
//! from which further inputs are derived; a failure prints the smallest failing input, to be added there.
//!
//! Coverage is not measured: that needs a compiler that this project does not build with. Inputs come from grammars
//! that know the language, and from [`mutated`] texts that do not.
#![expect(
    clippy::panic,
    reason = "an input that makes a target fail is to fail its test"
)]

pub mod values;
pub mod variants;

use std::fmt::Debug;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseResult, TestError, TestRunner};

/// The variable that makes a target run for this many seconds.
pub const SECONDS: &str = "FUZZ_SECONDS";
/// The number of inputs between two checks of the time.
const BATCH: u32 = 50;

/// Calls `test` with inputs: `cases` of them, or as many as fit into [`SECONDS`].
///
/// # Panics
/// With the smallest input for which `test` fails.
pub fn run<S>(target: &str, cases: u32, inputs: &S, test: impl Fn(S::Value) -> TestCaseResult)
where
    S: Strategy,
    S::Value: Debug,
{
    let seconds = std::env::var(SECONDS).ok().and_then(|it| it.parse().ok());
    let Some(seconds) = seconds else {
        let mut runner = TestRunner::new_with_rng(config(cases), steady());
        return judge(target, runner.run(inputs, test));
    };
    let (begun, mut tried) = (Instant::now(), 0_u64);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let mut runner = TestRunner::new(config(BATCH));
        judge(target, runner.run(inputs, &test));
        tried += u64::from(BATCH);
    }
    println!(
        "{target}: {tried} inputs in {} s",
        begun.elapsed().as_secs()
    );
}

fn config(cases: u32) -> Config {
    Config {
        cases,
        // A failure is kept in the corpus as its input, where a change of the grammar does not lose it.
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    }
}

fn steady() -> proptest::test_runner::TestRng {
    proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha)
}

fn judge<T: Debug>(target: &str, result: Result<(), TestError<T>>) {
    match result {
        Ok(()) => {}
        Err(TestError::Abort(why)) => panic!("{target}: no inputs could be made: {why}"),
        Err(TestError::Fail(why, input)) => {
            panic!("{target}: {why}\nthe smallest input that was found, for the corpus:\n{input:?}")
        }
    }
}

/// Returns the lines of a corpus: one text each, with `\n` for a new line; lines that begin with `#` are comments.
#[must_use]
pub fn corpus(file: &str) -> Vec<String> {
    let lines = file
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.replace("\\n", "\n")).collect()
}

/// One change of a text.
#[derive(Debug, Clone)]
enum Change {
    /// Inserts a word.
    Insert(usize, String),
    /// Removes characters.
    Cut(usize, usize),
    /// Repeats characters.
    Repeat(usize, usize, usize),
    /// Continues with a part of another text.
    Splice(usize, usize, String),
}

/// Texts of a corpus with a few changes, some of which insert words of a language.
pub fn mutated(corpus: Vec<String>, words: &'static [&'static str]) -> BoxedStrategy<String> {
    let word = prop_oneof![
        4 => select(words).prop_map(str::to_owned),
        1 => any::<char>().prop_map(|it| it.to_string()),
        1 => select(&["\0", "%", "'", "\"", "\\", "(", ")", "{", "[", "\u{202e}", "é", "𝄞", "-1", "9223372036854775808", "1e999"][..])
            .prop_map(str::to_owned),
    ];
    let texts = corpus.clone();
    let change = prop_oneof![
        (any::<usize>(), word).prop_map(|(at, word)| Change::Insert(at, word)),
        (any::<usize>(), 1_usize..12).prop_map(|(at, length)| Change::Cut(at, length)),
        (any::<usize>(), 1_usize..12, 1_usize..40)
            .prop_map(|(at, length, times)| Change::Repeat(at, length, times)),
        (any::<usize>(), any::<usize>(), select(texts))
            .prop_map(|(at, from, other)| Change::Splice(at, from, other)),
    ];
    (select(corpus), prop::collection::vec(change, 0..5))
        .prop_map(|(text, changes)| {
            let mut characters: Vec<char> = text.chars().collect();
            for change in changes {
                apply(&mut characters, change);
            }
            characters.into_iter().collect()
        })
        .boxed()
}

fn apply(characters: &mut Vec<char>, change: Change) {
    let end = characters.len();
    let place = |at: usize| at % (end + 1);
    match change {
        Change::Insert(at, word) => {
            let at = place(at);
            characters.splice(at..at, word.chars());
        }
        Change::Cut(at, length) => {
            let at = place(at);
            characters.drain(at..end.min(at + length));
        }
        Change::Repeat(at, length, times) => {
            let at = place(at);
            let piece = characters[at..end.min(at + length)].repeat(times);
            characters.splice(at..at, piece);
        }
        Change::Splice(at, from, other) => {
            let other: Vec<char> = other.chars().collect();
            let from = from % (other.len() + 1);
            characters.truncate(place(at));
            characters.extend(&other[from..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_fails_tells_the_smallest_input_and_one_that_does_not_is_silent() {
        run("whole", 200, &"[a-z]{0,9}", |_| Ok(()));
        let failed = std::panic::catch_unwind(|| {
            run("short", 200, &(0_u32..1000), |number| {
                prop_assert!(number < 100, "too large");
                Ok(())
            });
        });
        let message = failed.expect_err("a failure");
        let message = message.downcast_ref::<String>().expect("a text");
        assert!(
            message.contains("too large") && message.ends_with("\n100"),
            "{message}"
        );
    }

    #[test]
    fn texts_are_changed_and_stay_texts() {
        let texts = corpus("# a comment\n\n/device?$filter=id eq 1\na\\nb\n");
        assert_eq!(texts, ["/device?$filter=id eq 1", "a\nb"]);
        run(
            "mutated",
            300,
            &mutated(texts, &["$filter", "any("]),
            |_| Ok(()),
        );
    }
}

//! The clocks of JavaScript, which belong to the language and not to a module of the SDK. Without the capability `clock` they
//! work only while the plugin is imported; the SDK's errors in calls say so, and the build says it earlier.

use std::path::PathBuf;

use super::calls::line_in_function;
use super::imports::words;
use crate::languages::source_code::{Syntax, bare_code_of};
use crate::project::ProjectFolder;

/// How a source reads a clock: as a warning names it, and its first and second word.
const CLOCKS: [(&str, &str, &str); 3] = [
    ("`Date.now`", "Date", ".now"),
    ("`performance.now`", "performance", ".now"),
    ("`new Date()`", "new", "Date"),
];

/// Returns a warning for each file of a plugin without a clock that reads one in a function. It is not an error: the function
/// may be one that runs only while the plugin is imported.
pub(super) fn warnings(project: &ProjectFolder, files: &[PathBuf]) -> Vec<String> {
    let found = files.iter().filter_map(|file| {
        let (clock, line) = clock_and_line(&bare_code_of(file, Syntax::JavaScript))?;
        let file = file.strip_prefix(&project.path).unwrap_or(file);
        Some(format!(
            "{clock} is used in {}:{line}, but [capabilities] in plugin.toml does not ask for `clock`, without which it is an \
             error in a call: add `clock = \"why\"`",
            file.display()
        ))
    });
    found.collect()
}

/// Returns the first clock that a function reads, and its line, counted from 1.
fn clock_and_line(code: &str) -> Option<(&'static str, usize)> {
    let found = CLOCKS.into_iter().filter_map(|(clock, first, second)| {
        let line = line_in_function(code, |line| place_of_clock(line, first, second))?;
        Some((clock, line))
    });
    found.min_by_key(|(_, line)| *line)
}

/// Returns the first position in a line where a clock is read.
fn place_of_clock(line: &str, first: &str, second: &str) -> Option<usize> {
    words(line, first).find(|at| {
        // A property of an object of the author's own may have the same name.
        let before = line[..*at].trim_end_matches("globalThis.");
        let rest = line[at + first.len()..].trim_start();
        let Some(after) = rest.strip_prefix(second) else {
            return false;
        };
        // With an argument, it is a time of the plugin's own.
        let is_read = if first == "new" {
            after
                .trim_start()
                .strip_prefix('(')
                .is_some_and(|rest| rest.trim_start().starts_with(')'))
        } else {
            !after.starts_with(|char: char| char.is_alphanumeric() || char == '_')
        };
        !before.ends_with('.') && is_read
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clocks_that_a_function_reads_are_found() {
        let (date, new, performance) = ("`Date.now`", "`new Date()`", "`performance.now`");
        for (code, expected) in [
            ("const a = Date.now();", None),
            ("const a = new Date();", None),
            ("function f() {\n  return Date.now();\n}", Some((date, 2))),
            ("const f = () => new Date();", Some((new, 1))),
            ("const f = () => new Date( );", Some((new, 1))),
            (
                "const f = () => performance.now() - a;",
                Some((performance, 1)),
            ),
            ("const f = () => globalThis.Date.now();", Some((date, 1))),
            ("const f = () => clock.map(Date.now);", Some((date, 1))),
            (
                "const a = Date.now();\nfunction f() {\n  performance.now();\n  Date.now();\n}",
                Some((performance, 3)),
            ),
            ("const f = () => new Date(0);", None),
            ("const f = (a) => new Date(a);", None),
            ("const f = () => new MyDate();", None),
            ("const f = () => new Dates();", None),
            ("const f = () => own.Date.now();", None),
            ("const f = () => Date.nowhere();", None),
            ("const f = () => Date.parse(a);", None),
            ("const f = () => MyDate.now();", None),
            ("function f() {}\nconst a = new Date();", None),
            ("new Date", None),
            ("", None),
        ] {
            assert_eq!(clock_and_line(code), expected, "{code}");
        }
    }

    /// Attack: a source that takes time out of proportion to its length.
    #[test]
    fn a_long_source_takes_time_in_proportion_to_its_length() {
        let code = "() => new Date(".repeat(1 << 17);
        assert_eq!(clock_and_line(&code), None);
    }
}

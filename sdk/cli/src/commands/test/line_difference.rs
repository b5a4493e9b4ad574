//! The difference between two texts, line by line: `-` marks what was expected, `+` what there is.

use std::ops::Range;

/// How many equal lines are shown before and after a difference.
const CONTEXT: usize = 2;
/// The most lines that are shown.
const LINES: usize = 40;
/// The most characters of a line that are shown.
const CHARACTERS: usize = 160;
/// How many characters of a longer line are shown before the first that differs.
const BEFORE: usize = 40;
/// The most lines of a part that are compared with each other; in a longer part, all lines count as different.
const COMPARED: usize = 300;

/// Lines that are equal, or that differ.
enum Part<'a> {
    Equal(&'a [String]),
    Changed {
        expected: &'a [String],
        found: &'a [String],
    },
}

/// Returns the lines that differ, with some of those around them; none if all are equal.
pub(super) fn difference(expected: &[String], found: &[String]) -> Vec<String> {
    let parts = parts(expected, found);
    let mut lines = Vec::new();
    let last = parts.len().saturating_sub(1);
    for (at, part) in parts.iter().enumerate() {
        match part {
            Part::Equal(equal) => {
                let after = if at == 0 { 0 } else { CONTEXT };
                let before = if at == last { 0 } else { CONTEXT };
                show_equal(equal, after, before, &mut lines);
            }
            Part::Changed { expected, found } => {
                for (number, line) in expected.iter().enumerate() {
                    let other = found.get(number).map(String::as_str);
                    lines.push(format!("- {}", excerpt(line, other)));
                }
                for (number, line) in found.iter().enumerate() {
                    let other = expected.get(number).map(String::as_str);
                    lines.push(format!("+ {}", excerpt(line, other)));
                }
            }
        }
    }
    if parts.iter().all(|part| matches!(part, Part::Equal(_))) {
        return Vec::new();
    }
    bounded(lines)
}

/// Returns lines, the first ones if there are too many, and none longer than a terminal can show.
pub(super) fn listing(lines: &[String]) -> Vec<String> {
    let first = lines.iter().take(LINES + 1);
    let mut shown: Vec<String> = first.map(|line| excerpt(line, None)).collect();
    if lines.len() > LINES {
        shown.truncate(LINES);
        shown.push(rest(lines.len() - LINES));
    }
    shown
}

fn bounded(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > LINES {
        let more = lines.len() - LINES;
        lines.truncate(LINES);
        lines.push(rest(more));
    }
    lines
}

fn rest(lines: usize) -> String {
    format!("… ({lines} more lines)")
}

/// Shows the first and the last lines of an equal part, which follow and precede differences.
fn show_equal(equal: &[String], first: usize, last: usize, lines: &mut Vec<String>) {
    let shown = |line: &String| format!("  {}", excerpt(line, None));
    if equal.len() <= first + last {
        lines.extend(equal.iter().map(shown));
        return;
    }
    let (beginning, others) = equal.split_at(first);
    let (_, end) = others.split_at(others.len() - last);
    lines.extend(beginning.iter().map(shown));
    lines.push("  …".to_owned());
    lines.extend(end.iter().map(shown));
}

/// Returns a line, or of a long one the part around the first character that differs from the `other` line.
fn excerpt(line: &str, other: Option<&str>) -> String {
    let length = line.chars().count();
    if length <= CHARACTERS {
        return line.to_owned();
    }
    let equal = other.map_or(0, |other| {
        let pairs = line.chars().zip(other.chars());
        pairs.take_while(|(one, other)| one == other).count()
    });
    let start = equal.saturating_sub(BEFORE).min(length - CHARACTERS);
    let part: String = line.chars().skip(start).take(CHARACTERS).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if start + CHARACTERS < length {
        "…"
    } else {
        ""
    };
    format!("{before}{part}{after}")
}

fn parts<'a>(expected: &'a [String], found: &'a [String]) -> Vec<Part<'a>> {
    let pairs = expected.iter().zip(found);
    let start = pairs.take_while(|(one, other)| one == other).count();
    let (equal, expected) = expected.split_at(start);
    let (_, found) = found.split_at(start);
    let pairs = expected.iter().rev().zip(found.iter().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    let (expected, equal_end) = expected.split_at(expected.len() - end);
    let (found, _) = found.split_at(found.len() - end);

    let mut parts = vec![Part::Equal(equal)];
    let (mut from, mut from_found) = (0, 0);
    for run in equal_runs(expected, found) {
        parts.push(Part::Changed {
            expected: &expected[from..run.expected.start],
            found: &found[from_found..run.found.start],
        });
        (from, from_found) = (run.expected.end, run.found.end);
        parts.push(Part::Equal(&expected[run.expected]));
    }
    parts.push(Part::Changed {
        expected: &expected[from..],
        found: &found[from_found..],
    });
    parts.push(Part::Equal(equal_end));
    parts.retain(|part| match part {
        Part::Equal(equal) => !equal.is_empty(),
        Part::Changed { expected, found } => !expected.is_empty() || !found.is_empty(),
    });
    parts
}

/// The place of equal lines in both texts.
struct EqualRun {
    expected: Range<usize>,
    found: Range<usize>,
}

/// Returns the runs of a longest common subsequence.
fn equal_runs(expected: &[String], found: &[String]) -> Vec<EqualRun> {
    if expected.len() > COMPARED || found.len() > COMPARED {
        return Vec::new();
    }
    // The length of the longest common subsequence of what begins at each pair of lines.
    let mut lengths = vec![vec![0_usize; found.len() + 1]; expected.len() + 1];
    for row in (0..expected.len()).rev() {
        for column in (0..found.len()).rev() {
            lengths[row][column] = if expected[row] == found[column] {
                lengths[row + 1][column + 1] + 1
            } else {
                lengths[row + 1][column].max(lengths[row][column + 1])
            };
        }
    }
    let mut runs: Vec<EqualRun> = Vec::new();
    let (mut row, mut column) = (0, 0);
    while row < expected.len() && column < found.len() {
        if expected[row] == found[column] {
            match runs.last_mut() {
                Some(run) if run.expected.end == row && run.found.end == column => {
                    run.expected.end += 1;
                    run.found.end += 1;
                }
                _ => runs.push(EqualRun {
                    expected: row..row + 1,
                    found: column..column + 1,
                }),
            }
            row += 1;
            column += 1;
        } else if lengths[row + 1][column] >= lengths[row][column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn shown(expected: &str, found: &str) -> String {
        difference(&lines(expected), &lines(found)).join("|")
    }

    #[test]
    fn only_what_differs_is_shown_with_the_lines_around_it() {
        for (expected, found, difference) in [
            ("a b c", "a b c", ""),
            ("a b c", "a x c", "  a|- b|+ x|  c"),
            ("a b c", "a c", "  a|- b|  c"),
            ("a c", "a b c", "  a|+ b|  c"),
            ("a b c d e f g", "a b c d e f x", "  …|  e|  f|- g|+ x"),
            ("a b c d e f g", "x b c d e f g", "- a|+ x|  b|  c|  …"),
            (
                "a b c d e f g h",
                "x b c d e f g y",
                "- a|+ x|  b|  c|  …|  f|  g|- h|+ y",
            ),
            ("a b", "c d", "- a|- b|+ c|+ d"),
        ] {
            assert_eq!(shown(expected, found), difference, "{expected} {found}");
        }
        assert_eq!(difference(&lines("a"), &[]), ["- a"]);
        assert_eq!(difference(&[], &lines("a")), ["+ a"]);
    }

    #[test]
    fn a_long_line_is_shown_where_it_differs() {
        let one = format!("{}1{}", "x".repeat(1000), "y".repeat(1000));
        let other = format!("{}2{}", "x".repeat(1000), "y".repeat(1000));
        let shown = difference(&[one], &[other]);
        for (line, digit) in shown.iter().zip(["1", "2"]) {
            assert!(line.contains(digit), "{line}");
            assert!(line.chars().count() <= CHARACTERS + 4, "{line}");
        }
        assert_eq!(shown.len(), 2);
    }

    #[test]
    fn texts_of_any_length_are_shown_within_bounds() {
        let text = |word: &str| -> Vec<String> {
            (0..100_000)
                .map(|number| format!("{word}{number}"))
                .collect()
        };
        let shown = difference(&text("a"), &text("b"));
        assert_eq!(shown.len(), LINES + 1);
        assert_eq!(shown[LINES], "… (199960 more lines)");
        let shown = listing(&text("a"));
        assert_eq!(shown.len(), LINES + 1);
        assert_eq!(shown[LINES], "… (99960 more lines)");
        let long = listing(&["x".repeat(1 << 20)]);
        assert_eq!(long[0].chars().count(), CHARACTERS + 1);
    }
}

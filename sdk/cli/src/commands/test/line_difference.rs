//! The difference between two texts, line by line: `-` marks what was expected, `+` what there is.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};

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

/// Returns the lines that differ, with some of those around them; none if all are equal.
pub(super) fn difference(expected: &[String], found: &[String]) -> Vec<String> {
    let operations = operations(expected, found);
    let is_equal = |operation: &DiffOp| operation.tag() == DiffTag::Equal;
    if operations.iter().all(is_equal) {
        return Vec::new();
    }
    let mut lines = Vec::new();
    let last = operations.len().saturating_sub(1);
    for (at, operation) in operations.iter().enumerate() {
        let expected = &expected[operation.old_range()];
        let found = &found[operation.new_range()];
        if is_equal(operation) {
            let after = if at == 0 { 0 } else { CONTEXT };
            let before = if at == last { 0 } else { CONTEXT };
            show_equal(expected, after, before, &mut lines);
            continue;
        }
        for (number, line) in expected.iter().enumerate() {
            let other = found.get(number).map(String::as_str);
            lines.push(format!("- {}", excerpt(line, other)));
        }
        for (number, line) in found.iter().enumerate() {
            let other = expected.get(number).map(String::as_str);
            lines.push(format!("+ {}", excerpt(line, other)));
        }
    }
    bounded(lines)
}

/// Returns the equal and the different parts of two texts, in their order.
fn operations(expected: &[String], found: &[String]) -> Vec<DiffOp> {
    let pairs = expected.iter().zip(found);
    let start = pairs.take_while(|(one, other)| one == other).count();
    let pairs = expected[start..]
        .iter()
        .rev()
        .zip(found[start..].iter().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    let [old_len, new_len] = [expected, found].map(|lines| lines.len() - start - end);
    if old_len.max(new_len) <= COMPARED {
        return capture_diff_slices(Algorithm::Myers, expected, found);
    }
    let equal = |old_index, new_index, len| DiffOp::Equal {
        old_index,
        new_index,
        len,
    };
    let changed = DiffOp::Replace {
        old_index: start,
        old_len,
        new_index: start,
        new_len,
    };
    vec![
        equal(0, 0, start),
        changed,
        equal(start + old_len, start + new_len, end),
    ]
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

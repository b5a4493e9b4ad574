//! The difference between two texts, line by line: `-` marks what was expected, `+` what there is.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};

/// How many equal lines are shown before and after a difference.
const CONTEXT: usize = 2;
/// The most lines that are shown.
const LINES: usize = 40;
/// The most characters of a line that are shown: a message with its hint is whole.
const CHARACTERS: usize = 2000;
/// The most characters of all lines together that are shown. If there are more, the lines are shown in excerpts.
const ALL_CHARACTERS: usize = 8000;
/// The most characters of a line that is shown in an excerpt.
const EXCERPT: usize = 160;
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
    within_bounds(|characters| difference_of(&operations, expected, found, characters))
}

/// Returns the lines of a difference, of which none has more than these characters.
fn difference_of(
    operations: &[DiffOp],
    expected: &[String],
    found: &[String],
    characters: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    let last = operations.len().saturating_sub(1);
    for (at, operation) in operations.iter().enumerate() {
        let expected = &expected[operation.old_range()];
        let found = &found[operation.new_range()];
        if operation.tag() == DiffTag::Equal {
            let after = if at == 0 { 0 } else { CONTEXT };
            let before = if at == last { 0 } else { CONTEXT };
            show_equal(expected, [after, before], characters, &mut lines);
            continue;
        }
        for (number, line) in expected.iter().enumerate() {
            let other = found.get(number).map(String::as_str);
            lines.push(format!("- {}", excerpt(line, other, characters)));
        }
        for (number, line) in found.iter().enumerate() {
            let other = expected.get(number).map(String::as_str);
            lines.push(format!("+ {}", excerpt(line, other, characters)));
        }
    }
    bounded(lines)
}

/// Returns lines that a function writes with a limit for the characters of each: long ones, unless these are too many.
fn within_bounds(lines: impl Fn(usize) -> Vec<String>) -> Vec<String> {
    let whole = lines(CHARACTERS);
    let characters: usize = whole.iter().map(|line| line.chars().count()).sum();
    if characters <= ALL_CHARACTERS {
        return whole;
    }
    lines(EXCERPT)
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

/// Returns lines, the first ones if there are too many, and excerpts of those that are too long.
pub(super) fn listing(lines: &[String]) -> Vec<String> {
    within_bounds(|characters| {
        let first = lines.iter().take(LINES);
        let mut shown: Vec<String> = first.map(|line| excerpt(line, None, characters)).collect();
        if lines.len() > LINES {
            shown.push(rest(lines.len() - LINES));
        }
        shown
    })
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

/// Shows this many of the first and the last lines of an equal part, which follow and precede differences.
fn show_equal(
    equal: &[String],
    [first, last]: [usize; 2],
    characters: usize,
    lines: &mut Vec<String>,
) {
    let shown = |line: &String| format!("  {}", excerpt(line, None, characters));
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

/// Returns a line, or of one with more than these characters the part around the first that differs from the `other`
/// line.
fn excerpt(line: &str, other: Option<&str>, characters: usize) -> String {
    let length = line.chars().count();
    if length <= characters {
        return line.to_owned();
    }
    let equal = other.map_or(0, |other| {
        let pairs = line.chars().zip(other.chars());
        pairs.take_while(|(one, other)| one == other).count()
    });
    let start = equal.saturating_sub(BEFORE).min(length - characters);
    let part: String = line.chars().skip(start).take(characters).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if start + characters < length {
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
        let around = |digit| format!("{}{digit}{}", "x".repeat(5000), "y".repeat(5000));
        let shown = difference(&[around(1)], &[around(2)]);
        for (line, digit) in shown.iter().zip(["1", "2"]) {
            assert!(line.contains(digit), "{line}");
            assert!(line.chars().count() <= CHARACTERS + 4, "{line}");
        }
        assert_eq!(shown.len(), 2);
    }

    /// The hint at the end of a message is what its reader needs.
    #[test]
    fn a_message_of_some_lines_of_a_terminal_is_shown_whole() {
        let message = |length: usize| "é".repeat(length);
        assert_eq!(listing(&[message(CHARACTERS)]), [message(CHARACTERS)]);
        let cut = message(CHARACTERS) + "…";
        assert_eq!(listing(&[message(CHARACTERS + 1)]), [cut]);
        let shown = difference(&[message(300)], &[message(299)]);
        assert_eq!(
            shown,
            [format!("- {}", message(300)), format!("+ {}", message(299))]
        );
        // Many such messages are shown in excerpts, so that the later ones are shown as well.
        let many = listing(&vec![message(1000); 9]);
        assert_eq!(many, vec![message(EXCERPT) + "…"; 9]);
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
        let long = vec!["x".repeat(1 << 16); LINES];
        let other = vec!["y".repeat(1 << 16); LINES];
        for shown in [listing(&long), difference(&long, &other)] {
            let characters: usize = shown.iter().map(|line| line.chars().count()).sum();
            assert!(characters <= ALL_CHARACTERS, "{characters}");
        }
    }
}

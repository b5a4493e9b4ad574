//! Ranges of versions in contracts: adjacent comparators must all hold, `||` separates alternatives, and a bare version
//! means exactly that one (unlike in Cargo's ranges).

use semver::{Version, VersionReq};

/// The maximum number of comparators in one range; real ranges have two.
const MAX_COMPARATORS: usize = 32;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range(Vec<Vec<VersionReq>>);

impl Range {
    pub(super) fn parse(text: &str) -> Option<Range> {
        let mut room = MAX_COMPARATORS;
        let alternatives: Option<Vec<_>> = text
            .split("||")
            .map(|all| alternative(all, &mut room))
            .collect();
        alternatives.map(Range)
    }

    pub(super) fn has(&self, version: &Version) -> bool {
        let mut alternatives = self.0.iter();
        alternatives.any(|all| all.iter().all(|one| one.matches(version)))
    }
}

fn alternative(text: &str, room: &mut usize) -> Option<Vec<VersionReq>> {
    // `1.2 - 2.3`: both ends are included.
    if let Some((from, to)) = text.split_once(" - ") {
        let from = comparator(&format!(">={}", from.trim()))?;
        let to = comparator(&format!("<={}", to.trim()))?;
        *room = room.checked_sub(2)?;
        return Some(vec![from, to]);
    }
    let mut comparators = Vec::new();
    let mut operator = String::new();
    for word in text.split_whitespace() {
        // There may be white space between an operator and its version.
        operator.push_str(word);
        if word
            .chars()
            .all(|c| matches!(c, '<' | '>' | '=' | '^' | '~'))
        {
            continue;
        }
        *room = room.checked_sub(1)?;
        comparators.push(comparator(&std::mem::take(&mut operator))?);
    }
    operator.is_empty().then_some(comparators)
}

fn comparator(text: &str) -> Option<VersionReq> {
    let version = text.trim_start_matches(['<', '>', '=', '^', '~']);
    let operator = &text[..text.len() - version.len()];
    let version = version.trim_start_matches('v');
    // Any version at all.
    if matches!(version, "*" | "x" | "X" | "") {
        return operator.is_empty().then_some(VersionReq::STAR);
    }
    let operator = match operator {
        "" => "=",
        "~>" => "~",
        other => other,
    };
    let version = version.replace(['x', 'X'], "*");
    VersionReq::parse(&format!("{operator}{version}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_they_say() {
        for (range, inside, outside) in [
            ("", &["0.0.1", "9.9.9"][..], &[][..]),
            ("*", &["1.2.3"], &[]),
            ("1.2.3", &["1.2.3"], &["1.2.4", "1.3.0"]),
            ("v1.2.3", &["1.2.3"], &["1.2.4"]),
            (">=10.2.0", &["10.2.0", "11.0.0"], &["10.1.9"]),
            (">= 10.2.0 < 12", &["11.9.9"], &["12.0.0", "10.1.0"]),
            (">=10 <12", &["10.0.0"], &["12.0.0"]),
            ("^1.2", &["1.2.0", "1.9.0"], &["2.0.0", "1.1.0"]),
            ("~1.2", &["1.2.9"], &["1.3.0"]),
            ("~>1.2", &["1.2.9"], &["1.3.0"]),
            ("1.x", &["1.9.0"], &["2.0.0"]),
            ("1.2.3 || >=4", &["1.2.3", "5.0.0"], &["1.2.4"]),
            ("1.2 - 2.3", &["1.2.0", "2.3.9"], &["2.4.0", "1.1.0"]),
        ] {
            let parsed = Range::parse(range).unwrap_or_else(|| panic!("{range}"));
            for version in inside {
                assert!(
                    parsed.has(&version.parse().unwrap()),
                    "{version} in {range}"
                );
            }
            for version in outside {
                assert!(
                    !parsed.has(&version.parse().unwrap()),
                    "{version} in {range}"
                );
            }
        }
    }

    #[test]
    fn invalid_ranges_are_not_parsed() {
        let endless = ">=1 ".repeat(1000);
        for text in ["latest", ">=", "1.2.3.4", "<>1", "1 |2", &endless] {
            assert_eq!(Range::parse(text), None, "{text}");
        }
    }
}

//! Path patterns: `/v3/greet/:name`.

use std::fmt;

use percent_encoding::percent_decode_str;

/// The longest pattern, in bytes.
const LENGTH: usize = 256;
/// The most segments of a pattern.
const SEGMENTS: usize = 16;

/// A path of literal segments and `:names`. Literals match in either case, and a trailing slash of the
/// path does not matter (docs/spec/device.md#http-paths).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// Invariant: in lower case.
    Literal(String),
    Name(String),
}

/// The reason why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid route `{text}`: {reason}")]
pub struct PatternError {
    text: String,
    reason: &'static str,
}

impl Pattern {
    /// Parses `/v3/greet/:name`.
    ///
    /// # Errors
    /// If it is not a pattern.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let refuse = |reason| {
            let text: String = text.chars().take(LENGTH).collect();
            Err(PatternError { text, reason })
        };
        if text.len() > LENGTH {
            return refuse("longer than 256 bytes");
        }
        let Some(path) = text.strip_prefix('/') else {
            return refuse("it must begin with `/`");
        };
        let mut segments: Vec<Segment> = Vec::new();
        for segment in path.split('/') {
            match segment.strip_prefix(':') {
                Some(name) if is_name(name) => {
                    let segment = Segment::Name(name.to_owned());
                    if segments.contains(&segment) {
                        return refuse("it contains a `:name` twice");
                    }
                    segments.push(segment);
                }
                Some(_) => return refuse("a `:name` is of letters, digits and `_`"),
                None if is_literal(segment) => {
                    segments.push(Segment::Literal(segment.to_ascii_lowercase()));
                }
                None => return refuse("a segment is of letters, digits and `-._~`, and not empty"),
            }
        }
        if segments.len() > SEGMENTS {
            return refuse("more than 16 segments");
        }
        Ok(Pattern {
            text: text.to_owned(),
            segments,
        })
    }

    /// Returns the text that it was parsed from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the `:names`, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Name(name) => Some(name.as_str()),
            Segment::Literal(_) => None,
        })
    }

    /// Returns the values of the `:names` in `path`, percent-decoded, if it matches.
    #[must_use]
    pub fn matches(&self, path: &str) -> Option<Vec<(String, String)>> {
        let values = match_path(&self.text, path)?.into_iter();
        let owned = values.map(|(name, value)| (name.to_owned(), value));
        Some(owned.collect())
    }

    /// Returns whether some path matches both.
    #[must_use]
    pub fn overlaps(&self, other: &Pattern) -> bool {
        self.segments.len() == other.segments.len()
            && self
                .segments
                .iter()
                .zip(&other.segments)
                .all(|pair| match pair {
                    (Segment::Literal(one), Segment::Literal(two)) => one == two,
                    _ => true,
                })
    }

    /// Returns whether it matches every path that `other` matches; with `below`, matching the beginning of
    /// each such path is enough.
    #[must_use]
    pub fn covers(&self, other: &Pattern, below: bool) -> bool {
        let (own, others) = (self.segments.len(), other.segments.len());
        let fits = if below { own <= others } else { own == others };
        let mut pairs = self.segments.iter().zip(&other.segments);
        fits && pairs.all(|pair| match pair {
            (Segment::Literal(one), Segment::Literal(two)) => one == two,
            (Segment::Literal(_), Segment::Name(_)) => false,
            (Segment::Name(_), _) => true,
        })
    }

    /// Returns its first segment in lower case, if that is not a `:name`.
    #[must_use]
    pub fn first_literal(&self) -> Option<&str> {
        match self.segments.first() {
            Some(Segment::Literal(first)) => Some(first),
            _ => None,
        }
    }

    /// Returns the rank: of the patterns that match a path, the one with the greatest rank is chosen. It is
    /// the one that has a literal segment where the others first have a `:name`.
    #[must_use]
    pub fn rank(&self) -> Vec<bool> {
        self.segments
            .iter()
            .map(|segment| matches!(segment, Segment::Literal(_)))
            .collect()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the `:names` of the text of a pattern with their values in `path`, percent-decoded, if it matches: literals
/// in either case, and with or without one slash at the end of the path (docs/spec/device.md#http-paths). The
/// supervisor finds its own routes by this too.
#[must_use]
pub fn match_path<'p>(pattern: &'p str, path: &str) -> Option<Vec<(&'p str, String)>> {
    let path = path.strip_suffix('/').unwrap_or(path);
    // A request is compared with many patterns, and most have no names.
    if !pattern.contains(':') {
        return pattern.eq_ignore_ascii_case(path).then(Vec::new);
    }
    let mut values = Vec::new();
    let mut segments = path.split('/');
    for expected in pattern.split('/') {
        let segment = segments.next()?;
        match expected.strip_prefix(':') {
            Some(_) if segment.is_empty() => return None,
            Some(name) => {
                let value = percent_decode_str(segment).decode_utf8().ok()?;
                values.push((name, value.into_owned()));
            }
            None if expected.eq_ignore_ascii_case(segment) => {}
            None => return None,
        }
    }
    segments.next().is_none().then_some(values)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_literal(text: &str) -> bool {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    // Clients resolve dots before they send a request, so these could never match.
    !text.is_empty() && text.bytes().all(unreserved) && text != "." && text != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
        Pattern::parse(pattern).unwrap().matches(path)
    }

    #[test]
    fn a_path_matches_its_pattern_and_gives_the_names() {
        for (pattern, path, expected) in [
            ("/v3/x", "/v3/x", Some(vec![])),
            ("/v3/x", "/V3/X/", Some(vec![])),
            ("/V3/x", "/v3/x", Some(vec![])),
            ("/v3/x", "/v3/x/y", None),
            ("/v3/x", "/v3", None),
            ("/v3/x", "v3/x", None),
            ("/v3/x", "/v3/x//", None),
            ("/v3/:a", "/v3/One", Some(vec![("a", "One")])),
            ("/v3/:a", "/v3/", None),
            (
                "/v3/:a/b/:c",
                "/v3/1/b/2",
                Some(vec![("a", "1"), ("c", "2")]),
            ),
            ("/v3/:a", "/v3/a%2Fb%20c", Some(vec![("a", "a/b c")])),
            ("/v3/:a", "/v3/%ff", None),
        ] {
            let expected = expected.map(|names: Vec<(&str, &str)>| {
                names
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect()
            });
            assert_eq!(names(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for text in [
            "", "x", "/", "//", "/a//b", "/a/", "/:", "/:a b", "/:a/:a", "/a b", "/..", "/a%20b",
            "/*",
        ] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
        assert!(Pattern::parse(&format!("/{}", "a".repeat(256))).is_err());
        assert!(Pattern::parse(&"/a".repeat(17)).is_err());
    }

    #[test]
    fn patterns_overlap_where_one_path_can_match_both() {
        for (one, two, expected) in [
            ("/a/:b", "/a/c", true),
            ("/a/:b", "/A/:c", true),
            ("/a/:b", "/b/:b", false),
            ("/a/:b", "/a", false),
            ("/:a/x", "/y/:b", true),
        ] {
            let (first, second) = (Pattern::parse(one).unwrap(), Pattern::parse(two).unwrap());
            assert_eq!(first.overlaps(&second), expected, "{one} {two}");
        }
    }
}

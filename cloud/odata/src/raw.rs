//! From the bytes on the wire to text, once: a query is split into its parts while they are still encoded, and each
//! part is decoded, keeping the place of each of its characters (docs/spec/cloud.md#odata-addressing).

use crate::error::ParseError;

/// Decoded text, and the original place of each of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecodedText {
    pub(crate) text: String,
    /// For each byte of `text` its place in the request, plus one for the end.
    places: Vec<usize>,
}

impl DecodedText {
    /// Returns the place in the request of byte `at` of the text.
    pub(crate) fn place(&self, at: usize) -> usize {
        let last = self.places.last().copied().unwrap_or_default();
        self.places.get(at).copied().unwrap_or(last)
    }
}

/// The meaning of `+` outside quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlusDecoding {
    /// A space, in a query.
    Space,
    /// Itself, in a path.
    Plus,
}

/// Decodes a part that begins at byte `begin` of the request.
pub(crate) fn decode(
    raw: &str,
    begin: usize,
    plus: PlusDecoding,
) -> Result<DecodedText, ParseError> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut places = Vec::with_capacity(raw.len() + 1);
    let mut quoted = false;
    let mut rest = raw.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let at = begin + raw.len() - rest.len();
        let byte = if first == b'%' {
            let byte = encoded(after).ok_or_else(|| {
                ParseError::expected(
                    at,
                    "two hexadecimal digits behind `%` (`%25` for the sign itself)",
                )
            })?;
            rest = &after[2..];
            byte
        } else {
            rest = after;
            match first {
                b'+' if !quoted && plus == PlusDecoding::Space => b' ',
                other => other,
            }
        };
        quoted ^= byte == b'\'';
        bytes.push(byte);
        places.push(at);
    }
    places.push(begin + raw.len());
    match String::from_utf8(bytes) {
        Ok(text) => Ok(DecodedText { text, places }),
        Err(error) => {
            let at = places.get(error.utf8_error().valid_up_to());
            let at = at.copied().unwrap_or(begin);
            Err(ParseError::new(at, "the percent-encoded text is not UTF-8"))
        }
    }
}

fn encoded(after: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

/// Splits a query at each `&` outside quotes and parentheses, and returns the parts with their places, without empty
/// ones.
pub(crate) fn parts(query: &str, begin: usize) -> Vec<(&str, usize)> {
    let mut parts = Vec::new();
    let mut from = 0;
    let (mut quoted, mut depth) = (false, 0_usize);
    let bytes = query.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        // A quote or parenthesis may be encoded; malformed encodings are found when the part is decoded.
        let (byte, length) = match (bytes[at], encoded(&bytes[at + 1..])) {
            (b'%', Some(byte @ (b'\'' | b'(' | b')'))) => (byte, 3),
            (byte, _) => (byte, 1),
        };
        match byte {
            b'\'' => quoted = !quoted,
            b'(' if !quoted => depth += 1,
            b')' if !quoted => depth = depth.saturating_sub(1),
            b'&' if !quoted && depth == 0 => {
                parts.push((&query[from..at], begin + from));
                from = at + 1;
            }
            _ => {}
        }
        at += length;
    }
    parts.push((&query[from..], begin + from));
    parts.retain(|(part, _)| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(raw: &str, plus: PlusDecoding) -> Result<String, ParseError> {
        decode(raw, 0, plus).map(|decoded| decoded.text)
    }

    #[test]
    fn a_plus_is_a_space_in_a_query_but_in_no_quotes() {
        for (raw, plus, text) in [
            ("a+eq+'b+c'", PlusDecoding::Space, "a eq 'b+c'"),
            ("a+eq+%27b+c%27+x", PlusDecoding::Space, "a eq 'b+c' x"),
            ("'it''s+'+x", PlusDecoding::Space, "'it''s+' x"),
            ("a+b", PlusDecoding::Plus, "a+b"),
            ("caf%C3%A9%20%26", PlusDecoding::Space, "café &"),
        ] {
            assert_eq!(decoded(raw, plus).as_deref(), Ok(text), "{raw}");
        }
    }

    #[test]
    fn invalid_percent_encoding_is_refused_at_its_position() {
        for (raw, at) in [
            ("ab%", 2),
            ("ab%2", 2),
            ("ab%zz", 2),
            ("a%ff", 1),
            ("%C3%28", 0),
        ] {
            assert_eq!(
                decode(raw, 10, PlusDecoding::Space).unwrap_err().at,
                at + 10,
                "{raw}"
            );
        }
    }

    #[test]
    fn places_are_those_of_the_encoded_text() {
        let decoded = decode("a%20b%C3%A9c", 5, PlusDecoding::Space).unwrap();
        assert_eq!(decoded.text, "a béc");
        let places: Vec<usize> = (0..=6).map(|at| decoded.place(at)).collect();
        assert_eq!(places, [5, 6, 9, 10, 13, 16, 17]);
    }

    #[test]
    fn parts_end_at_an_ampersand_outside_of_quotes_and_parentheses() {
        for (query, expected) in [
            ("a=1&b=2", &["a=1", "b=2"][..]),
            ("a='x&y'&b", &["a='x&y'", "b"]),
            ("a=%27x&y%27&b", &["a=%27x&y%27", "b"]),
            ("e=l(a=1&b=2)&c", &["e=l(a=1&b=2)", "c"]),
            ("a=':-('&b", &["a=':-('", "b"]),
            ("&&a&", &["a"]),
            ("", &[]),
        ] {
            let found: Vec<&str> = parts(query, 0).into_iter().map(|(part, _)| part).collect();
            assert_eq!(found, expected, "{query}");
        }
    }
}

//! Text of the data API's query language, with literals that are safe for any content.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that need no encoding in a URL.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Encodes text as one part of a path or query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// Returns text as a literal, quoted and percent-encoded, so that nothing in it can end the
/// literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", encoded(&text.replace('\'', "''")))
}

/// Returns a path with a query. Spaces in the query are encoded here; its literals must be encoded
/// already.
pub(crate) fn address(path: &str, query: &str) -> String {
    format!("/v7/{path}?{}", query.replace(' ', "%20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_holds_what_it_was_given() {
        for (text, expected) in [
            ("pump", "'pump'"),
            ("acme/pump", "'acme%2Fpump'"),
            ("it's 100%", "'it%27%27s%20100%25'"),
            ("a&b#c+d;e,f", "'a%26b%23c%2Bd%3Be%2Cf'"),
            ("café", "'caf%C3%A9'"),
        ] {
            assert_eq!(literal(text), expected);
        }
    }

    #[test]
    fn a_query_follows_a_path() {
        let query = format!("$select=id&$filter=slug eq {}", literal("a b"));
        assert_eq!(
            address("application", &query),
            "/v7/application?$select=id&$filter=slug%20eq%20'a%20b'"
        );
    }
}

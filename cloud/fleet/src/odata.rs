//! Text of the data API's query language: literals that hold what they were given, whatever it is.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands in a URL as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Text as one part of a path or query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// Text as a literal, in quotes and percent-encoded: nothing in it ends it.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", encoded(&text.replace('\'', "''")))
}

/// A path with options after it; the options' spaces are encoded, their literals are so already.
pub(crate) fn address(path: &str, options: &[(&str, &str)]) -> String {
    let mut address = format!("/v7/{path}");
    for (at, (name, value)) in options.iter().enumerate() {
        address.push(if at == 0 { '?' } else { '&' });
        address.push_str(name);
        address.push('=');
        address.push_str(&value.replace(' ', "%20"));
    }
    address
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
    fn options_follow_a_path() {
        let filter = format!("slug eq {}", literal("a b"));
        assert_eq!(
            address("application", &[("$select", "id"), ("$filter", &filter)]),
            "/v7/application?$select=id&$filter=slug%20eq%20'a%20b'"
        );
    }
}

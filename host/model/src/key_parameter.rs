//! The parameter of a query that carries a key to the device's API (docs/spec/device.md#keys-where).
//!
//! Whoever reads the key and whoever removes it before others see the query find the parameter here: a name can be
//! written in many ways, such as `api%6Bey`, and one that is read as the key must not be passed on.

use std::borrow::Cow;

/// The decoded name of the parameter.
const NAME: &str = "apikey";

/// Returns the key in a query; one that is repeated or empty counts as missing.
#[must_use]
pub fn key_in_query(query: &str) -> Option<Cow<'_, str>> {
    let mut keys = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == NAME);
    let (_, key) = keys.next()?;
    (keys.next().is_none() && !key.is_empty()).then_some(key)
}

/// Returns the query without all parameters that name a key; borrowed if there are none. Everything else stays as it
/// was sent.
#[must_use]
pub fn query_without_key(query: &str) -> Cow<'_, str> {
    if !query.split('&').any(names_key) {
        return Cow::Borrowed(query);
    }
    let rest: Vec<&str> = query.split('&').filter(|pair| !names_key(pair)).collect();
    Cow::Owned(rest.join("&"))
}

fn names_key(pair: &str) -> bool {
    let first = form_urlencoded::parse(pair.as_bytes()).next();
    first.is_some_and(|(name, _)| name == NAME)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_read_once_and_by_any_spelling_of_its_name() {
        for (query, key) in [
            ("apikey=abc", Some("abc")),
            ("x=1&apikey=abc&y", Some("abc")),
            ("apikey=a%62c", Some("abc")),
            ("api%6Bey=abc", Some("abc")),
            ("%61%70%69%6b%65%79=abc", Some("abc")),
            ("apikey=a&apikey=b", None),
            ("apikey=a&api%6bey=b", None),
            ("apikey=", None),
            ("apikey", None),
            ("APIKEY=abc", None),
            ("apikey[]=abc", None),
            ("", None),
        ] {
            assert_eq!(key_in_query(query).as_deref(), key, "{query}");
        }
    }

    #[test]
    fn a_key_is_removed_by_any_spelling_of_its_name_and_nothing_else_is() {
        for (query, rest) in [
            ("apikey=k", ""),
            ("x=1&apikey=k&y=%20&apikey=l", "x=1&y=%20"),
            ("api%6Bey=k&a=b", "a=b"),
            ("a=b&%61pi%6bey=k", "a=b"),
            ("apikey", ""),
            ("x=apikey&APIKEY=1", "x=apikey&APIKEY=1"),
            ("api%256Bey=k", "api%256Bey=k"),
            ("&&a&", "&&a&"),
            ("", ""),
        ] {
            assert_eq!(query_without_key(query), rest, "{query}");
        }
    }

    proptest! {
        #[test]
        fn a_forwarded_query_contains_no_key(pairs in prop::collection::vec(
            prop::sample::select(vec![
                "apikey=k", "api%6Bey=k", "%61pikey=k", "apikey", "api%6bey", "+apikey=k", "apikey%00=k",
                "APIKEY=k", "a=b", "=", "",
            ]),
            0..6,
        )) {
            let query = pairs.join("&");
            let rest = query_without_key(&query);
            prop_assert!(form_urlencoded::parse(rest.as_bytes()).all(|(name, _)| name != NAME));
        }
    }
}

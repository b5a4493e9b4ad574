//! The authentication that a registry's 401 asks for: the `WWW-Authenticate` header, as far as
//! registries use it.

/// The kind of authentication that a registry requires.
#[derive(Debug, PartialEq, Eq)]
pub enum Challenge {
    /// By name and password.
    Basic,
    /// With a token.
    Bearer {
        /// The address that issues tokens.
        realm: String,
        /// The service that the tokens are for, to be passed to that address.
        service: Option<String>,
    },
}

impl Challenge {
    /// Parses a `WWW-Authenticate` header; returns `None` for schemes that no registry uses.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Challenge::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service) = (None, None);
        for (name, value) in parameters(rest) {
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                _ => {}
            }
        }
        Some(Challenge::Bearer {
            realm: realm?,
            service,
        })
    }
}

/// Parses `name="value"` or `name=value`, separated by commas; a value in quotes may contain
/// commas.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',', '\t']).to_owned();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => match quoted.split_once('"') {
                Some((value, after)) => (value, after),
                None => break,
            },
            None => after.split_once(',').unwrap_or((after, "")),
        };
        parameters.push((name, value.trim().to_owned()));
        rest = after;
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_of_registries_are_understood() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.into(),
                service: service.map(Into::into),
            })
        };
        for (header, expected) in [
            ("Basic realm=\"registry\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://a/t\",service=\"r.io\",scope=\"repository:x:pull,push\"",
                bearer("https://a/t", Some("r.io")),
            ),
            (
                "bearer scope=\"a,b=c\", realm=\"https://a/t?x=1\"",
                bearer("https://a/t?x=1", None),
            ),
            (
                "Bearer realm=https://a/t, service=x",
                bearer("https://a/t", Some("x")),
            ),
            (
                "Bearer realm=https://a/t, service=x",
                bearer("https://a/t", Some("x")),
            ),
            ("Bearer service=\"r.io\"", None),
            ("Bearer realm=\"https://a", None),
            ("Negotiate abc", None),
            ("", None),
        ] {
            assert_eq!(Challenge::parse(header), expected, "{header}");
        }
    }
}

//! What a registry's 401 asks for: the `WWW-Authenticate` header, as far as registries use it.

/// How a registry wants to be told who asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    /// With a token from `realm`.
    Bearer {
        realm: String,
        service: Option<String>,
    },
}

impl Challenge {
    /// `None` for schemes that no registry uses.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Challenge::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut rest) = (None, None, rest);
        // `name="value"` or `name=value`, separated by commas; a value in quotes may hold commas.
        while let Some((name, after)) = rest.split_once('=') {
            let (value, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => after.split_once(',').unwrap_or((after, "")),
            };
            match name
                .trim_matches([' ', ',', '\t'])
                .to_ascii_lowercase()
                .as_str()
            {
                "realm" => realm = Some(value.trim().to_owned()),
                "service" => service = Some(value.trim().to_owned()),
                _ => {}
            }
            rest = after;
        }
        Some(Challenge::Bearer {
            realm: realm?,
            service,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_of_registries_are_understood() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
            })
        };
        for (header, expected) in [
            ("Basic realm=\"registry\"", Some(Challenge::Basic)),
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
            ("Bearer realm=\"https://a", None),
            ("Negotiate abc", None),
        ] {
            assert_eq!(Challenge::parse(header), expected, "{header}");
        }
    }
}

//! The scope that a client of the registry requests: `repository:<name>:pull,push`.

/// Maximum number in one request; no client needs more.
const MOST: usize = 20;

/// The requested actions on one repository.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) repository: String,
    pub(super) pull: bool,
    pub(super) push: bool,
}

/// Parses the repositories of a query: each `scope` may contain several, separated by spaces. Anything that is not a
/// repository is skipped, since nobody has rights on it.
pub(super) fn scopes(query: &str) -> Vec<Scope> {
    let parameters = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "scope");
    let texts =
        parameters.flat_map(|(_, value)| value.split(' ').map(str::to_owned).collect::<Vec<_>>());
    texts.filter_map(|text| scope(&text)).take(MOST).collect()
}

fn scope(text: &str) -> Option<Scope> {
    let (kind, rest) = text.split_once(':')?;
    // The name may contain a host with a port.
    let (repository, actions) = rest.rsplit_once(':')?;
    let has = |action_name| actions.split(',').any(|action| action == action_name);
    (kind == "repository").then(|| Scope {
        repository: repository.to_owned(),
        pull: has("pull"),
        push: has("push"),
    })
}

/// Whether a repository can be that of an image: `v2/` and 32 hexadecimal digits.
pub(super) fn may_be_an_image(repository: &str) -> bool {
    repository.strip_prefix("v2/").is_some_and(|digits| {
        digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repository_is_parsed_with_its_requested_actions() {
        let one = |repository: &str, pull, push| Scope {
            repository: repository.to_owned(),
            pull,
            push,
        };
        for (query, found) in [
            ("service=r", vec![]),
            (
                "scope=repository:v2/ab:pull",
                vec![one("v2/ab", true, false)],
            ),
            (
                "scope=repository:v2/ab:pull,push&scope=repository%3Av2%2Fcd%3Apull",
                vec![one("v2/ab", true, true), one("v2/cd", true, false)],
            ),
            (
                "scope=repository:a:5000/b:push%20repository:c:*",
                vec![one("a:5000/b", false, true), one("c", false, false)],
            ),
            (
                "scope=registry:catalog:*&scope=x&scope=&scope=repository:a",
                vec![],
            ),
        ] {
            assert_eq!(scopes(query), found, "{query}");
        }
        let many = "scope=repository:a:pull&".repeat(100);
        assert_eq!(scopes(&many).len(), MOST);
    }

    #[test]
    fn images_are_at_v2_and_32_digits() {
        for (name, is) in [
            (format!("v2/{}", "0a".repeat(16)), true),
            (format!("v2/{}", "0a".repeat(15)), false),
            (format!("v3/{}", "0a".repeat(16)), false),
            (format!("v2/{}/x", "0a".repeat(16)), false),
            (format!("v2/{}", "0z".repeat(16)), false),
        ] {
            assert_eq!(may_be_an_image(&name), is, "{name}");
        }
    }
}

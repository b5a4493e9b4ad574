//! Names of images: registry, repository, and tag or digest.

use std::net::IpAddr;
use std::str::FromStr;

/// The registry of names without one, as in container engines.
const DEFAULT_REGISTRY: &str = "registry-1.docker.io";

/// A repository of a registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepositoryName {
    /// The host name, with its port if it has one.
    pub host: String,
    /// Its parts are letters, digits, `.`, `_` and `-`, so it cannot change the rest of a URL path.
    pub repository: String,
}

/// One image of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    /// The repository.
    pub place: RepositoryName,
    /// A tag, or a digest (then it has a colon).
    pub reference: String,
}

/// A text that is not the name of an image.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the name of an image")]
pub struct ImageNameError(String);

impl FromStr for ImageName {
    type Err = ImageNameError;

    /// Parses a name as people write it: `registry.example.com/name:tag`. The default tag is `latest`, and a digest
    /// takes precedence over a tag.
    fn from_str(text: &str) -> Result<Self, ImageNameError> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        let last = name.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match name[last..].rfind(':') {
            Some(colon) => (&name[..last + colon], &name[last + colon + 1..]),
            None => (name, "latest"),
        };
        let (host, repository) = match name.split_once('/') {
            Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => {
                let host = match host {
                    "docker.io" | "index.docker.io" => DEFAULT_REGISTRY,
                    other => other,
                };
                (host.to_owned(), rest.to_owned())
            }
            _ => (DEFAULT_REGISTRY.to_owned(), name.to_owned()),
        };
        let repository = if host == DEFAULT_REGISTRY && !repository.contains('/') {
            format!("library/{repository}")
        } else {
            repository
        };
        let place = RepositoryName { host, repository };
        let is_right = place.is_right()
            && is_plain(tag)
            && digest.is_none_or(|digest| digest.split(':').all(is_plain));
        if is_right {
            Ok(ImageName {
                place,
                reference: digest.unwrap_or(tag).to_owned(),
            })
        } else {
            Err(ImageNameError(text.to_owned()))
        }
    }
}

impl RepositoryName {
    /// Parses a repository with its registry, such as `registry.example.com/v2/abc`.
    #[must_use]
    pub fn from_location(location: &str) -> Option<Self> {
        let (host, repository) = location.split_once('/')?;
        let place = RepositoryName {
            host: host.to_owned(),
            repository: repository.to_owned(),
        };
        place.is_right().then_some(place)
    }

    /// Checks that the name, which becomes part of a URL, cannot change the rest of that URL.
    fn is_right(&self) -> bool {
        is_host(&self.host) && self.repository.split('/').all(is_plain)
    }

    /// Returns the address of something in this repository.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.is_loopback() { "http" } else { "https" };
        format!("{scheme}://{}/v2/{}/{path}", self.host, self.repository)
    }

    /// Returns whether the registry is on this machine; plain HTTP is used only there.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let name = match self.host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(rest),
            None => self.host.split(':').next().unwrap_or(&self.host),
        };
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// Returns whether text cannot change the rest of a URL path.
fn is_plain(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && !text.ends_with(':')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-:[]".contains(&byte))
}

/// Returns whether a text is `sha256:` and 64 hexadecimal digits, the only kind of digest that registries use.
#[must_use]
pub fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_container_engines_find_them() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        for (text, url) in [
            (
                "busybox",
                "https://registry-1.docker.io/v2/library/busybox/manifests/latest".to_owned(),
            ),
            (
                "a/b:1",
                "https://registry-1.docker.io/v2/a/b/manifests/1".to_owned(),
            ),
            (
                "docker.io/a:1",
                "https://registry-1.docker.io/v2/library/a/manifests/1".to_owned(),
            ),
            (
                "r.io/a/b/c@sha256:ab",
                "https://r.io/v2/a/b/c/manifests/sha256:ab".to_owned(),
            ),
            (
                &format!("r.io/a:1@{digest}"),
                format!("https://r.io/v2/a/manifests/{digest}"),
            ),
            (
                "r.io:443/a:1",
                "https://r.io:443/v2/a/manifests/1".to_owned(),
            ),
            (
                "localhost:5000/a",
                "http://localhost:5000/v2/a/manifests/latest".to_owned(),
            ),
            (
                "127.9.9.9:5000/a:1",
                "http://127.9.9.9:5000/v2/a/manifests/1".to_owned(),
            ),
            (
                "[::1]:5000/a:1",
                "http://[::1]:5000/v2/a/manifests/1".to_owned(),
            ),
            (
                "127.0.0.1.example.org/a:1",
                "https://127.0.0.1.example.org/v2/a/manifests/1".to_owned(),
            ),
        ] {
            let name: ImageName = text.parse().unwrap();
            let path = format!("manifests/{}", name.reference);
            assert_eq!(name.place.url(&path), url, "{text}");
        }
    }

    #[test]
    fn names_that_would_leave_their_place_in_an_address_are_refused() {
        for text in [
            "",
            "r.io/../a:1",
            "r.io/a?x:1",
            "r.io/a#x:1",
            "r.io/a:1/..",
            "r.io/a@sha256:../x",
            "r.io//a:1",
            "u@h:1/a:1",
            "r.io/a%2f:1",
            "file:/srv/a.wasm",
            "${IMAGE}",
            "r.io/:1",
            "r.io/a@",
        ] {
            assert!(text.parse::<ImageName>().is_err(), "{text}");
        }
        assert!(RepositoryName::from_location("r.io/v2/ab").is_some());
        assert!(RepositoryName::from_location("r.io/v2/../ab").is_none());
        assert!(RepositoryName::from_location("r.io").is_none());
    }

    #[test]
    fn similar_texts_are_not_mistaken_for_digests() {
        assert!(is_digest(&format!("sha256:{}", "0f".repeat(32))));
        for text in [
            "sha256:ab",
            "latest",
            &format!("sha256:{}", "0F".repeat(32)),
        ] {
            assert!(!is_digest(text), "{text}");
        }
    }
}

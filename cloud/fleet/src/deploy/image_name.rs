//! References of images: registry, repository, and tag or digest.

use std::net::IpAddr;

use crate::failure::{Failure, Result};

/// The registry of references that name none, as container engines have it.
const DEFAULT_REGISTRY: &str = "registry-1.docker.io";

/// A repository of a registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// With its port, where it has one.
    pub(super) host: String,
    pub(super) repository: String,
}

/// One image of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageName {
    pub(super) place: Place,
    /// A tag, or a digest (then it has a colon).
    pub(super) reference: String,
}

impl ImageName {
    /// As people write it.
    ///
    /// # Errors
    /// Where it is no reference.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        let last = name.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match name[last..].rfind(':') {
            Some(colon) => (&name[..last + colon], &name[last + colon + 1..]),
            None => (name, "latest"),
        };
        // A digest says more than the tag beside it.
        let reference = digest.unwrap_or(tag);
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
        let repository = match host == DEFAULT_REGISTRY && !repository.contains('/') {
            true => format!("library/{repository}"),
            false => repository,
        };
        let is_right = is_host(&host)
            && repository.split('/').all(is_plain)
            && match digest {
                Some(digest) => is_digest(digest),
                None => is_plain(reference),
            };
        match is_right {
            true => Ok(ImageName {
                place: Place { host, repository },
                reference: reference.to_owned(),
            }),
            false => Err(Failure::usage(format!("`{text}` is no name of an image")).hint(
                "it is written `registry.example.com/name:tag`; variables of the shell are not replaced",
            )),
        }
    }
}

impl Place {
    /// Of a location that the cloud gave.
    ///
    /// # Errors
    /// Where it is none.
    pub(super) fn of_location(location: &str) -> Result<Self> {
        let place = location.split_once('/').map(|(host, repository)| Place {
            host: host.to_owned(),
            repository: repository.to_owned(),
        });
        place
            .filter(|place| is_host(&place.host) && place.repository.split('/').all(is_plain))
            .ok_or_else(|| {
                Failure::failed(format!(
                    "the cloud gave `{location}` for the image, which is no place in a registry"
                ))
            })
    }

    /// The address of something in this repository.
    pub(super) fn url(&self, path: &str) -> String {
        let scheme = match self.is_loopback() {
            true => "http",
            false => "https",
        };
        format!("{scheme}://{}/v2/{}/{path}", self.host, self.repository)
    }

    /// Whether the registry is on this machine; only there plain HTTP is spoken.
    pub(super) fn is_loopback(&self) -> bool {
        let name = match self.host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(rest),
            None => self.host.split(':').next().unwrap_or(&self.host),
        };
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// Text that stays in its place in a path.
fn is_plain(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-:[]".contains(&byte))
}

/// `sha256:` and 64 hexadecimal digits: the one kind of digest there is in registries.
pub(super) fn is_digest(text: &str) -> bool {
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
    fn references_are_found_where_container_engines_find_them() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        for (text, expected) in [
            (
                "busybox".to_owned(),
                "https://registry-1.docker.io/v2/library/busybox/manifests/latest".to_owned(),
            ),
            (
                "a/b:1".to_owned(),
                "https://registry-1.docker.io/v2/a/b/manifests/1".to_owned(),
            ),
            (
                "r.io:443/a/b:1".to_owned(),
                "https://r.io:443/v2/a/b/manifests/1".to_owned(),
            ),
            (
                "localhost:5000/a".to_owned(),
                "http://localhost:5000/v2/a/manifests/latest".to_owned(),
            ),
            (
                format!("r.io/a:1@{digest}"),
                format!("https://r.io/v2/a/manifests/{digest}"),
            ),
        ] {
            let name = ImageName::parse(&text).expect("a name");
            assert_eq!(
                name.place.url(&format!("manifests/{}", name.reference)),
                expected
            );
        }
    }

    #[test]
    fn what_would_leave_its_place_in_an_address_is_refused() {
        for text in [
            "r.io/../a",
            "r.io/a?x",
            "r.io/a:1/..",
            "r.io/a@sha256:../x",
            "r.io//a",
            "u@h:1/a",
            "r.io/a%2f",
            "${IMAGE}",
            "",
            "r.io/a@sha256:ab",
        ] {
            assert!(ImageName::parse(text).is_err(), "{text}");
        }
        assert!(Place::of_location("r.io/v2/ab").is_ok());
        assert!(Place::of_location("r.io/v2/../ab").is_err());
    }
}

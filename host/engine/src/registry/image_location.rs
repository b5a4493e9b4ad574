//! Where a reference's image is: registry, repository, and tag or digest.

use std::net::IpAddr;

use model::ImageRef;

use crate::EngineError;

/// The registry of references that name none, as container engines have it.
const DEFAULT_REGISTRY: &str = "registry-1.docker.io";

/// The parts of a reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Location {
    /// With its port, where it has one.
    pub(super) host: String,
    pub(super) repository: String,
    /// A tag, or a digest (then it holds a colon).
    pub(super) reference: String,
}

impl Location {
    pub(super) fn of(image: &ImageRef) -> Result<Self, EngineError> {
        let invalid = || EngineError::Invalid(format!("`{image}` is not the name of an image"));
        if image.is_file() {
            return Err(invalid());
        }
        let (name, reference) = split_reference(image.as_str());
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
        // The text becomes part of a URL: nothing may leave its place in the path.
        let is_plain = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-:".contains(&b))
        };
        let plain_path = repository
            .split('/')
            .all(|part| is_plain(part) && !matches!(part, "." | "..") && !part.contains(':'));
        let plain_host = is_plain(host.trim_start_matches('[').replace(']', "").as_str());
        if !(plain_path && plain_host && is_plain(reference)) {
            return Err(invalid());
        }
        Ok(Location {
            host,
            repository,
            reference: reference.to_owned(),
        })
    }

    /// The address of something in this repository.
    pub(super) fn url(&self, path: &str) -> String {
        let scheme = if self.is_loopback() { "http" } else { "https" };
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

fn split_reference(text: &str) -> (&str, &str) {
    if let Some((name, digest)) = text.split_once('@') {
        return (name, digest);
    }
    let last = text.rfind('/').map_or(0, |slash| slash + 1);
    match text[last..].rfind(':') {
        Some(colon) => (&text[..last + colon], &text[last + colon + 1..]),
        None => (text, "latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_where_container_engines_find_them() {
        for (image, url) in [
            (
                "busybox:latest",
                "https://registry-1.docker.io/v2/library/busybox/manifests/latest",
            ),
            ("a/b:1", "https://registry-1.docker.io/v2/a/b/manifests/1"),
            (
                "docker.io/a:1",
                "https://registry-1.docker.io/v2/library/a/manifests/1",
            ),
            (
                "r.io/a/b/c@sha256:ab",
                "https://r.io/v2/a/b/c/manifests/sha256:ab",
            ),
            ("r.io:443/a:1", "https://r.io:443/v2/a/manifests/1"),
            ("localhost/a:1", "http://localhost/v2/a/manifests/1"),
            (
                "127.0.0.1:5000/a:1",
                "http://127.0.0.1:5000/v2/a/manifests/1",
            ),
            (
                "127.9.9.9:5000/a:1",
                "http://127.9.9.9:5000/v2/a/manifests/1",
            ),
            ("[::1]:5000/a:1", "http://[::1]:5000/v2/a/manifests/1"),
            (
                "127.0.0.1.example.org/a:1",
                "https://127.0.0.1.example.org/v2/a/manifests/1",
            ),
        ] {
            let location = Location::of(&image.parse().unwrap()).unwrap();
            let path = format!("manifests/{}", location.reference);
            assert_eq!(location.url(&path), url, "{image}");
        }
    }

    #[test]
    fn references_that_would_leave_their_place_in_a_url_are_refused() {
        for image in [
            "r.io/../a:1",
            "r.io/a?x:1",
            "r.io/a#x:1",
            "r.io/a:1/..",
            "r.io/a@sha256:../x",
            "r.io//a:1",
            "u@h:1/a:1",
            "r.io/a%2f:1",
            "file:/srv/a.wasm",
            "r.io/:1",
            "r.io/a@",
        ] {
            let image: ImageRef = image.parse().unwrap();
            assert!(Location::of(&image).is_err(), "{image}");
        }
    }
}

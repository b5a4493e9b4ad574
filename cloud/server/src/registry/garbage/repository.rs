//! The manifests of one repository, listed and deleted by the registry's API (Docker Registry v2).

use std::collections::HashSet;

use cloud_core::clock::now;
use http::header::{ACCEPT, CONTENT_TYPE};
use registry_protocol::is_digest;
use reqwest::{Client, Method, Response, StatusCode};
use serde::Deserialize;

use crate::registry::Access;
use crate::state::Server;

/// Tags that are requested at once.
const TAGS: usize = 100;
/// Maximum bytes of an answer: registries accept no longer manifests.
const LONGEST_ANSWER: usize = 4 << 20;
/// Maximum depth of indexes that name indexes; deeper ones remain.
const DEEPEST: usize = 4;
/// Maximum bytes of a registry's message that are passed on.
const LONGEST_MESSAGE: usize = 300;

const INDEXES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
/// In order of preference: without the indexes, a registry may answer with one of the manifests that an index names.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, */*;q=0.5";

/// Why a repository was not emptied.
#[derive(Debug)]
pub(super) enum Failure {
    /// No repository can be emptied: the registry cannot be reached, refuses the cloud, or deletes nothing.
    Registry(String),
    /// This repository cannot be emptied.
    Repository(String),
}

/// A repository of the registry, with a token to read it and to delete in it.
pub(super) struct Repository<'a> {
    client: &'a Client,
    /// The address of the registry, without a trailing slash.
    url: &'a str,
    name: &'a str,
    token: String,
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<ManifestEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestEntry {
    #[serde(default)]
    media_type: String,
    digest: String,
}

impl<'a> Repository<'a> {
    /// `name` is the repository of a deleted image. The token is valid only for this repository; tokens to delete are
    /// never issued to anybody else.
    pub(super) fn new(
        server: &Server,
        client: &'a Client,
        url: &'a str,
        name: &'a str,
    ) -> Result<Self, Failure> {
        let access = Access {
            kind: "repository",
            name: name.to_owned(),
            actions: vec!["pull", "delete"],
        };
        let service = &server.cloud.environment.registry;
        let token = server
            .registry
            .token("fleet-cloud", service, &[access], now() / 1000)
            .map_err(|error| Failure::Registry(format!("{error:#}")))?;
        Ok(Repository {
            client,
            url,
            name,
            token,
        })
    }

    /// Deletes the manifests that its tags name, and the one of this digest; returns how many there were.
    pub(super) async fn empty(&self, content_hash: Option<&str>) -> Result<u64, Failure> {
        let mut visited = HashSet::new();
        let mut deleted = 0;
        if let Some(digest) = content_hash.filter(|digest| is_digest(digest)) {
            deleted += self
                .delete_with_parts(digest.to_owned(), &mut visited)
                .await?;
        }
        let mut last = None;
        let mut looked_at = HashSet::new();
        loop {
            let tags = self.tags(last.as_deref()).await?;
            let before = looked_at.len();
            for tag in &tags {
                // Older registries have no paging, and list all tags each time.
                if looked_at.insert(tag.clone())
                    && let Some(digest) = self.digest_of(tag).await?
                {
                    deleted += self.delete_with_parts(digest, &mut visited).await?;
                }
            }
            match tags.last() {
                Some(tag) if tags.len() >= TAGS && looked_at.len() > before => {
                    last = Some(tag.clone())
                }
                _ => return Ok(deleted),
            }
        }
    }

    /// Returns the tags that follow this one in sort order.
    async fn tags(&self, last: Option<&str>) -> Result<Vec<String>, Failure> {
        let mut path = format!("tags/list?n={TAGS}");
        if let Some(last) = last {
            path.push_str("&last=");
            path.extend(form_urlencoded::byte_serialize(last.as_bytes()));
        }
        let answer = self.ask(Method::GET, &path).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(Vec::new());
        }
        let Tags { tags } = self.json(answer, "its tags").await?;
        let mut tags = tags.unwrap_or_default();
        // Only tags that are valid in the API; others would become parts of a path.
        tags.retain(|tag| is_tag(tag));
        Ok(tags)
    }

    /// Returns the digest that a tag refers to, if it exists.
    async fn digest_of(&self, tag: &str) -> Result<Option<String>, Failure> {
        let answer = self.ask(Method::HEAD, &format!("manifests/{tag}")).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let answer = self.require_success(answer, "a tag").await?;
        let digest = answer.headers().get("docker-content-digest");
        let digest = digest.and_then(|digest| digest.to_str().ok());
        match digest.filter(|digest| is_digest(digest)) {
            Some(digest) => Ok(Some(digest.to_owned())),
            None => Err(Failure::Repository(format!(
                "the registry gives no digest of the tag `{tag}`"
            ))),
        }
    }

    /// Deletes a manifest. If it is an index, the manifests that it names are deleted first, so that the rest can still
    /// be found after an interruption.
    async fn delete_with_parts(
        &self,
        digest: String,
        visited: &mut HashSet<String>,
    ) -> Result<u64, Failure> {
        let mut deleted = 0;
        // Each is on the list twice: to be read, and then to be deleted.
        let mut next = vec![(digest, 0, Step::Look)];
        while let Some((digest, depth, step)) = next.pop() {
            if step == Step::Delete {
                deleted += u64::from(self.delete(&digest).await?);
                continue;
            }
            if !visited.insert(digest.clone()) {
                continue;
            }
            let parts = if depth < DEEPEST {
                self.parts(&digest).await?
            } else {
                Vec::new()
            };
            next.push((digest, depth, Step::Delete));
            for part in parts {
                let step = if INDEXES.contains(&part.media_type.as_str()) {
                    Step::Look
                } else {
                    Step::Delete
                };
                next.push((part.digest, depth + 1, step));
            }
        }
        Ok(deleted)
    }

    /// Returns the manifests that this one names, if it is an index.
    async fn parts(&self, digest: &str) -> Result<Vec<ManifestEntry>, Failure> {
        let answer = self
            .ask(Method::GET, &format!("manifests/{digest}"))
            .await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(Vec::new());
        }
        let answer = self.require_success(answer, "a manifest").await?;
        let kind = answer.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !INDEXES.contains(&kind) {
            return Ok(Vec::new());
        }
        let Index { mut manifests } = self.json(answer, "an index").await?;
        manifests.retain(|entry| is_digest(&entry.digest));
        Ok(manifests)
    }

    /// Deletes a manifest; returns whether it existed.
    async fn delete(&self, digest: &str) -> Result<bool, Failure> {
        let answer = self
            .ask(Method::DELETE, &format!("manifests/{digest}"))
            .await?;
        match answer.status() {
            StatusCode::NOT_FOUND => Ok(false),
            StatusCode::METHOD_NOT_ALLOWED => Err(Failure::Registry(
                "it deletes nothing (405): start it with `storage.delete.enabled: true`, or with \
                 `REGISTRY_STORAGE_DELETE_ENABLED=true` in its environment"
                    .to_owned(),
            )),
            _ => self
                .require_success(answer, "a deletion")
                .await
                .map(|_| true),
        }
    }

    async fn ask(&self, method: Method, path: &str) -> Result<Response, Failure> {
        let url = format!("{}/v2/{}/{path}", self.url, self.name);
        let request = self.client.request(method, url);
        let request = request.bearer_auth(&self.token).header(ACCEPT, MANIFESTS);
        request.send().await.map_err(|error| {
            let error = anyhow::Error::from(error.without_url());
            Failure::Registry(format!("it cannot be reached at {}: {error:#}", self.url))
        })
    }

    /// Returns the answer, unless it is a refusal.
    async fn require_success(&self, answer: Response, what: &str) -> Result<Response, Failure> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = self.bytes(answer).await.unwrap_or_default();
        let text =
            String::from_utf8_lossy(text.get(..LONGEST_MESSAGE).unwrap_or(&text)).into_owned();
        let text = text.trim().escape_debug();
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::Registry(format!(
                "it refused the cloud's token ({status}): its `rootcertbundle` must be what \
                 `fleet-cloud registry-certificate` prints, and its `service` must be the cloud's `registry`: {text}"
            )),
            StatusCode::TOO_MANY_REQUESTS => Failure::Registry(format!("{status}: {text}")),
            status if status.is_server_error() => Failure::Registry(format!("{status}: {text}")),
            status => Failure::Repository(format!("it answered {what} with {status}: {text}")),
        })
    }

    async fn json<T: serde::de::DeserializeOwned>(
        &self,
        answer: Response,
        what: &str,
    ) -> Result<T, Failure> {
        let answer = self.require_success(answer, what).await?;
        let bytes = self.bytes(answer).await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Failure::Repository(format!(
                "what the registry answered for {what} cannot be read: {error}"
            ))
        })
    }

    async fn bytes(&self, mut answer: Response) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        loop {
            match answer.chunk().await {
                Ok(None) => return Ok(bytes),
                Ok(Some(chunk)) if bytes.len() + chunk.len() <= LONGEST_ANSWER => {
                    bytes.extend_from_slice(&chunk);
                }
                Ok(Some(_)) => {
                    return Err(Failure::Repository(format!(
                        "an answer of the registry is longer than {LONGEST_ANSWER} bytes"
                    )));
                }
                Err(error) => {
                    let error = anyhow::Error::from(error.without_url());
                    return Err(Failure::Registry(format!(
                        "its answer ended early: {error:#}"
                    )));
                }
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Step {
    Look,
    Delete,
}

/// Whether this is a tag by the rules of the API: a word character, then at most 127 of these.
fn is_tag(text: &str) -> bool {
    let mut bytes = text.bytes();
    let first = bytes.next();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    first.is_some_and(word)
        && text.len() <= 128
        && bytes.all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_tag_is_not_used_in_a_path() {
        for (text, is) in [
            ("latest", true),
            ("v1.2-3_x", true),
            (&"a".repeat(128), true),
            (&"a".repeat(129), false),
            ("", false),
            (".hidden", false),
            ("a/../../b", false),
            ("a?b", false),
            ("ä", false),
        ] {
            assert_eq!(is_tag(text), is, "{text}");
        }
    }
}

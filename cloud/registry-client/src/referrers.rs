//! Small artifacts that belong to another one, such as its signature: manifests that name the other as their `subject`.
//!
//! A registry lists them on request. If it is too old for that, the client that uploads one keeps the list under a tag
//! that is derived from the other's digest.

use bytes::Bytes;
use reqwest::header::ACCEPT;
use reqwest::{Body, Method, StatusCode};
use serde_json::{Value, json};

use crate::error::{ErrorKind, Result};
use crate::manifest::{Blob, Content, MANIFEST_TYPE, MAX_MANIFEST, MOST, Manifest, sha256};
use crate::repository::{Repository, SHORT, header};

const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// The configuration of an artifact that needs none.
const EMPTY: &[u8] = b"{}";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";

/// Creates the manifest of `content` as an artifact of this type that belongs to `subject`.
///
/// # Errors
/// Never for content of a few KiB.
fn referrer(subject: &Manifest, artifact_type: &str, content: &[u8]) -> Result<Manifest> {
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": artifact_type,
        "config": { "mediaType": EMPTY_TYPE, "digest": sha256(EMPTY), "size": EMPTY.len() },
        "layers": [{ "mediaType": artifact_type, "digest": sha256(content), "size": content.len() }],
        "subject": {
            "mediaType": subject.media_type, "digest": subject.digest, "size": subject.bytes.len(),
        },
    });
    Manifest::parse(manifest.to_string().into_bytes(), MANIFEST_TYPE)
}

impl Repository<'_> {
    /// Uploads bytes, unless the registry has them already.
    ///
    /// # Errors
    /// The registry does not accept them.
    pub async fn put_bytes(&self, bytes: Bytes) -> Result<()> {
        let blob = Blob::from_bytes(&bytes);
        if self.has(&blob.digest).await? {
            return Ok(());
        }
        self.put(&blob, Body::from(bytes)).await
    }

    /// Uploads `content` as an artifact of this type that belongs to `subject`, which must be in the registry.
    ///
    /// # Errors
    /// The registry does not accept a part of it.
    pub async fn put_referrer(
        &self,
        subject: &Manifest,
        artifact_type: &str,
        content: Vec<u8>,
    ) -> Result<()> {
        let manifest = referrer(subject, artifact_type, &content)?;
        self.put_bytes(Bytes::from_static(EMPTY)).await?;
        self.put_bytes(content.into()).await?;
        let answer = self.store_manifest(&manifest, &manifest.digest).await?;
        if header(&answer, "oci-subject").is_some() {
            // The registry lists it by itself.
            return Ok(());
        }
        self.list_under_tag(&subject.digest, &manifest, artifact_type)
            .await
    }

    /// Returns the artifacts of this type that belong to the manifest of this digest, as far as the registry lists
    /// them.
    ///
    /// # Errors
    /// The registry cannot be reached, or its list is invalid.
    pub async fn referrers(&self, digest: &str, artifact_type: &str) -> Result<Vec<Blob>> {
        let mut url = self.url(&format!("referrers/{digest}"))?;
        url.query_pairs_mut()
            .append_pair("artifactType", artifact_type);
        let answer = self
            .send(Method::GET, &url, |request| {
                request.header(ACCEPT, INDEX_TYPE).timeout(SHORT)
            })
            .await?;
        let list = if answer.status() == StatusCode::NOT_FOUND {
            match self.manifest(&tag_of_list(digest)).await {
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(Vec::new()),
                list => list?,
            }
        } else {
            let answer = self
                .require_success(answer, "the list of signatures")
                .await?;
            Manifest::parse(self.bounded(answer, MAX_MANIFEST).await?, INDEX_TYPE)?
        };
        let Content::Index(list) = list.content else {
            return Err(self.failed("has something else in the place of the list of signatures"));
        };
        let entries = list.manifests.into_iter();
        let entries = entries.filter(|entry| entry.artifact_type.as_deref() == Some(artifact_type));
        Ok(entries.map(|entry| entry.blob).collect())
    }

    /// Adds a manifest to the list that is kept under a tag.
    async fn list_under_tag(
        &self,
        subject: &str,
        manifest: &Manifest,
        artifact_type: &str,
    ) -> Result<()> {
        let tag = tag_of_list(subject);
        let not_a_list = || self.failed(&format!("has something else under the tag `{tag}`"));
        // Fields and entries that other clients have written are kept.
        let mut list: Value = match self.manifest(&tag).await {
            Err(error) if error.kind == ErrorKind::NotFound => {
                json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [] })
            }
            list => serde_json::from_slice(&list?.bytes).map_err(|_| not_a_list())?,
        };
        let entries = list.get_mut("manifests").and_then(Value::as_array_mut);
        let entries = entries.ok_or_else(not_a_list)?;
        if entries
            .iter()
            .any(|entry| entry["digest"] == manifest.digest)
        {
            return Ok(());
        }
        if entries.len() >= MOST {
            return Err(self.failed(&format!("lists {MOST} signatures already")));
        }
        entries.push(json!({
            "mediaType": manifest.media_type,
            "digest": manifest.digest,
            "size": manifest.bytes.len(),
            "artifactType": artifact_type,
        }));
        let list = Manifest::parse(list.to_string().into_bytes(), INDEX_TYPE)?;
        self.put_manifest(&list, &tag).await
    }
}

/// Returns the tag of the list of artifacts that belong to the manifest of this digest.
fn tag_of_list(digest: &str) -> String {
    digest.replacen(':', "-", 1)
}

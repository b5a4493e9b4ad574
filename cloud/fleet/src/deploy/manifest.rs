//! Manifests of images and indexes of them, as registries have them.

use std::fmt;

use registry_protocol::is_digest;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::failure::{Failure, Result};

/// The longest manifest, in bytes: what registries themselves accept.
pub(super) const MAX_MANIFEST: usize = 4 << 20;
/// The most blobs of an image, and images of an index.
const MOST: usize = 500;

/// Something in a registry, by its digest.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Blob {
    pub(super) digest: String,
    pub(super) size: u64,
    /// Where else it is; such layers are not pushed.
    #[serde(default)]
    urls: Vec<String>,
}

/// An image of an index.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct IndexEntry {
    #[serde(flatten)]
    pub(super) blob: Blob,
    pub(super) platform: Option<ListedPlatform>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ListedPlatform {
    #[serde(default)]
    pub(super) os: String,
    #[serde(default)]
    pub(super) architecture: String,
    pub(super) variant: Option<String>,
}

impl fmt::Display for ListedPlatform {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.os, self.architecture)?;
        match self.variant.as_deref() {
            None | Some("") => Ok(()),
            Some(variant) => write!(out, "/{variant}"),
        }
    }
}

/// Images for several platforms.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Index {
    pub(super) manifests: Vec<IndexEntry>,
}

/// One image.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Image {
    config: Blob,
    #[serde(default)]
    layers: Vec<Blob>,
}

impl Image {
    /// What has to be in the registry before the manifest.
    pub(super) fn blobs(&self) -> impl Iterator<Item = &Blob> {
        let layers = self.layers.iter().filter(|layer| layer.urls.is_empty());
        std::iter::once(&self.config).chain(layers)
    }
}

/// A manifest's bytes, which are what its digest is of, and their kind.
#[derive(Debug, Clone)]
pub(super) struct Manifest {
    pub(super) bytes: Vec<u8>,
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Image(Image),
    Index(Index),
}

impl Manifest {
    /// Of bytes that a registry gave, or that were made here.
    ///
    /// # Errors
    /// Where they are no manifest, or one of a kind that is not copied.
    pub(super) fn parse(bytes: Vec<u8>, media_type: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "mediaType")]
            media_type: Option<String>,
            #[serde(rename = "schemaVersion")]
            schema: Option<u32>,
            manifests: Option<serde::de::IgnoredAny>,
        }
        let wrong = |error: serde_json::Error| {
            Failure::failed("the registry's answer is not a manifest of an image").because(error)
        };
        let kind: Kind = serde_json::from_slice(&bytes).map_err(wrong)?;
        if kind.schema != Some(2) {
            return Err(Failure::failed("its manifest has an obsolete format")
                .hint("push the image again with a current tool"));
        }
        let content = match kind.manifests {
            Some(_) => Content::Index(serde_json::from_slice(&bytes).map_err(wrong)?),
            None => Content::Image(serde_json::from_slice(&bytes).map_err(wrong)?),
        };
        let digests: Vec<&str> = match &content {
            Content::Image(image) => image.blobs().map(|blob| blob.digest.as_str()).collect(),
            Content::Index(index) => {
                let listed = index.manifests.iter();
                listed.map(|listed| listed.blob.digest.as_str()).collect()
            }
        };
        if digests.len() > MOST || !digests.into_iter().all(is_digest) {
            return Err(Failure::failed(
                "its manifest names something that cannot be in a registry",
            ));
        }
        Ok(Manifest {
            digest: sha256(&bytes),
            // The manifest's own word, where it has one: it is what the digest covers.
            media_type: kind.media_type.unwrap_or_else(|| media_type.to_owned()),
            content,
            bytes,
        })
    }
}

/// `sha256:` and the digest in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

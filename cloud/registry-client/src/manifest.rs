//! Manifests of images and image indexes, as registries store them.

use std::fmt;

use registry_protocol::is_digest;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::error::{RegistryError, Result};

/// The maximum length of a manifest in bytes, which is what registries themselves accept.
pub(crate) const MAX_MANIFEST: usize = 4 << 20;
/// The maximum number of blobs of an image, and of images of an index.
pub(crate) const MOST: usize = 500;
/// The media type of the manifest of one image.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// Something in a registry, by its digest.
#[derive(Debug, Clone, Deserialize)]
pub struct Blob {
    /// Its media type; empty if the manifest does not say.
    #[serde(default, rename = "mediaType")]
    pub media_type: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The number of bytes that the manifest states.
    pub size: u64,
    /// Other places that offer it; such layers are not pushed.
    #[serde(default)]
    urls: Vec<String>,
}

impl Blob {
    /// Describes bytes whose media type does not matter.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Blob {
            media_type: String::new(),
            digest: sha256(bytes),
            size: bytes.len() as u64,
            urls: Vec::new(),
        }
    }
}

/// An image of an index.
#[derive(Debug, Clone, Deserialize)]
pub struct IndexEntry {
    /// Its manifest.
    #[serde(flatten)]
    pub blob: Blob,
    /// The platform that runs it, if the index says so.
    pub platform: Option<ListedPlatform>,
    /// The kind of artifact, if the index says so.
    #[serde(rename = "artifactType")]
    pub artifact_type: Option<String>,
}

/// The platform that an image of an index is for.
#[derive(Debug, Clone, Deserialize)]
pub struct ListedPlatform {
    /// The operating system.
    #[serde(default)]
    pub os: String,
    /// The kind of processor.
    #[serde(default)]
    pub architecture: String,
    /// The variant of that processor that it needs, if there are several.
    pub variant: Option<String>,
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
pub struct Index {
    /// The images.
    pub manifests: Vec<IndexEntry>,
}

/// One image.
#[derive(Debug, Clone, Deserialize)]
pub struct Image {
    /// The configuration; its media type says what kind of image this is.
    pub config: Blob,
    /// The layers.
    #[serde(default)]
    pub layers: Vec<Blob>,
    /// The manifest that this one refers to, if it belongs to another.
    pub subject: Option<Blob>,
}

impl Image {
    /// Returns the blobs that must be in the registry before the manifest.
    pub fn blobs(&self) -> impl Iterator<Item = &Blob> {
        let layers = self.layers.iter().filter(|layer| layer.urls.is_empty());
        std::iter::once(&self.config).chain(layers)
    }
}

/// The bytes of a manifest, which its digest is computed from, and their media type.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their media type.
    pub media_type: String,
    /// Their digest.
    pub digest: String,
    /// Their parsed content.
    pub content: Content,
}

/// What a manifest describes.
#[derive(Debug, Clone)]
pub enum Content {
    /// One image.
    Image(Image),
    /// Images for several platforms, or manifests that belong together.
    Index(Index),
}

impl Manifest {
    /// Parses bytes that came from a registry or were created here.
    ///
    /// # Errors
    /// They are not a manifest, or one of an obsolete kind.
    pub fn parse(bytes: Vec<u8>, media_type: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "mediaType")]
            media_type: Option<String>,
            #[serde(rename = "schemaVersion")]
            schema: Option<u32>,
            manifests: Option<serde::de::IgnoredAny>,
        }
        let wrong = |error: serde_json::Error| {
            RegistryError::failed("the registry's answer is not a manifest of an image")
                .because(error)
        };
        let kind: Kind = serde_json::from_slice(&bytes).map_err(wrong)?;
        if kind.schema != Some(2) {
            return Err(RegistryError::failed("its manifest has an obsolete format")
                .hint("push the image again with a current tool"));
        }
        let content = match kind.manifests {
            Some(_) => Content::Index(serde_json::from_slice(&bytes).map_err(wrong)?),
            None => Content::Image(serde_json::from_slice(&bytes).map_err(wrong)?),
        };
        let digests: Vec<&str> = match &content {
            Content::Image(image) => {
                let blobs = image.blobs().chain(&image.subject);
                blobs.map(|blob| blob.digest.as_str()).collect()
            }
            Content::Index(index) => {
                let listed = index.manifests.iter();
                listed.map(|listed| listed.blob.digest.as_str()).collect()
            }
        };
        if digests.len() > MOST || !digests.into_iter().all(is_digest) {
            return Err(RegistryError::failed(
                "its manifest names something that cannot be in a registry",
            ));
        }
        Ok(Manifest {
            digest: sha256(&bytes),
            // The manifest's own statement takes precedence, because the digest covers it.
            media_type: kind.media_type.unwrap_or_else(|| media_type.to_owned()),
            content,
            bytes,
        })
    }
}

/// Returns `sha256:` and the digest in hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

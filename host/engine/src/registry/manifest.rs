//! The parts of an image's manifest, or of an index of manifests, that show its kind, platform and size.

use model::ImageRef;
use serde::Deserialize;

use crate::EngineError;

/// A manifest; of an index of manifests, only `manifests` is filled.
#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) config: Option<Descriptor>,
    #[serde(default)]
    pub(crate) layers: Vec<Descriptor>,
    #[serde(default)]
    pub(crate) manifests: Vec<IndexEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Descriptor {
    #[serde(rename = "mediaType")]
    pub(crate) media_type: String,
    pub(crate) digest: String,
    /// The size in bytes.
    pub(crate) size: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct IndexEntry {
    pub(crate) digest: String,
    pub(crate) platform: Option<Platform>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Platform {
    pub(crate) os: String,
    pub(crate) architecture: String,
}

impl Manifest {
    pub(crate) fn parse(image: &ImageRef, bytes: &[u8]) -> Result<Self, EngineError> {
        serde_json::from_slice(bytes)
            .map_err(|error| EngineError::failed(format!("read the manifest of `{image}`"), error))
    }
}

impl IndexEntry {
    /// Returns whether it is for Linux, on any processor.
    pub(crate) fn is_linux(&self) -> bool {
        self.platform.as_ref().is_some_and(|p| p.os == "linux")
    }
}

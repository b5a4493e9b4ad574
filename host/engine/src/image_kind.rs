//! Which kind of engine runs an image: what its manifest says, asked of its registry.
//!
//! Called by [`crate::Engines::pull`] for an image that no engine has yet. Reads manifests only, never
//! a layer.

use model::{EngineKind, ImageRef};
use serde::Deserialize;

use crate::registry::Repository;
use crate::{EngineError, RegistryAuth};

/// The media type of the configuration of an image that holds a WebAssembly component.
pub const WASM_CONFIG_MEDIA_TYPE: &str = "application/vnd.wasm.config.v0+json";

/// Which engine runs `image`. A `file:` reference is a component; of an index, the first entry counts,
/// unless one is for Linux.
///
/// # Errors
/// [`EngineError::NotFound`] where the registry has no such image, [`EngineError::Failed`] where it
/// does not answer, refuses us or answers what is no manifest.
pub async fn ask(image: &ImageRef, auth: Option<&RegistryAuth>) -> Result<EngineKind, EngineError> {
    if image.is_file() {
        return Ok(EngineKind::Wasm);
    }
    let repository = Repository::of(image, auth)?;
    let manifest = Manifest::parse(image, &repository.manifest(None).await?)?;
    let Some(entry) = manifest.deciding_entry() else {
        return Ok(manifest.kind());
    };
    if entry.is_linux() {
        return Ok(EngineKind::Docker);
    }
    let nested = repository.manifest(Some(&entry.digest)).await?;
    Ok(Manifest::parse(image, &nested)?.kind())
}

/// As much of an image manifest or an index of manifests as tells what it is of.
#[derive(Debug, Deserialize)]
struct Manifest {
    config: Option<Config>,
    #[serde(default)]
    manifests: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Config {
    #[serde(rename = "mediaType", default)]
    media_type: String,
}

#[derive(Debug, Deserialize)]
struct Entry {
    digest: String,
    platform: Option<Platform>,
}

#[derive(Debug, Deserialize)]
struct Platform {
    #[serde(default)]
    os: String,
}

impl Manifest {
    fn parse(image: &ImageRef, bytes: &[u8]) -> Result<Self, EngineError> {
        serde_json::from_slice(bytes)
            .map_err(|error| EngineError::failed(format!("read the manifest of `{image}`"), error))
    }

    fn kind(&self) -> EngineKind {
        match &self.config {
            Some(config) if config.media_type == WASM_CONFIG_MEDIA_TYPE => EngineKind::Wasm,
            _ => EngineKind::Docker,
        }
    }

    /// The entry of an index that decides; `None` in a plain manifest.
    fn deciding_entry(&self) -> Option<&Entry> {
        self.manifests
            .iter()
            .find(|entry| entry.is_linux())
            .or(self.manifests.first())
    }
}

impl Entry {
    fn is_linux(&self) -> bool {
        self.platform.as_ref().is_some_and(|p| p.os == "linux")
    }
}

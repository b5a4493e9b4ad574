//! Checks whether a Docker engine has room for an image, from the layers that the registry lists,
//! the layers that the engine has, and the free space in the engine's folder.
//!
//! It refuses an image only if it is sure enough, and allows it if it cannot tell: the engine may
//! be elsewhere, or reach registries that we do not.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use model::ImageRef;
use serde::Deserialize;

use super::Docker;
use crate::disk::Need;
use crate::registry::{IndexEntry, Manifest, Repository, sha256_digest};
use crate::{EngineError, Images, RegistryAuth};

/// A compressed layer is stored on the disk as it was sent and then unpacked, which takes about twice its size.
const COMPRESSED: u64 = 3;
/// A layer that is not compressed: as it was sent, and unpacked.
const PLAIN: u64 = 2;
/// With this many bytes free no registry is asked: registries limit requests.
const PLENTY: u64 = 32 << 30;
/// How long all requests may take. The download must not wait for an answer that is only an aid.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest configuration of an image that is read, in bytes.
const MAX_CONFIGURATION: usize = 4 << 20;
/// How many images of the engine are checked for shared layers.
const MAX_IMAGES: usize = 256;

impl Docker {
    /// Refuses an image for which the engine has no room.
    ///
    /// # Errors
    /// [`EngineError::NoRoom`].
    pub(super) async fn check_room(
        &self,
        image: &ImageRef,
        auth: Option<&RegistryAuth>,
    ) -> Result<(), EngineError> {
        match tokio::time::timeout(PATIENCE, self.look_for_room(image, auth)).await {
            Ok(Err(no_room @ EngineError::NoRoom { .. })) => Err(no_room),
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    %image,
                    "failed to determine whether there is room for an image"
                );
                Ok(())
            }
            Err(_) => {
                tracing::debug!(
                    %image,
                    "it took too long to determine whether there is room for an image"
                );
                Ok(())
            }
        }
    }

    async fn look_for_room(
        &self,
        image: &ImageRef,
        auth: Option<&RegistryAuth>,
    ) -> Result<(), EngineError> {
        let about = self.api().await?.info().await;
        let about = about.map_err(|error| self.failed("ask the engine", error))?;
        let root = about.docker_root_dir.unwrap_or_default();
        let Some(folder) = self.here(&root) else {
            if !self.root_was_logged.swap(true, Ordering::Relaxed) {
                tracing::info!(
                    path = %root,
                    "the engine keeps its images in `{root}`, which the supervisor cannot see: it downloads images without a check of the free space"
                );
            }
            return Ok(());
        };
        if self.disk.free(&folder).is_ok_and(|free| free >= PLENTY) {
            return Ok(());
        }
        let repository = Repository::new(image, auth)?;
        let architecture = go_architecture(about.architecture.as_deref().unwrap_or_default());
        let Some(manifest) = manifest_for(&repository, architecture).await? else {
            return Ok(());
        };
        let present = match &manifest.config {
            Some(config) => {
                let layers = unpacked_layers(&repository, image, &config.digest).await?;
                self.layers_here(&layers).await?
            }
            None => 0,
        };
        self.disk.check(image, &folder, need(&manifest, present))
    }

    /// Returns the engine's folder as this process sees it; `None` if it is not visible, so the
    /// free space is unknown.
    fn here(&self, root: &str) -> Option<PathBuf> {
        let root = Path::new(root);
        let below = root.strip_prefix("/").ok()?;
        if !self.connection.is_local() {
            return None;
        }
        let candidates = [self.host_root.join(below), root.to_owned()];
        // The engine's folder contains this one in every version; another folder of the same name
        // does not.
        candidates
            .into_iter()
            .find(|folder| folder.join("containers").is_dir())
    }

    /// Returns how many of these layers, from the first on, the engine has already: images share
    /// the layers that they are built on.
    async fn layers_here(&self, layers: &[String]) -> Result<usize, EngineError> {
        let api = self.api().await?;
        let mut most = 0;
        for image in self.images().await?.iter().take(MAX_IMAGES) {
            // An image that was removed in between has no layers.
            let Ok(image) = api.inspect_image(image.id.as_str()).await else {
                continue;
            };
            let present = image.root_fs.and_then(|root| root.layers);
            let present = present.unwrap_or_default();
            let shared = layers.iter().zip(&present).take_while(|(a, b)| a == b);
            most = most.max(shared.count());
        }
        Ok(most)
    }
}

/// Returns the manifest of the image that this engine would pull; `None` if there is none for it.
async fn manifest_for(
    repository: &Repository,
    architecture: &str,
) -> Result<Option<Manifest>, EngineError> {
    let manifest = repository.parsed_manifest(None).await?;
    if manifest.manifests.is_empty() {
        return Ok(Some(manifest));
    }
    let is_for_engine = |entry: &&IndexEntry| {
        let platform = entry.platform.as_ref();
        entry.is_linux() && platform.is_some_and(|p| p.architecture == architecture)
    };
    match manifest.manifests.iter().find(is_for_engine) {
        Some(entry) => repository
            .parsed_manifest(Some(&entry.digest))
            .await
            .map(Some),
        None => Ok(None),
    }
}

/// Returns the digests of an image's unpacked layers, in order.
async fn unpacked_layers(
    repository: &Repository,
    image: &ImageRef,
    digest: &str,
) -> Result<Vec<String>, EngineError> {
    let mut pieces = repository.blob(digest).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() > MAX_CONFIGURATION {
            return Err(unreadable(image, "it is too long"));
        }
    }
    if sha256_digest(&bytes) != digest {
        return Err(unreadable(image, "it does not match its digest"));
    }
    let configuration: Configuration =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(image, error))?;
    Ok(configuration.rootfs.diff_ids)
}

fn unreadable(
    image: &ImageRef,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> EngineError {
    EngineError::failed(format!("read the configuration of `{image}`"), source)
}

/// The part of an image's configuration that names its layers.
#[derive(Debug, Deserialize)]
struct Configuration {
    rootfs: RootFs,
}

#[derive(Debug, Deserialize)]
struct RootFs {
    #[serde(default)]
    diff_ids: Vec<String>,
}

/// Returns the need of the layers after the first `present`.
fn need(manifest: &Manifest, present: usize) -> Need {
    let mut need = Need::default();
    for layer in manifest.layers.iter().skip(present) {
        let compressed = layer.media_type.ends_with("gzip") || layer.media_type.ends_with("zstd");
        let times = if compressed { COMPRESSED } else { PLAIN };
        need.download = need.download.saturating_add(layer.size);
        need.room = need.room.saturating_add(layer.size.saturating_mul(times));
    }
    need
}

/// Translates the architecture from the name in the engine's kernel to the name in indexes of
/// manifests.
fn go_architecture(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i386" | "i486" | "i586" | "i686" => "386",
        arm if arm.starts_with("armv") => "arm",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_take_a_multiple_of_what_they_are_sent_as() {
        let layer = |media_type: &str, size: u64| serde_json::json!({ "mediaType": media_type, "digest": "d", "size": size });
        let manifest = serde_json::json!({ "layers": [
            layer("application/vnd.docker.image.rootfs.diff.tar.gzip", 100),
            layer("application/vnd.oci.image.layer.v1.tar+zstd", 10),
            layer("application/vnd.oci.image.layer.v1.tar", 1),
        ] });
        let image: ImageRef = "web:1".parse().unwrap();
        let manifest = Manifest::parse(&image, manifest.to_string().as_bytes()).unwrap();
        for (present, download, room) in
            [(0, 111, 332), (1, 11, 32), (2, 1, 2), (3, 0, 0), (9, 0, 0)]
        {
            assert_eq!(
                need(&manifest, present),
                Need { download, room },
                "{present}"
            );
        }
    }

    #[test]
    fn machines_are_named_as_images_name_them() {
        for (machine, named) in [
            ("x86_64", "amd64"),
            ("aarch64", "arm64"),
            ("armv7l", "arm"),
            ("i686", "386"),
            ("riscv64", "riscv64"),
            ("", ""),
        ] {
            assert_eq!(go_architecture(machine), named);
        }
    }
}

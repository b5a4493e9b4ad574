//! Brings a component onto the device: from a registry, or from an existing file.

use std::path::PathBuf;

use async_trait::async_trait;
use compiled_code::Profile;
use futures::StreamExt as _;
use model::{EngineImageId, EngineKind, Image, ImageRef};

use super::Wasm;
use super::component_file::{MAX_COMPONENT, check_component, file_path, too_large};
use super::image_table::{ArrivingImages, ImageRecord, repository};
use crate::disk::Need;
use crate::registry::{Descriptor, Manifest, Repository, sha256_digest};
use crate::{EngineError, EngineEvent, Images, PullProgress, RegistryAuth, WASM_CONFIG_MEDIA_TYPE};

/// The media type of the layer that contains the component.
const COMPONENT_MEDIA_TYPE: &str = "application/wasm";
/// The share of the transfer in a pull's progress; the rest is compiling.
const TRANSFER_PERCENT: u64 = 90;

#[async_trait]
impl Images for Wasm {
    async fn images(&self) -> Result<Vec<Image>, EngineError> {
        self.blocking(|shared| shared.list_images()).await
    }

    async fn pull_image(
        &self,
        image: &ImageRef,
        auth: Option<&RegistryAuth>,
        progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<Image, EngineError> {
        progress(PullProgress { percent: 0 });
        // A file is checked again; an image from a registry does not change.
        if !image.is_file()
            && let Some(present) = self.find_image(image).await?
        {
            progress(PullProgress { percent: 100 });
            return Ok(present);
        }
        let (records, arriving) = if image.is_file() {
            let (record, arriving) = self.take_file(image).await?;
            (vec![record], arriving)
        } else {
            self.fetch(image, auth, progress).await?
        };
        let id = records[0].id.clone();
        // Compiled now, so that a start is quick, and an image that does not compile is a failed
        // pull.
        self.compiled(&id).await?;
        self.blocking(move |shared| {
            let _changing = shared.changing.lock();
            for record in &records {
                shared.record_image(record).map_err(|error| {
                    EngineError::failed(format!("record the image `{}`", record.reference), error)
                })?;
            }
            drop(arriving);
            // The reference may have named another component before.
            shared.sweep_components();
            shared.emit(EngineEvent::Other);
            Ok(())
        })
        .await?;
        progress(PullProgress { percent: 100 });
        let pulled = self.find_image(image).await?;
        pulled.ok_or_else(|| EngineError::not_found(format!("`{image}`")))
    }

    async fn remove_image(&self, image: &ImageRef) -> Result<(), EngineError> {
        let image = image.clone();
        self.blocking(move |shared| shared.remove_reference(&image))
            .await
    }
}

impl Wasm {
    async fn find_image(&self, image: &ImageRef) -> Result<Option<Image>, EngineError> {
        let images = self.images().await?;
        Ok(images.into_iter().find(|i| i.references.contains(image)))
    }

    /// Returns the compiled code of a component that is stored here.
    pub(super) async fn compiled(&self, id: &EngineImageId) -> Result<PathBuf, EngineError> {
        let shared = &self.shared;
        let path = shared.folders.component(id.as_str());
        let compiled = shared
            .config
            .cache
            .compile_component(&path, Profile::Service)
            .await;
        compiled.map_err(|error| EngineError::failed(format!("compile the image `{id}`"), error))
    }

    async fn take_file(
        &self,
        image: &ImageRef,
    ) -> Result<(ImageRecord, ArrivingImages), EngineError> {
        let path = file_path(image)?;
        let image = image.clone();
        self.blocking(move |shared| shared.take_file(&image, &path))
            .await
    }

    /// Returns the records of `image`: the reference itself and, for a tag, the one by digest.
    async fn fetch(
        &self,
        image: &ImageRef,
        auth: Option<&RegistryAuth>,
        progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<(Vec<ImageRecord>, ArrivingImages), EngineError> {
        let repository_of_image = Repository::new(image, auth)?;
        let bytes = repository_of_image.manifest(None).await?;
        let digest = sha256_digest(&bytes);
        let mut manifest = Manifest::parse(image, &bytes)?;
        if let Some(entry) = manifest.manifests.first() {
            let nested = repository_of_image.parsed_manifest(Some(&entry.digest));
            manifest = nested.await?;
        }
        let layer = component(&manifest, image)?;
        if layer.size > MAX_COMPONENT {
            return Err(too_large(image));
        }
        let id: EngineImageId = layer.digest.parse().map_err(|error| {
            EngineError::failed(format!("read the manifest of `{image}`"), error)
        })?;
        let size = layer.size;
        let arriving = ArrivingImages::new(&self.shared, &id);
        let has = {
            let id = id.clone();
            self.blocking(move |shared| Ok(shared.has_component(&id)))
                .await?
        };
        if !has {
            let need = Need {
                download: size,
                room: size,
            };
            let shared = &self.shared;
            let folder = &shared.folders.components;
            shared.config.disk.check(image, folder, need)?;
            let bytes = transfer(&repository_of_image, image, layer, progress).await?;
            let id = id.clone();
            self.blocking(move |shared| shared.put_component(&id, &bytes))
                .await?;
        }
        let record = |reference| ImageRecord {
            reference,
            id: id.clone(),
            size,
            file: None,
        };
        let mut records = vec![record(image.clone())];
        let by_digest = format!("{}@{digest}", repository(image)).parse::<ImageRef>();
        if let Ok(by_digest) = by_digest
            && by_digest != *image
        {
            records.push(record(by_digest));
        }
        Ok((records, arriving))
    }
}

/// Downloads the bytes of `layer`, checked against its digest.
async fn transfer(
    repository: &Repository,
    image: &ImageRef,
    layer: &Descriptor,
    progress: &(dyn Fn(PullProgress) + Send + Sync),
) -> Result<Vec<u8>, EngineError> {
    let mut pieces = repository.blob(&layer.digest).await?;
    let mut bytes = Vec::new();
    let mut reported = 0;
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece?);
        let length = bytes.len() as u64;
        if length > layer.size {
            return Err(damaged(
                image,
                "its component is longer than its manifest says",
            ));
        }
        let percent = (length * TRANSFER_PERCENT / layer.size.max(1)) as u8;
        if percent > reported {
            reported = percent;
            progress(PullProgress { percent });
        }
    }
    if sha256_digest(&bytes) != layer.digest {
        return Err(damaged(image, "its component does not match its digest"));
    }
    check_component(image, &bytes)?;
    Ok(bytes)
}

fn damaged(image: &ImageRef, reason: &'static str) -> EngineError {
    EngineError::failed(format!("pull `{image}`"), reason)
}

/// Returns the layer of an image that consists of one component, and nothing else.
fn component<'a>(manifest: &'a Manifest, image: &ImageRef) -> Result<&'a Descriptor, EngineError> {
    let wrong = |reason: &str| EngineError::WrongKind {
        image: image.to_string(),
        engine: EngineKind::Wasm,
        reason: reason.to_owned(),
    };
    let config = manifest.config.as_ref();
    if config.is_none_or(|config| config.media_type != WASM_CONFIG_MEDIA_TYPE) {
        return Err(wrong(
            "its configuration is not that of a WebAssembly image",
        ));
    }
    let [layer] = manifest.layers.as_slice() else {
        return Err(wrong("it does not have exactly one layer"));
    };
    if layer.media_type != COMPONENT_MEDIA_TYPE {
        return Err(wrong("its layer is not a WebAssembly component"));
    }
    let hex = layer.digest.strip_prefix("sha256:").unwrap_or_default();
    // The digest becomes a file's name.
    if hex.len() != 64 || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(wrong("its layer has no SHA-256 digest"));
    }
    Ok(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(config: &str, layers: &[(&str, &str)]) -> Manifest {
        let descriptor = |media_type: &str, digest: &str| serde_json::json!({ "mediaType": media_type, "digest": digest, "size": 10 });
        let layers: Vec<_> = layers.iter().map(|(t, d)| descriptor(t, d)).collect();
        let json = serde_json::json!({
            "schemaVersion": 2,
            "config": descriptor(config, "sha256:0"),
            "layers": layers,
        });
        let web = "web:1".parse().unwrap();
        Manifest::parse(&web, json.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn an_image_is_one_component() {
        let web: ImageRef = "web:1".parse().unwrap();
        let digest = format!("sha256:{}", "ab".repeat(32));
        let layer = ("application/wasm", digest.as_str());
        let good = manifest(WASM_CONFIG_MEDIA_TYPE, &[layer]);
        assert_eq!(component(&good, &web).unwrap().digest, digest);

        for (config, layers) in [
            ("application/vnd.oci.image.config.v1+json", vec![layer]),
            (WASM_CONFIG_MEDIA_TYPE, vec![]),
            (WASM_CONFIG_MEDIA_TYPE, vec![layer, layer]),
            (WASM_CONFIG_MEDIA_TYPE, vec![("application/gzip", &digest)]),
            (WASM_CONFIG_MEDIA_TYPE, vec![(layer.0, "sha256:../../x")]),
            (WASM_CONFIG_MEDIA_TYPE, vec![(layer.0, "sha512:abc")]),
        ] {
            let refused = manifest(config, &layers);
            let error = component(&refused, &web).unwrap_err();
            assert!(matches!(error, EngineError::WrongKind { .. }), "{error}");
        }
    }
}

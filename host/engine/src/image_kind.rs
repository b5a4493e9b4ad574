//! Determines which kind of engine runs an image, from the manifest in its registry.
//!
//! Called by [`crate::Engines::pull`] for an image that no engine has yet. Reads only manifests,
//! never layers.

use model::{EngineKind, ImageRef};

use crate::registry::{IndexEntry, Manifest, Repository};
use crate::{EngineError, RegistryAuth};

/// The media type of the configuration of an image that contains a WebAssembly component.
pub const WASM_CONFIG_MEDIA_TYPE: &str = "application/vnd.wasm.config.v0+json";

/// Determines which engine runs `image`. A `file:` reference is a component; of an index, the first
/// entry counts, unless one is for Linux.
///
/// # Errors
/// [`EngineError::NotFound`] if the registry has no such image, [`EngineError::Failed`] if it does
/// not answer, refuses us or returns something other than a manifest.
pub async fn ask(image: &ImageRef, auth: Option<&RegistryAuth>) -> Result<EngineKind, EngineError> {
    if image.is_file() {
        return Ok(EngineKind::Wasm);
    }
    let repository = Repository::new(image, auth)?;
    let manifest = repository.parsed_manifest(None).await?;
    let mut entries = manifest.manifests.iter();
    if entries.any(IndexEntry::is_linux) {
        return Ok(EngineKind::Docker);
    }
    match manifest.manifests.first() {
        Some(entry) => Ok(kind(
            &repository.parsed_manifest(Some(&entry.digest)).await?,
        )),
        None => Ok(kind(&manifest)),
    }
}

fn kind(manifest: &Manifest) -> EngineKind {
    match &manifest.config {
        Some(config) if config.media_type == WASM_CONFIG_MEDIA_TYPE => EngineKind::Wasm,
        _ => EngineKind::Docker,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::sha256_digest;
    use crate::registry::tests::{FakeRegistry, answer};

    const WASM: &str = r#"{ "config": { "mediaType": "application/vnd.wasm.config.v0+json" } }"#;
    const DOCKER: &str =
        r#"{ "config": { "mediaType": "application/vnd.docker.container.image.v1+json" } }"#;

    async fn kind_of(manifest: &str) -> Result<EngineKind, EngineError> {
        let manifest = manifest.to_owned();
        let nested = format!("manifests/{}", sha256_digest(WASM.as_bytes()));
        let registry = FakeRegistry::start(move |path, _| {
            let body = if path.ends_with(&nested) {
                WASM
            } else {
                &manifest
            };
            answer("200 OK", "", body)
        })
        .await;
        ask(&registry.image(), None).await
    }

    #[tokio::test]
    async fn media_type_of_the_configuration_tells_the_kind() {
        let digest = sha256_digest(WASM.as_bytes());
        let entry = |os: &str| {
            format!(
                r#"{{ "digest": "{digest}", "platform": {{ "os": "{os}", "architecture": "wasm" }} }}"#
            )
        };
        let index = |entries: &[String]| format!(r#"{{ "manifests": [{}] }}"#, entries.join(","));
        for (manifest, expected) in [
            (WASM.to_owned(), EngineKind::Wasm),
            (DOCKER.to_owned(), EngineKind::Docker),
            ("{}".to_owned(), EngineKind::Docker),
            (index(&[entry("wasip2")]), EngineKind::Wasm),
            (
                index(&[format!(r#"{{ "digest": "{digest}" }}"#)]),
                EngineKind::Wasm,
            ),
            (
                index(&[entry("wasip2"), entry("linux")]),
                EngineKind::Docker,
            ),
            (index(&[]), EngineKind::Docker),
        ] {
            assert_eq!(kind_of(&manifest).await.unwrap(), expected, "{manifest}");
        }
    }

    #[tokio::test]
    async fn an_invalid_manifest_is_a_failure() {
        let deep = "[".repeat(100_000);
        for manifest in ["", "no", "[]", "{\"config\":1}", deep.as_str()] {
            assert!(kind_of(manifest).await.is_err(), "{manifest:.20}");
        }
    }
}

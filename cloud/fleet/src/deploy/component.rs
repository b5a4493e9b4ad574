//! A WebAssembly component in a file, as an image: one layer, and the configuration that says what it is
//! (docs/wasm-services.md).

use std::path::Path;

use serde_json::json;

use super::manifest::{Manifest, sha256};
use crate::failure::{Failure, Result};

/// What one may have on a device, in bytes.
const MOST: u64 = 64 << 20;
/// How a component begins; a module has another version.
const MAGIC: &[u8] = b"\0asm\x0d\0\x01\0";

/// A component and what makes an image of it.
pub(super) struct Component {
    pub(super) manifest: Manifest,
    pub(super) config: Vec<u8>,
    pub(super) layer: Vec<u8>,
}

impl Component {
    /// Reads one.
    ///
    /// # Errors
    /// Where the file is none.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Failure::not_found(format!("there is no file {}", path.display()))
                    .hint("paths are from the compose file's folder")
            }
            _ => Failure::failed(format!("{} cannot be read", path.display())).because(error),
        };
        let length = std::fs::metadata(path).map_err(unreadable)?.len();
        if length > MOST {
            return Err(Failure::usage(format!(
                "{} has {} MiB, and a component may have {} MiB",
                path.display(),
                length >> 20,
                MOST >> 20
            )));
        }
        let layer = std::fs::read(path).map_err(unreadable)?;
        if !layer.starts_with(MAGIC) {
            return Err(
                Failure::usage(format!("{} is no WebAssembly component", path.display()))
                    .hint("build it for WASI 0.2: `cargo build --release --target wasm32-wasip2`"),
            );
        }
        Self::of(layer)
    }

    fn of(layer: Vec<u8>) -> Result<Self> {
        let digest = sha256(&layer);
        // Nothing of when or where: one component gives one digest.
        let config = json!({ "architecture": "wasm", "os": "wasip2", "layerDigests": [digest] });
        let config = config.to_string().into_bytes();
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": {
                "mediaType": "application/vnd.wasm.config.v0+json",
                "digest": sha256(&config),
                "size": config.len(),
            },
            "layers": [{ "mediaType": "application/wasm", "digest": digest, "size": layer.len() }],
        });
        Ok(Component {
            manifest: Manifest::parse(manifest.to_string().into_bytes(), media_type)?,
            config,
            layer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_component_gives_one_image_and_a_module_none() {
        let digest = |more: &[u8]| {
            let component = Component::of([MAGIC, more].concat()).expect("a component");
            component.manifest.digest
        };
        assert_eq!(digest(b"a"), digest(b"a"));
        assert_ne!(digest(b"a"), digest(b"b"));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m.wasm");
        std::fs::write(&path, b"\0asm\x01\0\0\0").expect("a file");
        let failure = Component::read(&path).err().expect("a module");
        assert!(failure.to_string().contains("is no WebAssembly component"));
        assert!(Component::read(&folder.path().join("none.wasm")).is_err());
    }
}

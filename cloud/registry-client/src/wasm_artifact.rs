//! A WebAssembly component as an artifact of a registry, in the layout of the CNCF: one layer, which is the unchanged
//! component, and a configuration whose media type identifies it.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::manifest::{MANIFEST_TYPE, Manifest, sha256};

/// The media type of the configuration.
pub const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";
/// The media type of the component.
pub const LAYER_TYPE: &str = "application/wasm";

/// A component as an artifact.
pub struct WasmArtifact {
    /// The manifest, which names the two others.
    pub manifest: Manifest,
    /// The configuration.
    pub config: Vec<u8>,
    /// The component.
    pub layer: Vec<u8>,
}

impl WasmArtifact {
    /// Creates the artifact of a component, with these annotations. It does not record when or where it was created:
    /// the same component with the same annotations has the same digest.
    ///
    /// # Errors
    /// Never for a component of the length that devices accept.
    pub fn new(layer: Vec<u8>, annotations: Map<String, Value>) -> Result<Self> {
        let digest = sha256(&layer);
        let config = json!({ "architecture": "wasm", "os": "wasip2", "layerDigests": [digest] });
        let config = config.to_string().into_bytes();
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {
                "mediaType": CONFIG_TYPE,
                "digest": sha256(&config),
                "size": config.len(),
            },
            "layers": [{ "mediaType": LAYER_TYPE, "digest": digest, "size": layer.len() }],
        });
        if !annotations.is_empty()
            && let Some(fields) = manifest.as_object_mut()
        {
            fields.insert("annotations".to_owned(), Value::Object(annotations));
        }
        Ok(WasmArtifact {
            manifest: Manifest::parse(manifest.to_string().into_bytes(), MANIFEST_TYPE)?,
            config,
            layer,
        })
    }
}

//! A registry that serves whatever a test provides.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const SIGNATURE_TYPE: &str = "application/vnd.minisign.signature.v1";
const CONFIG: &[u8] = b"{}";

/// A registry with one plugin, `greeter:1`.
pub(crate) struct HostileRegistry {
    /// The manifest, which was correct before a test changed it.
    pub(crate) manifest: Value,
    /// The bytes that are sent for the layer of the manifest.
    pub(crate) layer: Vec<u8>,
    /// The digest of the manifest that the registry states; by default none.
    pub(crate) digest_of_manifest: Option<String>,
    /// Bytes by path below the repository.
    others: HashMap<String, Vec<u8>>,
}

impl HostileRegistry {
    pub(crate) fn with_plugin(layer: Vec<u8>) -> Self {
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": descriptor("application/vnd.wasm.config.v0+json", CONFIG),
            "layers": [descriptor("application/wasm", &layer)],
        });
        HostileRegistry {
            manifest,
            layer,
            digest_of_manifest: None,
            others: HashMap::new(),
        }
    }

    /// Returns the digest of the current manifest.
    pub(crate) fn digest(&self) -> String {
        digest(self.manifest.to_string().as_bytes())
    }

    /// Serves these bytes at this path.
    pub(crate) fn put(&mut self, path: &str, bytes: Vec<u8>) {
        self.others.insert(path.to_owned(), bytes);
    }

    /// Lists a signature that claims to belong to the manifest of the digest `subject`.
    pub(crate) fn sign(&mut self, subject: &str, text: &[u8]) {
        let signature = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": SIGNATURE_TYPE,
            "config": descriptor("application/vnd.oci.empty.v1+json", CONFIG),
            "layers": [descriptor(SIGNATURE_TYPE, text)],
            "subject": { "mediaType": MANIFEST_TYPE, "digest": subject, "size": 1 },
        });
        let signature = signature.to_string().into_bytes();
        let mut entry = descriptor(MANIFEST_TYPE, &signature);
        entry["artifactType"] = json!(SIGNATURE_TYPE);
        let list = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry] });
        let tag = self.digest().replacen(':', "-", 1);
        self.put(&format!("manifests/{tag}"), list.to_string().into_bytes());
        self.put(&format!("manifests/{}", digest(&signature)), signature);
        self.put(&format!("blobs/{}", digest(text)), text.to_vec());
    }

    /// Lists signatures itself, as newer registries do, and not under a tag.
    pub(crate) fn list_signatures(&mut self) {
        let digest = self.digest();
        let tag = format!("manifests/{}", digest.replacen(':', "-", 1));
        let list = self.others.remove(&tag).unwrap();
        self.put(&format!("referrers/{digest}"), list);
    }

    /// Serves it for as long as the test's process runs, and returns the address.
    pub(crate) fn serve(mut self) -> String {
        let layer = self.manifest["layers"][0]["digest"].as_str();
        if let Some(layer) = layer.map(|digest| format!("blobs/{digest}")) {
            self.others.insert(layer, self.layer);
        }
        let manifest = self.manifest.to_string().into_bytes();
        self.others.insert("manifests/1".to_owned(), manifest);
        let (contents, of_manifest) = (Arc::new(self.others), self.digest_of_manifest);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let host = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let router = Router::new().fallback(move |request: Request| {
                    let answer = answer(&contents, of_manifest.as_deref(), &request);
                    async { answer }
                });
                let listener = TcpListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        host
    }
}

fn answer(
    contents: &HashMap<String, Vec<u8>>,
    of_manifest: Option<&str>,
    request: &Request,
) -> Response {
    let path = request.uri().path().strip_prefix("/v2/greeter/");
    let Some(bytes) = path.and_then(|path| contents.get(path)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut answer = bytes.clone().into_response();
    if let Some(digest) = of_manifest.filter(|_| path == Some("manifests/1")) {
        let name = "docker-content-digest";
        answer.headers_mut().insert(name, digest.parse().unwrap());
    }
    answer
}

/// Returns the description of a part in a manifest.
pub(crate) fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": digest(bytes), "size": bytes.len() })
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    registry_client::sha256(bytes)
}

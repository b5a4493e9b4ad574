//! A read-only image registry in this process, whose images exist nowhere else: every pull from it is the first one.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

const COMPONENT: &str = "application/wasm";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Media type and bytes, by digest and, for manifests, also by tag.
type Contents = Arc<Mutex<HashMap<String, (String, Vec<u8>)>>>;

/// A registry on a free port of 127.0.0.1, which ends when it is dropped.
pub struct Registry {
    address: SocketAddr,
    contents: Contents,
    /// Whether layers are delayed.
    stalls: watch::Sender<bool>,
    server: AbortHandle,
}

#[derive(Clone)]
struct Shelf {
    contents: Contents,
    stalls: watch::Receiver<bool>,
}

impl Registry {
    /// Starts an empty registry.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let contents = Contents::default();
        let (stalls, held_back) = watch::channel(false);
        let shelf = Shelf {
            contents: contents.clone(),
            stalls: held_back,
        };
        let router = Router::new()
            .route("/v2/", get(|| async { "{}" }))
            .route("/v2/{name}/{kind}/{reference}", get(serve))
            .with_state(shelf);
        let server = tokio::spawn(async move {
            // The server ends with the test.
            let _ = axum::serve(listener, router).await;
        });
        Registry {
            address,
            contents,
            stalls,
            server: server.abort_handle(),
        }
    }

    /// Delays all layers requested from now on, or delivers them, including delayed ones.
    pub fn stall(&self, stalls: bool) {
        self.stalls.send_replace(stalls);
    }

    /// Publishes a component as an image of the wasm engine, which `note` makes unique.
    pub fn publish_component(&self, component: &[u8], note: &str) -> String {
        let mut layer = component.to_vec();
        layer.extend(custom_section(note));
        self.publish(
            note,
            "application/vnd.wasm.config.v0+json",
            &json!({}),
            &[(COMPONENT, layer)],
        )
    }

    /// Publishes this machine's static busybox as an image of Docker, which `note` makes unique.
    ///
    /// # Panics
    /// If there is no busybox.
    pub fn publish_busybox(&self, note: &str) -> String {
        let layer = busybox_layer(note);
        let architecture = if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "amd64"
        };
        let configuration = json!({
            "architecture": architecture,
            "os": "linux",
            "config": { "Env": ["PATH=/bin"], "Cmd": ["sh"] },
            "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        });
        self.publish(
            note,
            "application/vnd.oci.image.config.v1+json",
            &configuration,
            &[("application/vnd.oci.image.layer.v1.tar", layer)],
        )
    }

    /// Returns the name of a published image by its digest, which always means this image.
    ///
    /// # Panics
    /// If the image was not published here.
    #[must_use]
    pub fn by_digest(&self, image: &str) -> String {
        let (name, _) = image.rsplit_once(':').expect("a tag");
        let (_, repository) = name.split_once('/').expect("a repository");
        let contents = self.contents.lock();
        let (_, manifest) = contents
            .get(&format!("latest{repository}"))
            .expect("a manifest");
        format!("{name}@{}", digest(manifest))
    }

    fn publish(
        &self,
        name: &str,
        configuration_type: &str,
        configuration: &Value,
        layers: &[(&str, Vec<u8>)],
    ) -> String {
        let configuration = configuration.to_string().into_bytes();
        let layers: Vec<Value> = layers
            .iter()
            .map(|(media_type, bytes)| self.keep(media_type, bytes.clone()))
            .collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.keep(configuration_type, configuration),
            "layers": layers,
        });
        let manifest = manifest.to_string().into_bytes();
        self.keep(MANIFEST, manifest.clone());
        let mut contents = self.contents.lock();
        contents.insert("latest".to_owned() + name, (MANIFEST.to_owned(), manifest));
        format!("{}/{name}:latest", self.address)
    }

    /// Stores a blob and returns its descriptor.
    fn keep(&self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = digest(&bytes);
        let descriptor = json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() });
        let mut contents = self.contents.lock();
        contents.insert(digest, (media_type.to_owned(), bytes));
        descriptor
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(
    State(shelf): State<Shelf>,
    Path((name, kind, reference)): Path<(String, String, String)>,
) -> Response {
    let Shelf {
        contents,
        mut stalls,
    } = shelf;
    let key = if kind == "manifests" && !reference.starts_with("sha256:") {
        reference + &name
    } else {
        reference
    };
    let found = {
        let contents = contents.lock();
        contents.get(&key).cloned()
    };
    let is_layer = found
        .as_ref()
        .is_some_and(|(media_type, _)| media_type.contains("layer") || media_type == COMPONENT);
    if is_layer {
        // The channel closes with the registry, and then nobody waits.
        let _ = stalls.wait_for(|stalls| !stalls).await;
    }
    match found {
        Some((media_type, bytes)) => (
            [
                (header::CONTENT_TYPE, media_type),
                (
                    header::HeaderName::from_static("docker-content-digest"),
                    digest(&bytes),
                ),
            ],
            bytes,
        )
            .into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// Returns a custom section, which is allowed at a component's end and has no effect.
fn custom_section(note: &str) -> Vec<u8> {
    let name = "note";
    let length = |text: &str| u8::try_from(text.len()).expect("a short note");
    let size = 1 + length(name) + length(note);
    assert!(size < 0x80, "the size is one byte of LEB128");
    [&[0, size, length(name)], name.as_bytes(), note.as_bytes()].concat()
}

fn busybox_layer(note: &str) -> Vec<u8> {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"]
        .iter()
        .find_map(|path| std::fs::read(path).ok())
        .expect("busybox-static is installed");
    let mut archive = tar::Builder::new(Vec::new());
    let mut file = |path: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(bytes.len() as u64);
        archive
            .append_data(&mut header, path, bytes)
            .expect("writing to memory");
    };
    file("bin/busybox", &busybox);
    file("note", note.as_bytes());
    for command in ["sh", "sleep", "cat", "echo"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        archive
            .append_link(&mut header, format!("bin/{command}"), "busybox")
            .expect("writing to memory");
    }
    archive.into_inner().expect("writing to memory")
}

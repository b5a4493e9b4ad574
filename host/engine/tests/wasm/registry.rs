//! A minimal registry of components, just enough for pulls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use engine::registry::sha256_digest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Path to media type and bytes.
type Contents = Arc<Mutex<HashMap<String, (String, Vec<u8>)>>>;

pub(crate) struct Registry {
    address: String,
    contents: Contents,
    _tasks: JoinSet<()>,
}

impl Registry {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let contents = Contents::default();
        let mut tasks = JoinSet::new();
        let shared = contents.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let contents = shared.clone();
                connections.spawn(async move {
                    // A client that disconnects is not an error.
                    let _ = answer(client, &contents).await;
                });
            }
        });
        Registry {
            address,
            contents,
            _tasks: tasks,
        }
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Adds a component as an image, and returns its repository and tag.
    pub(crate) fn publish(&self, component: &[u8]) -> String {
        // A custom section makes it a unique component.
        let count = self.contents.lock().unwrap().len();
        let mut component = component.to_vec();
        component.extend_from_slice(&custom_section(&format!("{}-{count}", self.address)));
        self.publish_as("suite/component", &component, |manifest| manifest)
    }

    pub(crate) fn publish_as(
        &self,
        repository: &str,
        layer: &[u8],
        change: impl FnOnce(serde_json::Value) -> serde_json::Value,
    ) -> String {
        let config = b"{}";
        let descriptor = |media_type: &str, bytes: &[u8]| {
            serde_json::json!({
                "mediaType": media_type,
                "digest": sha256_digest(bytes),
                "size": bytes.len(),
            })
        };
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = change(serde_json::json!({
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": descriptor(engine::WASM_CONFIG_MEDIA_TYPE, config),
            "layers": [descriptor("application/wasm", layer)],
        }));
        let manifest = manifest.to_string().into_bytes();
        let mut contents = self.contents.lock().unwrap();
        for blob in [&config[..], layer] {
            let path = format!("/v2/{repository}/blobs/{}", sha256_digest(blob));
            contents.insert(path, ("application/octet-stream".into(), blob.to_vec()));
        }
        let tag = contents.len();
        for reference in [tag.to_string(), sha256_digest(&manifest)] {
            let path = format!("/v2/{repository}/manifests/{reference}");
            contents.insert(path, (media_type.into(), manifest.clone()));
        }
        format!("{repository}:{tag}")
    }
}

impl Registry {
    /// Changes a byte of the layers in a repository.
    pub(crate) fn damage(&self, repository: &str) {
        let blobs = format!("/v2/{repository}/blobs/");
        let mut contents = self.contents.lock().unwrap();
        for (path, (_, bytes)) in contents.iter_mut() {
            if path.starts_with(&blobs) {
                *bytes.last_mut().unwrap() ^= 1;
            }
        }
    }
}

/// A custom section with this name and no content.
fn custom_section(name: &str) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    assert!(length < 127);
    [&[0, length + 1, length], name.as_bytes()].concat()
}

async fn answer(mut client: TcpStream, contents: &Contents) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let found = contents.lock().unwrap().get(path).cloned();
    let (status, media_type, body) = match found {
        Some((media_type, body)) => ("200 OK", media_type, body),
        None => ("404 Not Found", "application/json".into(), b"{}".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(&body).await
}

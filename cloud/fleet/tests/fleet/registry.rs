//! Debian's docker-registry, as the cloud's registry and as other ones.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use held_port::HeldPort;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::harness::{Cloud, PATIENCE};

/// A running registry, empty at first; it is stopped with the value.
pub(crate) struct Registry {
    child: Child,
    pub(crate) host: String,
    _port: HeldPort,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Registry {
    /// Returns `None`, reported as a skipped test, if the program is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_on(HeldPort::new().expect("a port"), "")
    }

    /// Starts a registry on this port that accepts only the tokens of a cloud, and trusts what its
    /// certificate signs.
    pub(crate) fn start_for(cloud: &Cloud, port: HeldPort) -> Option<Self> {
        let kept = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(kept.path(), cloud.registry_certificate()).expect("a file");
        let auth = format!(
            "auth: {{ token: {{ realm: \"{}/auth/v1/token\", service: \"{}\", \
             issuer: fleet-cloud, rootcertbundle: {} }} }}\n",
            cloud.url,
            port.address(),
            kept.path().display()
        );
        Self::start_on(port, &auth)
    }

    fn start_on(port: HeldPort, more: &str) -> Option<Self> {
        let host = port.address().to_string();
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = format!(
            "version: 0.1\nlog: {{ level: error, accesslog: {{ disabled: true }} }}\n\
             storage: {{ filesystem: {{ rootdirectory: {} }} }}\nhttp: {{ addr: \"{host}\" }}\n{more}",
            folder.path().join("blobs").display()
        );
        let file = folder.path().join("registry.yml");
        std::fs::write(&file, configuration).expect("a file");
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) => {
                println!("SKIPPED: docker-registry does not start: {error}");
                return None;
            }
        };
        let _ = rustls::crypto::ring::default_provider().install_default();
        let registry = Registry {
            child,
            host,
            _port: port,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            client: reqwest::Client::new(),
            _folder: folder,
        };
        let begun = Instant::now();
        while TcpStream::connect(&registry.host).is_err() {
            assert!(begun.elapsed() < PATIENCE, "no registry");
            std::thread::yield_now();
        }
        Some(registry)
    }

    /// Sends a request below a repository, and returns its status, digest and body.
    fn ask(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Vec<u8>,
    ) -> (StatusCode, String, Vec<u8>) {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("http://{}/v2/{path}", self.host)
        };
        self.runtime.block_on(async {
            let answer = self
                .client
                .request(method, url)
                .header("content-type", kind)
                .header("accept", "application/vnd.oci.image.manifest.v1+json")
                .header("accept", "application/vnd.oci.image.index.v1+json")
                .body(body)
                .send()
                .await
                .expect("an answer");
            let place = answer.headers().get("location");
            let place = place
                .and_then(|place| place.to_str().ok())
                .unwrap_or_default()
                .to_owned();
            let status = answer.status();
            (
                status,
                place,
                answer.bytes().await.expect("a body").to_vec(),
            )
        })
    }

    fn put_blob(&self, repository: &str, bytes: &[u8]) -> Value {
        let (status, place, _) = self.ask(
            Method::POST,
            &format!("{repository}/blobs/uploads/"),
            "",
            Vec::new(),
        );
        assert_eq!(status, StatusCode::ACCEPTED);
        let joint = if place.contains('?') { '&' } else { '?' };
        let place = format!("{place}{joint}digest={}", digest(bytes));
        let (status, ..) = self.ask(
            Method::PUT,
            &place,
            "application/octet-stream",
            bytes.to_vec(),
        );
        assert_eq!(status, StatusCode::CREATED);
        json!({ "digest": digest(bytes), "size": bytes.len() })
    }

    fn put_manifest(&self, repository: &str, reference: &str, manifest: &Value) -> Value {
        let bytes = manifest.to_string().into_bytes();
        let kind = manifest["mediaType"].as_str().expect("a kind");
        let reference = if reference.is_empty() {
            digest(&bytes)
        } else {
            reference.to_owned()
        };
        let path = format!("{repository}/manifests/{reference}");
        let (status, _, body) = self.ask(Method::PUT, &path, kind, bytes.clone());
        assert_eq!(
            status,
            StatusCode::CREATED,
            "{}",
            String::from_utf8_lossy(&body)
        );
        json!({ "mediaType": kind, "digest": digest(&bytes), "size": bytes.len() })
    }

    /// Uploads an image whose only layer has this text, and returns its entry in an index.
    pub(crate) fn put_image(&self, repository: &str, tag: &str, layer: &str) -> Value {
        let mut config = self.put_blob(repository, format!("{{\"of\":\"{layer}\"}}").as_bytes());
        config["mediaType"] = json!("application/vnd.oci.image.config.v1+json");
        let mut layer = self.put_blob(repository, layer.as_bytes());
        layer["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar+gzip");
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": [layer],
        });
        self.put_manifest(repository, tag, &manifest)
    }

    /// Uploads an image for each of these architectures, under one tag.
    pub(crate) fn put_index(&self, repository: &str, tag: &str, architectures: &[&str]) -> Value {
        let images: Vec<Value> = architectures
            .iter()
            .map(|architecture| {
                let mut image = self.put_image(repository, "", architecture);
                image["platform"] = json!({ "os": "linux", "architecture": architecture });
                image
            })
            .collect();
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": images,
        });
        self.put_manifest(repository, tag, &index)
    }

    /// Returns the stored manifest, after checking that all its blobs exist.
    pub(crate) fn manifest(&self, repository: &str, reference: &str) -> Value {
        let path = format!("{repository}/manifests/{reference}");
        let (status, _, body) = self.ask(Method::GET, &path, "", Vec::new());
        assert_eq!(
            status,
            StatusCode::OK,
            "{path}: {}",
            String::from_utf8_lossy(&body)
        );
        let manifest: Value = serde_json::from_slice(&body).expect("a manifest");
        if reference.starts_with("sha256:") {
            assert_eq!(digest(&body), reference);
        }
        for image in manifest["manifests"].as_array().into_iter().flatten() {
            self.manifest(repository, image["digest"].as_str().expect("a digest"));
        }
        let layers = manifest["layers"].as_array().into_iter().flatten();
        for blob in layers.chain(manifest.get("config")) {
            self.blob(repository, blob["digest"].as_str().expect("a digest"));
        }
        manifest
    }

    pub(crate) fn blob(&self, repository: &str, digest_of: &str) -> Vec<u8> {
        let path = format!("{repository}/blobs/{digest_of}");
        let (status, _, body) = self.ask(Method::GET, &path, "", Vec::new());
        assert_eq!(status, StatusCode::OK, "{path}");
        assert_eq!(digest(&body), digest_of);
        body
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

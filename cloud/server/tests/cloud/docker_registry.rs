//! Debian's docker-registry, which uses tokens of a cloud.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use held_port::HeldPort;

const PROGRAM: &str = "/usr/bin/docker-registry";

/// A registry on 127.0.0.1, which ends when the value is dropped.
pub(crate) struct DockerRegistry {
    child: Option<Child>,
    port: HeldPort,
    folder: tempfile::TempDir,
}

/// Whether a registry is installed; prints a message if not.
pub(crate) fn is_there() -> bool {
    let there = Path::new(PROGRAM).exists();
    if !there {
        println!("SKIPPED: docker-registry is not installed");
    }
    there
}

impl DockerRegistry {
    /// Starts a registry on this port that trusts this certificate, and sends its clients to `realm`.
    pub(crate) async fn start(port: HeldPort, certificate: &str, realm: &str) -> Self {
        let mut registry = Self::prepared(port, certificate, realm, true);
        registry.begin().await;
        registry
    }

    /// Prepares a registry that has yet to [begin](Self::begin), and that permits deletion or not.
    pub(crate) fn prepared(port: HeldPort, certificate: &str, realm: &str, deletes: bool) -> Self {
        let host = port.address();
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("cloud.pem"), certificate).expect("a file");
        let configuration = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {data}}}, \
             delete: {{enabled: {deletes}}}}}\n\
             http: {{addr: {host}}}\nauth:\n  token:\n    realm: {realm}\n    service: {host}\n    \
             issuer: fleet-cloud\n    rootcertbundle: {certificate}\n",
            data = path("data"),
            certificate = path("cloud.pem"),
        );
        std::fs::write(path("registry.yml"), configuration).expect("a file");
        DockerRegistry {
            child: None,
            port,
            folder,
        }
    }

    /// Starts it (again), with its stored data.
    pub(crate) async fn begin(&mut self) {
        let child = Command::new(PROGRAM)
            .arg("serve")
            .arg(self.folder.path().join("registry.yml"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry");
        self.child = Some(child);
        let begun = Instant::now();
        let answers = format!("http://{}/v2/", self.port.address());
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::new();
        while client.get(&answers).send().await.is_err() {
            assert!(begun.elapsed() < Duration::from_secs(240), "no registry");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Makes it free data that no manifest names; it must not be running.
    pub(crate) fn collect(&self) {
        let collected = Command::new(PROGRAM)
            .arg("garbage-collect")
            .arg(self.folder.path().join("registry.yml"))
            .output()
            .expect("docker-registry");
        assert!(collected.status.success(), "{collected:?}");
    }

    fn storage(&self) -> PathBuf {
        self.folder.path().join("data/docker/registry/v2")
    }

    /// Whether a repository has the manifest of this digest.
    pub(crate) fn has(&self, repository: &str, digest: &str) -> bool {
        let revision = digest.replace(':', "/");
        let manifests = self.storage().join("repositories").join(repository);
        let manifests = manifests.join("_manifests/revisions");
        manifests.join(revision).join("link").exists()
    }

    /// Whether the registry has the bytes of this digest.
    pub(crate) fn has_blob(&self, digest: &str) -> bool {
        let (kind, hex) = digest.split_once(':').expect("a digest");
        let blob = self.storage().join("blobs").join(kind).join(&hex[..2]);
        blob.join(hex).join("data").exists()
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        self.kill();
    }
}

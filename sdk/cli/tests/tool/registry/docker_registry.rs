//! Debian's docker-registry, whose version is too old to list what belongs to a manifest.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use held_port::HeldPort;
use serde_json::Value;
use tempfile::TempDir;

/// The time limit for its first answer.
const START: Duration = Duration::from_secs(240);
/// `author` with the password `sesame`, as htpasswd writes it.
const PASSWORDS: &str = "author:$2b$05$abcdefghijklmnopqrstuuKcS.CYWVYVaLiiCKrrc0A5s3mGesJ9O\n";
/// The same, as a client sends it.
const CREDENTIAL: &str = "YXV0aG9yOnNlc2FtZQ==";

/// A running registry, empty at first; it is stopped with the value.
pub(crate) struct DockerRegistry {
    child: Child,
    pub(crate) host: String,
    _port: HeldPort,
    folder: TempDir,
}

impl DockerRegistry {
    /// Returns `None`, reported as a skipped test, if the program is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_in(tempfile::tempdir().unwrap(), "")
    }

    /// Starts a registry that asks for a name and a password.
    pub(crate) fn start_with_password() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("htpasswd");
        std::fs::write(&file, PASSWORDS).unwrap();
        let auth = format!(
            "auth: {{ htpasswd: {{ realm: registry, path: {} }} }}\n",
            file.display()
        );
        Self::start_in(folder, &auth)
    }

    fn start_in(folder: TempDir, more: &str) -> Option<Self> {
        let port = HeldPort::new().unwrap();
        let host = port.address().to_string();
        let file = folder.path().join("registry.yml");
        let configuration = format!(
            "version: 0.1\nlog: {{ level: error, accesslog: {{ disabled: true }} }}\n\
             storage: {{ filesystem: {{ rootdirectory: {} }} }}\nhttp: {{ addr: \"{host}\" }}\n{more}",
            folder.path().join("blobs").display()
        );
        std::fs::write(&file, configuration).unwrap();
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
        let registry = DockerRegistry {
            child,
            host,
            _port: port,
            folder,
        };
        let begun = Instant::now();
        while TcpStream::connect(&registry.host).is_err() {
            assert!(begun.elapsed() < START, "no registry");
            std::thread::yield_now();
        }
        Some(registry)
    }

    /// Stores the credential as `docker login` does, in this folder.
    pub(crate) fn log_in(&self, folder: &Path) {
        let config = serde_json::json!({ "auths": { &self.host: { "auth": CREDENTIAL } } });
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    }

    /// Reads the manifest under a tag from the registry's disk.
    pub(crate) fn manifest(&self, repository: &str, tag: &str) -> Value {
        let root = self.folder.path().join("blobs/docker/registry/v2");
        let link = format!("repositories/{repository}/_manifests/tags/{tag}/current/link");
        let digest = std::fs::read_to_string(root.join(link)).unwrap();
        let hex = digest.strip_prefix("sha256:").unwrap();
        let blob = root.join(format!("blobs/sha256/{}/{hex}/data", &hex[..2]));
        serde_json::from_slice(&std::fs::read(blob).unwrap()).unwrap()
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

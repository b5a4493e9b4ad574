//! Debian's docker-registry, asking for tokens of a cloud.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A registry on 127.0.0.1; it ends with the value.
pub(crate) struct DockerRegistry {
    child: Child,
    _folder: tempfile::TempDir,
}

/// Whether there is one to be started; says so where there is none.
pub(crate) fn is_there() -> bool {
    let there = Path::new("/usr/bin/docker-registry").exists();
    if !there {
        println!("SKIPPED: docker-registry is not installed");
    }
    there
}

/// A free address for one.
pub(crate) fn free_host() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

impl DockerRegistry {
    /// Starts one at `host` that trusts this certificate, and sends its clients to `realm`.
    pub(crate) async fn start(host: &str, certificate: &str, realm: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("cloud.pem"), certificate).expect("a file");
        let configuration = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {data}}}}}\n\
             http: {{addr: {host}}}\nauth:\n  token:\n    realm: {realm}\n    service: {host}\n    \
             issuer: fleet-cloud\n    rootcertbundle: {certificate}\n",
            data = path("data"),
            certificate = path("cloud.pem"),
        );
        std::fs::write(path("registry.yml"), configuration).expect("a file");
        let child = Command::new("docker-registry")
            .args(["serve", &path("registry.yml")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry");
        let registry = DockerRegistry {
            child,
            _folder: folder,
        };
        let begun = Instant::now();
        let answers = format!("http://{host}/v2/");
        // A build of the whole workspace gives reqwest TLS without a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::new();
        while client.get(&answers).send().await.is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "no registry");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        registry
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A device on the engine of the tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CommitContainerOptions, CreateContainerOptions, PushImageOptions, RemoveContainerOptions,
    RemoveImageOptions, UploadToContainerOptions,
};
use engine::docker::Docker;
use engine::{Engine, Ownership};
use futures::TryStreamExt;
use model::ImageRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::suite::{Fixture, Program, named, new_ownership};

pub(crate) struct DockerFixture {
    pub(crate) uri: String,
    registry: String,
    ownership: Ownership,
    other_ownership: Ownership,
}

impl DockerFixture {
    pub(crate) async fn open() -> Result<Self, String> {
        let variable = |name: &str| {
            std::env::var(name)
                .map_err(|_| format!("`{name}` is not set; `cargo xtask test` sets it"))
        };
        Ok(DockerFixture {
            uri: variable("SUPERVISOR_TEST_DOCKER")?,
            registry: variable("SUPERVISOR_TEST_REGISTRY")?,
            ownership: new_ownership(),
            other_ownership: new_ownership(),
        })
    }

    /// The engine without our layer in between.
    pub(crate) async fn bare(&self) -> bollard::Docker {
        let docker = bollard::Docker::connect_with_host(&self.uri).unwrap();
        docker.negotiate_version().await.unwrap()
    }

    pub(crate) fn engine_at(&self, uri: &str) -> Docker {
        Docker::connect(uri, self.ownership.clone()).unwrap()
    }

    pub(crate) fn name_of(&self, name: &str) -> String {
        named(&self.ownership, name)
    }

    /// Puts a manifest of a WebAssembly component into the registry and returns its reference. The
    /// component itself is two bytes.
    pub(crate) async fn publish_component(&self) -> String {
        let repository = format!("suite/{}", named(&self.ownership, "component"));
        let mut described = Vec::new();
        for blob in ["{}", "no"] {
            let digest = engine::registry::sha256_digest(blob.as_bytes());
            let upload = self
                .ask_registry("POST", &format!("/v2/{repository}/blobs/uploads/"), "", "")
                .await;
            let location = upload
                .lines()
                .find_map(|line| line.strip_prefix("Location: "))
                .unwrap_or_else(|| panic!("{upload}"));
            let path = location.split_once(&self.registry).unwrap().1;
            self.ask_registry(
                "PUT",
                &format!("{path}&digest={digest}"),
                "application/octet-stream",
                blob,
            )
            .await;
            described.push((digest, blob.len()));
        }
        let [(config, config_size), (layer, layer_size)] = &described[..] else {
            unreachable!()
        };
        let manifest_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = serde_json::json!({
            "schemaVersion": 2,
            "mediaType": manifest_type,
            "config": { "mediaType": engine::WASM_CONFIG_MEDIA_TYPE, "digest": config, "size": config_size },
            "layers": [{ "mediaType": "application/wasm", "digest": layer, "size": layer_size }],
        });
        let path = format!("/v2/{repository}/manifests/1");
        let answer = self
            .ask_registry("PUT", &path, manifest_type, &manifest.to_string())
            .await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        format!("{}/{repository}:1", self.registry)
    }

    async fn ask_registry(&self, method: &str, path: &str, content: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.registry).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: {content}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.registry,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Builds an image with this name: busybox with `file` at `path`; not pushed.
    pub(crate) async fn build(&self, image: &str, path: &str, file: &[u8]) {
        let docker = self.bare().await;
        self.engine()
            .pull_image(&self.image(), None, &|_| {})
            .await
            .unwrap();
        let body = ContainerCreateBody {
            image: Some(self.image().to_string()),
            ..Default::default()
        };
        let made = docker
            .create_container(None::<CreateContainerOptions>, body)
            .await;
        let container = made.unwrap().id;
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(file.len() as u64);
        header.set_mode(0o755);
        archive.append_data(&mut header, path, file).unwrap();
        let archive = bollard::body_full(archive.into_inner().unwrap().into());
        let to_root = UploadToContainerOptions {
            path: "/".into(),
            ..Default::default()
        };
        docker
            .upload_to_container(&container, Some(to_root), archive)
            .await
            .unwrap();
        let (repository, tag) = image.rsplit_once(':').unwrap();
        let commit = CommitContainerOptions {
            container: Some(container.clone()),
            repo: Some(repository.into()),
            tag: Some(tag.into()),
            ..Default::default()
        };
        docker
            .commit_container(commit, bollard::models::ContainerConfig::default())
            .await
            .unwrap();
        docker
            .remove_container(&container, None::<RemoveContainerOptions>)
            .await
            .unwrap();
    }
}

#[async_trait]
impl Fixture for DockerFixture {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(Docker::connect(&self.uri, self.ownership.clone()).unwrap())
    }

    fn other_engine(&self) -> Arc<dyn Engine> {
        Arc::new(Docker::connect(&self.uri, self.other_ownership.clone()).unwrap())
    }

    async fn engine_of(&self, ownership: Ownership) -> Arc<dyn Engine> {
        Arc::new(Docker::connect(&self.uri, ownership).unwrap())
    }

    fn ownership(&self) -> Ownership {
        self.ownership.clone()
    }

    fn other_ownership(&self) -> Ownership {
        self.other_ownership.clone()
    }

    fn image(&self) -> ImageRef {
        format!("{}/busybox:latest", self.registry).parse().unwrap()
    }

    fn command(&self, program: &Program) -> Vec<String> {
        let script = match program {
            Program::Tick => "i=0; while :; do echo tick $i; i=$((i+1)); sleep 0.1; done".into(),
            Program::Exit(code) => format!("exit {code}"),
            Program::Print { out, err } => format!("echo '{out}'; echo '{err}' >&2"),
            Program::PrintLong(length) => format!("head -c {length} /dev/zero | tr '\\0' x; echo"),
            Program::PrintBytes => "printf 'a\\n\\377\\376\\nb\\n'".into(),
            Program::Environment => "env".into(),
            Program::Append { file, text } => {
                format!("echo '{text}' >> '{file}' && cat '{file}' || exit 1")
            }
            Program::Serve { port, text } => format!(
                "mkdir -p /tmp/www; echo '{text}' > /tmp/www/index.html; exec httpd -f -p {port} -h /tmp/www"
            ),
            Program::Fetch { host, port } => {
                format!("timeout 5 wget -q -O - http://{host}:{port}/")
            }
        };
        vec!["sh".into(), "-c".into(), script]
    }

    fn answers_on(&self, port: u16) -> Vec<String> {
        let test = format!("wget -q -O /dev/null http://127.0.0.1:{port}/");
        vec!["CMD-SHELL".to_owned(), test]
    }

    fn registry(&self) -> String {
        self.registry.clone()
    }

    async fn publish(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let published = format!("suite/{}_{count}:1", named(&self.ownership, "image"));
        let image = format!("{}/{published}", self.registry);
        // Unique bytes that do not compress.
        let mut state = self
            .ownership
            .device
            .as_str()
            .bytes()
            .fold(u64::from(count) + 1, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(u64::from(byte))
            });
        let noise: Vec<u8> = (0..400 << 10)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        self.build(&image, "noise", &noise).await;
        let docker = self.bare().await;
        let (repository, tag) = image.rsplit_once(':').unwrap();
        let push = PushImageOptions {
            tag: Some(tag.into()),
            ..Default::default()
        };
        let pushed = docker.push_image(repository, Some(push), None);
        pushed.try_for_each(|_| async { Ok(()) }).await.unwrap();
        docker
            .remove_image(&image, None::<RemoveImageOptions>, None)
            .await
            .unwrap();
        published
    }

    async fn clean_up(&self) {
        for engine in [self.engine(), self.other_engine()] {
            for container in engine.containers().await.unwrap_or_default() {
                let _ = engine.remove_container(&container.id).await;
            }
            for network in engine.networks().await.unwrap_or_default() {
                let _ = engine.remove_network(&network.name).await;
            }
            for volume in engine.volumes().await.unwrap_or_default() {
                let _ = engine.remove_volume(&volume.name).await;
            }
        }
        let ours = named(&self.ownership, "image");
        for image in self.engine().images().await.unwrap_or_default() {
            for reference in image
                .references
                .iter()
                .filter(|r| r.as_str().contains(&ours))
            {
                let _ = self.engine().remove_image(reference).await;
            }
        }
    }
}

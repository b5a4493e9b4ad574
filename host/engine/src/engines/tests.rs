use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use model::{Container, ContainerId, Network, Volume};

use super::*;
use crate::registry::tests::{FakeRegistry, answer};
use crate::{
    ContainerSpec, Containers, CreatedContainer, EngineEvent, EngineInfo, Images, LogLine,
    LogsFrom, NetworkSpec, Networks, VolumeSpec, Volumes,
};

const WASM: &str = r#"{ "config": { "mediaType": "application/vnd.wasm.config.v0+json" } }"#;

/// An engine that holds some images and accepts every pull.
struct Pulls {
    kind: EngineKind,
    holds: Vec<ImageRef>,
    pulled: Mutex<Vec<ImageRef>>,
}

fn engine(kind: EngineKind, holds: &[&str]) -> Arc<Pulls> {
    Arc::new(Pulls {
        kind,
        holds: holds.iter().map(|name| name.parse().unwrap()).collect(),
        pulled: Mutex::default(),
    })
}

impl Pulls {
    fn image(&self, image: &ImageRef) -> Image {
        Image {
            engine: self.kind,
            id: "sha256:ab".parse().unwrap(),
            references: vec![image.clone()],
            size: 1,
        }
    }
}

fn refused<T>() -> Result<T, EngineError> {
    Err(EngineError::Invalid("not part of this test".into()))
}

#[async_trait]
impl Engine for Pulls {
    fn kind(&self) -> EngineKind {
        self.kind
    }
    async fn info(&self) -> Result<EngineInfo, EngineError> {
        refused()
    }
    async fn events(&self) -> Result<BoxStream<'static, EngineEvent>, EngineError> {
        refused()
    }
}

#[async_trait]
impl Images for Pulls {
    async fn images(&self) -> Result<Vec<Image>, EngineError> {
        Ok(self.holds.iter().map(|image| self.image(image)).collect())
    }
    async fn pull_image(
        &self,
        image: &ImageRef,
        _: Option<&RegistryAuth>,
        _: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<Image, EngineError> {
        self.pulled.lock().unwrap().push(image.clone());
        Ok(self.image(image))
    }
    async fn remove_image(&self, _: &ImageRef) -> Result<(), EngineError> {
        refused()
    }
}

#[async_trait]
impl Containers for Pulls {
    async fn containers(&self) -> Result<Vec<Container>, EngineError> {
        refused()
    }
    async fn create_container(
        &self,
        _: &ContainerSpec<'_>,
    ) -> Result<CreatedContainer, EngineError> {
        refused()
    }
    async fn start_container(&self, _: &ContainerId) -> Result<(), EngineError> {
        refused()
    }
    async fn stop_container(&self, _: &ContainerId, _: Duration) -> Result<(), EngineError> {
        refused()
    }
    async fn remove_container(&self, _: &ContainerId) -> Result<(), EngineError> {
        refused()
    }
    async fn rename_container(&self, _: &ContainerId, _: &str) -> Result<(), EngineError> {
        refused()
    }
    async fn environment(&self, _: &ContainerId) -> Result<BTreeMap<String, String>, EngineError> {
        refused()
    }
    async fn logs(
        &self,
        _: &ContainerId,
        _: LogsFrom,
    ) -> Result<BoxStream<'static, Result<LogLine, EngineError>>, EngineError> {
        refused()
    }
}

#[async_trait]
impl Volumes for Pulls {
    async fn volumes(&self) -> Result<Vec<Volume>, EngineError> {
        refused()
    }
    async fn create_volume(&self, _: &VolumeSpec<'_>) -> Result<(), EngineError> {
        refused()
    }
    async fn remove_volume(&self, _: &str) -> Result<(), EngineError> {
        refused()
    }
}

#[async_trait]
impl Networks for Pulls {
    async fn networks(&self) -> Result<Vec<Network>, EngineError> {
        refused()
    }
    async fn create_network(&self, _: &NetworkSpec<'_>) -> Result<(), EngineError> {
        refused()
    }
    async fn remove_network(&self, _: &str) -> Result<(), EngineError> {
        refused()
    }
}

async fn pull(engines: &[Arc<Pulls>], image: &str) -> Result<EngineKind, EngineError> {
    let engines = engines
        .iter()
        .map(|engine| engine.clone() as Arc<dyn Engine>)
        .collect();
    let pulled = Engines::new(engines)
        .pull(&image.parse().unwrap(), None, &|_| {})
        .await;
    pulled.map(|image| image.engine)
}

#[tokio::test]
async fn image_goes_to_the_engine_of_its_kind() {
    let both = [
        engine(EngineKind::Docker, &[]),
        engine(EngineKind::Wasm, &[]),
    ];
    for (manifest, kind) in [(WASM, EngineKind::Wasm), ("{}", EngineKind::Docker)] {
        let registry = FakeRegistry::start(move |_, _| answer("200 OK", "", manifest)).await;
        assert_eq!(pull(&both, registry.image().as_str()).await.unwrap(), kind);
    }
    assert_eq!(
        pull(&both, "file:/srv/web.wasm").await.unwrap(),
        EngineKind::Wasm
    );
}

#[tokio::test]
async fn an_existing_image_is_not_requested() {
    // Nothing listens on this port.
    let image = "127.0.0.1:1/shop/web:1";
    let both = [
        engine(EngineKind::Docker, &[]),
        engine(EngineKind::Wasm, &[image]),
    ];
    assert_eq!(pull(&both, image).await.unwrap(), EngineKind::Wasm);
    assert!(
        both.iter()
            .all(|engine| engine.pulled.lock().unwrap().is_empty())
    );
}

#[tokio::test]
async fn docker_tries_where_we_do_not_reach_the_registry() {
    let both = [
        engine(EngineKind::Docker, &[]),
        engine(EngineKind::Wasm, &[]),
    ];
    assert_eq!(
        pull(&both, "127.0.0.1:1/shop/web:1").await.unwrap(),
        EngineKind::Docker
    );
    let registry = FakeRegistry::start(|_, _| answer("404 Not Found", "", "")).await;
    let missing = pull(&both, registry.image().as_str()).await;
    assert!(
        matches!(missing, Err(EngineError::NotFound { .. })),
        "{missing:?}"
    );
}

#[tokio::test]
async fn kind_without_an_engine_is_refused_with_the_reason() {
    let refused = pull(&[engine(EngineKind::Docker, &[])], "file:/srv/web.wasm").await;
    assert!(
        matches!(&refused, Err(EngineError::WrongKind { reason, .. }) if reason.contains("no wasm engine")),
        "{refused:?}"
    );
    assert!(pull(&[], "file:/srv/web.wasm").await.is_err());
    assert!(pull(&[], "127.0.0.1:1/shop/web:1").await.is_err());
}

#[test]
fn first_engine_of_a_kind_counts_and_the_first_of_all_is_the_default() {
    let first: Arc<dyn Engine> = engine(EngineKind::Wasm, &[]);
    let second: Arc<dyn Engine> = engine(EngineKind::Wasm, &[]);
    let engines = Engines::new(vec![first.clone(), second, engine(EngineKind::Docker, &[])]);
    assert_eq!(engines.all().count(), 2);
    assert_eq!(engines.default_kind(), Some(EngineKind::Wasm));
    assert!(Arc::ptr_eq(engines.get(EngineKind::Wasm).unwrap(), &first));
    assert_eq!(Engines::new(Vec::new()).default_kind(), None);
}

#[test]
fn the_device_is_known_to_the_registry_where_it_has_an_account_and_to_no_other() {
    let account = RegistryAuth {
        user: "d_1".to_owned(),
        password: "secret".to_owned(),
        cloud: None,
    };
    let engines = Engines::new(Vec::new()).with_account("registry.acme.example:5000", account);
    for (image, is) in [
        ("registry.acme.example:5000/v2/ab12", true),
        ("Registry.acme.example:5000/v2/ab12@sha256:00", true),
        ("registry.acme.example/v2/ab12", false),
        ("registry.acme.example.evil.example:5000/v2/ab12", false),
        ("evil.example/registry.acme.example:5000/v2", false),
        ("v2/ab12", false),
        ("busybox", false),
    ] {
        let image: ImageRef = image.parse().unwrap();
        assert_eq!(engines.account_for(&image).is_some(), is, "{image}");
    }
}

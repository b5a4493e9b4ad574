//! What a test binary provides to the suite, and helpers for the tests.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::service_config::service_config;
use async_trait::async_trait;
use engine::{
    ContainerSpec, Engine, EngineError, LogLine, LogsFrom, NetworkSpec, Ownership, VolumeSpec,
};
use futures::{FutureExt, StreamExt};
use model::{
    Branding, Container, ContainerId, ContainerState, DeviceUuid, Image, ImageRef,
    NetworkAttachment, NetworkConfig, NetworkMode, ServiceConfig, VolumeConfig,
};
use tokio::runtime::Runtime;

/// One device on an engine that it shares with others, and what is needed to test the engine.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The engine as our device sees it.
    fn engine(&self) -> Arc<dyn Engine>;

    /// The same engine as another device sees it.
    fn other_engine(&self) -> Arc<dyn Engine>;

    /// The same engine as the device of this ownership sees it.
    async fn engine_of(&self, ownership: Ownership) -> Arc<dyn Engine>;

    fn ownership(&self) -> Ownership;

    fn other_ownership(&self) -> Ownership;

    /// An image that holds the program of the tests; pulling it is quick.
    fn image(&self) -> ImageRef;

    /// The command that makes the program do this.
    fn command(&self, program: &Program) -> Vec<String>;

    /// The `test` of a health check that passes while the service answers HTTP requests on the
    /// port.
    fn answers_on(&self, port: u16) -> Vec<String>;

    /// The registry that [`Fixture::publish`] fills: `host:port`, plain HTTP.
    fn registry(&self) -> String;

    /// Puts a new image of this engine's kind, with at least one layer of a few hundred KiB, into
    /// the registry and returns its repository and tag.
    async fn publish(&self) -> String;

    /// Removes what the device still has.
    async fn clean_up(&self);
}

/// What the program in the tests' image can do.
#[derive(Debug, Clone)]
pub enum Program {
    /// Prints `tick 0`, `tick 1` and so on, ten a second, until it is stopped.
    Tick,
    /// Ends with this code.
    Exit(u8),
    /// Prints one line on each output, standard output first, and ends.
    Print { out: String, err: String },
    /// Prints a line of this many `x`, and ends.
    PrintLong(usize),
    /// Prints the line `a`, two bytes that are not UTF-8, `b`, and ends.
    PrintBytes,
    /// Prints its variables as `NAME=value` lines, and ends.
    Environment,
    /// Appends the text to the file, prints the whole file, and ends; with 1 if it cannot.
    Append { file: String, text: String },
    /// Answers every HTTP request on the port with the text, until it is stopped.
    Serve { port: u16, text: String },
    /// Prints the body of `http://host:port/`, and ends; with 1 if there is none.
    Fetch { host: String, port: u16 },
}

/// Runs one test with its own fixture; cleans up whether it fails or not.
pub fn run<F, T>(open: impl Future<Output = Result<F, String>>, test: impl FnOnce(Arc<F>) -> T)
where
    F: Fixture + 'static,
    T: Future<Output = ()>,
{
    // The registry's client keeps its connections for the process, and a connection fails when the runtime that opened it
    // ends.
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build().unwrap()
    });
    RUNTIME.block_on(async {
        let fixture = match open.await {
            Ok(fixture) => Arc::new(fixture),
            Err(reason) => {
                println!("SKIPPED: {reason}");
                return;
            }
        };
        let outcome = AssertUnwindSafe(test(fixture.clone())).catch_unwind().await;
        fixture.clean_up().await;
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

/// The ownership of a device that no other test uses.
pub fn new_ownership() -> Ownership {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanoseconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let text = format!("{nanoseconds:016x}{:08x}{count:08x}", std::process::id());
    let uuid: DeviceUuid = text[text.len() - 32..].parse().unwrap();
    Ownership {
        device: uuid,
        former: Vec::new(),
        exclusive: false,
        branding: Branding::default(),
    }
}

/// How long the suite waits for expected events.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Calls the function again and again until it returns a value.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The settings of a service in a test: quiet defaults, changed field by field.
pub struct Service {
    pub name: String,
    pub config: ServiceConfig,
    pub init_environment: BTreeMap<String, String>,
}

/// Helpers for the tests.
impl dyn Fixture + '_ {
    /// A name that no other test has.
    pub fn name(&self, name: &str) -> String {
        named(&self.ownership(), name)
    }

    /// The labels of our device's objects.
    pub fn labels(&self) -> BTreeMap<String, String> {
        labels(&self.ownership())
    }

    pub fn service(&self, name: &str, program: &Program) -> Service {
        Service {
            name: self.name(name),
            config: ServiceConfig {
                labels: self.labels(),
                ..service_config(self.image(), self.command(program))
            },
            init_environment: BTreeMap::new(),
        }
    }

    pub async fn pull(&self) -> Image {
        self.engine()
            .pull_image(&self.image(), None, &|_| {})
            .await
            .unwrap()
    }

    pub async fn try_create(&self, service: &Service) -> Result<ContainerId, EngineError> {
        create_on(&*self.engine(), service).await
    }

    pub async fn create(&self, service: &Service) -> ContainerId {
        self.try_create(service).await.unwrap()
    }

    pub async fn start(&self, service: &Service) -> ContainerId {
        let id = self.create(service).await;
        self.engine().start_container(&id).await.unwrap();
        id
    }

    /// The container as it is listed; `None` if it is not listed.
    pub async fn find(&self, id: &ContainerId) -> Option<Container> {
        let all = self.engine().containers().await.unwrap();
        all.into_iter().find(|container| container.id == *id)
    }

    pub async fn wait_for(&self, id: &ContainerId, state: ContainerState) -> Container {
        eventually(&format!("{id} becomes {state:?}"), async || {
            self.find(id)
                .await
                .filter(|container| container.state == state)
        })
        .await
    }

    /// Runs a service to its end; returns its exit code and its standard output.
    pub async fn finish(&self, service: &Service) -> (Option<i64>, Vec<String>) {
        let id = self.start(service).await;
        let ended = self.wait_for(&id, ContainerState::Exited).await;
        let logs = self.engine().logs(&id, LogsFrom::Start).await.unwrap();
        self.engine().remove_container(&id).await.unwrap();
        let lines: Vec<_> = logs
            .map(|line| line.unwrap())
            .filter(|line| futures::future::ready(!line.stderr))
            .map(|line| line.message)
            .collect()
            .await;
        (ended.exit_code, lines)
    }

    pub async fn volume(&self, name: &str) -> String {
        let name = self.name(name);
        let config = volume_config(&self.ownership());
        let spec = VolumeSpec {
            name: &name,
            config: &config,
        };
        self.engine().create_volume(&spec).await.unwrap();
        name
    }

    pub async fn network(&self, name: &str) -> String {
        let name = self.name(name);
        let config = network_config(&self.ownership());
        let spec = NetworkSpec {
            name: &name,
            config: &config,
        };
        self.engine().create_network(&spec).await.unwrap();
        name
    }
}

impl Service {
    /// In these networks, reached there as `alias`.
    pub fn in_networks(mut self, networks: &[&str], alias: &str) -> Self {
        self.config.network_mode = NetworkMode::Network(networks[0].to_owned());
        for network in networks {
            let attachment = NetworkAttachment {
                aliases: vec![alias.to_owned()],
                ..Default::default()
            };
            self.config
                .networks
                .insert((*network).to_owned(), attachment);
        }
        self
    }
}

pub async fn create_on(engine: &dyn Engine, service: &Service) -> Result<ContainerId, EngineError> {
    let image = engine
        .pull_image(&service.config.image, None, &|_| {})
        .await?;
    let spec = ContainerSpec {
        name: &service.name,
        config: &service.config,
        init_environment: &service.init_environment,
        image_id: &image.id,
        network_container: None,
    };
    Ok(engine.create_container(&spec).await?.id)
}

pub fn named(ownership: &Ownership, name: &str) -> String {
    format!("{name}_{}", &ownership.device.as_str()[12..])
}

pub fn labels(ownership: &Ownership) -> BTreeMap<String, String> {
    BTreeMap::from([
        (ownership.branding.label("supervised"), "true".to_owned()),
        (
            ownership.branding.label("device-uuid"),
            ownership.device.to_string(),
        ),
    ])
}

pub fn volume_config(ownership: &Ownership) -> VolumeConfig {
    VolumeConfig {
        driver: "local".into(),
        labels: labels(ownership),
        ..Default::default()
    }
}

pub fn network_config(ownership: &Ownership) -> NetworkConfig {
    NetworkConfig {
        driver: "bridge".into(),
        ipam_driver: "default".into(),
        labels: labels(ownership),
        ..Default::default()
    }
}

/// The next line, which must arrive.
pub async fn next_line(
    logs: &mut (impl futures::Stream<Item = Result<LogLine, EngineError>> + Unpin),
) -> Option<LogLine> {
    let next = tokio::time::timeout(PATIENCE, logs.next());
    next.await
        .expect("a line or the end of the log")
        .map(Result::unwrap)
}

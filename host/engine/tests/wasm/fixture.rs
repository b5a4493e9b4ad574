//! A device with its own wasm engine.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use engine::wasm::{Wasm, WasmConfig};
use engine::{Engine, LogsFrom, Ownership};
use futures::StreamExt;
use model::{ContainerId, ImageRef, NetworkConfig};
use tempfile::TempDir;

use crate::registry::Registry;
use crate::suite::{self, Fixture, Program, Service, new_ownership, next_line};

pub(crate) struct WasmFixture {
    folder: TempDir,
    runner: PathBuf,
    cache: compiled_code::Cache,
    guest: PathBuf,
    ownership: Ownership,
    other_ownership: Ownership,
    engine: Mutex<Option<Wasm>>,
    other_engine: Wasm,
    registry: Registry,
    /// The address of the supervisor's API for services with the label.
    pub(crate) api: std::net::SocketAddr,
    _api: std::net::TcpListener,
}

/// A layout and components, or the reason why there are none.
pub(crate) fn surroundings() -> Result<(PathBuf, PathBuf), String> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .ok_or_else(|| format!("`{name}` is not set; `cargo xtask test` sets it"))
    };
    Ok((
        variable("SUPERVISOR_DIST")?,
        variable("SUPERVISOR_TEST_GUESTS")?,
    ))
}

/// One cache for all tests, so that the guest is compiled once.
pub(crate) fn cache(dist: &Path) -> compiled_code::Cache {
    static CACHE: OnceLock<compiled_code::Cache> = OnceLock::new();
    let make = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled-services");
        let compiler = dist.join("bin/supervisor-compile");
        compiled_code::Cache::new(folder, compiler, compiled_code::Limits::default()).unwrap()
    };
    CACHE.get_or_init(make).clone()
}

impl WasmFixture {
    pub(crate) async fn open() -> Result<Self, String> {
        let (dist, guests) = surroundings()?;
        let folder = TempDir::new().unwrap();
        let (ownership, other_ownership) = (new_ownership(), new_ownership());
        let (runner, cache) = (dist.join("bin/supervisor-wasm"), cache(&dist));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let api = listener.local_addr().unwrap();
        let config = config(&folder, &runner, &cache, api);
        let engine = Wasm::open(config.clone(), ownership.clone()).await.unwrap();
        let other_engine = Wasm::open(config, other_ownership.clone()).await.unwrap();
        let guest = guests.join("guest.wasm");
        Ok(WasmFixture {
            registry: Registry::start().await,
            folder,
            runner,
            cache,
            guest,
            ownership,
            other_ownership,
            engine: Mutex::new(Some(engine)),
            other_engine,
            api,
            _api: listener,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the engine, with its records.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("wasm")
    }

    pub(crate) fn container(&self, id: &ContainerId) -> PathBuf {
        self.state().join("containers").join(id.as_str())
    }

    pub(crate) fn registry_of_components(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn guest(&self) -> &Path {
        &self.guest
    }

    pub(crate) fn config(&self) -> WasmConfig {
        config(&self.folder, &self.runner, &self.cache, self.api)
    }

    /// Drops the engine, as when the supervisor ends; what it started continues.
    pub(crate) fn close(&self) {
        *self.engine.lock().unwrap() = None;
    }

    pub(crate) async fn reopen(&self) {
        self.close();
        let engine = Wasm::open(self.config(), self.ownership.clone()).await;
        *self.engine.lock().unwrap() = Some(engine.unwrap());
    }

    /// As [`WasmFixture::reopen`], with the API at another address.
    pub(crate) async fn reopen_with_api(&self, api: std::net::SocketAddr) {
        self.close();
        let config = WasmConfig {
            api: Some(api),
            ..self.config()
        };
        let engine = Wasm::open(config, self.ownership.clone()).await;
        *self.engine.lock().unwrap() = Some(engine.unwrap());
    }

    /// As [`WasmFixture::reopen`], on a disk with this much free space.
    pub(crate) async fn reopen_with_free(&self, free: u64) {
        self.close();
        let config = WasmConfig {
            disk: engine::Disk::that_says(move |_| Ok(free)),
            ..self.config()
        };
        let engine = Wasm::open(config, self.ownership.clone()).await;
        *self.engine.lock().unwrap() = Some(engine.unwrap());
    }

    /// A service that runs the tests' program with these arguments.
    pub(crate) fn runs(&self, name: &str, words: &[&str]) -> Service {
        let fixture: &dyn Fixture = self;
        let mut service = fixture.service(name, &Program::Tick);
        service.config.command = Some(words.iter().map(|word| (*word).to_owned()).collect());
        service
    }

    pub(crate) async fn start(&self, service: &Service) -> ContainerId {
        let fixture: &dyn Fixture = self;
        fixture.start(service).await
    }

    /// Starts a service and waits until it has printed this line.
    pub(crate) async fn start_until(&self, service: &Service, line: &str) -> ContainerId {
        let id = self.start(service).await;
        self.wait_for_line(&id, |printed| printed == line).await;
        id
    }

    /// Waits for the first line of the log that meets the condition.
    pub(crate) async fn wait_for_line(
        &self,
        id: &ContainerId,
        is_it: impl Fn(&str) -> bool,
    ) -> String {
        let mut logs = self.engine().logs(id, LogsFrom::Start).await.unwrap();
        loop {
            let line = next_line(&mut logs).await.expect("the container is gone");
            if is_it(&line.message) {
                return line.message;
            }
        }
    }

    /// All lines up to this one.
    pub(crate) async fn lines_until(&self, id: &ContainerId, last: &str) -> Vec<String> {
        let mut logs = self.engine().logs(id, LogsFrom::Start).await.unwrap();
        let mut lines = Vec::new();
        loop {
            let line = next_line(&mut logs).await.expect("the container is gone");
            if line.message == last {
                return lines;
            }
            lines.push(line.message);
        }
    }

    pub(crate) async fn internal_network(&self, name: &str) -> String {
        let fixture: &dyn Fixture = self;
        let name = fixture.name(name);
        let config = NetworkConfig {
            internal: true,
            ..suite::network_config(&self.ownership)
        };
        let spec = engine::NetworkSpec {
            name: &name,
            config: &config,
        };
        self.engine().create_network(&spec).await.unwrap();
        name
    }

    /// The process that serves the container, as its state says.
    pub(crate) fn process(&self, id: &ContainerId) -> wasm_service::process::ProcessId {
        self.state_of(id).process.unwrap()
    }

    pub(crate) fn state_of(&self, id: &ContainerId) -> wasm_service::record::State {
        let path = self.container(id).join(wasm_service::record::STATE);
        wasm_service::record::read(&path).unwrap().unwrap()
    }
}

fn config(
    folder: &TempDir,
    runner: &Path,
    cache: &compiled_code::Cache,
    api: std::net::SocketAddr,
) -> WasmConfig {
    WasmConfig {
        folder: folder.path().join("wasm"),
        runner: runner.to_owned(),
        cache: cache.clone(),
        api: Some(api),
        host_root: folder.path().join("host"),
        disk: engine::Disk::default(),
        users: engine::wasm::UserRange::default(),
        requires_confinement: Arc::new(|| false),
    }
}

/// Runs one test that applies only to this engine.
pub(crate) fn test<T: Future<Output = ()>>(test: impl FnOnce(Arc<WasmFixture>) -> T) {
    suite::run(WasmFixture::open(), test);
}

#[async_trait]
impl Fixture for WasmFixture {
    fn engine(&self) -> Arc<dyn Engine> {
        let engine = self.engine.lock().unwrap();
        Arc::new(engine.clone().expect("the engine is open"))
    }

    fn other_engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.other_engine.clone())
    }

    async fn engine_of(&self, ownership: Ownership) -> Arc<dyn Engine> {
        Arc::new(Wasm::open(self.config(), ownership).await.unwrap())
    }

    fn ownership(&self) -> Ownership {
        self.ownership.clone()
    }

    fn other_ownership(&self) -> Ownership {
        self.other_ownership.clone()
    }

    fn image(&self) -> ImageRef {
        format!("file:{}", self.guest.display()).parse().unwrap()
    }

    fn command(&self, program: &Program) -> Vec<String> {
        match program {
            Program::Tick => vec!["tick".to_owned()],
            Program::Exit(code) => vec!["exit".into(), code.to_string()],
            Program::Print { out, err } => vec!["print-both".into(), out.clone(), err.clone()],
            Program::PrintLong(length) => vec!["print-long".into(), length.to_string()],
            Program::PrintBytes => vec!["print-bytes".into()],
            Program::Environment => vec!["environment".into()],
            Program::Append { file, text } => vec!["append".into(), file.clone(), text.clone()],
            Program::Serve { port, text } => vec!["serve".into(), port.to_string(), text.clone()],
            Program::Fetch { host, port } => vec!["fetch".into(), host.clone(), port.to_string()],
        }
    }

    fn answers_on(&self, port: u16) -> Vec<String> {
        vec!["CMD-SHELL".to_owned(), format!("http://localhost:{port}/")]
    }

    fn registry(&self) -> String {
        self.registry.address().to_owned()
    }

    async fn publish(&self) -> String {
        self.registry.publish(&std::fs::read(&self.guest).unwrap())
    }

    async fn clean_up(&self) {
        if self.engine.lock().unwrap().is_none() {
            self.reopen().await;
        }
        let engines: [Arc<dyn Engine>; 2] = [self.engine(), self.other_engine()];
        for engine in engines {
            let containers = engine.containers().await.unwrap();
            futures::stream::iter(containers)
                .for_each_concurrent(8, |container| {
                    let engine = engine.clone();
                    async move { engine.remove_container(&container.id).await.unwrap() }
                })
                .await;
        }
    }
}

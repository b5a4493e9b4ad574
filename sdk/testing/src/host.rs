//! A host with plugins in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use os::{Action, Journal, Rehearsal, UnitName, UnitState};
use plugin_runtime::{Resources, Runtime};
use plugins::{
    Body, BootComparison, BootConfigError, BootSetting, CallerScope, Cloud, Device, HostServices,
    Identity, Manifest, NoCloud, Plugins, PluginsConfig, RouteLookup,
};
use serde_json::Value;

use crate::answer::Answer;
use crate::data::Data;
use crate::fakes::{FakeHostName, FakeLocks};

/// How long [`Running::led_becomes`] waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// The host that a test defines; [`Host::start`] starts it.
pub struct Host {
    components: Vec<PathBuf>,
    policy: String,
    configuration: String,
    device: TestDevice,
    leds: Vec<(String, u32, u32)>,
    cloud: Arc<dyn Cloud>,
    units: Vec<(UnitName, UnitState)>,
    files: Vec<(String, Vec<u8>)>,
    journal_program: PathBuf,
}

/// A running host. Dropping it stops it.
pub struct RunningHost {
    plugins: Plugins,
    os: Arc<Rehearsal>,
    locks: Arc<FakeLocks>,
    folder: tempfile::TempDir,
}

struct TestDevice {
    identity: Identity,
    state: Value,
}

impl Device for TestDevice {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn state(&self) -> Value {
        self.state.clone()
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// Creates a device named `local`, of an unknown type, without plugins, grants or LEDs.
    #[must_use]
    pub fn new() -> Self {
        Self {
            components: Vec::new(),
            policy: String::new(),
            configuration: String::new(),
            device: TestDevice {
                identity: Identity {
                    uuid: "0".repeat(32),
                    name: "local".to_owned(),
                    device_type: "unknown".to_owned(),
                    arch: "unknown".to_owned(),
                },
                state: Value::Object(serde_json::Map::new()),
            },
            leds: Vec::new(),
            cloud: Arc::new(NoCloud),
            units: Vec::new(),
            files: Vec::new(),
            journal_program: "journalctl".into(),
        }
    }

    /// Adds the plugin in this file, for example of [`crate::build`]. It is taken as a device's stock plugins
    /// are: its file is pinned, and it may answer, provide and go before others as its manifest says. Which
    /// capabilities it is granted, [`Host::policy`] says.
    #[must_use]
    pub fn plugin(mut self, component: impl Into<PathBuf>) -> Self {
        self.components.push(component.into());
        self
    }

    /// Sets the text of `policy.toml`.
    #[must_use]
    pub fn policy(mut self, toml: impl Into<String>) -> Self {
        self.policy = toml.into();
        self
    }

    /// Sets the text of the supervisor's configuration file, of which only `[plugins.NAME]` matters here.
    #[must_use]
    pub fn configuration(mut self, toml: impl Into<String>) -> Self {
        self.configuration = toml.into();
        self
    }

    /// Sets the device's identity.
    #[must_use]
    pub fn device(mut self, identity: Identity) -> Self {
        self.device.identity = identity;
        self
    }

    /// Sets the answer to `GET /v1/device`.
    #[must_use]
    pub fn device_state(mut self, state: Value) -> Self {
        self.device.state = state;
        self
    }

    /// Adds a cloud; without this the device has none.
    #[must_use]
    pub fn cloud(mut self, cloud: impl Cloud) -> Self {
        self.cloud = Arc::new(cloud);
        self
    }

    /// Adds an LED that shows `brightness`, of `max` at most.
    #[must_use]
    pub fn led(mut self, name: &str, brightness: u32, max: u32) -> Self {
        self.leds.push((name.to_owned(), brightness, max));
        self
    }

    /// Adds a unit in this state, in systemd's words: `loaded`, `active`, `running`. Others are not found.
    ///
    /// # Panics
    /// When `name` is not the name of a unit.
    #[must_use]
    pub fn unit(mut self, name: &str, load: &str, active: &str, sub: &str) -> Self {
        let name = name.parse().unwrap_or_else(|error| panic!("{error}"));
        self.units.push((name, UnitState::new(load, active, sub)));
        self
    }

    /// Adds a file below the device's root folder.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.to_owned(), content.into()));
        self
    }

    /// Replaces the journal command `journalctl` by another program, which gets the same arguments.
    #[must_use]
    pub fn journal_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.journal_program = program.into();
        self
    }

    /// Loads the plugins.
    ///
    /// # Panics
    /// When one of them does not load, with what a device's log would say.
    pub async fn start(self) -> RunningHost {
        match self.try_start().await {
            Ok(running) => running,
            Err(error) => panic!("{error:#}"),
        }
    }

    /// As [`Host::start`], for tests of what keeps a plugin from loading.
    ///
    /// # Errors
    /// What a device's log would say.
    pub async fn try_start(self) -> Result<RunningHost> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("plugins"))?;
        for component in &self.components {
            let name = component
                .file_name()
                .context("a plugin's file has a name")?;
            std::fs::copy(component, path("plugins").join(name))
                .with_context(|| format!("cannot copy `{}`", component.display()))?;
        }
        std::fs::write(path("policy.toml"), &self.policy)?;
        std::fs::write(path("stock-plugins.toml"), stock_plugins(&self.components)?)?;
        for (name, brightness, max) in &self.leds {
            let led = path("root/sys/class/leds").join(name);
            std::fs::create_dir_all(&led)?;
            std::fs::write(led.join("brightness"), format!("{brightness}\n"))?;
            std::fs::write(led.join("max_brightness"), format!("{max}\n"))?;
            std::fs::write(led.join("trigger"), "[none] timer heartbeat\n")?;
        }
        for (file, content) in &self.files {
            let file = path("root").join(file.trim_start_matches('/'));
            if let Some(parent) = file.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&file, content)
                .with_context(|| format!("cannot write `{}`", file.display()))?;
        }
        let locks = Arc::<FakeLocks>::default();
        let configuration: toml::Table = self
            .configuration
            .parse()
            .context("invalid configuration")?;
        let plugin_config = match configuration.get("plugins") {
            Some(toml::Value::Table(table)) => table.clone(),
            _ => toml::Table::new(),
        };
        let cache = compiled_code::Cache::new(
            path("compiled"),
            compiler()?,
            compiled_code::Limits::default(),
        )?;
        let store = store::Store::open(&path("state"))?.store;
        let os = Arc::new(Rehearsal::new(path("root")));
        for (name, state) in self.units {
            os.set_unit(name, state);
        }
        let runtime = Runtime::new(Resources {
            slots: plugins::DEFAULT_SLOTS,
            memory: 128 << 20,
            return_memory: None,
        })?;
        let plugins = Plugins::start(PluginsConfig {
            runtime: Arc::new(runtime),
            plugin_dirs: vec![path("plugins")],
            policy: path("policy.toml"),
            stock_plugins: path("stock-plugins.toml"),
            allow_unpinned: false,
            cache,
            state_dir: path("state"),
            host_root: path("root"),
            plugin_config,
            services: HostServices {
                data: Arc::new(Data(store)),
                device: Arc::new(self.device),
                cloud: self.cloud,
                os: os.clone(),
                locks: locks.clone(),
                host_name: Arc::new(FakeHostName {
                    file: path("root/etc/hostname"),
                }),
                journal: Journal::new(self.journal_program, path("root")),
            },
            core_routes: Vec::new(),
            board_memory: 1 << 30,
        })?;
        plugins.loaded().await;
        let problems = plugins.problems();
        if !problems.is_empty() {
            bail!("{}", problems.join("\n"));
        }
        Ok(RunningHost {
            plugins,
            os,
            locks,
            folder,
        })
    }
}

impl RunningHost {
    /// Calls `GET path`, which may have a query.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, path).body(String::new()))
            .await
    }

    /// Calls `POST path` with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        let request = request(Method::POST, path)
            .header("content-type", "application/json")
            .body(body.to_string());
        self.send(request).await
    }

    /// Calls `PATCH path` with a JSON body.
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        let request = request(Method::PATCH, path)
            .header("content-type", "application/json")
            .body(body.to_string());
        self.send(request).await
    }

    /// Makes any call whose body is text or bytes, and reads the answer to its end.
    ///
    /// # Panics
    /// When the request is none, or the answer breaks off.
    pub async fn send<B: Into<bytes::Bytes>>(&self, request: http::Result<Request<B>>) -> Answer {
        self.send_by(CallerScope::DeviceKey, request).await
    }

    /// As [`Self::send`], by a caller of this scope rather than by whoever has the device's key.
    ///
    /// # Panics
    /// As [`Self::send`].
    pub async fn send_by<B: Into<bytes::Bytes>>(
        &self,
        caller: CallerScope,
        request: http::Result<Request<B>>,
    ) -> Answer {
        let request = request.unwrap_or_else(|error| panic!("no request: {error}"));
        let request = request.map(|body| Full::new(body.into()));
        whole(self.call_by(caller, request).await).await
    }

    /// Makes a call with a body of any kind, by whoever has the device's key; the answer's body comes as the plugin
    /// writes it.
    pub async fn call<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        self.call_by(CallerScope::DeviceKey, request).await
    }

    async fn call_by<B>(&self, caller: CallerScope, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        match self.plugins.find(request.method(), request.uri().path()) {
            RouteLookup::Route(route) => self.plugins.call(route, caller, request).await,
            RouteLookup::MethodNotAllowed { .. } => bare(http::StatusCode::METHOD_NOT_ALLOWED),
            // All are loaded since the start, or were refused.
            RouteLookup::Loading { .. } | RouteLookup::None => bare(http::StatusCode::NOT_FOUND),
        }
    }

    /// The units that were restarted, oldest first.
    #[must_use]
    pub fn restarted_units(&self) -> Vec<String> {
        let restarted = |action| match action {
            Action::Restart(unit) => Some(unit.to_string()),
            _ => None,
        };
        self.os
            .actions()
            .into_iter()
            .filter_map(restarted)
            .collect()
    }

    /// Makes the device identify itself, like `POST /v1/blink`.
    pub fn identify(&self) {
        self.plugins.identify(CallerScope::DeviceKey);
    }

    /// The settings of the board's boot configuration, by whichever plugin provides `boot-config`.
    ///
    /// # Errors
    /// If none does, or it fails.
    pub async fn boot_settings(&self) -> Result<Vec<(String, String)>, BootConfigError> {
        let settings = self.plugins.boot_settings().await?.into_iter();
        Ok(settings
            .map(|setting| (setting.name, setting.value))
            .collect())
    }

    /// Compares the boot configuration with these settings, each a variable and its value.
    ///
    /// # Errors
    /// If no plugin provides the action, or it fails.
    pub async fn compare_boot_config(
        &self,
        wanted: &[(&str, &str)],
    ) -> Result<BootComparison, BootConfigError> {
        self.plugins
            .compare_boot_config(boot_settings(wanted))
            .await
    }

    /// Writes the boot configuration.
    ///
    /// # Errors
    /// As [`Running::compare_boot_config`].
    pub async fn set_boot_config(
        &self,
        wanted: &[(&str, &str)],
    ) -> Result<BootComparison, BootConfigError> {
        self.plugins.set_boot_config(boot_settings(wanted)).await
    }

    /// Reads the brightness of the LED.
    ///
    /// # Panics
    /// When there is no such LED.
    #[must_use]
    #[track_caller]
    pub fn led(&self, name: &str) -> u32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(brightness) = self.led_now(name) {
                return brightness;
            }
            assert!(Instant::now() < deadline, "there is no LED `{name}`");
            std::thread::yield_now();
        }
    }

    /// Waits until the LED shows `brightness`.
    ///
    /// # Panics
    /// When it does not within half a minute.
    pub async fn led_becomes(&self, name: &str, brightness: u32) {
        let deadline = Instant::now() + PATIENCE;
        while self.led_now(name) != Some(brightness) {
            assert!(
                Instant::now() < deadline,
                "the LED `{name}` shows {:?} and not {brightness}",
                self.led_now(name)
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// `None` for the moment in which a write has emptied the file and not filled it yet: unlike the
    /// kernel's, this file has one.
    fn led_now(&self, name: &str) -> Option<u32> {
        let folder = self.root().join("sys/class/leds").join(name);
        let text = std::fs::read_to_string(folder.join("brightness")).ok()?;
        text.trim().parse().ok()
    }

    /// Waits until the plugin has been called `times` times, calls of its actions included.
    ///
    /// # Panics
    /// When it is not within half a minute.
    pub async fn called(&self, plugin: &str, times: u64) {
        let deadline = Instant::now() + PATIENCE;
        let calls = || {
            let reports = self.plugins.report();
            let report = reports.into_iter().find(|report| report.name == plugin);
            report.map_or(0, |report| report.calls)
        };
        while calls() < times {
            assert!(
                Instant::now() < deadline,
                "`{plugin}` was called {} times, not {times}",
                calls()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What `plugin` has reported by the capability `metrics`, sorted by name: each series as `GET /metrics` shows it,
    /// but for the plugin's name, and its value.
    #[must_use]
    pub fn metrics(&self, plugin: &str) -> Vec<(String, f64)> {
        let stats = self.plugins.stats().into_iter();
        stats
            .filter(|stats| stats.name == plugin)
            .flat_map(|stats| stats.metrics)
            .map(|metric| {
                let labels: Vec<_> = metric
                    .labels
                    .iter()
                    .map(|(name, value)| format!("{name}={value:?}"))
                    .collect();
                let series = if labels.is_empty() {
                    metric.name
                } else {
                    format!("{}{{{}}}", metric.name, labels.join(","))
                };
                (series, metric.value.as_f64())
            })
            .collect()
    }

    /// Holds an update lock from now on, as an app would: a caller that asks for the locks without force gets
    /// `message`.
    pub fn hold_update_lock(&self, message: &str) {
        *self.locks_of_apps() = Some(message.to_owned());
    }

    /// Releases the lock.
    pub fn release_update_lock(&self) {
        *self.locks_of_apps() = None;
    }

    fn locks_of_apps(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.locks
            .held_by_an_app
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// How often plugins have taken the update locks of all apps, and how often of these by force.
    #[must_use]
    pub fn update_locks_taken(&self) -> (usize, usize) {
        self.locks.taken()
    }

    /// Whether a plugin holds the locks now.
    #[must_use]
    pub fn update_locks_are_held(&self) -> bool {
        self.locks.are_held()
    }

    /// What `GET /v3/plugins` would answer.
    ///
    /// # Panics
    /// Never: reports are JSON.
    #[must_use]
    pub fn report(&self) -> Value {
        serde_json::to_value(self.plugins.report())
            .unwrap_or_else(|error| panic!("a report is no JSON: {error}"))
    }

    /// The root folder of the test's device.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Ends what runs in the background, as the supervisor does when it is stopped. The device's files
    /// are there until what this returns is dropped.
    #[must_use = "the device's files go with it"]
    pub async fn stop(self) -> tempfile::TempDir {
        self.plugins.shutdown().await;
        self.folder
    }
}

/// The answer, read to its end.
async fn whole(response: Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => panic!("the answer broke off: {error}"),
    };
    Answer {
        status: parts.status,
        headers: parts.headers,
        body,
    }
}

/// The list of stock plugins of a layout that ships with these files. What is no plugin is not listed.
fn stock_plugins(components: &[PathBuf]) -> Result<String> {
    let mut plugins = toml::Table::new();
    for component in components {
        let wasm = std::fs::read(component)
            .with_context(|| format!("cannot read `{}`", component.display()))?;
        if let Ok(manifest) = Manifest::of(&wasm) {
            let mut stock = toml::Table::new();
            let routes = manifest
                .routes
                .iter()
                .map(|route| route.pattern.to_string());
            let actions = manifest
                .provides
                .iter()
                .map(|action| action.name().to_owned());
            // A board `*` is none that a plugin could go before others on.
            let boards = manifest.boards.into_iter().filter(|board| board != "*");
            for (key, values) in [
                ("sha256", vec![compiled_code::digest(&wasm)]),
                ("routes", routes.collect()),
                ("provides", actions.collect()),
                ("boards", boards.collect()),
            ] {
                stock.insert(key.to_owned(), values.into());
            }
            plugins.insert(manifest.name, stock.into());
        }
    }
    let mut list = toml::Table::new();
    list.insert("plugins".to_owned(), plugins.into());
    Ok(list.to_string())
}

fn boot_settings(settings: &[(&str, &str)]) -> Vec<BootSetting> {
    let settings = settings.iter();
    settings
        .map(|(name, value)| BootSetting {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        })
        .collect()
}

fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(path)
}

fn bare(status: http::StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// The program `supervisor-compile`.
fn compiler() -> Result<PathBuf> {
    if let Some(dist) = std::env::var_os("SUPERVISOR_DIST") {
        return Ok(Path::new(&dist).join("bin/supervisor-compile"));
    }
    let this = std::env::current_exe().context("no path of this test's program")?;
    this.ancestors()
        .map(|folder| folder.join("dist/bin/supervisor-compile"))
        .find(|file| file.is_file())
        .context(
            "no compiler for plugins: run `cargo xtask build`, or set SUPERVISOR_DIST to a layout",
        )
}

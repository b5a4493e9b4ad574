//! The host that a test defines.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use os::{Journal, MethodError, Rehearsal, SimulatedGpio, SimulatedI2c, UnitName, UnitState};
use plugin_protocol::GuestRuntime;
use plugin_runtime::{Resources, Runtime};
use plugins::{Cloud, Device, HostServices, Identity, Manifest, NoCloud, Plugins, PluginsConfig};
use serde_json::Value;

use crate::call_filter::{CallFilter, FilteredRuntime};
use crate::fakes::{FakeApi, FakeHostName, FakeHttp, FakeLocks};
use crate::running::{DeviceFolder, RunningHost};

/// The host that a test defines; [`Host::start`] starts it.
pub struct Host {
    components: Vec<PathBuf>,
    policy: String,
    configuration: String,
    device: TestDevice,
    leds: Vec<(String, u32, u32)>,
    cloud: Arc<dyn Cloud>,
    http: FakeHttp,
    api: FakeApi,
    units: Vec<(UnitName, UnitState)>,
    methods: Vec<([String; 4], Result<String, MethodError>)>,
    gpio: SimulatedGpio,
    i2c: SimulatedI2c,
    files: Vec<(String, Vec<u8>)>,
    journal_program: PathBuf,
    pins: Pins,
    is_developers: bool,
    code_cache: Option<PathBuf>,
    compiler: Option<PathBuf>,
    folder: Option<PathBuf>,
    call_filter: Option<Arc<dyn CallFilter>>,
}

/// What pins plugin files to their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pins {
    /// A list of stock plugins that names them all.
    StockList,
    /// Only the policy.
    Policy,
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
            http: FakeHttp::default(),
            api: FakeApi::default(),
            units: Vec::new(),
            methods: Vec::new(),
            gpio: SimulatedGpio::default(),
            i2c: SimulatedI2c::default(),
            files: Vec::new(),
            journal_program: "journalctl".into(),
            pins: Pins::StockList,
            is_developers: false,
            code_cache: None,
            compiler: None,
            folder: None,
            call_filter: None,
        }
    }

    /// Treats plugins like those of third parties: only the policy says which files may claim which names, and what
    /// they may answer and provide.
    #[must_use]
    pub fn pinned_by_policy(mut self) -> Self {
        self.pins = Pins::Policy;
        self
    }

    /// Answers failures of plugins as a device in developer mode does: with the message of a panic, and with the
    /// limit that was reached.
    #[must_use]
    pub fn developer_mode(mut self) -> Self {
        self.is_developers = true;
        self
    }

    /// Answers requests that plugins send to other hosts: `request` is the method and the address, such as
    /// `GET https://api.acme.example/now`. Other requests are not answered.
    #[must_use]
    pub fn http_answer(mut self, request: &str, status: u16, body: impl Into<Vec<u8>>) -> Self {
        self.http.add(request, status, body.into());
        self
    }

    /// Answers requests that plugins send to the device's own API: `request` is the method and the path, such as
    /// `GET /v2/state/status`. Other requests are answered with 404.
    #[must_use]
    pub fn api_answer(mut self, request: &str, status: u16, body: impl Into<Vec<u8>>) -> Self {
        self.api.add(request, status, body.into());
        self
    }

    /// Keeps compiled code in this folder, for later hosts. Without this, each host compiles its plugins.
    #[must_use]
    pub fn code_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.code_cache = Some(folder.into());
        self
    }

    /// Keeps the device's files in this folder: a later host finds there what plugins have stored. Without this they
    /// are in a temporary folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Has this filter change the answers that plugins receive from their host.
    #[must_use]
    pub fn call_filter(mut self, filter: Arc<dyn CallFilter>) -> Self {
        self.call_filter = Some(filter);
        self
    }

    /// Compiles plugins with this program, which accepts the arguments of `supervisor-compile`.
    #[must_use]
    pub fn compiler(mut self, program: impl Into<PathBuf>) -> Self {
        self.compiler = Some(program.into());
        self
    }

    /// Adds the plugin in this file, for example of [`crate::build`]. It is treated like a device's stock plugins: its
    /// file is pinned, and it may answer, provide and take precedence over others as its manifest declares.
    /// [`Host::policy`] decides which capabilities it is granted.
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

    /// Adds an LED with this brightness and this maximum brightness.
    #[must_use]
    pub fn led(mut self, name: &str, brightness: u32, max: u32) -> Self {
        self.leds.push((name.to_owned(), brightness, max));
        self
    }

    /// Adds a unit in this state, in systemd's words: `loaded`, `active`, `running`. Others are not found.
    ///
    /// # Panics
    /// If `name` is not the name of a unit.
    #[must_use]
    pub fn unit(self, name: &str, load: &str, active: &str, sub: &str) -> Self {
        match self.try_unit(name, load, active, sub) {
            Ok(host) => host,
            Err(error) => panic!("{error}"),
        }
    }

    /// Like [`Host::unit`], for programs.
    ///
    /// # Errors
    /// If `name` is not the name of a unit.
    pub fn try_unit(mut self, name: &str, load: &str, active: &str, sub: &str) -> Result<Self> {
        let name = name.parse()?;
        self.units.push((name, UnitState::new(load, active, sub)));
        Ok(self)
    }

    /// Makes a method of a service on the system bus answer with these values, a JSON array (the form is in
    /// `wit/dbus.wit`). Other methods do not exist.
    #[must_use]
    pub fn dbus_answer(
        mut self,
        service: &str,
        path: &str,
        interface: &str,
        member: &str,
        values: impl Into<String>,
    ) -> Self {
        let method = [service, path, interface, member].map(str::to_owned);
        self.methods.push((method, Ok(values.into())));
        self
    }

    /// Makes a method of a service on the system bus answer with the error that has this name of D-Bus, such as
    /// `org.acme.Error.Busy`, and this message.
    #[must_use]
    pub fn dbus_error(
        mut self,
        service: &str,
        path: &str,
        interface: &str,
        member: &str,
        [name, message]: [&str; 2],
    ) -> Self {
        let method = [service, path, interface, member].map(str::to_owned);
        let error = MethodError::Refused {
            name: name.to_owned(),
            message: message.to_owned(),
        };
        self.methods.push((method, Err(error)));
        self
    }

    /// Adds a GPIO line with this name on the chip `simulated`, which is on or off. It behaves like a line with
    /// `active_low` that is on.
    #[must_use]
    pub fn gpio_line(self, name: &str, is_on: bool) -> Self {
        self.gpio.add(name, is_on);
        self
    }

    /// Adds a chip at this address of an I2C bus, which the policy names by this number or text, with 256 registers of
    /// one byte each: the first byte of a write selects the register from which reading or writing continues.
    /// `registers` are the values of the first registers; the others are 0.
    #[must_use]
    pub fn i2c_chip(self, bus: &str, address: u8, registers: &[u8]) -> Self {
        self.i2c.add(bus, address);
        // The chip exists: it was just added.
        let _ = self.i2c.set(bus, address, 0, registers);
        self
    }

    /// Adds a file below the device's root folder.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.to_owned(), content.into()));
        self
    }

    /// Replaces the journal command `journalctl` with another program, which gets the same arguments.
    #[must_use]
    pub fn journal_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.journal_program = program.into();
        self
    }

    /// Loads the plugins.
    ///
    /// # Panics
    /// If one of them does not load, with the text that a device's log would contain.
    pub async fn start(self) -> RunningHost {
        match self.try_start().await {
            Ok(running) => running,
            Err(error) => panic!("{error:#}"),
        }
    }

    /// Like [`Host::start`], for tests of reasons why a plugin does not load.
    ///
    /// # Errors
    /// The text that a device's log would contain.
    pub async fn try_start(self) -> Result<RunningHost> {
        let folder = match self.folder {
            Some(folder) => DeviceFolder::Kept(folder),
            None => DeviceFolder::Temporary(
                tempfile::tempdir().context("failed to create a temporary folder")?,
            ),
        };
        let path = |name: &str| folder.path().join(name);
        // The plugins of an earlier host do not belong to this one.
        if path("plugins").exists() {
            std::fs::remove_dir_all(path("plugins"))?;
        }
        std::fs::create_dir_all(path("plugins"))?;
        for component in &self.components {
            let name = component
                .file_name()
                .context("a plugin's file has a name")?;
            std::fs::copy(component, path("plugins").join(name))
                .with_context(|| format!("cannot copy `{}`", component.display()))?;
        }
        std::fs::write(path("policy.toml"), &self.policy)?;
        let stock = match self.pins {
            Pins::StockList => stock_plugins(&self.components)?,
            Pins::Policy => String::new(),
        };
        std::fs::write(path("stock-plugins.toml"), stock)?;
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
        let compiler = self.compiler.map_or_else(compiler, Ok)?;
        let cache = compiled_code::Cache::new(
            self.code_cache.unwrap_or_else(|| path("compiled")),
            compiler,
            compiled_code::Limits::default(),
        )?;
        let store = store::Store::open(&path("state"))?.store;
        let os = Arc::new(Rehearsal::new(path("root")));
        for (name, state) in self.units {
            os.set_unit(name, state);
        }
        for (method, answer) in self.methods {
            os.answer_method(method, answer);
        }
        let runtime = Runtime::new(Resources {
            slots: plugins::DEFAULT_SLOTS,
            memory: 128 << 20,
            return_memory: None,
        })?;
        let mut runtime: Arc<dyn GuestRuntime> = Arc::new(runtime);
        if let Some(filter) = self.call_filter {
            runtime = Arc::new(FilteredRuntime { runtime, filter });
        }
        let plugins = Plugins::start(PluginsConfig {
            runtime,
            plugin_dirs: vec![path("plugins")],
            policy: path("policy.toml"),
            stock_plugins: path("stock-plugins.toml"),
            allow_unpinned: self.is_developers,
            cache,
            state_dir: path("state"),
            host_root: path("root"),
            plugin_config,
            services: HostServices {
                data: Arc::new(store),
                device: Arc::new(self.device),
                cloud: self.cloud,
                os: os.clone(),
                locks: locks.clone(),
                host_name: Arc::new(FakeHostName {
                    file: path("root/etc/hostname"),
                }),
                journal: Journal::new(self.journal_program, path("root")),
                http: Arc::new(self.http),
                api: Arc::new(self.api),
                gpio: Arc::new(self.gpio.clone()),
                i2c: Arc::new(self.i2c.clone()),
            },
            core_routes: Vec::new(),
            board_memory: 1 << 30,
        })?;
        plugins.loaded().await;
        let mut problems = plugins.problems();
        problems.retain(|problem| problem != plugins::UNPINNED);
        if !problems.is_empty() {
            bail!("{}", problems.join("\n"));
        }
        Ok(RunningHost {
            plugins,
            os,
            gpio: self.gpio,
            i2c: self.i2c,
            locks,
            folder,
        })
    }
}

/// Returns the list of stock plugins of a layout that ships with these files. Files that are not plugins are left out.
fn stock_plugins(components: &[PathBuf]) -> Result<String> {
    let mut plugins = toml::Table::new();
    for component in components {
        let wasm = std::fs::read(component)
            .with_context(|| format!("cannot read `{}`", component.display()))?;
        if let Ok(manifest) = Manifest::from_wasm(&wasm) {
            let mut stock = toml::Table::new();
            let routes = manifest
                .routes
                .iter()
                .map(|route| route.pattern.to_string());
            let actions = manifest.provides.iter().map(|action| action.to_string());
            // With the board `*`, a plugin could not take precedence over others.
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

/// Finds the program `supervisor-compile`.
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

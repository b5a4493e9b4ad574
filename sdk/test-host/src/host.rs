//! The host that a test defines.

mod start;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use os::{MethodError, SimulatedGpio, SimulatedI2c, UnitName, UnitState};
use plugins::{Cloud, Device, HttpError, Identity, NoCloud};
use serde_json::Value;

use crate::action_observer::ActionObserver;
use crate::call_filter::CallFilter;
use crate::fakes::{FakeApi, FakeHttp};

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
    reuses_functions: bool,
    compiler: Option<PathBuf>,
    folder: Option<PathBuf>,
    call_filter: Option<Arc<dyn CallFilter>>,
    action_observer: Option<Arc<dyn ActionObserver>>,
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
            reuses_functions: false,
            compiler: None,
            folder: None,
            call_filter: None,
            action_observer: None,
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
        self.http
            .add(request, Duration::ZERO, Ok((status, body.into())));
        self
    }

    /// Like [`Host::http_answer`], with an answer or an error that the plugin receives after this time. After 60 s it
    /// receives what a device says about a host that is too slow.
    #[must_use]
    pub fn http_outcome(
        mut self,
        request: &str,
        delay: Duration,
        outcome: Result<(u16, Vec<u8>), HttpError>,
    ) -> Self {
        self.http.add(request, delay, outcome);
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

    /// Compiles only those functions of a large plugin that no plugin with the same folder of compiled code had before: for
    /// plugins that are all the author's own ([`compiled_code::Cache::reusing_functions_from`]).
    #[must_use]
    pub fn reuse_functions(mut self) -> Self {
        self.reuses_functions = true;
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

    /// Has this observer see the calls of plugins for events and actions.
    #[must_use]
    pub fn action_observer(mut self, observer: Arc<dyn ActionObserver>) -> Self {
        self.action_observer = Some(observer);
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
}

//! The device that a test defines.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Map, Value};

use crate::control::{DbusMethod, HttpError, HttpExchange, Identity, Setup, VERSION};
use crate::running::RunningHost;
use crate::tool;

/// The device that a test defines; [`Host::start`] starts it.
pub struct Host {
    setup: Setup,
    tool: Option<PathBuf>,
}

impl From<Host> for Setup {
    fn from(host: Host) -> Setup {
        host.setup
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
        Host {
            setup: Setup {
                version: VERSION,
                plugins: Vec::new(),
                policy: String::new(),
                configuration: String::new(),
                identity: Identity::default(),
                state: Value::Object(Map::new()),
                leds: Vec::new(),
                units: Vec::new(),
                dbus: Vec::new(),
                gpio: Vec::new(),
                i2c: Vec::new(),
                files: Vec::new(),
                http: Vec::new(),
                api: Vec::new(),
                journal_program: None,
                cloud: None,
                pinned_by_policy: false,
                developer_mode: false,
            },
            tool: None,
        }
    }

    /// Adds the plugin in this file, for example of [`crate::build`]. It is treated like a device's stock plugins: its
    /// file is pinned, and it may answer, provide and take precedence over others as its manifest declares.
    /// [`Host::policy`] decides which capabilities it is granted.
    #[must_use]
    pub fn plugin(mut self, component: impl Into<PathBuf>) -> Self {
        self.setup.plugins.push(component.into());
        self
    }

    /// Sets the text of `policy.toml`.
    #[must_use]
    pub fn policy(mut self, toml: impl Into<String>) -> Self {
        self.setup.policy = toml.into();
        self
    }

    /// Treats plugins like those of third parties: only the policy says which files may claim which names, and what
    /// they may answer and provide.
    #[must_use]
    pub fn pinned_by_policy(mut self) -> Self {
        self.setup.pinned_by_policy = true;
        self
    }

    /// Answers failures of plugins as a device in developer mode does: with the message of a panic, and with the
    /// limit that was reached.
    #[must_use]
    pub fn developer_mode(mut self) -> Self {
        self.setup.developer_mode = true;
        self
    }

    /// Sets the text of the supervisor's configuration file, of which only `[plugins.NAME]` matters here.
    #[must_use]
    pub fn configuration(mut self, toml: impl Into<String>) -> Self {
        self.setup.configuration = toml.into();
        self
    }

    /// Sets the device's identity.
    #[must_use]
    pub fn device(mut self, identity: Identity) -> Self {
        self.setup.identity = identity;
        self
    }

    /// Sets the answer to `GET /v1/device`.
    #[must_use]
    pub fn device_state(mut self, state: Value) -> Self {
        self.setup.state = state;
        self
    }

    /// Adds a cloud that has these rows of a kind of record; without this the device has none.
    #[must_use]
    pub fn cloud_records(mut self, kind: &str, rows: Vec<Map<String, Value>>) -> Self {
        let records = self.setup.cloud.get_or_insert_default();
        records.push((kind.to_owned(), rows));
        self
    }

    /// Answers requests that plugins send to other hosts: `request` is the method and the address, such as
    /// `GET https://api.acme.example/now`. Other requests are not answered.
    #[must_use]
    pub fn http_answer(self, request: &str, status: u16, body: impl Into<Vec<u8>>) -> Self {
        self.http_outcome(request, Duration::ZERO, Ok((status, body.into())))
    }

    /// Like [`Host::http_answer`], with an answer (status and body) or an error that the plugin receives after `delay`.
    /// The delay counts as wall time of the plugin's call. After 60 s the plugin receives what a device says about a
    /// host that is too slow.
    #[must_use]
    pub fn http_outcome(
        mut self,
        request: &str,
        delay: Duration,
        outcome: Result<(u16, Vec<u8>), HttpError>,
    ) -> Self {
        self.setup.http.push(HttpExchange {
            request: request.to_owned(),
            delay,
            outcome,
        });
        self
    }

    /// Answers requests that plugins send to the device's own API: `request` is the method and the path, such as
    /// `GET /v2/state/status`. Other requests are answered with 404.
    #[must_use]
    pub fn api_answer(mut self, request: &str, status: u16, body: impl Into<Vec<u8>>) -> Self {
        let answer = (request.to_owned(), status, body.into());
        self.setup.api.push(answer);
        self
    }

    /// Adds an LED with this brightness and this maximum brightness.
    #[must_use]
    pub fn led(mut self, name: &str, brightness: u32, max: u32) -> Self {
        self.setup.leds.push((name.to_owned(), brightness, max));
        self
    }

    /// Adds a unit in this state, in systemd's words: `loaded`, `active`, `running`. Others are not found.
    #[must_use]
    pub fn unit(mut self, name: &str, load: &str, active: &str, sub: &str) -> Self {
        let unit = [name, load, active, sub].map(str::to_owned);
        self.setup.units.push(unit);
        self
    }

    /// Makes a method of a service on the system bus answer with these values, a JSON array (the form is in
    /// `wit/dbus.wit`). Other methods do not exist.
    #[must_use]
    pub fn dbus_answer(
        self,
        service: &str,
        path: &str,
        interface: &str,
        member: &str,
        values: impl Into<String>,
    ) -> Self {
        self.dbus_method([service, path, interface, member], Ok(values.into()))
    }

    fn dbus_method(mut self, names: [&str; 4], answer: Result<String, [String; 2]>) -> Self {
        let names = names.map(str::to_owned);
        self.setup.dbus.push(DbusMethod { names, answer });
        self
    }

    /// Makes a method of a service on the system bus answer with the error that has this name of D-Bus, such as
    /// `org.acme.Error.Busy`, and this message.
    #[must_use]
    pub fn dbus_error(
        self,
        service: &str,
        path: &str,
        interface: &str,
        member: &str,
        error: [&str; 2],
    ) -> Self {
        let error = error.map(str::to_owned);
        self.dbus_method([service, path, interface, member], Err(error))
    }

    /// Adds a GPIO line with this name on the chip `simulated`, which is on or off. It behaves like a line with
    /// `active_low` that is on.
    #[must_use]
    pub fn gpio_line(mut self, name: &str, is_on: bool) -> Self {
        self.setup.gpio.push((name.to_owned(), is_on));
        self
    }

    /// Adds a chip at this address of an I2C bus, which the policy names by this number or text, with 256 registers of
    /// one byte each: the first byte of a write selects the register from which reading or writing continues.
    /// `registers` are the values of the first registers; the others are 0.
    #[must_use]
    pub fn i2c_chip(mut self, bus: &str, address: u8, registers: &[u8]) -> Self {
        let chip = (bus.to_owned(), address, registers.to_owned());
        self.setup.i2c.push(chip);
        self
    }

    /// Adds a file below the device's root folder.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.setup.files.push((path.to_owned(), content.into()));
        self
    }

    /// Replaces the journal command `journalctl` with another program, which gets the same arguments.
    #[must_use]
    pub fn journal_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.setup.journal_program = Some(program.into());
        self
    }

    /// Uses the runtime of this `supervisor-plugin`.
    #[must_use]
    pub fn tool(mut self, program: impl Into<PathBuf>) -> Self {
        self.tool = Some(program.into());
        self
    }

    /// Loads the plugins.
    ///
    /// # Panics
    /// If one of them does not load, with the text that a device's log would contain; or if there is no tool.
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
        let program = self.tool.map_or_else(tool::find, Ok)?;
        let tool = tool::start(&program, &self.setup).await?;
        Ok(RunningHost { tool })
    }
}

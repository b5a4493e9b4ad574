//! `device.toml`: describes the device on which a plugin is tried. Its LEDs, units, files, journal and cloud are fakes.

mod actions;
mod answers;
mod dbus;
mod hardware;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use plugin_manifest::{Capability, FormError, Manifest};
use plugin_test_host::{CallFilter, Host, Identity};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::fake_cloud::FakeCloud;
use crate::policy;
use actions::ActionAnswers;
pub(crate) use actions::{OtherPlugins, RecordedCall};
pub(crate) use answers::GrantSource;
use answers::{DeviceAnswers, Remedies};
use dbus::DbusAnswer;
use hardware::{GpioLine, I2cChip};
pub(crate) use hardware::{I2C_ADDRESS, i2c_bus};

/// The file in a project's folder that describes its device. It is the same in every language.
pub(crate) const DEVICE: &str = "device.toml";

/// A device for trials. Every field is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeviceFile {
    #[serde(default)]
    device: DeviceTable,
    /// LEDs by name.
    #[serde(default)]
    leds: BTreeMap<String, Led>,
    /// Units by name; others are not found.
    #[serde(default)]
    units: BTreeMap<String, Unit>,
    /// The content of files by path.
    #[serde(default)]
    files: BTreeMap<String, String>,
    journal: Option<Journal>,
    /// The rows of each kind of record. A device without this table has no cloud.
    cloud: Option<BTreeMap<String, Vec<Map<String, Value>>>>,
    /// The answers of other hosts, by method and address; no other hosts can be reached.
    #[serde(default)]
    http: BTreeMap<String, HttpAnswer>,
    /// The answers of the device's own API, by method and path; others do not exist.
    #[serde(default)]
    api: BTreeMap<String, HttpAnswer>,
    /// The answers of other plugins' actions; no other plugins exist.
    #[serde(default)]
    actions: ActionAnswers,
    /// The serial ports of this machine that the plugin may open.
    #[serde(default)]
    serial: Vec<String>,
    /// The answers of methods on the system bus; no other methods exist.
    #[serde(default)]
    dbus: Vec<DbusAnswer>,
    /// GPIO lines, by the names that the plugin uses.
    #[serde(default)]
    gpio: BTreeMap<String, GpioLine>,
    /// Chips on I2C buses, by the names that the plugin uses.
    #[serde(default)]
    i2c: BTreeMap<String, I2cChip>,
    /// The table `[plugins.NAME]` of the supervisor's configuration file.
    #[serde(default)]
    config: toml::Table,
    /// Additional lines of the policy's section, for example `files`.
    #[serde(default)]
    policy: toml::Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DeviceTable {
    uuid: String,
    name: String,
    #[serde(rename = "type")]
    device_type: String,
    arch: String,
    /// The answer to `GET /v1/device`.
    state: Value,
}

impl Default for DeviceTable {
    fn default() -> Self {
        DeviceTable {
            uuid: "0".repeat(32),
            name: "local".to_owned(),
            device_type: "unknown".to_owned(),
            arch: "unknown".to_owned(),
            state: json!({}),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Led {
    #[serde(default)]
    brightness: u32,
    #[serde(default = "brightest")]
    max: u32,
}

fn brightest() -> u32 {
    255
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpAnswer {
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    body: String,
}

fn ok() -> u16 {
    200
}

/// The state of a unit, in systemd's words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Unit {
    load: String,
    active: String,
    sub: String,
}

impl Default for Unit {
    fn default() -> Self {
        Unit {
            load: "loaded".to_owned(),
            active: "active".to_owned(),
            sub: "running".to_owned(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Journal {
    /// The lines that every reader receives, whatever it selects.
    lines: Vec<String>,
}

impl DeviceFile {
    /// Reads the file.
    ///
    /// # Errors
    /// It is missing or invalid.
    pub(crate) fn read(file: &Path) -> Result<DeviceFile> {
        DeviceFile::read_if_present(file)?.with_context(|| {
            let file = file.display();
            format!("there is no device file `{file}`: create it, or name another one")
        })
    }

    /// Reads the file; returns `None` if there is none.
    ///
    /// # Errors
    /// It is invalid.
    pub(crate) fn read_if_present(file: &Path) -> Result<Option<DeviceFile>> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{}`", file.display()));
            }
        };
        let device = toml::from_str(&text).map_err(|error| {
            let reason = FormError::new(&error).with_place(&text);
            anyhow!("`{}` is invalid: {reason}", file.display())
        });
        device.map(Some)
    }

    pub(crate) fn device_type(&self) -> &str {
        &self.device.device_type
    }

    pub(crate) fn set_type(&mut self, device_type: &str) {
        device_type.clone_into(&mut self.device.device_type);
    }

    /// Returns a policy that lets the plugin in the file with this digest, or without one a stock plugin, use everything
    /// that this device has.
    pub(crate) fn policy(&self, manifest: &Manifest, digest: Option<&str>) -> String {
        let mut more = toml::Table::new();
        let names = |names: Vec<&String>| -> toml::Value {
            let names = names.into_iter().cloned().map(toml::Value::from);
            names.collect::<Vec<_>>().into()
        };
        let needs = |capability| manifest.asks_for(capability);
        // A policy that names what the plugin does not ask for is invalid.
        if needs(Capability::Units) {
            more.insert("units".to_owned(), names(self.units.keys().collect()));
        }
        if let Some(cloud) = &self.cloud
            && needs(Capability::Cloud)
        {
            more.insert("records".to_owned(), names(cloud.keys().collect()));
        }
        if needs(Capability::Actions) {
            let own = manifest.actions.iter();
            let own = own.map(|action| toml::Value::from(format!("{}/{action}", manifest.name)));
            more.insert("actions".to_owned(), own.collect::<Vec<_>>().into());
        }
        if needs(Capability::Http) {
            let origins = self.http.keys().filter_map(|request| origin(request));
            more.insert("http".to_owned(), origins.collect::<Vec<_>>().into());
        }
        if needs(Capability::Api) {
            more.insert("api".to_owned(), names(self.api.keys().collect()));
        }
        if needs(Capability::Serial) {
            more.insert("serial".to_owned(), self.serial.clone().into());
        }
        if needs(Capability::Dbus) {
            let grants = self.dbus.iter().map(DbusAnswer::grant);
            more.insert("dbus".to_owned(), grants.collect::<Vec<_>>().into());
        }
        if needs(Capability::Gpio) {
            let grants = self.gpio.iter().map(|(name, line)| line.grant(name));
            more.insert("gpio".to_owned(), grants.collect::<Vec<_>>().into());
        }
        if needs(Capability::I2c) {
            let grants = self.i2c.keys().map(|name| I2cChip::grant(name));
            more.insert("i2c".to_owned(), grants.collect::<Vec<_>>().into());
        }
        more.extend(self.policy.clone());
        policy::that_grants_all(manifest, digest, more)
    }

    /// Returns the other plugins of the device, whose file has this name for people.
    pub(crate) fn other_plugins(&self, file: &str) -> OtherPlugins {
        OtherPlugins::new(self.actions.clone(), file.to_owned())
    }

    /// Returns what plugins are answered where the file of this name decides. If a policy decides what a plugin may use,
    /// refusals are those of a device with that policy.
    pub(crate) fn answers(
        &self,
        file: &str,
        other_plugins: Arc<OtherPlugins>,
        source: GrantSource,
    ) -> Arc<dyn CallFilter> {
        let remedies = (source == GrantSource::DeviceFile).then(|| {
            let records = self.cloud.as_ref();
            let records = records.map(|cloud| cloud.keys().cloned().collect());
            let methods = self.dbus.iter().map(DbusAnswer::method).collect();
            Arc::new(Remedies::new(file.to_owned(), records, methods))
        });
        Arc::new(DeviceAnswers {
            other_plugins,
            remedies,
        })
    }

    /// Creates a host with such a device, whose journal command is written into `folder`.
    ///
    /// # Errors
    /// The name of a unit is invalid, or a file cannot be written.
    pub(crate) fn host(&self, plugin: &str, folder: &Path) -> Result<Host> {
        let DeviceTable {
            uuid,
            name,
            device_type,
            arch,
            state,
        } = &self.device;
        let mut host = Host::new()
            .device(Identity {
                uuid: uuid.clone(),
                name: name.clone(),
                device_type: device_type.clone(),
                arch: arch.clone(),
            })
            .device_state(state.clone());
        for (name, led) in &self.leds {
            host = host.led(name, led.brightness, led.max);
        }
        for (name, unit) in &self.units {
            host = host
                .try_unit(name, &unit.load, &unit.active, &unit.sub)
                .context("the table `units` is invalid")?;
        }
        for (request, HttpAnswer { status, body }) in &self.http {
            host = host.http_answer(request, *status, body.clone());
        }
        for (request, HttpAnswer { status, body }) in &self.api {
            host = host.api_answer(request, *status, body.clone());
        }
        for answer in &self.dbus {
            host = answer.add_to(host)?;
        }
        for (name, line) in &self.gpio {
            host = line.add_to(host, name);
        }
        for (name, chip) in &self.i2c {
            host = chip.add_to(host, name);
        }
        for (path, content) in &self.files {
            host = host.file(path, content.clone());
        }
        if let Some(journal) = &self.journal {
            host = host.journal_program(journal.program(folder)?);
        }
        if let Some(records) = &self.cloud {
            host = host.cloud(FakeCloud::new(records.clone()));
        }
        let mut plugins = toml::Table::new();
        plugins.insert(plugin.to_owned(), self.config.clone().into());
        let mut configuration = toml::Table::new();
        configuration.insert("plugins".to_owned(), plugins.into());
        Ok(host.configuration(configuration.to_string()))
    }
}

/// Returns the scheme, host and port of `GET https://api.acme.example/now`.
fn origin(request: &str) -> Option<toml::Value> {
    let (_, url) = request.split_once(' ')?;
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some(format!("{scheme}://{authority}").into())
}

impl Journal {
    /// Writes a program that prints the lines and replaces the journal command.
    fn program(&self, folder: &Path) -> Result<std::path::PathBuf> {
        let program = folder.join("journal");
        let mut text = "#!/bin/sh\ncat <<'END OF THE JOURNAL'\n".to_owned();
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str("END OF THE JOURNAL\n");
        std::fs::write(&program, text)
            .and_then(|()| {
                std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
            })
            .with_context(|| format!("cannot write `{}`", program.display()))?;
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_file_describes_a_device() {
        let page = include_str!("../../../docs/plugin-tool.md");
        let (_, section) = page.split_once("\n## The device\n").unwrap();
        let (_, block) = section.split_once("```toml\n").unwrap();
        let (text, _) = block.split_once("```").unwrap();
        let device: DeviceFile = toml::from_str(text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        device.host("a", folder.path()).unwrap();
    }

    #[test]
    fn a_policy_names_only_what_the_plugin_asks_for_and_its_own_actions() {
        let device: DeviceFile = toml::from_str(
            "[units.\"a.service\"]\n[cloud]\ndevice_tag = []\n[actions]\n\"b/set\" = { text = \"\" }\n",
        )
        .unwrap();
        let manifest = |more: &str| {
            let text = format!("name = \"a\"\nversion = \"1.0.0\"\ninterface = \"1.4.0\"\n{more}");
            Manifest::parse(&text).unwrap()
        };
        let keys = ["units", "records", "actions"];
        let section = |manifest: &Manifest| {
            let policy: toml::Table = device.policy(manifest, None).parse().unwrap();
            policy["plugins"]["a"].clone()
        };
        let nothing = section(&manifest(
            "routes = [{ method = \"GET\", path = \"/v3/a\" }]\n",
        ));
        assert!(
            keys.iter().all(|key| nothing.get(key).is_none()),
            "{nothing}"
        );
        let everything = section(&manifest(
            "provides = [\"action-provider\"]\nactions = [\"count\"]\ncapabilities = [\
             { name = \"units\", reason = \"r\" }, { name = \"cloud\", reason = \"r\" }, \
             { name = \"actions\", reason = \"r\" }]",
        ));
        for (key, value) in keys.into_iter().zip(["a.service", "device_tag", "a/count"]) {
            assert_eq!(everything[key], toml::Value::from(vec![value]), "{key}");
        }
    }

    #[test]
    fn a_device_may_have_nothing_and_everything() {
        let everything = r#"
serial = ["/dev/ttyUSB0"]

[device]
type = "acme-2"
state = { status = "Idle" }

[leds.ACT]
max = 1

[units."openvpn.service"]
active = "failed"

[files]
"/run/x" = "1"

[journal]
lines = ["one", "two"]

[cloud]
device_tag = [{ id = 1, tag_key = "site" }]

[api]
"GET /v2/state/status" = { body = "{}" }

[actions]
"acme-rails/set" = { json = true }
"acme-rails/reset" = { refused = "the press is running" }

[[dbus]]
service = "org.acme.Meter"
path = "/org/acme/Meter"
member = "org.acme.Meter.Read"
values = [{ type = "d", data = 1.5 }]

[[dbus]]
service = "org.acme.Meter"
path = "/org/acme/Meter"
member = "org.acme.Meter.Calibrate"
error = "org.acme.Error.Busy"
message = "it measures"

[gpio]
relay = { direction = "out" }
door = { direction = "in", on = true }

[i2c]
sensor = { registers = [0x19, 0x80] }

[config]
interval = 5

[policy]
files = [{ host = "run/x", guest = "/x" }]
"#;
        let folder = tempfile::tempdir().unwrap();
        for text in ["", everything] {
            let device: DeviceFile = toml::from_str(text).unwrap();
            device.host("a", folder.path()).unwrap();
        }
        let error = toml::from_str::<DeviceFile>("[lamps]").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("unknown field `lamps`, expected one of")
        );
        let device: DeviceFile = toml::from_str("[units.\"a/b\"]").unwrap();
        assert!(device.host("a", folder.path()).is_err());
    }
}

//! `device.toml`: describes the device on which a plugin is tried. Its LEDs, units, files, journal and cloud are fakes.

mod actions;
mod answers;
mod dbus;
mod effects;
mod grants;
mod hardware;
mod hints;
mod http_answers;
mod identify;
mod journal;
mod proxy_redirector;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use plugin_manifest::{Action, FormError, Manifest};
use plugin_test_host::{CallFilter, UnitName};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use supervisor_testing::{Host, Identity};

use actions::ActionAnswers;
pub(crate) use actions::{OtherPlugins, RecordedCall};
pub(crate) use answers::{CallRecords, GrantSource};
use answers::{DeviceAnswers, Remedies};
use dbus::DbusAnswer;
pub(crate) use effects::{EffectList, Effects, LedBrightness, log_line, queue_line, unit_line};
use hardware::{GpioLine, I2cChip};
pub(crate) use hardware::{I2C_ADDRESS, i2c_bus};
pub(crate) use hints::Hints;
use http_answers::{ApiAnswer, HttpExchange};
use identify::IdentifyAnswer;
pub(crate) use identify::IdentifyProvider;
use journal::Journal;
use proxy_redirector::{FakeRedirector, RedirectorProvider};

/// The file in a project's folder that describes its device. It is the same in every language.
pub(crate) const DEVICE: &str = "device.toml";
/// The type and the architecture of a device whose file has none.
const UNKNOWN: &str = "unknown";

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
    http: BTreeMap<String, HttpExchange>,
    /// The answers of the device's own API, by method and path; others do not exist.
    #[serde(default)]
    api: BTreeMap<String, ApiAnswer>,
    /// The answers of other plugins' actions; no other plugins exist.
    #[serde(default)]
    actions: ActionAnswers,
    /// The answer of the plugin that shows which device this is; without it, there is no such plugin.
    identify: Option<IdentifyAnswer>,
    /// The plugin that configures the device's proxy; without it, there is no such plugin.
    proxy_redirector: Option<FakeRedirector>,
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
    /// Plugins for other types are not loaded.
    #[serde(rename = "type")]
    device_type: Option<String>,
    arch: String,
    /// The answer to `GET /v1/device`.
    state: Value,
}

impl Default for DeviceTable {
    fn default() -> Self {
        DeviceTable {
            uuid: "0".repeat(32),
            name: "local".to_owned(),
            device_type: None,
            arch: UNKNOWN.to_owned(),
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
        self.device.device_type.as_deref().unwrap_or(UNKNOWN)
    }

    pub(crate) fn set_type(&mut self, device_type: &str) {
        self.device.device_type = Some(device_type.to_owned());
    }

    /// Returns empty records of the calls on the device, whose file has this name for people.
    pub(crate) fn call_records(&self, file: &str) -> CallRecords {
        let hints = Arc::<Hints>::default();
        let answers = self.actions.clone();
        let other_plugins = OtherPlugins::new(answers, file.to_owned(), Arc::clone(&hints));
        CallRecords {
            other_plugins: Arc::new(other_plugins),
            effects: Arc::default(),
            hints,
        }
    }

    /// Returns what the plugin with this manifest is answered where the file of this name decides. If a policy decides what
    /// a plugin may use, refusals are those of a device with that policy.
    pub(crate) fn answers(
        &self,
        file: &str,
        records: CallRecords,
        manifest: &Manifest,
        source: GrantSource,
    ) -> Arc<dyn CallFilter> {
        let hints = &records.hints;
        let remedies = (source == GrantSource::DeviceFile).then(|| {
            let kinds = self.cloud.as_ref();
            Arc::new(Remedies {
                file: file.to_owned(),
                records: kinds.map(|cloud| cloud.keys().cloned().collect()),
                methods: self.dbus.iter().map(DbusAnswer::method).collect(),
                requests: self.http.keys().cloned().collect(),
                hints: Arc::clone(hints),
            })
        });
        Arc::new(DeviceAnswers {
            identify: self.identify_provider(file, &records, manifest),
            redirector: self.redirector_provider(file, &records, manifest),
            remedies,
            records,
        })
    }

    /// Returns what identifies the device, if the file of this name decides; `None` if the plugin with this manifest does it
    /// itself.
    pub(crate) fn identify_provider(
        &self,
        file: &str,
        records: &CallRecords,
        manifest: &Manifest,
    ) -> Option<IdentifyProvider> {
        let is_own = manifest.provides.contains(&Action::Identify);
        (!is_own).then(|| IdentifyProvider {
            answer: self.identify.clone(),
            file: file.to_owned(),
            hints: Arc::clone(&records.hints),
        })
    }

    /// Returns what configures the device's proxy, if the file of this name decides; `None` if the plugin with this manifest
    /// does it itself.
    fn redirector_provider(
        &self,
        file: &str,
        records: &CallRecords,
        manifest: &Manifest,
    ) -> Option<RedirectorProvider> {
        let is_own = manifest.provides.contains(&Action::ProxyRedirector);
        (!is_own).then(|| {
            let fake = self.proxy_redirector.clone();
            RedirectorProvider::new(fake, file.to_owned(), Arc::clone(&records.hints))
        })
    }

    /// Describes such a device, whose journal command is written into `folder`.
    ///
    /// # Errors
    /// The name of a unit is invalid, or a file cannot be written.
    pub(crate) fn host(&self, plugin: &str, folder: &Path) -> Result<Host> {
        let DeviceTable {
            uuid,
            name,
            device_type: _,
            arch,
            state,
        } = &self.device;
        let mut host = Host::new()
            .device(Identity {
                uuid: uuid.clone(),
                name: name.clone(),
                device_type: self.device_type().to_owned(),
                arch: arch.clone(),
            })
            .device_state(state.clone());
        for (name, led) in &self.leds {
            host = host.led(name, led.brightness, led.max);
        }
        for (name, unit) in &self.units {
            name.parse::<UnitName>()
                .context("the table `units` is invalid")?;
            host = host.unit(name, &unit.load, &unit.active, &unit.sub);
        }
        for (request, exchange) in &self.http {
            host = exchange.add_to(host, request);
        }
        for (request, answer) in &self.api {
            host = answer.add_to(host, request);
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
            // Also a cloud without any records is one.
            host = host.cloud_records("device", Vec::new());
            for (kind, rows) in records {
                host = host.cloud_records(kind, rows.clone());
            }
        }
        let mut plugins = toml::Table::new();
        plugins.insert(plugin.to_owned(), self.config.clone().into());
        let mut configuration = toml::Table::new();
        configuration.insert("plugins".to_owned(), plugins.into());
        Ok(host.configuration(configuration.to_string()))
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

[http]
"GET https://api.acme.example/now" = { unreachable = "it is down", after_ms = 1 }

[identify]
after_ms = 1

[proxy_redirector]
proxy = { kind = "http-connect", address = "proxy.acme.example", port = 3128, login = "ada", password = "p" }
no_proxy = ["10.0.0.0/8"]
refused = "it is odd"

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

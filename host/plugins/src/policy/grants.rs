//! The policy's grants for one plugin: a section `[plugins.NAME]`.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use os::UnitName;
use plugin_manifest::{
    Action, Capability, EventKind, WrittenLimits, check_action_name, check_name,
};
use serde::{Deserialize, Deserializer};

use crate::api_grants::ApiGrants;
use crate::boards::BoardPatterns;
use crate::dbus_grants::DbusGrants;
use crate::gpio_grants::GpioGrants;
use crate::http_grants::HttpGrants;
use crate::i2c_grants::I2cGrants;
use crate::pins::{FileDigests, Pin};
use crate::route_grants::RouteGrants;

/// The longest time for which gates may delay an update: 31 days.
const LONGEST_HOLD: u32 = 31 * 24 * 60;

/// The grants of one plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grants {
    /// The files that get them; if this and `keys` are omitted, the stock plugin of that name.
    pub(crate) sha256: Option<FileDigests>,
    /// The names of the keys whose signed files get them. Unknown names and revoked keys pin nothing.
    pub(crate) keys: Option<BTreeSet<String>>,
    /// The paths that it may answer.
    #[serde(default)]
    pub(crate) routes: RouteGrants,
    /// The actions that it may provide.
    #[serde(default)]
    pub(crate) provides: BTreeSet<Action>,
    /// The events that it may ask for.
    #[serde(default)]
    pub(crate) events: BTreeSet<EventKind>,
    /// How long its gates may delay an update of one app, in minutes.
    pub(crate) hold_minutes: Option<u32>,
    /// The boards on which it takes precedence over a provider for all boards.
    #[serde(default)]
    pub(crate) boards: BoardPatterns,
    #[serde(default)]
    pub(crate) grants: BTreeSet<Capability>,
    /// The LEDs that `led` grants; all of the device's LEDs if omitted.
    pub(crate) leds: Option<BTreeSet<String>>,
    /// The kinds of records that `cloud` reaches.
    #[serde(default)]
    pub(crate) records: BTreeSet<String>,
    /// Other plugins' own actions that `actions` grants, each as the plugin's name, a slash and the action's name.
    #[serde(default)]
    pub(crate) actions: BTreeSet<String>,
    /// The hosts that `http` reaches; none if omitted.
    #[serde(default)]
    pub(crate) http: HttpGrants,
    /// The routes of the device's own API that `api` grants; none if omitted.
    #[serde(default)]
    pub(crate) api: ApiGrants,
    /// The serial ports that `serial` grants, by path; none if omitted.
    #[serde(default)]
    pub(crate) serial: BTreeSet<String>,
    /// The methods on the system bus that `dbus` grants; none if omitted.
    #[serde(default)]
    pub(crate) dbus: DbusGrants,
    /// The GPIO lines that `gpio` grants; none if omitted.
    #[serde(default)]
    pub(crate) gpio: GpioGrants,
    /// The chips on I2C buses that `i2c` grants; none if omitted.
    #[serde(default)]
    pub(crate) i2c: I2cGrants,
    /// The units that `units` grants; none if omitted.
    #[serde(default, deserialize_with = "unit_names")]
    pub(crate) units: BTreeSet<UnitName>,
    /// The folders that `files` grants.
    #[serde(default)]
    pub(crate) files: Vec<Folder>,
    #[serde(default)]
    pub(crate) limits: WrittenLimits,
    /// Why the file gets the grants.
    #[serde(skip)]
    pub(crate) pin: Pin,
    /// Whether the layout ships with the file.
    #[serde(skip)]
    pub(crate) is_stock: bool,
}

/// A folder of the host that is visible to a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Folder {
    /// The path on the host: absolute as this process sees it, relative below the host's root folder.
    pub(crate) host: PathBuf,
    /// The path inside the plugin.
    pub(crate) guest: String,
    /// Whether the plugin may change the contents.
    #[serde(default)]
    pub(crate) write: bool,
    /// Whether a missing folder is created. If it cannot be created, the plugin does not see it; without this setting,
    /// a missing folder prevents calls of the plugin.
    #[serde(default)]
    pub(crate) create: bool,
    /// Whether the plugin is still called if the folder is missing; it then does not see the folder.
    #[serde(default)]
    pub(crate) optional: bool,
}

fn unit_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<UnitName>, D::Error> {
    Vec::<String>::deserialize(deserializer)?
        .iter()
        .map(|name| name.parse().map_err(serde::de::Error::custom))
        .collect()
}

impl Grants {
    /// Checks everything that the types of the fields do not guarantee.
    ///
    /// # Errors
    /// What cannot be granted.
    pub(super) fn check(&self) -> Result<(), String> {
        self.limits.check().map_err(|error| error.to_string())?;
        if let Some(route) = self.routes.first_of_stock_plugins() {
            return Err(format!(
                "the route `{route}` reaches below `/v1` or `/v2`, where stock plugins answer and no others"
            ));
        }
        for folder in &self.files {
            let mut parts = folder.host.components();
            if parts.clone().next().is_none() || parts.any(|part| part == Component::ParentDir) {
                return Err(format!(
                    "the folder `{}` is neither an absolute path nor one below the host's root",
                    folder.host.display()
                ));
            }
            if !folder.guest.starts_with('/') {
                return Err(format!(
                    "the folder `{}` of the plugin is not an absolute path",
                    folder.guest
                ));
            }
        }
        if self.provides.contains(&Action::Events) {
            return Err("`provides` contains \"events\": name the events in `events`".to_owned());
        }
        if self.provides.contains(&Action::ActionProvider) {
            return Err(
                "`provides` contains \"action-provider\": a plugin needs no grant for it, but the callers of its actions do"
                    .to_owned(),
            );
        }
        if !self.actions.is_empty() && !self.grants.contains(&Capability::Actions) {
            return Err("it names `actions` without granting \"actions\"".to_owned());
        }
        let is_action = |action: &&String| {
            let parts = action.split_once('/');
            parts.is_some_and(|(plugin, name)| {
                check_name(plugin).is_ok() && check_action_name(name).is_ok()
            })
        };
        if let Some(action) = self.actions.iter().find(|action| !is_action(action)) {
            return Err(format!(
                "`{action}` is not an action: write the plugin's name, a slash and the action's name"
            ));
        }
        if let Some(minutes) = self.hold_minutes {
            if minutes > LONGEST_HOLD {
                return Err(format!(
                    "`hold_minutes` is {minutes}, but must be at most {LONGEST_HOLD}"
                ));
            }
            if !self.events.contains(&EventKind::UpdateGate) {
                return Err(
                    "it names `hold_minutes` without granting the event \"update-gate\"".to_owned(),
                );
            }
        }
        if !self.files.is_empty() && !self.grants.contains(&Capability::Files) {
            return Err("it names `files` without granting \"files\"".to_owned());
        }
        if !self.http.is_empty() && !self.grants.contains(&Capability::Http) {
            return Err("it names `http` without granting \"http\"".to_owned());
        }
        if !self.api.is_empty() && !self.grants.contains(&Capability::Api) {
            return Err("it names `api` without granting \"api\"".to_owned());
        }
        if !self.serial.is_empty() && !self.grants.contains(&Capability::Serial) {
            return Err("it names `serial` without granting \"serial\"".to_owned());
        }
        let is_port = |name: &&String| {
            let mut parts = Path::new(name.as_str()).components();
            name.starts_with("/dev/") && parts.all(|part| part != Component::ParentDir)
        };
        if let Some(name) = self.serial.iter().find(|name| !is_port(name)) {
            return Err(format!(
                "`serial` has `{name}`: write the path of a serial port, such as `/dev/ttyUSB0`"
            ));
        }
        if !self.dbus.is_empty() && !self.grants.contains(&Capability::Dbus) {
            return Err("it names `dbus` without granting \"dbus\"".to_owned());
        }
        self.dbus.check()?;
        if !self.gpio.is_empty() && !self.grants.contains(&Capability::Gpio) {
            return Err("it names `gpio` without granting \"gpio\"".to_owned());
        }
        self.gpio.check()?;
        if !self.i2c.is_empty() && !self.grants.contains(&Capability::I2c) {
            return Err("it names `i2c` without granting \"i2c\"".to_owned());
        }
        self.i2c.check()?;
        if !self.records.is_empty() && !self.grants.contains(&Capability::Cloud) {
            return Err("it names `records` without granting \"cloud\"".to_owned());
        }
        if !self.units.is_empty() && !self.grants.contains(&Capability::Units) {
            return Err("it names `units` without granting \"units\"".to_owned());
        }
        if self.leds.is_some() && !self.grants.contains(&Capability::Led) {
            return Err("it names `leds` without granting \"led\"".to_owned());
        }
        Ok(())
    }
}

//! What every request works with.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use data::Database;
use data::query::{Caller, Setting};
use data::write::Environment;
use resources::Version;

use crate::bus::Bus;
use crate::configuration::Configuration;
use crate::credential::Keys;
use crate::dashboard::live::Live;
use crate::device::Devices;
use crate::health::Health;
use crate::limits::RateLimits;
use crate::long_answers::LongAnswers;
use crate::password;
use crate::reach::Reach;
use crate::registry::Registry;
use crate::registry::garbage::Garbage;
use crate::session::Sessions;
use crate::shares::Shares;

/// What every request works with. Clones are the same one.
pub(crate) type Shared = Arc<Cloud>;

/// The running cloud.
pub(crate) struct Cloud {
    pub(crate) configuration: Configuration,
    pub(crate) database: Database,
    /// What writes go by.
    pub(crate) environment: Environment,
    pub(crate) sessions: Sessions,
    pub(crate) keys: Keys,
    pub(crate) limits: RateLimits,
    /// Who is at the database.
    pub(crate) shares: Shares,
    /// Who waits for the hash of a password.
    pub(crate) passwords: password::Line,
    pub(crate) long_answers: LongAnswers,
    /// What replicas tell each other.
    pub(crate) bus: Bus,
    /// The devices that are connected.
    pub(crate) reach: Reach,
    /// Who signs for the registry of images.
    pub(crate) registry: Registry,
    /// What the registry is to delete.
    pub(crate) garbage: Garbage,
    pub(crate) devices: Devices,
    /// Whether it can do its work.
    pub(crate) health: Health,
    /// The pages that are open.
    pub(crate) live: Live,
    /// Names of the configuration variable that switches the tunnel off, the current one first.
    pub(crate) tunnel_variables: Vec<String>,
}

impl Cloud {
    /// What a statement of the data API goes by, for this caller, in the current version.
    pub(crate) fn setting<'a>(&'a self, caller: &'a Caller) -> Setting<'a> {
        self.setting_of(caller, Version::V7)
    }

    /// The same in any version: its names, and how its answers look.
    pub(crate) fn setting_of<'a>(&'a self, caller: &'a Caller, version: Version) -> Setting<'a> {
        let shape = version.shape();
        Setting {
            model: version.model(),
            dialect: self.database.dialect(),
            caller,
            now: now(),
            addresses: version.path(),
            always_addressed: shape.addressed,
            lenient: shape.lenient,
            tunnel_variables: &self.tunnel_variables,
            origin: "",
        }
    }
}

/// Milliseconds since the epoch.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

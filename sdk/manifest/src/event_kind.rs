//! The kinds of events that a plugin can ask for.

use serde::{Deserialize, Serialize};

/// A kind of event (`wit/events.wit`) that manifests ask for and policies grant.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum EventKind {
    /// The supervisor has started, or the plugin was installed.
    Start,
    /// A schedule is due. A manifest asks for it by naming schedules.
    Schedule,
    /// The states of services have changed.
    Services,
    /// The device begins to apply its target, reaches it, or stops.
    Target,
    /// The connection to the cloud is established or lost.
    Connection,
    /// Whether an app may be disturbed now. The plugin can postpone updates.
    UpdateGate,
    /// Whether a new release is healthy. The plugin can make the device go back to the previous one.
    HealthGate,
}

impl EventKind {
    /// Returns all kinds.
    #[must_use]
    pub fn all() -> &'static [EventKind] {
        <EventKind as strum::VariantArray>::VARIANTS
    }

    /// Returns what the owner of a device allows a plugin that receives it: the end of a sentence that
    /// begins with "It may".
    #[must_use]
    pub fn may(self) -> &'static str {
        match self {
            EventKind::Start => "run when the supervisor starts",
            EventKind::Schedule => "run at times of its own",
            EventKind::Services => "learn the names and states of all services",
            EventKind::Target => "learn when the device is updated",
            EventKind::Connection => "learn whether the device reaches its cloud",
            EventKind::UpdateGate => {
                "hold up updates of all apps, each for an hour at most unless `hold_minutes` says otherwise"
            }
            EventKind::HealthGate => {
                "undo updates of all apps, if it does not find the new release healthy in time"
            }
        }
    }
}

//! The typed actions that plugins provide.

use serde::{Deserialize, Serialize};

use crate::Capability;

/// A typed action that plugins provide. Its name in manifests is that of the interface that they export for it.
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
pub enum Action {
    /// Shows which device this is (`wit/identify.wit`).
    Identify,
    /// Configures the redirector of connections (`wit/proxy-redirector.wit`).
    ProxyRedirector,
    /// Writes the boot configuration of a family of boards (`wit/boot-config.wit`).
    BootConfig,
    /// Updates the operating system of a family of boards (`wit/os-update.wit`).
    OsUpdate,
    /// Is called for events on the device (`wit/events.wit`). Any number of plugins may provide it.
    Events,
    /// Performs the plugin's own actions, which its manifest names (`wit/action-provider.wit`).
    ActionProvider,
}

impl Action {
    /// Returns the capability that a plugin needs to call it in another plugin; `None` if only the host calls
    /// it.
    #[must_use]
    pub fn capability(self) -> Option<Capability> {
        match self {
            Action::Identify => Some(Capability::Identify),
            Action::ProxyRedirector => Some(Capability::ProxyRedirector),
            Action::BootConfig | Action::OsUpdate | Action::Events | Action::ActionProvider => None,
        }
    }

    /// Returns whether one plugin of a device provides it for all callers.
    #[must_use]
    pub fn has_one_provider(self) -> bool {
        !matches!(self, Action::Events | Action::ActionProvider)
    }
}

//! The capabilities that a manifest can ask for and a policy can grant.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a plugin may reach beside its own memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Reads what the supervisor knows of the device.
    Device,
    /// A small store of the plugin's own.
    Store,
    /// The LEDs of the device.
    Led,
    /// The units of the host that the policy names.
    Units,
    /// The host's journal.
    Journal,
    /// Has another plugin identify the device.
    Identify,
    /// Has another plugin configure the redirector of connections.
    ProxyRedirector,
    /// Reads and sets the records that the cloud keeps of this device.
    Cloud,
    /// The update locks of all apps.
    UpdateLock,
    /// With `update-lock`: overrides locks that services hold. A policy gives it; no import stands for it.
    UpdateLockForce,
    /// Reads and sets the host's name.
    HostName,
    /// The time of day and a clock that only goes forward (`wasi:clocks`).
    Clock,
    /// Random numbers (`wasi:random`).
    Random,
    /// The folders that the policy names (`wasi:filesystem`).
    Files,
}

impl Capability {
    /// All that there are.
    pub const ALL: [Capability; 14] = [
        Capability::Device,
        Capability::Store,
        Capability::Led,
        Capability::Units,
        Capability::Journal,
        Capability::Identify,
        Capability::ProxyRedirector,
        Capability::Cloud,
        Capability::UpdateLock,
        Capability::UpdateLockForce,
        Capability::HostName,
        Capability::Clock,
        Capability::Random,
        Capability::Files,
    ];

    /// The name in manifests and policies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Capability::Device => "device",
            Capability::Store => "store",
            Capability::Led => "led",
            Capability::Units => "units",
            Capability::Journal => "journal",
            Capability::Identify => "identify",
            Capability::ProxyRedirector => "proxy-redirector",
            Capability::Cloud => "cloud",
            Capability::UpdateLock => "update-lock",
            Capability::UpdateLockForce => "update-lock-force",
            Capability::HostName => "host-name",
            Capability::Clock => "clock",
            Capability::Random => "random",
            Capability::Files => "files",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_are_written() {
        for capability in Capability::ALL {
            assert_eq!(serde_json::to_value(capability).unwrap(), capability.name());
        }
    }
}

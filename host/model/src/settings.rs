//! The effective settings from a target's variables, typed (docs/spec/device.md#config-variables). An unreadable value
//! is replaced by its default here, and [`crate::config_variables::problems`] describes it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::config_variables::{flag, number, text};

/// The effective settings of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The time between two polls of the cloud; no back-off is longer.
    pub poll_interval: Duration,
    /// The maximum duration of one phase of a request to the cloud.
    pub request_timeout: Duration,
    /// Whether the device requests its target when it starts and when it is triggered.
    pub instant_updates: bool,
    /// Whether the connection to the cloud is checked, and is part of the device's health.
    pub connectivity_check: bool,
    /// Whether the output of services is sent to the cloud.
    pub log_upload: bool,
    /// Whether the host's VPN is on.
    pub vpn: bool,
    /// Whether all update locks are overridden.
    pub override_locks: bool,
    /// Whether the state report contains hardware metrics.
    pub hardware_metrics: bool,
    /// Whether images should be downloaded as differences; full ones are pulled regardless
    /// (docs/spec/device.md#deltas).
    pub delta: bool,
    /// Who can reach the host over the network.
    pub firewall: FirewallMode,
    /// Whether the host announces its name on the local network.
    pub discoverable: bool,
    /// The time in which a new release has to become healthy, after which the device returns to the previous one;
    /// `None` means no check (docs/spec/device.md#release-health).
    pub release_health_time: Option<Duration>,
    /// The time in which a new version of the operating system has to become healthy
    /// (docs/spec/device.md#os-update-health).
    pub os_health_time: Duration,
}

/// Who can reach the host over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum FirewallMode {
    /// Filtered, whatever services there are.
    On,
    /// Not filtered.
    Off,
    /// On if a service is in the host's network.
    Auto,
}

impl Settings {
    /// Reads the settings from these variables.
    #[must_use]
    pub fn from_variables(variables: &BTreeMap<String, String>) -> Self {
        let milliseconds = |key| {
            let number = u64::try_from(number(variables, key));
            Duration::from_millis(number.unwrap_or_default())
        };
        let flag = |key| flag(variables, key);
        Settings {
            poll_interval: milliseconds("SUPERVISOR_POLL_INTERVAL"),
            request_timeout: milliseconds("SUPERVISOR_API_REQUEST_TIMEOUT"),
            instant_updates: flag("SUPERVISOR_INSTANT_UPDATE_TRIGGER"),
            connectivity_check: flag("SUPERVISOR_CONNECTIVITY_CHECK"),
            log_upload: flag("SUPERVISOR_LOG_CONTROL"),
            vpn: flag("SUPERVISOR_VPN_CONTROL"),
            override_locks: flag("SUPERVISOR_OVERRIDE_LOCK"),
            hardware_metrics: flag("SUPERVISOR_HARDWARE_METRICS"),
            delta: flag("SUPERVISOR_DELTA"),
            firewall: match &*text(variables, "HOST_FIREWALL_MODE") {
                "on" => FirewallMode::On,
                "auto" => FirewallMode::Auto,
                _ => FirewallMode::Off,
            },
            discoverable: flag("HOST_DISCOVERABILITY"),
            release_health_time: Some(milliseconds("SUPERVISOR_UPDATE_HEALTH_TIME"))
                .filter(|time| !time.is_zero()),
            os_health_time: milliseconds("SUPERVISOR_OS_UPDATE_HEALTH_TIME"),
        }
    }
}

impl Default for Settings {
    /// Returns the settings without any variable.
    fn default() -> Self {
        Settings::from_variables(&BTreeMap::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_variable_all_has_the_default_that_is_written_down() {
        let settings = Settings::default();
        assert_eq!(settings.poll_interval, Duration::from_secs(900));
        assert_eq!(settings.request_timeout, Duration::from_secs(59));
        assert!(settings.instant_updates && settings.connectivity_check);
        assert!(settings.log_upload && settings.vpn && settings.hardware_metrics);
        assert!(!settings.override_locks && settings.discoverable);
        assert_eq!(settings.firewall, FirewallMode::Off);
        assert!(!settings.delta);
        assert_eq!(settings.release_health_time, None);
        assert_eq!(settings.os_health_time, Duration::from_secs(900));
    }

    #[test]
    fn variables_change_it() {
        let variables = [
            ("SUPERVISOR_POLL_INTERVAL", "60000"),
            ("SUPERVISOR_VPN_CONTROL", "off"),
            ("SUPERVISOR_DELTA", "1"),
            ("HOST_FIREWALL_MODE", "auto"),
            ("SUPERVISOR_UPDATE_HEALTH_TIME", "300000"),
        ];
        let variables = variables
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let settings = Settings::from_variables(&variables.collect());
        assert_eq!(settings.poll_interval, Duration::from_secs(60));
        assert!(!settings.vpn && settings.delta);
        assert_eq!(settings.firewall, FirewallMode::Auto);
        let time = settings.release_health_time;
        assert_eq!(time, Some(Duration::from_secs(300)));
    }
}

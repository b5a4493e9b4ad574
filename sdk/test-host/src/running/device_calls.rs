//! What the device itself asks of its plugins, apart from requests: events, gates and actions.

use std::time::Duration;

use plugin_protocol::{OwnActionError, ProxyAnswer, ProxyCall, ProxyError};
use plugins::{
    BootComparison, BootConfigError, BootSetting, CallerScope, GateVerdict, InstalledRelease,
    OsCall, OsStatus, OsUpdateError, PendingUpdate, PluginEvent, Postponement,
};

use super::RunningHost;

impl RunningHost {
    /// Makes the device identify itself, like `POST /v1/blink`.
    pub fn identify(&self) {
        self.plugins.identify(CallerScope::DeviceKey);
    }

    /// Makes the device identify itself for this time, and waits for the result.
    ///
    /// # Errors
    /// If no plugin provides `identify`, or the plugin fails or returns too early.
    pub async fn identify_for(&self, time: Duration) -> Result<(), String> {
        self.plugins
            .identify_for(CallerScope::DeviceKey, time)
            .await
    }

    /// Calls one function of `proxy-redirector`, as the stock plugin `host-config` does for `PATCH
    /// /v1/device/host-config`.
    ///
    /// # Errors
    /// If no plugin provides the action, or it fails.
    pub async fn call_proxy_redirector(&self, call: ProxyCall) -> Result<ProxyAnswer, ProxyError> {
        self.plugins
            .call_proxy_redirector(CallerScope::DeviceKey, "host-config", call)
            .await
    }

    /// Publishes this event to the plugins that ask for it. Returns at once.
    pub fn publish(&self, event: &PluginEvent) {
        self.plugins.publish(event);
    }

    /// Returns whether the plugins have answered, or failed at, each event that was published so far, and that of the
    /// start.
    #[must_use]
    pub fn events_are_answered(&self) -> bool {
        self.plugins.events_are_answered()
    }

    /// Asks the plugins that are gates whether this update may begin; `None` if nothing is in the way.
    pub async fn postponement(&self, update: &PendingUpdate) -> Option<Postponement> {
        self.plugins.postponement(update).await
    }

    /// Asks the plugins that are gates whether this release is healthy.
    pub async fn judge_release(&self, release: &InstalledRelease) -> GateVerdict {
        self.plugins.judge_release(release).await
    }

    /// Reads the settings of the board's boot configuration from the plugin that provides `boot-config`.
    ///
    /// # Errors
    /// If no plugin provides it, or the plugin fails.
    pub async fn boot_settings(&self) -> Result<Vec<BootSetting>, BootConfigError> {
        self.plugins.boot_settings().await
    }

    /// Compares the boot configuration with these settings.
    ///
    /// # Errors
    /// If no plugin provides the action, or it fails.
    pub async fn compare_boot_config(
        &self,
        target: Vec<BootSetting>,
    ) -> Result<BootComparison, BootConfigError> {
        self.plugins.compare_boot_config(target).await
    }

    /// Writes the boot configuration.
    ///
    /// # Errors
    /// Those of [`Self::compare_boot_config`].
    pub async fn set_boot_config(
        &self,
        target: Vec<BootSetting>,
    ) -> Result<BootComparison, BootConfigError> {
        self.plugins.set_boot_config(target).await
    }

    /// Reads the status of the operating system from the plugin that provides `os-update`.
    ///
    /// # Errors
    /// If no plugin provides it, or the plugin fails.
    pub async fn os_status(&self) -> Result<OsStatus, OsUpdateError> {
        self.plugins.os_status().await
    }

    /// Updates the operating system: calls one function of `os-update`.
    ///
    /// # Errors
    /// Those of [`Self::os_status`].
    pub async fn update_os(&self, call: OsCall) -> Result<(), OsUpdateError> {
        self.plugins.update_os(call).await
    }

    /// Calls an action of a plugin's own by its full name, such as `acme-rails/set`, as the plugin `caller` does while it
    /// serves a caller with this scope. No policy is consulted.
    ///
    /// # Errors
    /// The error that the calling plugin receives.
    pub async fn call_own_action(
        &self,
        scope: CallerScope,
        caller: &str,
        action: &str,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, OwnActionError> {
        self.plugins
            .call_own_action(scope, caller, action, input)
            .await
    }
}

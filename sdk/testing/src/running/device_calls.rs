//! What the device itself asks of its plugins, apart from requests: events, gates and actions.

use plugin_values::{
    BootComparison, BootSetting, GateVerdict, InstalledRelease, OsCall, OsStatus, PendingUpdate,
    PluginEvent, Postponement, ProxyCall, ProxyError, ProxyState, Redirection,
};

use super::RunningHost;
use crate::control::Command;

impl RunningHost {
    /// Makes the device identify itself, like `POST /v1/blink`.
    pub async fn identify(&self) {
        self.ask(&Command::Identify).await
    }

    /// Publishes this event to the plugins that ask for it. Returns at once.
    pub async fn publish(&self, event: &PluginEvent) {
        self.ask(&Command::Publish(event.clone())).await
    }

    /// Asks the plugins that are gates whether this update may begin; `None` if nothing is in the way.
    pub async fn postponement(&self, update: &PendingUpdate) -> Option<Postponement> {
        self.ask(&Command::Postponement(update.clone())).await
    }

    /// Asks the plugins that are gates whether this release is healthy.
    pub async fn judge_release(&self, release: &InstalledRelease) -> GateVerdict {
        self.ask(&Command::JudgeRelease(release.clone())).await
    }

    /// Reads the settings of the board's boot configuration from the plugin that provides `boot-config`.
    ///
    /// # Errors
    /// The reason why there are none, for people: no plugin provides the action, or it fails.
    pub async fn boot_settings(&self) -> Result<Vec<BootSetting>, String> {
        self.ask(&Command::BootSettings).await
    }

    /// Compares the boot configuration with these settings, each with a variable and its value.
    ///
    /// # Errors
    /// Those of [`Self::boot_settings`].
    pub async fn compare_boot_config(
        &self,
        target: &[(&str, &str)],
    ) -> Result<BootComparison, String> {
        let target = boot_settings(target);
        self.ask(&Command::BootConfig(target, false)).await
    }

    /// Writes the boot configuration.
    ///
    /// # Errors
    /// Those of [`Self::boot_settings`].
    pub async fn set_boot_config(&self, target: &[(&str, &str)]) -> Result<BootComparison, String> {
        let target = boot_settings(target);
        self.ask(&Command::BootConfig(target, true)).await
    }

    /// Reads the status of the operating system from the plugin that provides `os-update`.
    ///
    /// # Errors
    /// The reason why this failed, for people: no plugin provides the action, or it fails.
    pub async fn os_status(&self) -> Result<OsStatus, String> {
        self.ask(&Command::OsStatus).await
    }

    /// Updates the operating system: calls one function of `os-update`, other than `status`.
    ///
    /// # Errors
    /// Those of [`Self::os_status`].
    pub async fn update_os(&self, call: OsCall) -> Result<(), String> {
        self.ask(&Command::UpdateOs(call)).await
    }

    /// Reads the configuration of the proxy from the plugin that provides `proxy-redirector`.
    ///
    /// # Errors
    /// No plugin provides the action, or it fails.
    pub async fn proxy(&self) -> Result<ProxyState, ProxyError> {
        self.ask(&Command::ProxyRedirector(ProxyCall::Get)).await
    }

    /// Writes the configuration of the proxy, or removes it.
    ///
    /// # Errors
    /// [`ProxyError::Invalid`] if a value cannot be configured, and those of [`Self::proxy`].
    pub async fn set_proxy(&self, target: Option<Redirection>) -> Result<(), ProxyError> {
        self.ask(&Command::ProxyRedirector(ProxyCall::Set(target)))
            .await
    }

    /// Reads the addresses and subnets that are reached without the proxy.
    ///
    /// # Errors
    /// Those of [`Self::proxy`].
    pub async fn no_proxy(&self) -> Result<Vec<String>, ProxyError> {
        self.ask(&Command::ProxyRedirector(ProxyCall::NoProxy))
            .await
    }

    /// Replaces the addresses and subnets that are reached without the proxy.
    ///
    /// # Errors
    /// Those of [`Self::set_proxy`].
    pub async fn set_no_proxy(&self, addresses: &[&str]) -> Result<(), ProxyError> {
        let addresses = addresses.iter().map(|address| (*address).to_owned());
        let call = ProxyCall::SetNoProxy(addresses.collect());
        self.ask(&Command::ProxyRedirector(call)).await
    }

    /// Makes the program of the host use the configuration that was written.
    ///
    /// # Errors
    /// Those of [`Self::proxy`].
    pub async fn apply_proxy(&self) -> Result<(), ProxyError> {
        self.ask(&Command::ProxyRedirector(ProxyCall::Apply)).await
    }
}

fn boot_settings(settings: &[(&str, &str)]) -> Vec<BootSetting> {
    settings.iter().copied().map(BootSetting::from).collect()
}

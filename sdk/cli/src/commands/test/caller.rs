//! The caller of a step: whose key a request has, or for whom another plugin calls an action.

use plugin_test_host::CallerScope;
use serde::Deserialize;

/// `"device"`, `"local-mode"` or `{ app = 1, service = "main" }`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum CallerToml {
    Name(CallerName),
    Service { app: u64, service: String },
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CallerName {
    #[default]
    Device,
    LocalMode,
}

impl Default for CallerToml {
    fn default() -> Self {
        CallerToml::Name(CallerName::Device)
    }
}

impl From<CallerToml> for CallerScope {
    fn from(caller: CallerToml) -> CallerScope {
        match caller {
            CallerToml::Name(CallerName::Device) => CallerScope::DeviceKey,
            CallerToml::Name(CallerName::LocalMode) => CallerScope::LocalMode,
            CallerToml::Service { app, service } => CallerScope::Service {
                app_id: app,
                service,
            },
        }
    }
}

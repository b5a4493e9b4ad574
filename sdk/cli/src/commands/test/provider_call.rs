//! A call of a typed action that the plugin of a test provides, as the device makes it.
//!
//! ```toml
//! [[action]]
//! identify = { seconds = 1 }                  # the device identifies itself for this time, 1 to 15
//!
//! [[action]]
//! boot_config = "get"                         # or { compare = { … } }, { set = { … } }
//! answer = { json = { HOST_CONFIG_gpu_mem = "64" } }
//!
//! [[action]]
//! proxy_redirector = { set = { proxy = { kind = "socks5", address = "10.0.0.9", port = 1080 } } }
//!                                             # or "get", "no-proxy", { set-no-proxy = […] }, "apply"
//!
//! [[action]]
//! os_update = "status"                        # or "activate", "commit", "roll-back", { stage = { source, version } }
//! answer = { json = { running = "1.0", committed = true } }
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use plugin_manifest::Action;
use plugin_test_host::protocol::{BootSetting, ProxyAnswer, ProxyCall, ProxyError};
use plugin_test_host::{BootComparison, OsCall, RunningHost};
use serde::Deserialize;
use serde_json::{Value, json};

use super::action_outcome::{ActionOutcome, ExpectedOutcome, ExpectedOutput};
use crate::action_bytes::ActionBytes;
use crate::proxy_toml::{TargetToml, state_json};

/// How long the device identifies itself on a request, in seconds: a test need not wait longer.
const IDENTIFY_SECONDS: u64 = 15;

pub(super) enum ProviderCall {
    Identify(Duration),
    Boot(BootCallToml),
    Proxy(ProxyCall),
    Os(OsCall),
}

/// The keys of `[[action]]` of which a call has one.
#[derive(Debug, Default)]
pub(super) struct ProviderKeys {
    pub(super) identify: Option<IdentifyToml>,
    pub(super) boot_config: Option<BootCallToml>,
    pub(super) proxy_redirector: Option<ProxyCallToml>,
    pub(super) os_update: Option<OsCall>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IdentifyToml {
    seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum BootCallToml {
    Get,
    Compare(BTreeMap<String, String>),
    Set(BTreeMap<String, String>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ProxyCallToml {
    Get,
    Set(TargetToml),
    NoProxy,
    SetNoProxy(Vec<String>),
    Apply,
}

impl ProviderKeys {
    /// Returns the call that one of the keys describes; `None` if there is none of them.
    ///
    /// # Errors
    /// There is more than one, or a value that no call has.
    pub(super) fn into_call(self) -> Result<Option<ProviderCall>> {
        let ProviderKeys {
            identify,
            boot_config,
            proxy_redirector,
            os_update,
        } = self;
        let identify = identify.map(IdentifyToml::into_call).transpose()?;
        let proxy = proxy_redirector.map(ProxyCallToml::into_call).transpose()?;
        let calls = [
            identify,
            boot_config.map(ProviderCall::Boot),
            proxy,
            os_update.map(ProviderCall::Os),
        ];
        let mut calls = calls.into_iter().flatten();
        match (calls.next(), calls.next()) {
            (Some(first), Some(second)) => bail!(
                "it has `{}` and `{}`, but it is one call",
                first.key(),
                second.key()
            ),
            (call, _) => Ok(call),
        }
    }
}

impl ProviderCall {
    pub(super) fn action(&self) -> Action {
        match self {
            ProviderCall::Identify(_) => Action::Identify,
            ProviderCall::Boot(_) => Action::BootConfig,
            ProviderCall::Proxy(_) => Action::ProxyRedirector,
            ProviderCall::Os(_) => Action::OsUpdate,
        }
    }

    /// Returns the key of the call in the file of a test.
    pub(super) fn key(&self) -> String {
        self.action().to_string().replace('-', "_")
    }

    /// Returns whether the plugin can refuse a value, rather than fail.
    pub(super) fn has_refusals(&self) -> bool {
        matches!(self, ProviderCall::Proxy(_))
    }

    /// Calls the plugin on the device.
    pub(super) async fn outcome(&self, host: &RunningHost) -> ActionOutcome {
        let done = match self {
            ProviderCall::Identify(time) => {
                let shown = host.identify_for(*time).await;
                shown.map(|()| Vec::new())
            }
            ProviderCall::Boot(call) => boot_outcome(host, call).await,
            ProviderCall::Proxy(call) => return proxy_outcome(host, call.clone()).await,
            ProviderCall::Os(OsCall::Status) => {
                let status = host.os_status().await;
                let json = status.map(|status| bytes_of(serde_json::to_value(status)));
                json.map_err(|error| error.to_string())
            }
            ProviderCall::Os(call) => {
                let done = host.update_os(call.clone()).await;
                done.map(|()| Vec::new()).map_err(|error| error.to_string())
            }
        };
        match done {
            Ok(output) => ActionOutcome::Output(output),
            Err(error) => ActionOutcome::Failed(error),
        }
    }
}

async fn boot_outcome(host: &RunningHost, call: &BootCallToml) -> Result<Vec<u8>, String> {
    let compared = match call {
        BootCallToml::Get => {
            let settings = host.boot_settings().await;
            return match settings {
                Ok(settings) => settings_json(settings),
                Err(error) => Err(error.to_string()),
            };
        }
        BootCallToml::Compare(target) => host.compare_boot_config(boot_settings(target)).await,
        BootCallToml::Set(target) => host.set_boot_config(boot_settings(target)).await,
    };
    let json = compared.map(|comparison| bytes_of(Ok(comparison_json(comparison))));
    json.map_err(|error| error.to_string())
}

fn boot_settings(settings: &BTreeMap<String, String>) -> Vec<BootSetting> {
    let settings = settings.iter();
    settings
        .map(|(name, value)| (name.as_str(), value.as_str()).into())
        .collect()
}

/// Returns settings as one object. A provider that returns two settings with one name is wrong, and the object would
/// hide it.
fn settings_json(settings: Vec<BootSetting>) -> Result<Vec<u8>, String> {
    let mut object = serde_json::Map::new();
    for BootSetting { name, value } in settings {
        if object.contains_key(&name) {
            return Err(format!("it returned the setting `{name}` twice"));
        }
        object.insert(name, value.into());
    }
    Ok(Value::Object(object).to_string().into_bytes())
}

fn comparison_json(comparison: BootComparison) -> Value {
    let refused: BTreeMap<String, String> = comparison.refused.into_iter().collect();
    json!({
        "changes": comparison.changes,
        "refused": refused,
        "foreign": comparison.foreign,
        "needs_reboot": comparison.needs_reboot,
    })
}

async fn proxy_outcome(host: &RunningHost, call: ProxyCall) -> ActionOutcome {
    match host.call_proxy_redirector(call).await {
        Ok(ProxyAnswer::Done) => ActionOutcome::Output(Vec::new()),
        Ok(ProxyAnswer::Addresses(addresses)) => {
            ActionOutcome::Output(bytes_of(Ok(addresses.into())))
        }
        Ok(ProxyAnswer::State(state)) => ActionOutcome::Output(bytes_of(Ok(state_json(state)))),
        Err(ProxyError::Invalid(why)) => ActionOutcome::Refused(why),
        Err(ProxyError::Unavailable(why) | ProxyError::Other(why)) => ActionOutcome::Failed(why),
    }
}

/// Returns JSON without what is absent or empty, since TOML has no null.
fn bytes_of(value: serde_json::Result<Value>) -> Vec<u8> {
    let mut json = value.unwrap_or_default();
    without_absent(&mut json);
    json.to_string().into_bytes()
}

/// Allows an expected answer to be written with null or an empty list for what it does not have.
pub(super) fn leave_out_absent(answer: &mut ExpectedOutcome) {
    if let ExpectedOutcome::Output(ExpectedOutput {
        bytes: Some(ActionBytes::Json(json)),
        ..
    }) = answer
    {
        without_absent(json);
    }
}

fn without_absent(json: &mut Value) {
    let Value::Object(fields) = json else {
        return;
    };
    fields.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(inner) => {
            inner.retain(|_, value| !value.is_null());
            !inner.is_empty()
        }
        _ => true,
    });
}

impl IdentifyToml {
    fn into_call(self) -> Result<ProviderCall> {
        ensure!(
            (1..=IDENTIFY_SECONDS).contains(&self.seconds),
            "`seconds` of `identify` is {}, but must be from 1 to {IDENTIFY_SECONDS}",
            self.seconds
        );
        Ok(ProviderCall::Identify(Duration::from_secs(self.seconds)))
    }
}

impl ProxyCallToml {
    fn into_call(self) -> Result<ProviderCall> {
        let call = match self {
            ProxyCallToml::Get => ProxyCall::Get,
            ProxyCallToml::Set(target) => ProxyCall::Set(target.into_redirection()?),
            ProxyCallToml::NoProxy => ProxyCall::NoProxy,
            ProxyCallToml::SetNoProxy(addresses) => ProxyCall::SetNoProxy(addresses),
            ProxyCallToml::Apply => ProxyCall::Apply,
        };
        Ok(ProviderCall::Proxy(call))
    }
}

impl fmt::Display for ProviderCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = match self {
            ProviderCall::Identify(_) => return f.write_str("action identify"),
            ProviderCall::Boot(BootCallToml::Get) | ProviderCall::Proxy(ProxyCall::Get) => "get",
            ProviderCall::Boot(BootCallToml::Compare(_)) => "compare",
            ProviderCall::Boot(BootCallToml::Set(_)) | ProviderCall::Proxy(ProxyCall::Set(_)) => {
                "set"
            }
            ProviderCall::Proxy(ProxyCall::NoProxy) => "no-proxy",
            ProviderCall::Proxy(ProxyCall::SetNoProxy(_)) => "set-no-proxy",
            ProviderCall::Proxy(ProxyCall::Apply) => "apply",
            ProviderCall::Os(OsCall::Status) => "status",
            ProviderCall::Os(OsCall::Stage { .. }) => "stage",
            ProviderCall::Os(OsCall::Activate) => "activate",
            ProviderCall::Os(OsCall::Commit) => "commit",
            ProviderCall::Os(OsCall::RollBack) => "roll-back",
        };
        write!(f, "action {} {function}", self.action())
    }
}

#[cfg(test)]
mod tests;

//! A call that a plugin serves: of one of its own actions, as another plugin makes it, or of a typed action, as the device
//! makes it (`provider_call.rs`). `test` compares the outcome (`action_call.rs`), and `run` returns it.

use std::fmt;

use anyhow::{Error, Result, bail, ensure};
use plugin_manifest::{Manifest, check_name};
use plugin_test_host::{CallerScope, OsCall, RunningHost};
use serde::Deserialize;
use serde_json::Value;

use super::action_outcome::{ActionOutcome, ExpectedOutcome, check_input};
use super::caller::CallerToml;
use super::hardware::Edges;
use super::names::quoted;
use super::provider_call::{BootCallToml, IdentifyToml, ProviderCall, ProviderKeys, ProxyCallToml};
use crate::action_bytes::ActionBytes;
use crate::json_text::JsonText;

/// The plugin that calls an action if the author names none.
const OTHER_PLUGIN: &str = "other-plugin";

/// A call, and what happens to the hardware meanwhile.
pub(crate) struct PluginCall {
    pub(super) action: CalledAction,
    edges: Edges,
}

pub(super) enum CalledAction {
    Own(OwnCall),
    Typed(ProviderCall),
}

pub(super) struct OwnCall {
    /// A name from the plugin's manifest.
    name: String,
    input: Vec<u8>,
    /// The plugin that calls.
    plugin: String,
    /// For whom that plugin works.
    scope: CallerScope,
}

/// Either `name` is present or the key of a typed action, which goes with `edges` and `answer` only.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginCallToml {
    name: Option<String>,
    identify: Option<IdentifyToml>,
    boot_config: Option<BootCallToml>,
    proxy_redirector: Option<ProxyCallToml>,
    os_update: Option<OsCall>,
    text: Option<String>,
    json: Option<Value>,
    json_text: Option<JsonText>,
    base64: Option<String>,
    plugin: Option<String>,
    caller: Option<CallerToml>,
    #[serde(default)]
    edges: Edges,
    answer: Option<ExpectedOutcome>,
}

impl PluginCallToml {
    /// Returns the call, and the expected outcome if there is one.
    ///
    /// # Errors
    /// It is not one call, or a value of it is out of bounds.
    pub(crate) fn into_call(self) -> Result<(PluginCall, Option<ExpectedOutcome>)> {
        let PluginCallToml {
            name,
            identify,
            boot_config,
            proxy_redirector,
            os_update,
            text,
            json,
            json_text,
            base64,
            plugin,
            caller,
            edges,
            answer,
        } = self;
        let input = ActionBytes::from_keys(text, json, json_text, base64).map_err(Error::msg)?;
        let typed = ProviderKeys {
            identify,
            boot_config,
            proxy_redirector,
            os_update,
        };
        let action = match (name, typed.into_call()?) {
            (Some(name), None) => {
                let input = input.map(ActionBytes::into_bytes).unwrap_or_default();
                check_input(&input).map_err(Error::msg)?;
                let plugin = plugin.unwrap_or_else(|| OTHER_PLUGIN.to_owned());
                ensure!(
                    check_name(&plugin).is_ok(),
                    "its `plugin` is {plugin:?}: write the name of the plugin that calls, such as `rail-panel`"
                );
                let scope = caller.unwrap_or_default().into();
                CalledAction::Own(OwnCall {
                    name,
                    input,
                    plugin,
                    scope,
                })
            }
            (None, Some(call)) => {
                ensure!(
                    input.is_none() && plugin.is_none() && caller.is_none(),
                    "the device calls `{}`: it has no input, `plugin` or `caller`",
                    call.key()
                );
                CalledAction::Typed(call)
            }
            (Some(_), Some(call)) => {
                bail!("it has `name` and `{}`, but it is one call", call.key())
            }
            (None, None) => bail!(
                "it must have one of `name`, `identify`, `boot_config`, `proxy_redirector` and `os_update`"
            ),
        };
        Ok((PluginCall { action, edges }, answer))
    }
}

impl PluginCall {
    /// Calls the plugin. Returns the outcome and, if the plugin did not wait for an edge, which one.
    ///
    /// # Errors
    /// The plugin has no such action: what to write into its `plugin.toml`.
    pub(crate) async fn outcome(
        &self,
        host: &RunningHost,
        manifest: &Manifest,
    ) -> Result<(ActionOutcome, Option<String>), String> {
        if let Some(reason) = self.missing_from(manifest) {
            return Err(reason);
        }
        let call = self.action.outcome(host, manifest);
        Ok(self.edges.during(host, call).await)
    }

    /// Says why a plugin with this manifest cannot be called, and which actions it has; `None` if it can.
    fn missing_from(&self, manifest: &Manifest) -> Option<String> {
        match &self.action {
            CalledAction::Own(OwnCall { name, .. }) => (!manifest.actions.contains(name)).then(|| {
                format!(
                    "the plugin has no such action: add `{name}` to [actions] in plugin.toml, which has {}",
                    quoted(manifest.actions.iter())
                )
            }),
            CalledAction::Typed(call) => {
                let action = call.action();
                (!manifest.provides.contains(&action)).then(|| {
                    format!(
                        "the plugin does not provide it: add `{action}` to [provides] in plugin.toml"
                    )
                })
            }
        }
    }
}

impl CalledAction {
    async fn outcome(&self, host: &RunningHost, manifest: &Manifest) -> ActionOutcome {
        match self {
            CalledAction::Own(OwnCall {
                name,
                input,
                plugin,
                scope,
            }) => {
                let action = format!("{}/{name}", manifest.name);
                let (scope, input) = (scope.clone(), input.clone());
                let answer = host.call_own_action(scope, plugin, &action, input);
                answer.await.into()
            }
            CalledAction::Typed(call) => call.outcome(host).await,
        }
    }
}

impl fmt::Display for PluginCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            CalledAction::Own(OwnCall { name, .. }) => write!(f, "action {name}"),
            CalledAction::Typed(call) => write!(f, "{call}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_that_the_manifest_does_not_have_is_named_with_those_that_it_has() {
        let manifest = |more: &str| {
            let text = format!("name = \"a\"\nversion = \"1.0.0\"\ninterface = \"1.4.0\"\n{more}");
            Manifest::parse(&text).unwrap()
        };
        let all = manifest(
            "provides = [\"os-update\", \"action-provider\"]\nactions = [\"list\", \"set\"]\n",
        );
        let none = manifest("routes = [{ method = \"GET\", path = \"/v3/a\" }]\n");
        for (text, manifest, expected) in [
            ("name = \"set\"", &all, None),
            ("os_update = \"status\"", &all, None),
            (
                "proxy_redirector = \"apply\"",
                &all,
                Some("add `proxy-redirector` to [provides] in plugin.toml"),
            ),
            (
                "name = \"a/set\"",
                &all,
                Some("add `a/set` to [actions] in plugin.toml, which has only `list`, `set`"),
            ),
            (
                "name = \"set\"",
                &none,
                Some("add `set` to [actions] in plugin.toml, which has none"),
            ),
            (
                "os_update = \"status\"",
                &none,
                Some("add `os-update` to [provides] in plugin.toml"),
            ),
        ] {
            let written: PluginCallToml = toml::from_str(text).unwrap();
            let (call, _) = written.into_call().unwrap();
            let reason = call.missing_from(manifest);
            match expected {
                None => assert_eq!(reason, None, "{text}"),
                Some(expected) => assert!(reason.unwrap().ends_with(expected), "{text}"),
            }
        }
    }
}

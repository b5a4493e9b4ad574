//! A call that the plugin of a test serves: of one of its own actions, as another plugin makes it, or of a typed action, as
//! the device makes it (`provider_call.rs`).
//!
//! ```toml
//! [[action]]
//! name = "set"
//! json = { name = "5v", on = true }           # the input; or json_text, text, base64; without it, empty
//! plugin = "rail-panel"                       # the plugin that calls; without it, `other-plugin`
//! answer = { json = "rail-panel" }            # or json_text, text, base64, contains, refused, failed
//! ```

use std::fmt;

use anyhow::{Error, Result, bail, ensure};
use plugin_manifest::{Manifest, check_name};
use plugin_test_host::{CallerScope, RunningHost};
use serde::Deserialize;
use serde_json::Value;

use super::action_outcome::{ActionOutcome, ExpectedOutcome, check_input};
use super::caller::CallerToml;
use super::hardware::Edges;
use super::names::quoted;
use super::provider_call::{
    BootCallToml, IdentifyToml, OsCallToml, ProviderCall, ProviderKeys, ProxyCallToml,
    leave_out_absent,
};
use super::test_device::TestDevice;
use crate::action_bytes::ActionBytes;
use crate::json_text::JsonText;

/// The plugin that calls an action if the file names none.
const OTHER_PLUGIN: &str = "other-plugin";

/// A call and its expected outcome.
pub(crate) struct TestActionCall {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    call: Call,
    edges: Edges,
    answer: ExpectedOutcome,
}

enum Call {
    Own(OwnCall),
    Typed(ProviderCall),
}

struct OwnCall {
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
pub(super) struct ActionCallToml {
    name: Option<String>,
    identify: Option<IdentifyToml>,
    boot_config: Option<BootCallToml>,
    proxy_redirector: Option<ProxyCallToml>,
    os_update: Option<OsCallToml>,
    text: Option<String>,
    json: Option<Value>,
    json_text: Option<JsonText>,
    base64: Option<String>,
    plugin: Option<String>,
    caller: Option<CallerToml>,
    #[serde(default)]
    edges: Edges,
    #[serde(default)]
    answer: ExpectedOutcome,
}

impl TestActionCall {
    pub(super) fn new(written: ActionCallToml, line: usize) -> Result<TestActionCall> {
        let ActionCallToml {
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
            mut answer,
        } = written;
        let input = ActionBytes::from_keys(text, json, json_text, base64).map_err(Error::msg)?;
        let typed = ProviderKeys {
            identify,
            boot_config,
            proxy_redirector,
            os_update,
        };
        let call = match (name, typed.into_call()?) {
            (Some(name), None) => {
                let input = input.map(ActionBytes::into_bytes).unwrap_or_default();
                check_input(&input).map_err(Error::msg)?;
                let plugin = plugin.unwrap_or_else(|| OTHER_PLUGIN.to_owned());
                ensure!(
                    check_name(&plugin).is_ok(),
                    "its `plugin` is {plugin:?}: write the name of the plugin that calls, such as `rail-panel`"
                );
                let scope = caller.unwrap_or_default().into();
                Call::Own(OwnCall {
                    name,
                    input,
                    plugin,
                    scope,
                })
            }
            (None, Some(call)) => {
                let key = call.key();
                ensure!(
                    input.is_none() && plugin.is_none() && caller.is_none(),
                    "the device calls `{key}`: it has no input, `plugin` or `caller`"
                );
                ensure!(
                    call.has_refusals() || !matches!(answer, ExpectedOutcome::Refused(_)),
                    "the errors of `{key}` are `failed`, not `refused`"
                );
                leave_out_absent(&mut answer);
                Call::Typed(call)
            }
            (Some(_), Some(call)) => {
                bail!("it has `name` and `{}`, but it is one call", call.key())
            }
            (None, None) => bail!(
                "it must have one of `name`, `identify`, `boot_config`, `proxy_redirector` and `os_update`"
            ),
        };
        Ok(TestActionCall {
            line,
            call,
            edges,
            answer,
        })
    }

    /// Calls the plugin, and compares the outcome.
    pub(crate) async fn differences(&self, device: &TestDevice<'_>) -> Vec<String> {
        if let Some(reason) = self.missing_from(device.manifest) {
            return vec![reason];
        }
        let call = self.call.outcome(device);
        let (outcome, missed) = self.edges.during(device.host, call).await;
        let mut differences = self.answer.differences(&outcome);
        if !differences.is_empty() && matches!(outcome, ActionOutcome::Failed(_)) {
            differences.extend(last_error(device.host));
        }
        differences.extend(missed);
        differences
    }

    /// Says why a plugin with this manifest cannot be called, and which actions it has; `None` if it can.
    fn missing_from(&self, manifest: &Manifest) -> Option<String> {
        match &self.call {
            Call::Own(OwnCall { name, .. }) => (!manifest.actions.contains(name)).then(|| {
                format!(
                    "the plugin has no such action: add `{name}` to [actions] in plugin.toml, which has {}",
                    quoted(manifest.actions.iter())
                )
            }),
            Call::Typed(call) => {
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

impl Call {
    async fn outcome(&self, device: &TestDevice<'_>) -> ActionOutcome {
        let host = device.host;
        match self {
            Call::Own(OwnCall {
                name,
                input,
                plugin,
                scope,
            }) => {
                let action = format!("{}/{name}", device.manifest.name);
                let (scope, input) = (scope.clone(), input.clone());
                let answer = host.call_own_action(scope, plugin, &action, input);
                answer.await.into()
            }
            Call::Typed(call) => call.outcome(host).await,
        }
    }
}

/// Returns the plugin's last error, as `GET /v3/plugins` shows it: for the author, it says more than an answer does.
fn last_error(host: &RunningHost) -> Option<String> {
    let report = host.report();
    let error = report[0]["lastError"].as_str()?;
    Some(format!("its last error: {error}"))
}

impl fmt::Display for TestActionCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.call {
            Call::Own(OwnCall { name, .. }) => write!(f, "action {name}"),
            Call::Typed(call) => write!(f, "{call}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use plugin_test_host::protocol::ACTION_BYTES;

    use super::*;

    fn call(text: &str) -> Result<TestActionCall> {
        TestActionCall::new(toml::from_str(text)?, 1)
    }

    #[test]
    fn what_is_not_a_call_is_refused() {
        let long = format!(
            "name = \"set\"\ntext = \"{}\"",
            "x".repeat(ACTION_BYTES + 1)
        );
        for (text, expected) in [
            (
                "",
                "it must have one of `name`, `identify`, `boot_config`, `proxy_redirector` and `os_update`",
            ),
            (
                "name = \"set\"\nos_update = \"status\"",
                "it has `name` and `os_update`, but it is one call",
            ),
            (
                "boot_config = \"get\"\nproxy_redirector = \"get\"",
                "it has `boot_config` and `proxy_redirector`, but it is one call",
            ),
            (
                "identify = { seconds = 16 }",
                "`seconds` of `identify` is 16, but must be from 1 to 15",
            ),
            ("identify = { seconds = 0 }", "must be from 1 to 15"),
            ("boot_config = \"read\"", "unknown variant `read`"),
            (
                "proxy_redirector = { set = { dns = { address = \"a\", port = 53 } } }",
                "its `set` has `dns` without `proxy`",
            ),
            (
                "proxy_redirector = { set = { proxy = { kind = \"socks\", address = \"a\", port = 1 } } }",
                "unknown variant `socks`",
            ),
            (
                "boot_config = \"get\"\nanswer = { refused = \"a\" }",
                "the errors of `boot_config` are `failed`, not `refused`",
            ),
            ("os_update = \"reboot\"", "unknown variant `reboot`"),
            ("os_update = { stage = {} }", "missing field `source`"),
            (
                "os_update = \"commit\"\njson = 1",
                "it has no input, `plugin` or `caller`",
            ),
            (
                "os_update = \"commit\"\nplugin = \"a\"",
                "it has no input, `plugin` or `caller`",
            ),
            (
                "os_update = \"commit\"\nanswer = { refused = \"a\" }",
                "are `failed`, not `refused`",
            ),
            (
                "name = \"set\"\ntext = \"a\"\nbase64 = \"\"",
                "it can have only one of `text`",
            ),
            (
                "name = \"set\"\nplugin = \"A/b\"",
                "its `plugin` is \"A/b\": write the name",
            ),
            ("name = \"set\"\nbody = \"a\"", "unknown field `body`"),
            (
                long.as_str(),
                "its input has 524289 bytes, but an action takes at most 524288",
            ),
        ] {
            let error = format!("{:#}", call(text).err().unwrap());
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }

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
            let reason = call(text).unwrap().missing_from(manifest);
            match expected {
                None => assert_eq!(reason, None, "{text}"),
                Some(expected) => assert!(reason.unwrap().ends_with(expected), "{text}"),
            }
        }
    }
}

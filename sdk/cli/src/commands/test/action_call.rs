//! A call that the plugin of a test serves: of one of its own actions, as another plugin makes it, or of a function of
//! `os-update`, as the device makes it.
//!
//! ```toml
//! [[action]]
//! name = "set"
//! json = { name = "5v", on = true }           # the input; or json_text, text, base64; without it, empty
//! plugin = "rail-panel"                       # the plugin that calls; without it, `other-plugin`
//! answer = { json = "rail-panel" }            # or json_text, text, base64, contains, refused, failed
//!
//! [[action]]
//! os_update = "status"                        # or activate, commit, roll-back, { stage = { source, version } }
//! answer = { json = { running = "1.0", committed = true } }
//! ```
//!
//! The other typed actions have no step: `identify` shows which device it is for 15 s and answers nothing, and only the
//! supervisor's own plugins provide the rest.

use std::fmt;

use anyhow::{Error, Result, bail, ensure};
use plugin_manifest::{Action, Manifest, check_name};
use plugin_test_host::{CallerScope, OsCall, OsStatus, RunningHost};
use serde::Deserialize;
use serde_json::Value;

use super::action_outcome::{ActionOutcome, ExpectedOutcome, ExpectedOutput, check_input};
use super::caller::CallerToml;
use super::hardware::Edges;
use super::names::quoted;
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
    Os(OsCall),
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

/// Either `name` is present or `os_update`, which goes with `edges` and `answer` only.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionCallToml {
    name: Option<String>,
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

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum OsCallToml {
    Status,
    Stage { source: String, version: String },
    Activate,
    Commit,
    RollBack,
}

impl TestActionCall {
    pub(super) fn new(written: ActionCallToml, line: usize) -> Result<TestActionCall> {
        let ActionCallToml {
            name,
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
        let call = match (name, os_update) {
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
                ensure!(
                    input.is_none() && plugin.is_none() && caller.is_none(),
                    "the device calls `os_update`: it has no input, `plugin` or `caller`"
                );
                ensure!(
                    !matches!(answer, ExpectedOutcome::Refused(_)),
                    "the errors of `os_update` are `failed`, not `refused`"
                );
                leave_out_null(&mut answer);
                Call::Os(call.into())
            }
            _ => bail!("it must have one of `name` and `os_update`"),
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
            Call::Os(_) => (!manifest.provides.contains(&Action::OsUpdate)).then(|| {
                "the plugin does not provide it: add `os-update` to [provides] in plugin.toml"
                    .to_owned()
            }),
        }
    }
}

impl Call {
    async fn outcome(&self, device: &TestDevice<'_>) -> ActionOutcome {
        let host = device.host;
        let done = match self {
            Call::Own(OwnCall {
                name,
                input,
                plugin,
                scope,
            }) => {
                let action = format!("{}/{name}", device.manifest.name);
                let (scope, input) = (scope.clone(), input.clone());
                let answer = host.call_own_action(scope, plugin, &action, input);
                return answer.await.into();
            }
            Call::Os(OsCall::Status) => host.os_status().await.map(|status| json_of(&status)),
            Call::Os(call) => host.update_os(call.clone()).await.map(|()| Vec::new()),
        };
        match done {
            Ok(output) => ActionOutcome::Output(output),
            Err(error) => ActionOutcome::Failed(error.to_string()),
        }
    }
}

/// Returns the plugin's last error, as `GET /v3/plugins` shows it: for the author, it says more than an answer does.
fn last_error(host: &RunningHost) -> Option<String> {
    let report = host.report();
    let error = report[0]["lastError"].as_str()?;
    Some(format!("its last error: {error}"))
}

/// Returns a status as JSON. What it does not have is left out, since TOML has no null.
fn json_of(status: &OsStatus) -> Vec<u8> {
    let mut json = serde_json::to_value(status).unwrap_or_default();
    without_null(&mut json);
    json.to_string().into_bytes()
}

/// Allows an expected status to be written with null for what it does not have.
fn leave_out_null(answer: &mut ExpectedOutcome) {
    if let ExpectedOutcome::Output(ExpectedOutput {
        bytes: Some(ActionBytes::Json(json)),
        ..
    }) = answer
    {
        without_null(json);
    }
}

fn without_null(json: &mut Value) {
    if let Value::Object(fields) = json {
        fields.retain(|_, value| !value.is_null());
    }
}

impl From<OsCallToml> for OsCall {
    fn from(call: OsCallToml) -> OsCall {
        match call {
            OsCallToml::Status => OsCall::Status,
            OsCallToml::Stage { source, version } => OsCall::Stage { source, version },
            OsCallToml::Activate => OsCall::Activate,
            OsCallToml::Commit => OsCall::Commit,
            OsCallToml::RollBack => OsCall::RollBack,
        }
    }
}

impl fmt::Display for TestActionCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = match &self.call {
            Call::Own(OwnCall { name, .. }) => return write!(f, "action {name}"),
            Call::Os(OsCall::Status) => "status",
            Call::Os(OsCall::Stage { .. }) => "stage",
            Call::Os(OsCall::Activate) => "activate",
            Call::Os(OsCall::Commit) => "commit",
            Call::Os(OsCall::RollBack) => "roll-back",
        };
        write!(f, "action os-update {function}")
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
            ("", "it must have one of `name` and `os_update`"),
            (
                "name = \"set\"\nos_update = \"status\"",
                "it must have one of `name` and `os_update`",
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

    #[test]
    fn an_absent_part_of_a_status_is_left_out_or_null() {
        let status = OsStatus {
            running: "1.0".to_owned(),
            committed: true,
            ..OsStatus::default()
        };
        let outcome = ActionOutcome::Output(json_of(&status));
        for (answer, is_as_expected) in [
            ("json = { running = \"1.0\", committed = true }", true),
            (
                "json_text = '{\"running\":\"1.0\",\"committed\":true,\"staged\":null}'",
                true,
            ),
            ("json = { running = \"1.0\", committed = false }", false),
            (
                "json = { running = \"1.0\", committed = true, staged = \"2.0\" }",
                false,
            ),
        ] {
            let call = call(&format!("os_update = \"status\"\nanswer = {{ {answer} }}")).unwrap();
            let differences = call.answer.differences(&outcome);
            assert_eq!(differences.is_empty(), is_as_expected, "{differences:?}");
        }
    }
}

//! A call that the plugin of a test serves (`plugin_call.rs`), and the outcome that it must have.
//!
//! ```toml
//! [[action]]
//! name = "set"
//! json = { name = "5v", on = true }           # the input; or json_text, text, base64; without it, empty
//! plugin = "rail-panel"                       # the plugin that calls; without it, `other-plugin`
//! answer = { json = "rail-panel" }            # or json_text, text, base64, contains, refused, failed
//! ```

use anyhow::{Result, ensure};
use plugin_test_host::RunningHost;

use super::action_outcome::{ActionOutcome, ExpectedOutcome};
use super::plugin_call::{CalledAction, PluginCall, PluginCallToml};
use super::provider_call::leave_out_absent;
use super::test_device::TestDevice;

/// A call and its expected outcome.
#[derive(derive_more::Display)]
#[display("{call}")]
pub(crate) struct TestActionCall {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    call: PluginCall,
    answer: ExpectedOutcome,
}

impl TestActionCall {
    pub(super) fn new(written: PluginCallToml, line: usize) -> Result<TestActionCall> {
        let (call, answer) = written.into_call()?;
        let mut answer = answer.unwrap_or_default();
        if let CalledAction::Typed(typed) = &call.action {
            ensure!(
                typed.has_refusals() || !matches!(answer, ExpectedOutcome::Refused(_)),
                "the errors of `{}` are `failed`, not `refused`",
                typed.key()
            );
            leave_out_absent(&mut answer);
        }
        Ok(TestActionCall { line, call, answer })
    }

    /// Calls the plugin, and compares the outcome.
    pub(crate) async fn differences(&self, device: &TestDevice<'_>) -> Vec<String> {
        let called = self.call.outcome(device.host, device.manifest).await;
        let (outcome, missed) = match called {
            Ok(called) => called,
            Err(reason) => return vec![reason],
        };
        let mut differences = self.answer.differences(&outcome);
        if !differences.is_empty() && matches!(outcome, ActionOutcome::Failed(_)) {
            differences.extend(last_error(device.host));
        }
        differences.extend(missed);
        differences
    }
}

/// Returns the plugin's last error, as `GET /v3/plugins` shows it: for the author, it says more than an answer does.
fn last_error(host: &RunningHost) -> Option<String> {
    let report = host.report();
    let error = report[0]["lastError"].as_str()?;
    Some(format!("its last error: {error}"))
}

#[cfg(test)]
mod tests {
    use plugin_test_host::protocol::ACTION_BYTES;

    use super::*;

    fn call(text: &str) -> Result<TestActionCall> {
        TestActionCall::new(toml::from_str(text)?, 1)
    }

    #[test]
    fn an_invalid_call_is_refused() {
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
}

//! An event on the device, for which a plugin is called. `test` compares the answer (`event.rs`), and `run` returns it.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use plugin_manifest::Manifest;
use plugin_test_host::{
    EventCall, GateVerdict, InstalledRelease, PendingUpdate, PluginEvent, RunningHost,
    ServiceChange, TargetProgress,
};
use serde::Deserialize;
use tokio::time::Instant;

use super::gate_answer::{ExpectedGateAnswer, GateAnswer};
use super::hardware::Edges;
use super::names::quoted;

/// The time limit of a plugin for an event. It is longer than any time limit of a call in tests.
const PATIENCE: Duration = Duration::from_secs(60);
const APP_UUID: &str = "0123456789abcdef0123456789abcdef";

/// An event, and what happens to the hardware meanwhile.
#[derive(derive_more::Display)]
#[display("event {}", call.kind())]
pub(crate) struct DeviceEvent {
    call: EventCall,
    edges: Edges,
}

/// The outcome of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EventOutcome {
    /// The answer of a gate.
    Gate(GateAnswer),
    /// The plugin has answered an event that is not for gates.
    Answered,
    /// The plugin failed at such an event, for this reason.
    Failed(String),
    /// The plugin did not answer such an event in time.
    Late(String),
}

/// Exactly one of these is present.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventToml {
    start: Option<bool>,
    schedule: Option<String>,
    services: Option<Vec<ChangeToml>>,
    target: Option<ProgressToml>,
    connection: Option<bool>,
    update_gate: Option<UpdateToml>,
    health_gate: Option<ReleaseToml>,
    #[serde(default)]
    edges: Edges,
    answer: Option<ExpectedGateAnswer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeToml {
    service: String,
    status: Option<String>,
    before: Option<String>,
    #[serde(default = "one")]
    app: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ProgressToml {
    Applying,
    Reached,
    Stopped,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateToml {
    #[serde(default = "one")]
    app: u64,
    #[serde(default)]
    services: Vec<String>,
    running_commit: Option<String>,
    target_commit: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseToml {
    #[serde(default = "one")]
    app: u64,
    #[serde(default)]
    services: Vec<String>,
    commit: String,
}

fn one() -> u64 {
    1
}

impl EventToml {
    /// Returns the event, and the expected answer if there is one.
    ///
    /// # Errors
    /// It is not one event.
    pub(crate) fn into_event(self) -> Result<(DeviceEvent, Option<ExpectedGateAnswer>)> {
        let notices = [
            self.start.map(PluginEvent::Start),
            self.schedule.map(PluginEvent::Schedule),
            self.services.map(|changes| {
                PluginEvent::Services(changes.into_iter().map(ServiceChange::from).collect())
            }),
            self.target.map(|progress| {
                PluginEvent::Target(match progress {
                    ProgressToml::Applying => TargetProgress::Applying,
                    ProgressToml::Reached => TargetProgress::Reached,
                    ProgressToml::Stopped => TargetProgress::Stopped,
                })
            }),
            self.connection.map(PluginEvent::Connection),
        ];
        let gates = [
            self.update_gate.map(|update| {
                EventCall::UpdateGate(PendingUpdate {
                    app_id: update.app,
                    app_uuid: APP_UUID.to_owned(),
                    services: update.services,
                    running_commit: update.running_commit,
                    target_commit: update.target_commit,
                })
            }),
            self.health_gate.map(|release| {
                EventCall::HealthGate(InstalledRelease {
                    app_id: release.app,
                    app_uuid: APP_UUID.to_owned(),
                    services: release.services,
                    commit: release.commit,
                })
            }),
        ];
        let notices = notices.into_iter().flatten().map(EventCall::Notice);
        let mut calls = notices.chain(gates.into_iter().flatten());
        let (Some(call), None) = (calls.next(), calls.next()) else {
            bail!(
                "it must have one of `start`, `schedule`, `services`, `target`, `connection`, `update_gate` and `health_gate`"
            );
        };
        let edges = self.edges;
        Ok((DeviceEvent { call, edges }, self.answer))
    }
}

impl DeviceEvent {
    /// Returns whether the plugin's answer counts.
    pub(super) fn is_for_gates(&self) -> bool {
        !matches!(self.call, EventCall::Notice(_))
    }

    /// Triggers the event. Returns the outcome and, if the plugin did not wait for an edge, which one.
    ///
    /// # Errors
    /// The plugin is not called for it: what to write into its `plugin.toml`.
    pub(crate) async fn outcome(
        &self,
        host: &RunningHost,
        manifest: &Manifest,
    ) -> Result<(EventOutcome, Option<String>), String> {
        if let Some(reason) = self.missing_from(manifest) {
            return Err(format!("the plugin is not called for it: {reason}"));
        }
        Ok(self.edges.during(host, self.happen(host)).await)
    }

    /// Says why a plugin with this manifest is not called for the event, and what it is called for; `None` if it is
    /// called.
    fn missing_from(&self, manifest: &Manifest) -> Option<String> {
        let kind = self.call.kind();
        let schedules = quoted(manifest.schedules.keys());
        if let EventCall::Notice(PluginEvent::Schedule(name)) = &self.call {
            let is_in = manifest.schedules.contains_key(name);
            return (!is_in).then(|| {
                format!("add `{name}` to [schedules] in plugin.toml, which has {schedules}")
            });
        }
        let kinds = manifest.event_kinds();
        (!kinds.contains(&kind)).then(|| {
            let events = quoted(manifest.events.iter());
            format!("add `{kind}` to `events` in plugin.toml, which has {events}")
        })
    }

    async fn happen(&self, host: &RunningHost) -> EventOutcome {
        EventOutcome::Gate(match &self.call {
            EventCall::UpdateGate(update) => match host.postponement(update).await {
                None => GateAnswer::GoOn,
                Some(postponement) => GateAnswer::Postpone(postponement.reason, postponement.delay),
            },
            EventCall::HealthGate(release) => match host.judge_release(release).await {
                GateVerdict::Healthy => GateAnswer::GoOn,
                GateVerdict::NotYet { reason, delay, .. } => GateAnswer::Postpone(reason, delay),
                GateVerdict::Unhealthy { reason, .. } => GateAnswer::Refuse(reason),
            },
            EventCall::Notice(event) => return publish(event, host).await,
        })
    }
}

impl From<ChangeToml> for ServiceChange {
    fn from(change: ChangeToml) -> ServiceChange {
        ServiceChange {
            app_id: change.app,
            service: change.service,
            status: change.status,
            before: change.before,
        }
    }
}

/// Waits until the plugin has answered the event of the device's start, if it subscribes to it. Returns how it failed there.
pub(crate) async fn until_started(host: &RunningHost) -> Result<Option<String>> {
    let report = host.report();
    let given = report[0]["events"].as_array();
    if given.is_none_or(|given| given.iter().all(|event| event != "start")) {
        return Ok(None);
    }
    until_answered(host, 1).await?;
    let report = host.report();
    let has_failed = report[0]["failures"].as_u64() > Some(0);
    let error = report[0]["lastError"].as_str().unwrap_or_default();
    Ok(has_failed.then(|| error.to_owned()))
}

async fn publish(event: &PluginEvent, host: &RunningHost) -> EventOutcome {
    let before = host.report();
    let count = |report: &serde_json::Value, what: &str| report[0][what].as_u64().unwrap_or(0);
    host.publish(event);
    if let Err(error) = until_answered(host, count(&before, "calls") + 1).await {
        return EventOutcome::Late(error.to_string());
    }
    let after = host.report();
    if count(&after, "failures") > count(&before, "failures") {
        let reason = after[0]["lastError"].as_str().unwrap_or_default();
        EventOutcome::Failed(reason.to_owned())
    } else {
        EventOutcome::Answered
    }
}

/// Waits until the only plugin of the device has been called this many times and has answered all events.
///
/// A call counts when it begins, and what the plugin reports in it, or how it fails, is known when it ends.
async fn until_answered(host: &RunningHost, times: u64) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while host.report()[0]["calls"].as_u64().unwrap_or(0) < times || !host.events_are_answered() {
        ensure!(
            Instant::now() < deadline,
            "the plugin did not answer it within {} s",
            PATIENCE.as_secs()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_the_manifest_does_not_have_is_named_with_those_that_it_has() {
        let manifest = |more: &str| {
            let text = format!("name = \"a\"\nversion = \"1.0.0\"\ninterface = \"1.4.0\"\n{more}");
            Manifest::parse(&text).unwrap()
        };
        let all = manifest(
            "provides = [\"events\"]\nevents = [\"start\", \"update-gate\"]\n[schedules]\nnightly = \"daily 03:30\"\nweekly = \"daily 04:30\"\n",
        );
        let none = manifest("routes = [{ method = \"GET\", path = \"/v3/a\" }]\n");
        for (text, manifest, expected) in [
            ("schedule = \"nightly\"", &all, None),
            ("start = true", &all, None),
            ("update_gate = {}", &all, None),
            (
                "schedule = \"night\"",
                &all,
                Some(
                    "add `night` to [schedules] in plugin.toml, which has only `nightly`, `weekly`",
                ),
            ),
            (
                "schedule = \"night\"",
                &none,
                Some("add `night` to [schedules] in plugin.toml, which has none"),
            ),
            (
                "connection = true",
                &all,
                Some(
                    "add `connection` to `events` in plugin.toml, which has only `start`, `update-gate`",
                ),
            ),
            (
                "start = true",
                &none,
                Some("add `start` to `events` in plugin.toml, which has none"),
            ),
        ] {
            let written: EventToml = toml::from_str(text).unwrap();
            let (event, _) = written.into_event().unwrap();
            let reason = event.missing_from(manifest);
            assert_eq!(reason.as_deref(), expected, "{text}");
        }
    }
}

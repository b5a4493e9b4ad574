//! An event on the device of a test, and the answer that the plugin must return.
//!
//! ```toml
//! [[event]]
//! update_gate = { services = ["press"] }      # or another field of `EventToml`
//! answer = { postpone = "the press is running", seconds = 60 }
//! ```

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use plugin_manifest::Manifest;
use plugin_test_host::{
    EventCall, GateVerdict, InstalledRelease, PendingUpdate, PluginEvent, RunningHost,
    ServiceChange, TargetProgress,
};
use serde::Deserialize;
use tokio::time::Instant;

use super::hardware::Edges;
use super::names::quoted;
use super::reason::ExpectedReason;

/// The time limit of a plugin for an event. It is longer than any time limit of a call in tests.
const PATIENCE: Duration = Duration::from_secs(60);
const APP_UUID: &str = "0123456789abcdef0123456789abcdef";

/// An event and its expected answer.
pub(crate) struct TestEvent {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    call: EventCall,
    edges: Edges,
    answer: AnswerToml,
}

/// Exactly one of these is present.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventToml {
    start: Option<bool>,
    schedule: Option<String>,
    services: Option<Vec<ChangeToml>>,
    target: Option<ProgressToml>,
    connection: Option<bool>,
    update_gate: Option<UpdateToml>,
    health_gate: Option<ReleaseToml>,
    #[serde(default)]
    edges: Edges,
    answer: Option<AnswerToml>,
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

/// The expected answer of a gate; if it is empty, the app may be disturbed or the release is healthy.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerToml {
    postpone: Option<ExpectedReason>,
    /// Compared if present.
    seconds: Option<u64>,
    refuse: Option<ExpectedReason>,
}

/// The answer of a gate.
#[derive(Debug, PartialEq, Eq)]
enum GateAnswer {
    GoOn,
    Postpone(String, Duration),
    Refuse(String),
}

impl TestEvent {
    pub(super) fn new(written: EventToml, line: usize) -> Result<TestEvent> {
        let notices = [
            written.start.map(PluginEvent::Start),
            written.schedule.map(PluginEvent::Schedule),
            written.services.map(|changes| {
                PluginEvent::Services(changes.into_iter().map(ServiceChange::from).collect())
            }),
            written.target.map(|progress| {
                PluginEvent::Target(match progress {
                    ProgressToml::Applying => TargetProgress::Applying,
                    ProgressToml::Reached => TargetProgress::Reached,
                    ProgressToml::Stopped => TargetProgress::Stopped,
                })
            }),
            written.connection.map(PluginEvent::Connection),
        ];
        let gates = [
            written.update_gate.map(|update| {
                EventCall::UpdateGate(PendingUpdate {
                    app_id: update.app,
                    app_uuid: APP_UUID.to_owned(),
                    services: update.services,
                    running_commit: update.running_commit,
                    target_commit: update.target_commit,
                })
            }),
            written.health_gate.map(|release| {
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
        let is_gate = !matches!(call, EventCall::Notice(_));
        ensure!(
            is_gate || written.answer.is_none(),
            "it has an `answer`, and only the answers to `update_gate` and `health_gate` count"
        );
        let answer = written.answer.unwrap_or_default();
        ensure!(
            answer.postpone.is_none() || answer.refuse.is_none(),
            "its answer can be one of `postpone` and `refuse`"
        );
        ensure!(
            answer.seconds.is_none() || answer.postpone.is_some(),
            "`seconds` of its answer goes with `postpone`"
        );
        Ok(TestEvent {
            line,
            call,
            edges: written.edges,
            answer,
        })
    }

    /// Triggers the event, and compares the answer. Events other than gates must not fail.
    pub(crate) async fn differences(&self, host: &RunningHost, manifest: &Manifest) -> Vec<String> {
        if let Some(reason) = self.missing_from(manifest) {
            return vec![format!("the plugin is not called for it: {reason}")];
        }
        let (mut differences, missed) = self.edges.during(host, self.happen(host)).await;
        differences.extend(missed);
        differences
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

    async fn happen(&self, host: &RunningHost) -> Vec<String> {
        let answer = match &self.call {
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
        };
        self.answer.differences(&answer).into_iter().collect()
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

async fn publish(event: &PluginEvent, host: &RunningHost) -> Vec<String> {
    let before = host.report();
    let count = |report: &serde_json::Value, what: &str| report[0][what].as_u64().unwrap_or(0);
    host.publish(event);
    if let Err(error) = until_answered(host, count(&before, "calls") + 1).await {
        return vec![error.to_string()];
    }
    let after = host.report();
    if count(&after, "failures") > count(&before, "failures") {
        let reason = after[0]["lastError"].as_str().unwrap_or_default();
        vec![format!("expected no failure, got {reason}")]
    } else {
        Vec::new()
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

impl AnswerToml {
    /// Describes in a sentence how the answer differs.
    fn differences(&self, answer: &GateAnswer) -> Option<String> {
        let is_as_expected = match (&self.postpone, &self.refuse, answer) {
            (Some(reason), None, GateAnswer::Postpone(given, delay)) => {
                reason.matches(given)
                    && self
                        .seconds
                        .is_none_or(|seconds| delay.as_secs() == seconds)
            }
            (None, Some(reason), GateAnswer::Refuse(given)) => reason.matches(given),
            (None, None, GateAnswer::GoOn) => true,
            _ => false,
        };
        (!is_as_expected).then(|| format!("expected {self}, got {answer}"))
    }
}

impl fmt::Display for AnswerToml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.postpone, &self.refuse, self.seconds) {
            (Some(reason), _, Some(seconds)) => {
                write!(f, "that it postpones by {seconds} s {reason}")
            }
            (Some(reason), _, None) => write!(f, "that it postpones {reason}"),
            (None, Some(reason), _) => write!(f, "that it refuses {reason}"),
            (None, None, _) => f.write_str("that it goes on"),
        }
    }
}

impl fmt::Display for GateAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateAnswer::GoOn => f.write_str("that it goes on"),
            GateAnswer::Postpone(reason, delay) => write!(
                f,
                "that it postpones by {} s with {reason:?}",
                delay.as_secs()
            ),
            GateAnswer::Refuse(reason) => write!(f, "that it refuses with {reason:?}"),
        }
    }
}

impl fmt::Display for TestEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}", self.call.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Result<TestEvent> {
        TestEvent::new(toml::from_str(text)?, 1)
    }

    #[test]
    fn what_does_not_make_an_event_is_refused() {
        for (text, expected) in [
            ("", "it must have one of `start`"),
            ("start = true\nconnection = true", "it must have one of"),
            ("start = true\nanswer = {}", "only the answers to"),
            ("health_gate = {}", "missing field `commit`"),
            (
                "update_gate = { services = [], force = true }",
                "unknown field `force`",
            ),
            ("target = \"gone\"", "unknown variant `gone`"),
            (
                "update_gate = {}\nanswer = { postpone = \"a\", refuse = \"b\" }",
                "can be one of",
            ),
            (
                "update_gate = {}\nanswer = { seconds = 9 }",
                "goes with `postpone`",
            ),
        ] {
            let error = format!("{:#}", event(text).err().unwrap());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

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
            let reason = event(text).unwrap().missing_from(manifest);
            assert_eq!(reason.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn an_answer_is_compared_by_what_is_expected_of_it() {
        let postponed = || GateAnswer::Postpone("it runs".to_owned(), Duration::from_secs(60));
        let refused = || GateAnswer::Refuse("it is blank".to_owned());
        for (expected, answer, difference) in [
            ("", GateAnswer::GoOn, None),
            ("postpone = \"it runs\"", postponed(), None),
            ("postpone = \"it runs\"\nseconds = 60", postponed(), None),
            ("refuse = \"it is blank\"", refused(), None),
            ("refuse = { contains = [\"blank\"] }", refused(), None),
            (
                "postpone = { contains = [\"runs\"] }\nseconds = 60",
                postponed(),
                None,
            ),
            (
                "refuse = { contains = [\"black\"] }",
                refused(),
                Some(
                    "expected that it refuses with a reason that contains \"black\", got that it refuses with \"it is blank\"",
                ),
            ),
            (
                "",
                postponed(),
                Some("expected that it goes on, got that it postpones by 60 s with \"it runs\""),
            ),
            (
                "postpone = \"it runs\"\nseconds = 30",
                postponed(),
                Some(
                    "expected that it postpones by 30 s with \"it runs\", got that it postpones by 60 s",
                ),
            ),
            (
                "refuse = \"it is black\"",
                refused(),
                Some("expected that it refuses with \"it is black\", got that it refuses"),
            ),
            (
                "refuse = \"a\"",
                GateAnswer::GoOn,
                Some("got that it goes on"),
            ),
        ] {
            let found = toml::from_str::<AnswerToml>(expected)
                .unwrap()
                .differences(&answer);
            match difference {
                None => assert_eq!(found, None, "{expected}"),
                Some(difference) => {
                    let found = found.unwrap();
                    assert!(found.contains(difference), "{expected}: {found}");
                }
            }
        }
    }
}

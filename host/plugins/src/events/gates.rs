//! The gates: plugins that decide whether an app may be disturbed now (docs/spec/device.md#locks-gates), and whether a
//! new release is healthy (docs/spec/device.md#release-health).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use plugin_manifest::EventKind;
use plugin_protocol::text::{LONGEST as LONGEST_TEXT, one_line};
use plugin_protocol::{EventAnswer, EventCall};
use plugin_values::{GateVerdict, InstalledRelease, PendingUpdate, Postponement};
use tokio::time::Instant;

use super::{Events, call_for_event};
use crate::loaded::LoadedPlugin;

/// How long a gate may take to answer. An update waits for the answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// When a gate that failed is asked again.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// The shortest and the longest time until a gate is asked again. A plugin that is removed in the meantime delays an
/// update for no longer than that.
const SHORTEST: u32 = 10;
const LONGEST: u32 = 900;
/// How long a plugin may delay an update in total if the policy does not say.
const HOLD_MINUTES: u32 = 60;
/// If a gate is asked this long after it was due, it is for another update.
const SAME_UPDATE: Duration = Duration::from_secs(3600);

/// How long each plugin has delayed the update of each app, until that begins. The keys are the plugin's name and the
/// app's uuid.
#[derive(Default)]
pub(super) struct Gates(Mutex<BTreeMap<(String, String), Hold>>);

#[derive(Debug, Clone, Copy)]
struct Hold {
    /// How long the plugin delayed the update before it last let it go on.
    earlier: Duration,
    /// Since when it delays the update; `None` if it lets it go on.
    since: Option<Instant>,
    /// When the gate is asked again.
    until: Instant,
}

impl Hold {
    fn new(now: Instant) -> Hold {
        Hold {
            earlier: Duration::ZERO,
            since: None,
            until: now,
        }
    }

    /// Returns how long the plugin has delayed the update in total.
    fn total(&self, now: Instant) -> Duration {
        let last = self.since.map(|since| now.saturating_duration_since(since));
        self.earlier.saturating_add(last.unwrap_or_default())
    }

    /// Records that the plugin lets the update go on. That is not the end of it: another gate, another app of the same
    /// update or an update lock may be in the way, and the plugin is asked again before the next attempt.
    fn go_on(&mut self, now: Instant) {
        self.earlier = self.total(now);
        self.since = None;
        self.until = now;
    }
}

impl Events {
    /// Asks all gates whether an app may be disturbed. If several postpone, the longest wait counts.
    pub(crate) async fn postponement(&self, update: &PendingUpdate) -> Option<Postponement> {
        let gates = self.gates(EventKind::UpdateGate);
        let call = EventCall::UpdateGate(update.clone());
        let answers = gates.iter().map(|plugin| ask(plugin, call.clone()));
        let answers = join_all(answers).await;
        let now = Instant::now();
        let mut longest: Option<Postponement> = None;
        for (plugin, answer) in gates.iter().zip(answers) {
            let postponement = self.gates.judge(plugin, update, answer, now);
            let is_longer = |other: &Postponement| {
                postponement
                    .as_ref()
                    .is_some_and(|this| this.delay > other.delay)
            };
            if longest.as_ref().is_none_or(is_longer) {
                longest = postponement.or(longest);
            }
        }
        longest
    }

    /// Records that the update of an app begins: the next one may be delayed for the whole time again.
    pub(crate) fn note_begun_update(&self, app_uuid: &str) {
        self.gates.forget(app_uuid);
    }

    /// Returns whether there are gates for releases.
    pub(crate) fn judges_releases(&self) -> bool {
        !self.gates(EventKind::HealthGate).is_empty()
    }

    /// Asks all gates whether a release is healthy. A refusal takes precedence, then the longest wait.
    pub(crate) async fn judge_release(&self, release: &InstalledRelease) -> GateVerdict {
        let gates = self.gates(EventKind::HealthGate);
        let call = EventCall::HealthGate(release.clone());
        let answers = gates.iter().map(|plugin| ask(plugin, call.clone()));
        let answers = join_all(answers).await;
        let names = gates.iter().map(|plugin| plugin.manifest.name.as_str());
        verdict(names.zip(answers))
    }
}

/// Combines the answers of several plugins.
fn verdict<'a>(answers: impl Iterator<Item = (&'a str, EventAnswer)>) -> GateVerdict {
    let mut verdict = GateVerdict::Healthy;
    for (plugin, answer) in answers {
        let plugin = plugin.to_owned();
        match answer {
            EventAnswer::GoOn => {}
            EventAnswer::Refuse { reason } => {
                let reason = one_line(&reason, LONGEST_TEXT);
                return GateVerdict::Unhealthy { plugin, reason };
            }
            EventAnswer::Postpone { reason, seconds } => {
                let delay = Duration::from_secs(seconds.clamp(SHORTEST, LONGEST).into());
                let is_longest = match &verdict {
                    GateVerdict::NotYet { delay: other, .. } => delay > *other,
                    _ => true,
                };
                if is_longest {
                    let reason = one_line(&reason, LONGEST_TEXT);
                    verdict = GateVerdict::NotYet {
                        plugin,
                        reason,
                        delay,
                    };
                }
            }
        }
    }
    verdict
}

async fn ask(plugin: &Arc<LoadedPlugin>, call: EventCall) -> EventAnswer {
    let gate = call.kind();
    let call = call_for_event(plugin, call);
    let failed = |reason: String| EventAnswer::Postpone {
        reason,
        seconds: u32::try_from(AFTER_FAILURE.as_secs()).unwrap_or(SHORTEST),
    };
    match tokio::time::timeout(ANSWERED_WITHIN, call).await {
        Ok(Ok(Ok(answer))) => answer,
        Ok(Ok(Err(reason))) => {
            plugin.failed_itself(&format!("the gate `{gate}` failed: {reason}"));
            failed(format!("it cannot say: {reason}"))
        }
        Ok(Err(reason)) => failed(format!("it failed: {reason}")),
        Err(_) => {
            let seconds = ANSWERED_WITHIN.as_secs();
            plugin.failed_itself(&format!(
                "the gate `{gate}` did not answer within {seconds} s"
            ));
            failed(format!("it did not answer within {seconds} s"))
        }
    }
}

impl Gates {
    /// Returns the postponement if the answer counts: a plugin can delay an update for no longer than the policy says.
    fn judge(
        &self,
        plugin: &LoadedPlugin,
        update: &PendingUpdate,
        answer: EventAnswer,
        now: Instant,
    ) -> Option<Postponement> {
        let minutes = plugin.context.grants.hold_minutes.unwrap_or(HOLD_MINUTES);
        let limit = Duration::from_secs(60 * u64::from(minutes));
        let name = &plugin.manifest.name;
        let verdict = self.hold(name, update, answer, limit, now);
        if let Verdict::PassedOver = verdict {
            tracing::warn!(
                plugin = name,
                app_id = %update.app_id,
                "the plugin `{name}` has held up the update of app {} for {minutes} minutes, which is as long as `hold_minutes` of the \
                 policy allows: the update continues",
                update.app_id
            );
        }
        match verdict {
            Verdict::GoOn | Verdict::PassedOver => None,
            Verdict::Wait(reason, delay) => Some(Postponement {
                plugin: name.clone(),
                reason,
                delay,
            }),
        }
    }

    fn hold(
        &self,
        plugin: &str,
        update: &PendingUpdate,
        answer: EventAnswer,
        limit: Duration,
        now: Instant,
    ) -> Verdict {
        let mut holds = self.0.lock();
        holds.retain(|_, hold| now < hold.until + SAME_UPDATE);
        let key = (plugin.to_owned(), update.app_uuid.clone());
        let (reason, seconds) = match answer {
            EventAnswer::GoOn => {
                if let Some(hold) = holds.get_mut(&key) {
                    hold.go_on(now);
                }
                return Verdict::GoOn;
            }
            EventAnswer::Postpone { reason, seconds } => (reason, seconds),
            // This is the answer to another question: the update waits for the shortest time.
            EventAnswer::Refuse { reason } => (reason, SHORTEST),
        };
        let delay = Duration::from_secs(seconds.clamp(SHORTEST, LONGEST).into());
        let hold = holds.entry(key).or_insert(Hold::new(now));
        hold.since.get_or_insert(now);
        let left = limit.saturating_sub(hold.total(now));
        if left.is_zero() {
            // The rest of the update is not delayed again.
            hold.until = now;
            return Verdict::PassedOver;
        }
        let delay = delay.min(left);
        hold.until = now + delay;
        Verdict::Wait(one_line(&reason, LONGEST_TEXT), delay)
    }

    /// Forgets how long the update of an app has been delayed.
    fn forget(&self, app_uuid: &str) {
        let mut holds = self.0.lock();
        holds.retain(|(_, app), _| app != app_uuid);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    GoOn,
    /// It has delayed the update for as long as it may.
    PassedOver,
    Wait(String, Duration),
}

#[cfg(test)]
mod tests;

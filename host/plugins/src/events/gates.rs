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
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn update() -> PendingUpdate {
        PendingUpdate {
            app_id: 1,
            app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
            services: vec!["main".to_owned()],
            running_commit: None,
            target_commit: None,
        }
    }

    fn later(seconds: u32) -> EventAnswer {
        EventAnswer::Postpone {
            reason: "the press\nis running".to_owned(),
            seconds,
        }
    }

    #[test]
    fn a_gate_is_queried_again_at_its_requested_time_within_bounds() {
        let gates = Gates::default();
        let now = Instant::now();
        for (seconds, expected) in [(0, 10), (30, 30), (u32::MAX, 900)] {
            let verdict = gates.hold("press", &update(), later(seconds), 60 * MINUTE, now);
            let Verdict::Wait(reason, delay) = verdict else {
                panic!("{verdict:?}");
            };
            assert_eq!(delay, Duration::from_secs(expected));
            assert!(!reason.contains('\n'), "{reason}");
        }
    }

    #[test]
    fn a_gate_holds_an_update_up_for_as_long_as_the_policy_allows_and_no_longer() {
        let gates = Gates::default();
        let begin = Instant::now();
        let hold = |at| gates.hold("press", &update(), later(900), 60 * MINUTE, begin + at);
        let waits = |verdict: Verdict| match verdict {
            Verdict::Wait(_, delay) => Some(delay),
            _ => None,
        };
        assert_eq!(waits(hold(Duration::ZERO)), Some(15 * MINUTE));
        assert_eq!(waits(hold(50 * MINUTE)), Some(10 * MINUTE));
        assert_eq!(hold(60 * MINUTE), Verdict::PassedOver);
        // The rest of the same update.
        assert_eq!(hold(61 * MINUTE), Verdict::PassedOver);
        // Much later it is another update, which may be delayed again.
        assert_eq!(waits(hold(200 * MINUTE)), Some(15 * MINUTE));
    }

    #[test]
    fn a_gate_has_its_time_for_each_app() {
        let gates = Gates::default();
        let begin = Instant::now();
        let other = PendingUpdate {
            app_uuid: "fedcba9876543210fedcba9876543210".to_owned(),
            ..update()
        };
        let hold =
            |update: &PendingUpdate, at| gates.hold("press", update, later(60), MINUTE, begin + at);
        assert!(matches!(hold(&update(), Duration::ZERO), Verdict::Wait(..)));
        assert_eq!(hold(&update(), MINUTE), Verdict::PassedOver);
        assert!(matches!(hold(&other, MINUTE), Verdict::Wait(..)));
        // And each gate has its own.
        let verdict = gates.hold("guard", &update(), later(60), MINUTE, begin + MINUTE);
        assert!(matches!(verdict, Verdict::Wait(..)), "{verdict:?}");
    }

    #[test]
    fn a_gate_that_lets_an_update_go_on_has_no_more_time_until_that_begins() {
        let gates = Gates::default();
        let begin = Instant::now();
        let limit = 3 * MINUTE;
        let at = |answer, minutes: u32| {
            let now = begin + minutes * MINUTE;
            gates.hold("press", &update(), answer, limit, now)
        };
        let delay = |verdict: Verdict| match verdict {
            Verdict::Wait(_, delay) => Some(delay.as_secs()),
            _ => None,
        };
        assert_eq!(delay(at(later(60), 0)), Some(60));
        assert_eq!(at(EventAnswer::GoOn, 1), Verdict::GoOn);
        // The update is locked until somebody removes the lock. That is not the plugin's time.
        assert_eq!(at(EventAnswer::GoOn, 30), Verdict::GoOn);
        assert_eq!(at(EventAnswer::GoOn, 80), Verdict::GoOn);
        assert_eq!(delay(at(later(900), 120)), Some(120));
        assert_eq!(at(EventAnswer::GoOn, 121), Verdict::GoOn);
        assert_eq!(delay(at(later(900), 122)), Some(60));
        assert_eq!(at(later(900), 123), Verdict::PassedOver);
        assert_eq!(at(EventAnswer::GoOn, 124), Verdict::GoOn);
        assert_eq!(at(later(900), 125), Verdict::PassedOver);
        // The next update may be held up for the whole time again.
        gates.forget("fedcba9876543210fedcba9876543210");
        assert_eq!(at(later(900), 126), Verdict::PassedOver);
        gates.forget(&update().app_uuid);
        assert_eq!(delay(at(later(60), 127)), Some(60));
        assert_eq!(at(EventAnswer::GoOn, 128), Verdict::GoOn);
        // So may one that is asked about much later.
        assert_eq!(delay(at(later(900), 188)), Some(180));
    }

    /// Asks about all apps of an update, or all gates, every 10 seconds: `answer` says which of them postpone it at which
    /// attempt. Returns for how long that goes on.
    fn hold_up(
        gates: &Gates,
        answers: [(&str, &PendingUpdate); 2],
        answer: impl Fn(usize, u32) -> bool,
    ) -> Duration {
        let begin = Instant::now();
        let attempts = 0_u32..1000;
        let waits = attempts.take_while(|attempt| {
            let now = begin + Duration::from_secs(10) * *attempt;
            let verdicts = answers.iter().enumerate().map(|(number, (plugin, app))| {
                let answer = if answer(number, *attempt) {
                    later(10)
                } else {
                    EventAnswer::GoOn
                };
                gates.hold(plugin, app, answer, 10 * MINUTE, now)
            });
            // All of them are asked, whatever the first one answers.
            let verdicts: Vec<_> = verdicts.collect();
            verdicts
                .iter()
                .any(|verdict| matches!(verdict, Verdict::Wait(..)))
        });
        Duration::from_secs(10) * u32::try_from(waits.count()).unwrap()
    }

    #[test]
    fn two_apps_or_two_gates_that_take_turns_hold_up_an_update_no_longer_than_both_may() {
        let other = PendingUpdate {
            app_uuid: "fedcba9876543210fedcba9876543210".to_owned(),
            ..update()
        };
        let one = update();
        for answers in [
            // An update of the operating system is asked about for each app.
            [("press", &one), ("press", &other)],
            [("press", &one), ("guard", &one)],
        ] {
            for turn in [1, 2, 7] {
                let takes_turns = |number: usize, attempt: u32| {
                    usize::try_from(attempt / turn).unwrap() % 2 == number
                };
                let held = hold_up(&Gates::default(), answers, takes_turns);
                assert!(
                    held > 19 * MINUTE && held <= 20 * MINUTE,
                    "{turn}: {held:?}"
                );
            }
            let both = hold_up(&Gates::default(), answers, |_, _| true);
            assert_eq!(both, 10 * MINUTE);
        }
    }

    #[test]
    fn a_policy_can_leave_a_gate_no_time() {
        let gates = Gates::default();
        let verdict = gates.hold(
            "press",
            &update(),
            later(60),
            Duration::ZERO,
            Instant::now(),
        );
        assert_eq!(verdict, Verdict::PassedOver);
    }

    #[test]
    fn of_several_gates_of_a_release_a_refusal_counts_and_then_the_longest_wait() {
        let refusal = || EventAnswer::Refuse {
            reason: "the press\nis stuck".to_owned(),
        };
        let found = |answers: Vec<(&'static str, EventAnswer)>| verdict(answers.into_iter());
        assert_eq!(found(vec![]), GateVerdict::Healthy);
        assert_eq!(found(vec![("a", EventAnswer::GoOn)]), GateVerdict::Healthy);
        for (seconds, expected) in [(0, 10), (90, 90), (u32::MAX, 900)] {
            let answers = vec![
                ("a", later(20)),
                ("b", later(seconds)),
                ("c", EventAnswer::GoOn),
            ];
            let GateVerdict::NotYet { plugin, delay, .. } = found(answers) else {
                panic!("{seconds}");
            };
            let expected = (if expected > 20 { "b" } else { "a" }, expected.max(20));
            assert_eq!((&*plugin, delay.as_secs()), expected);
        }
        let refused = found(vec![
            ("a", later(20)),
            ("b", refusal()),
            ("c", EventAnswer::GoOn),
        ]);
        let GateVerdict::Unhealthy { plugin, reason } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(plugin, "b");
        assert!(!reason.contains('\n'), "{reason}");
    }
}

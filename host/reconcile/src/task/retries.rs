//! Failures that are tried again: steps by their subject, and engines that do not answer
//! (docs/spec/device.md#retry).

use std::collections::BTreeMap;
use std::time::Duration;

use device_types::Moment;
use model::{ContainerId, EngineKind};
use plan::{Failure, Subject};
use tokio::time::Instant;

use crate::backoff;
use crate::config::Limits;
use crate::messages::StepFailure;
use crate::{HostComparison, UpdatePostponement};

/// Failures in a row, each with the time of the next attempt.
#[derive(Debug)]
pub(super) struct Retries {
    /// Steps, without those that may be tried at once.
    steps: BTreeMap<Subject, RetryState>,
    /// The engines that do not answer.
    engines: BTreeMap<EngineKind, RetryState>,
    /// The longest delay of a step.
    step_cap: Duration,
    /// The longest delay of an engine.
    engine_cap: Duration,
}

#[derive(Debug)]
struct RetryState {
    count: u32,
    reason: String,
    retry_at: Instant,
    /// The plugin that postpones it, if it is a postponement and not a failure.
    postponed_by: Option<String>,
    /// The container that could not be started because of an earlier start, and how many times in a row.
    stuck: Option<(ContainerId, u32)>,
}

/// A container that could not be started so many times in a row because of an earlier start is given up. The first few
/// refusals may end by themselves: Docker removes the record a moment after the process has ended.
const MOST_REFUSALS: u32 = 3;

impl RetryState {
    /// Returns the container that its engine keeps refusing to start.
    fn stuck_container(&self) -> Option<&ContainerId> {
        let (container, times) = self.stuck.as_ref()?;
        (*times >= MOST_REFUSALS).then_some(container)
    }
}

/// The number of failures in a row, and the current delay.
#[derive(Debug, Clone, Copy)]
pub(super) struct BackOff {
    pub count: u32,
    pub delay: Duration,
}

impl Retries {
    pub(super) fn new(limits: &Limits) -> Self {
        Retries {
            steps: BTreeMap::new(),
            engines: BTreeMap::new(),
            step_cap: limits.retry_cap,
            engine_cap: limits.engine_retry_cap,
        }
    }

    /// Records that a step failed. Its delay is never longer than the poll interval of the device.
    pub(super) fn step_failed(
        &mut self,
        subject: Subject,
        failure: &StepFailure,
        poll_interval: Duration,
    ) -> BackOff {
        let cap = self.step_cap.min(poll_interval);
        let stuck = failure.stuck_container.as_ref().map(|container| {
            let last = self
                .steps
                .get(&subject)
                .and_then(|last| last.stuck.as_ref());
            let times = match last {
                Some((of, times)) if of == container => times.saturating_add(1),
                _ => 1,
            };
            (container.clone(), times)
        });
        let reason = failure.reason.clone();
        fail(&mut self.steps, subject, reason, stuck, cap)
    }

    /// Records that a plugin postpones an update, for as long as the plugin says.
    pub(super) fn postponed(
        &mut self,
        subject: Subject,
        postponement: UpdatePostponement,
    ) -> BackOff {
        let count = self.steps.get(&subject);
        let count = count.map_or(1, |failure| failure.count + 1);
        let UpdatePostponement {
            plugin,
            reason,
            delay,
        } = postponement;
        let state = RetryState {
            count,
            reason,
            retry_at: Instant::now() + delay,
            postponed_by: Some(plugin),
            stuck: None,
        };
        self.steps.insert(subject, state);
        BackOff { count, delay }
    }

    /// Forgets the failures of a step, which may be tried at once.
    pub(super) fn forget_step(&mut self, subject: &Subject) {
        self.steps.remove(subject);
    }

    /// Forgets the failures of all steps, which may be tried at once.
    pub(super) fn forget_steps(&mut self) {
        self.steps.clear();
    }

    pub(super) fn has_failed_steps(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Returns why a step failed the last time, or is postponed; `None` if it may be tried at once.
    pub(super) fn reason_of(&self, subject: &Subject) -> Option<&str> {
        let failure = self.steps.get(subject)?;
        Some(&failure.reason)
    }

    /// Returns whether it is time to try a part of the host again.
    pub(super) fn host_is_due(&self, now: Instant) -> bool {
        self.steps.iter().any(|(subject, failure)| {
            matches!(subject, Subject::Host(_)) && failure.retry_at <= now
        })
    }

    /// Forgets the failures of parts of the host that a comparison shows to be as desired.
    pub(super) fn forget_parts_as_desired(&mut self, look: &HostComparison) {
        self.steps.retain(|subject, _| match subject {
            Subject::Host(part) => look.failed.contains_key(part) || look.differs.contains(part),
            _ => true,
        });
    }

    /// Returns the remaining delay of something that failed.
    pub(super) fn wait_of(&self, subject: &Subject, now: Instant) -> Option<Duration> {
        let failure = self.steps.get(subject)?;
        Some(failure.retry_at.saturating_duration_since(now))
    }

    /// Returns the failures of steps in the planner's form.
    pub(super) fn failures(&self, now: Instant) -> BTreeMap<Subject, Failure> {
        let failures = self.steps.iter().map(|(subject, failure)| {
            let wait = failure.retry_at.saturating_duration_since(now);
            let failure = Failure {
                reason: failure.reason.clone(),
                held: failure.retry_at > now,
                retry_at: Moment::after(wait),
                failures: failure.count,
                postponed_by: failure.postponed_by.clone(),
                stuck_container: failure.stuck_container().cloned(),
            };
            (subject.clone(), failure)
        });
        failures.collect()
    }

    /// Records that an engine could not be listed.
    pub(super) fn engine_failed(&mut self, engine: EngineKind, reason: String) -> BackOff {
        fail(&mut self.engines, engine, reason, None, self.engine_cap)
    }

    /// Records that an engine answers. Returns whether it did not before.
    pub(super) fn engine_answers(&mut self, engine: EngineKind) -> bool {
        self.engines.remove(&engine).is_some()
    }

    /// Returns whether the engine does not answer.
    pub(super) fn is_silent(&self, engine: EngineKind) -> bool {
        self.engines.contains_key(&engine)
    }

    pub(super) fn has_silent_engines(&self) -> bool {
        !self.engines.is_empty()
    }

    /// Returns whether the engine is silent, and its next attempt is not due yet.
    pub(super) fn engine_waits(&self, engine: EngineKind, now: Instant) -> bool {
        let failure = self.engines.get(&engine);
        failure.is_some_and(|failure| failure.retry_at > now)
    }

    /// Returns the silent engines whose next attempt is due.
    pub(super) fn engines_due(&self, now: Instant) -> impl Iterator<Item = EngineKind> {
        let engines = self.engines.iter();
        engines.filter_map(move |(engine, failure)| (failure.retry_at <= now).then_some(*engine))
    }

    /// Makes all attempts due at once; the counts of failures stay.
    pub(super) fn expire(&mut self, now: Instant) {
        let failures = self.steps.values_mut().chain(self.engines.values_mut());
        failures.for_each(|failure| failure.retry_at = now);
    }

    /// Returns the times of all next attempts.
    pub(super) fn times(&self) -> impl Iterator<Item = Instant> {
        let failures = self.steps.values().chain(self.engines.values());
        failures.map(|failure| failure.retry_at)
    }
}

fn fail<K: Ord>(
    failures: &mut BTreeMap<K, RetryState>,
    key: K,
    reason: String,
    stuck: Option<(ContainerId, u32)>,
    cap: Duration,
) -> BackOff {
    let count = failures.get(&key).map_or(1, |failure| failure.count + 1);
    let delay = backoff::delay(count, cap);
    let failure = RetryState {
        count,
        reason,
        retry_at: Instant::now() + delay,
        postponed_by: None,
        stuck,
    };
    failures.insert(key, failure);
    BackOff { count, delay }
}

#[cfg(test)]
mod tests {
    use model::ServiceKey;

    use super::*;

    const POLL: Duration = Duration::from_secs(900);

    fn fail_reboot(retries: &mut Retries, poll_interval: Duration) -> BackOff {
        retries.step_failed(Subject::Reboot, &StepFailure::new("locked"), poll_interval)
    }

    #[test]
    fn a_container_that_is_refused_three_times_in_a_row_is_stuck() {
        let service = || {
            Subject::Service(ServiceKey {
                app: "0123456789abcdef0123456789abcdef".parse().unwrap(),
                service: "web".parse().unwrap(),
            })
        };
        let refused = |id: &str| StepFailure {
            stuck_container: Some(id.parse().unwrap()),
            ..StepFailure::new("already exists")
        };
        let other = || StepFailure::new("out of memory");
        let cases = [
            (vec![refused("a"), refused("a")], None),
            (vec![refused("a"), refused("a"), refused("a")], Some("a")),
            (
                vec![refused("a"), refused("a"), other(), refused("a")],
                None,
            ),
            (vec![refused("a"), refused("a"), refused("b")], None),
        ];
        for (failures, expected) in cases {
            let mut retries = Retries::new(&Limits::default());
            for failure in &failures {
                retries.step_failed(service(), failure, POLL);
            }
            let failed = retries.failures(Instant::now());
            let stuck = failed[&service()].stuck_container.as_ref();
            assert_eq!(stuck.map(ContainerId::as_str), expected, "{failures:?}");
        }
    }

    #[test]
    fn failures_in_a_row_wait_longer_and_a_success_begins_anew() {
        let mut retries = Retries::new(&Limits::default());
        let first = fail_reboot(&mut retries, POLL);
        let second = fail_reboot(&mut retries, POLL);
        assert_eq!((first.count, second.count), (1, 2));
        assert!(second.delay > first.delay);
        retries.forget_step(&Subject::Reboot);
        assert_eq!(fail_reboot(&mut retries, POLL).count, 1);
    }

    #[test]
    fn what_is_forgotten_has_no_reason_and_other_steps_keep_theirs() {
        let mut retries = Retries::new(&Limits::default());
        fail_reboot(&mut retries, POLL);
        retries.step_failed(Subject::Os, &StepFailure::new("no space"), POLL);
        retries.forget_step(&Subject::Reboot);
        assert_eq!(retries.reason_of(&Subject::Reboot), None);
        assert_eq!(retries.reason_of(&Subject::Os), Some("no space"));
        assert!(retries.has_failed_steps());
        retries.forget_steps();
        assert_eq!(retries.reason_of(&Subject::Os), None);
        assert!(!retries.has_failed_steps());
    }

    #[test]
    fn a_step_waits_no_longer_than_the_poll_interval() {
        let mut retries = Retries::new(&Limits::default());
        let poll = Duration::from_millis(300);
        let delays = (0..20).map(|_| fail_reboot(&mut retries, poll).delay);
        assert!(delays.max().is_some_and(|longest| longest <= poll));
    }

    #[test]
    fn what_is_expired_is_due_at_once_and_keeps_its_count() {
        let mut retries = Retries::new(&Limits::default());
        fail_reboot(&mut retries, POLL);
        retries.engine_failed(EngineKind::Docker, "gone".to_owned());
        let now = Instant::now();
        assert!(retries.failures(now)[&Subject::Reboot].held);
        assert!(retries.engine_waits(EngineKind::Docker, now));
        assert_eq!(retries.engines_due(now).count(), 0);
        retries.expire(now);
        assert!(!retries.failures(now)[&Subject::Reboot].held);
        assert!(retries.engines_due(now).eq([EngineKind::Docker]));
        assert!(retries.times().all(|at| at == now));
        assert_eq!(fail_reboot(&mut retries, POLL).count, 2);
    }

    #[test]
    fn what_a_plugin_postpones_waits_for_as_long_as_it_says() {
        let mut retries = Retries::new(&Limits::default());
        fail_reboot(&mut retries, POLL);
        let postponement = UpdatePostponement {
            plugin: "press".to_owned(),
            reason: "the press is running".to_owned(),
            delay: Duration::from_secs(600),
        };
        let BackOff { count, delay } = retries.postponed(Subject::Reboot, postponement);
        assert_eq!((count, delay.as_secs()), (2, 600));
        let failure = &retries.failures(Instant::now())[&Subject::Reboot];
        assert_eq!(failure.postponed_by.as_deref(), Some("press"));
        fail_reboot(&mut retries, POLL);
        let failure = &retries.failures(Instant::now())[&Subject::Reboot];
        assert_eq!(failure.postponed_by, None);
    }

    #[test]
    fn an_engine_answers_again_once() {
        let mut retries = Retries::new(&Limits::default());
        retries.engine_failed(EngineKind::Wasm, "gone".to_owned());
        assert!(retries.is_silent(EngineKind::Wasm) && !retries.is_silent(EngineKind::Docker));
        assert!(retries.engine_answers(EngineKind::Wasm));
        assert!(!retries.engine_answers(EngineKind::Wasm));
        assert!(!retries.has_silent_engines());
    }
}

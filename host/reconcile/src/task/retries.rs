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
mod tests;

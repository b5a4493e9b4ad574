//! The trial of one release: whether it is healthy, by what is observed of its app and by the plugins' verdict.

use std::time::Duration;

use model::Commit;
use tokio::time::Instant;

use crate::ReleaseVerdict;

/// How long a release must stay healthy without a break before it counts as healthy. A service that exits and is
/// restarted looks healthy between two of its runs.
pub(super) const STEADY: Duration = Duration::from_secs(10);

/// A release that was installed a short while ago.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) commit: Commit,
    /// The start of its trial.
    began: Instant,
    /// Whether its time is stopped at the moment.
    is_paused: bool,
    steady_since: Option<Instant>,
    gate: GateState,
    /// The reason why it is not healthy yet.
    pub(super) reason: String,
    /// Whether its time is over with no release to go back to, and this was reported.
    pub(super) is_overdue: bool,
}

/// The plugins' verdict on a release.
#[derive(Debug, PartialEq, Eq)]
enum GateState {
    NotAsked,
    Asked,
    /// They are queried again at this time.
    AskAt(Instant),
    Passed,
    /// A plugin refuses it, for this reason.
    Refused(String),
}

/// The requirements for a new release.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrialRules {
    /// The time in which a release must become healthy.
    pub time: Duration,
    /// Whether plugins are queried.
    pub has_gates: bool,
}

/// The observed state of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppObservation {
    /// Whether a container of the release exists.
    pub has_begun: bool,
    /// Whether the whole release matches the target.
    pub is_whole: bool,
    /// Whether images are pulled for it, or an action of the API is under way: its time is stopped then.
    pub is_busy: bool,
    /// Whether all services run and are healthy; otherwise the problem, in one sentence.
    pub services: Result<(), String>,
}

/// What follows from an observation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Wait,
    Ask,
    Healthy,
    Ill,
}

impl Trial {
    pub(super) fn new(commit: Commit, now: Instant) -> Self {
        Trial {
            commit,
            began: now,
            is_paused: false,
            steady_since: None,
            gate: GateState::NotAsked,
            reason: String::new(),
            is_overdue: false,
        }
    }

    pub(super) fn judge(
        &mut self,
        seen: &AppObservation,
        rules: TrialRules,
        now: Instant,
    ) -> Judgement {
        let was_busy = std::mem::replace(&mut self.is_paused, seen.is_busy);
        if seen.is_busy || was_busy {
            self.began = now;
        }
        if seen.is_busy {
            self.steady_since = None;
            return Judgement::Wait;
        }
        if let GateState::Refused(reason) = &self.gate {
            self.reason.clone_from(reason);
            return Judgement::Ill;
        }
        let problem = match &seen.services {
            Err(reason) => Some(reason.clone()),
            Ok(()) if !seen.is_whole => Some("some of its services are missing".to_owned()),
            Ok(()) => None,
        };
        if let Some(reason) = problem {
            self.reason = reason;
            self.steady_since = None;
            if self.gate != GateState::Asked {
                self.gate = GateState::NotAsked;
            }
        } else {
            let since = *self.steady_since.get_or_insert(now);
            if self.gate == GateState::NotAsked {
                self.reason.clear();
            }
            let is_steady = now.saturating_duration_since(since) >= rules.steady();
            match self.gate {
                // A release that becomes healthy at the last moment may show that it stays so.
                _ if !is_steady => return Judgement::Wait,
                _ if !rules.has_gates => return Judgement::Healthy,
                GateState::Passed => return Judgement::Healthy,
                GateState::NotAsked => return Judgement::Ask,
                GateState::AskAt(at) if at <= now && now < self.began + rules.time => {
                    return Judgement::Ask;
                }
                _ => {}
            }
        }
        // Plugins answer a query within seconds.
        if now >= self.began + rules.time && self.gate != GateState::Asked {
            return Judgement::Ill;
        }
        Judgement::Wait
    }

    /// Records that the plugins are being queried.
    pub(super) fn begin_query(&mut self) {
        self.gate = GateState::Asked;
    }

    /// Records the plugins' verdict, if they were queried.
    pub(super) fn answered(&mut self, verdict: ReleaseVerdict, now: Instant) {
        if self.gate != GateState::Asked {
            return;
        }
        self.gate = match verdict {
            ReleaseVerdict::Healthy => GateState::Passed,
            ReleaseVerdict::NotYet { reason, delay } => {
                self.reason = reason;
                GateState::AskAt(now + delay)
            }
            ReleaseVerdict::Unhealthy { reason } => GateState::Refused(reason),
        };
    }

    /// Returns when its time is over, and why it does not count as healthy yet.
    pub(super) fn describe(&self, rules: TrialRules) -> (Instant, String) {
        let reason = if self.reason.is_empty() {
            "its services have not run for long enough".to_owned()
        } else {
            self.reason.clone()
        };
        (self.began + rules.time, reason)
    }

    /// Returns the times at which to judge again even if nothing has happened.
    pub(super) fn times(&self, rules: Option<TrialRules>) -> impl Iterator<Item = Instant> {
        let end = rules.map(|rules| self.began + rules.time);
        let steady = self.steady_since.zip(rules);
        let steady = steady.map(|(since, rules)| since + rules.steady());
        let question = match self.gate {
            GateState::AskAt(at) => Some(at),
            _ => None,
        };
        [end, steady, question].into_iter().flatten()
    }
}

impl TrialRules {
    fn steady(self) -> Duration {
        STEADY.min(self.time / 2)
    }
}

//! Whether the running version of the operating system is healthy: all services of the target run in it and pass their
//! checks for a while, and the plugins that judge releases find them healthy (docs/spec/device.md#os-update-health).

use std::collections::BTreeMap;
use std::time::Duration;

use device_types::Moment;
use model::AppUuid;
use plan::OsVerdict;
use tokio::time::Instant;

use crate::ReleaseVerdict;

/// How long all services must stay healthy without a break.
const STEADY: Duration = Duration::from_secs(10);

/// The trial of the running, uncommitted version.
#[derive(Debug)]
pub(super) struct OsTrial {
    /// The start of the trial.
    began: Instant,
    steady_since: Option<Instant>,
    /// The plugins' verdict on each app.
    gates: BTreeMap<AppUuid, GateState>,
    /// The reason why it is not healthy yet.
    reason: String,
    is_healthy: bool,
}

/// The plugins' verdict on an app.
#[derive(Debug, PartialEq, Eq)]
enum GateState {
    Asked,
    /// They are queried again at this time.
    AskAt(Instant),
    Passed,
    /// A plugin refuses it, for this reason.
    Refused(String),
}

/// The requirements for a new version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OsTrialRules {
    /// The duration of the trial.
    pub time: Duration,
    /// Whether plugins are queried.
    pub has_gates: bool,
}

/// The state of an app of the target in the trial.
#[derive(Debug, Clone)]
pub(crate) struct TrialApp {
    pub app: AppUuid,
    /// Whether all of its services run and are healthy; otherwise the problem, in one sentence.
    pub services: Result<(), String>,
}

/// The decision on a trial.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TrialOutcome {
    /// The plugins must be queried about these apps.
    Ask(Vec<AppUuid>),
    /// The version is healthy.
    Healthy,
    /// The version is not healthy, for this reason.
    Unhealthy(String),
}

impl OsTrial {
    pub(super) fn new(now: Instant) -> Self {
        OsTrial {
            began: now,
            steady_since: None,
            gates: BTreeMap::new(),
            reason: "its services have not been checked yet".to_owned(),
            is_healthy: false,
        }
    }

    pub(super) fn verdict(&self, rules: OsTrialRules) -> OsVerdict {
        if self.is_healthy {
            return OsVerdict::Healthy;
        }
        let left = (self.began + rules.time).saturating_duration_since(Instant::now());
        OsVerdict::Pending {
            until: Moment::after(left),
            reason: self.reason.clone(),
        }
    }

    pub(super) fn judge(
        &mut self,
        apps: &[TrialApp],
        rules: OsTrialRules,
        now: Instant,
    ) -> Option<TrialOutcome> {
        if self.is_healthy {
            return None;
        }
        self.gates
            .retain(|app, _| apps.iter().any(|it| it.app == *app));
        let problem = apps.iter().find_map(|app| app.services.clone().err());
        let ask = match problem {
            Some(problem) => {
                self.reason = problem;
                self.steady_since = None;
                // The answers to open queries still count.
                self.gates.retain(|_, gate| *gate == GateState::Asked);
                Vec::new()
            }
            None => {
                let since = *self.steady_since.get_or_insert(now);
                if now.saturating_duration_since(since) < rules.steady() {
                    "all services run, but not for long enough yet".clone_into(&mut self.reason);
                    Vec::new()
                } else if let Some(outcome) = self.judge_steady(apps, rules) {
                    return Some(outcome);
                } else {
                    self.to_ask(apps, now)
                }
            }
        };
        // Plugins answer a query within seconds.
        let is_open = self.gates.values().any(|gate| *gate == GateState::Asked);
        if now >= self.began + rules.time && !is_open {
            return Some(TrialOutcome::Unhealthy(self.reason.clone()));
        }
        for app in &ask {
            self.gates.insert(app.clone(), GateState::Asked);
        }
        (!ask.is_empty()).then_some(TrialOutcome::Ask(ask))
    }

    /// Decides what can be decided once the services have run for long enough.
    fn judge_steady(&mut self, apps: &[TrialApp], rules: OsTrialRules) -> Option<TrialOutcome> {
        let refusal = self.gates.values().find_map(|gate| match gate {
            GateState::Refused(reason) => Some(reason.clone()),
            _ => None,
        });
        if let Some(reason) = refusal {
            return Some(TrialOutcome::Unhealthy(reason));
        }
        let has_passed = |app: &TrialApp| self.gates.get(&app.app) == Some(&GateState::Passed);
        self.is_healthy = !rules.has_gates || apps.iter().all(has_passed);
        self.is_healthy.then_some(TrialOutcome::Healthy)
    }

    fn to_ask(&self, apps: &[TrialApp], now: Instant) -> Vec<AppUuid> {
        let is_due = |app: &&TrialApp| match self.gates.get(&app.app) {
            None => true,
            Some(GateState::AskAt(at)) => *at <= now,
            Some(_) => false,
        };
        let due = apps.iter().filter(is_due);
        due.map(|app| app.app.clone()).collect()
    }

    pub(super) fn answered(&mut self, app: &AppUuid, verdict: ReleaseVerdict, now: Instant) {
        let Some(gate) = self.gates.get_mut(app) else {
            return;
        };
        *gate = match verdict {
            ReleaseVerdict::Healthy => GateState::Passed,
            ReleaseVerdict::NotYet { reason, delay } => {
                self.reason = reason;
                GateState::AskAt(now + delay)
            }
            ReleaseVerdict::Unhealthy { reason } => GateState::Refused(reason),
        };
    }

    pub(super) fn times(&self, rules: OsTrialRules) -> impl Iterator<Item = Instant> {
        let end = (!self.is_healthy).then_some(self.began + rules.time);
        let steady = self.steady_since.map(|since| since + rules.steady());
        let questions = self.gates.values().filter_map(|gate| match gate {
            GateState::AskAt(at) => Some(*at),
            _ => None,
        });
        questions.chain(end).chain(steady)
    }
}

impl OsTrialRules {
    fn steady(self) -> Duration {
        STEADY.min(self.time / 2)
    }
}

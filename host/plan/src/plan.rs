//! The plan itself, and the walk over all apps that makes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use device_types::plan::Blocker;
use model::{AppUuid, DesiredApp, DesiredState};

use crate::app::plan_app;
use crate::host::{plan_host, plan_reboot};
use crate::images::{Pulls, remove_unused};
use crate::os::plan_os;
use crate::{CurrentState, Step, Subject, WaitingOn};

/// The steps to take now, and what cannot be done yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The steps to take now; all of them may run in parallel.
    pub steps: Vec<Step>,
    /// Empty when these steps, and those in flight, reach the target.
    pub waiting_on: Vec<WaitingOn>,
}

/// Whether a step about a subject may be planned now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    /// One is in flight.
    Busy,
    /// The last one failed, and the time of the next has not come.
    Held,
}

impl Plan {
    /// Looks whether a step about `subject` may be planned. What is held is what the plan waits for.
    pub(crate) fn gate(&mut self, current: &CurrentState, subject: &Subject) -> Gate {
        if current.is_busy(subject) {
            return Gate::Busy;
        }
        match current.failed.get(subject).filter(|failure| failure.held) {
            Some(failure) => {
                self.wait(subject.clone(), failure.blocker());
                Gate::Held
            }
            None => Gate::Open,
        }
    }

    /// Plans `step`, unless one about its subject is in flight or held.
    pub(crate) fn push(&mut self, current: &CurrentState, step: Step) {
        if self.gate(current, &step.subject()) == Gate::Open {
            self.steps.push(step);
        }
    }

    /// Says each thing once.
    pub(crate) fn wait(&mut self, subject: Subject, reason: Blocker) {
        let waiting = WaitingOn { subject, reason };
        if !self.waiting_on.contains(&waiting) {
            self.waiting_on.push(waiting);
        }
    }

    pub(crate) fn append(&mut self, mut other: Plan) {
        self.steps.append(&mut other.steps);
        self.waiting_on.append(&mut other.waiting_on);
    }

    /// Whether nothing is left to do: if nothing is in flight, the target is reached.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.steps.is_empty() && self.waiting_on.is_empty()
    }
}

/// Decides what to do next. Pure: the same two states give the same plan, and a state that matches the target gives
/// none.
///
/// No step is planned for a subject that is busy, nor for one whose failure is held.
#[must_use]
pub fn plan(current: &CurrentState, desired: &DesiredState) -> Plan {
    let mut pulls = Pulls::default();
    let mut rest = Plan::default();
    for app in all_apps(current, desired) {
        let target = desired.apps.get(app);
        if target.is_some_and(|app| app.not_ours || app.rejected) {
            // What runs of it is left alone, whatever was under way.
            if current.locks.contains(app) {
                let app = app.clone();
                rest.steps.push(Step::ReleaseLocks { app });
            }
            continue;
        }
        let emptied = target.filter(|_| current.purged.contains(app)).map(emptied);
        let target = emptied.as_ref().or(target);
        rest.append(plan_app(current, app, target, &mut pulls));
    }
    keep_first_of_each(&mut rest.steps);
    let mut plan = pulls.into_plan(current);
    // What such an engine holds is not known, and may be what has to go.
    for (engine, reason) in current.silent_engines() {
        plan.wait(Subject::Engine(engine), reason);
    }
    plan.append(rest);
    // Last, and with the device at rest: removing an image competes for the disk with what matters.
    // What an action brings back may need an image that the target no longer has.
    let acting =
        !(current.purged.is_empty() && current.recreated.is_empty() && current.restored.is_empty());
    if plan.steps.is_empty() && current.busy.is_empty() && !acting {
        remove_unused(current, desired, &mut plan);
    }
    plan_host(current, desired.host.as_ref(), &mut plan);
    let os = plan_os(current, desired.host.as_ref(), &mut plan);
    plan_reboot(current, os, &mut plan);
    plan
}

/// The app with nothing in it: what a purge leads to first.
fn emptied(app: &DesiredApp) -> DesiredApp {
    DesiredApp {
        services: BTreeMap::new(),
        volumes: BTreeMap::new(),
        networks: BTreeMap::new(),
        ..app.clone()
    }
}

/// Leaves out what two apps plan alike: the network of the device's API.
fn keep_first_of_each(steps: &mut Vec<Step>) {
    let mut subjects = BTreeSet::new();
    steps.retain(|step| match step {
        Step::CreateComponent { .. } => subjects.insert(step.subject()),
        _ => true,
    });
}

/// Every app that is wanted or of which something is left.
fn all_apps<'a>(current: &'a CurrentState, desired: &'a DesiredState) -> BTreeSet<&'a AppUuid> {
    let services = current.services.iter().map(|service| &service.key.app);
    let networks = current.networks.iter();
    // The volumes of an app that is gone are kept in local mode, so they are no reason to look at it.
    let volumes = current.volumes.iter().filter(|_| !current.local_mode);
    services
        .chain(networks.chain(volumes).filter_map(|c| c.app.as_ref()))
        .chain(current.commits.keys())
        .chain(current.locks.iter())
        .chain(current.purged.iter())
        .chain(desired.apps.keys())
        .collect()
}

/// One line a step; what is waited on comes last.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        for waiting in &self.waiting_on {
            writeln!(f, "... {waiting}")?;
        }
        if self.is_settled() {
            writeln!(f, "nothing")?;
        }
        Ok(())
    }
}

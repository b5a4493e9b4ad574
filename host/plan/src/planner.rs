//! The computation of the plan over all apps, the images, the host and its operating system.

use std::collections::{BTreeMap, BTreeSet};

use model::{AppUuid, DesiredApp, DesiredState};

use crate::app_plan::plan_app;
use crate::current::CurrentState;
use crate::host::{plan_host, plan_reboot};
use crate::images::{Pulls, remove_unused};
use crate::os::plan_os;
use crate::plan::Plan;
use crate::step::Step;
use crate::subject::Subject;

/// Decides what to do next. Pure: the same two states always lead to the same plan, and if the state matches the
/// target, the plan is empty.
///
/// No step is planned for a subject that is busy or whose failure is held.
#[must_use]
pub fn plan(current: &CurrentState, desired: &DesiredState) -> Plan {
    let mut pulls = Pulls::default();
    let mut rest = Plan::default();
    for app in all_apps(current, desired) {
        let target = desired.apps.get(app);
        if target.is_some_and(|app| app.not_ours || app.rejected) {
            // Its containers are left alone, whatever was under way.
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
    // The objects on such an engine are unknown, and some of them may have to be removed.
    for (engine, reason) in current.silent_engines() {
        plan.wait(Subject::Engine(engine), reason);
    }
    plan.append(rest);
    // Last, and only while the device is idle: removing an image competes for the disk with more important work. An
    // action that restores an app may need an image that the target no longer names.
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

/// Returns the app without services, volumes and networks: the first goal of a purge.
fn emptied(app: &DesiredApp) -> DesiredApp {
    DesiredApp {
        services: BTreeMap::new(),
        volumes: BTreeMap::new(),
        networks: BTreeMap::new(),
        ..app.clone()
    }
}

/// Removes duplicates that two apps have planned: the network of the device's API.
fn keep_first_of_each(steps: &mut Vec<Step>) {
    let mut subjects = BTreeSet::new();
    steps.retain(|step| match step {
        Step::CreateComponent { .. } => subjects.insert(step.subject()),
        _ => true,
    });
}

/// Returns every app that is desired or of which something is left.
fn all_apps<'a>(current: &'a CurrentState, desired: &'a DesiredState) -> BTreeSet<&'a AppUuid> {
    let services = current.services.iter().map(|service| &service.key.app);
    let networks = current.networks.iter();
    // In local mode, volumes of removed apps are kept, so they are no reason to plan such an app.
    let volumes = current.volumes.iter().filter(|_| !current.local_mode);
    services
        .chain(networks.chain(volumes).filter_map(|c| c.app.as_ref()))
        .chain(current.commits.keys())
        .chain(current.locks.iter())
        .chain(current.purged.iter())
        .chain(desired.apps.keys())
        .collect()
}

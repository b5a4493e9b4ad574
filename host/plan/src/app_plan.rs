//! The plan of one app: first the steps that may be taken at any time (pulls, volumes, networks, starts that disturb
//! nothing), then those that need the locks, and last the record that the app is complete.

mod service;

use device_types::plan::{Blocker, StepReason};
use model::{AppUuid, CurrentService, DesiredApp, ServiceKey, ServiceName};

use crate::app::App;
use crate::components::plan_components;
use crate::current::CurrentState;
use crate::draft::Draft;
use crate::images::Pulls;
use crate::placement::Placement;
use crate::plan::{Gate, Plan};
use crate::services::{ServicePlan, ServicePlans, classify};
use crate::step::{ContainerRef, LockedStep, LockedWork, ServiceWork, Step};
use crate::stopping::dependents_first;
use crate::strategy::{goes_first, needs_image_first};
use crate::subject::Subject;
use service::plan_service;

pub(crate) fn plan_app<'a>(
    current: &'a CurrentState,
    uuid: &'a AppUuid,
    desired: Option<&'a DesiredApp>,
    pulls: &mut Pulls,
) -> Plan {
    let app = App::look(current, uuid, desired);
    let services = classify(&app);
    let mut draft = Draft::default();

    let may_disturb = fetch_images(&app, &services, pulls, &mut draft);
    plan_components(&app, &services, &mut draft);
    remove_dead(&app, &services, &mut draft);

    let mut work = Vec::new();
    for planned in services.desired.values() {
        work.extend(plan_service(
            &app,
            &services,
            planned,
            may_disturb,
            &mut draft,
        ));
    }
    for (name, containers) in &services.unwanted {
        work.extend(plan_unwanted(
            &app,
            name,
            containers,
            may_disturb,
            &mut draft,
        ));
    }
    if dependents_first(app.current, &app.containers, &mut work) {
        draft.wait_for_step_in_flight();
    }
    take_locks(&app, work, &mut draft);
    finish(&app, &mut draft);
    draft.plan
}

/// Requests the missing images, and returns whether steps that disturb services are allowed. They are allowed only once
/// every image of the release is present, so that a service is down as briefly as possible and the locks are not held
/// during downloads.
///
/// A service that is killed before its download is not waited for; while its old container exists, nothing of the app
/// is pulled (docs/spec/device.md#update-strategies).
///
/// If nothing needs to be disturbed (a first install), an image that failed delays only its own service and those that
/// depend on it.
fn fetch_images(
    app: &App<'_>,
    services: &ServicePlans<'_>,
    pulls: &mut Pulls,
    draft: &mut Draft,
) -> bool {
    let disturbs =
        !services.unwanted.is_empty() || services.desired.values().any(ServicePlan::disturbs);
    let mut missing = Vec::new();
    let mut all_failed = true;
    let room_first = services
        .desired
        .values()
        .any(|planned| goes_first(app, planned));
    for planned in services.desired.values() {
        if planned.kept().is_some() {
            continue;
        }
        let service = planned.desired;
        let reason = match app.placement(service) {
            Placement::Ready(_) => continue,
            Placement::Missing(engine) => {
                let image = service.config.image.clone();
                if room_first {
                    draft.unfinished = true;
                } else {
                    pulls.want(*engine, service);
                }
                let subject = Subject::Image(image.clone());
                all_failed &= app.current.failed.contains_key(&subject);
                Blocker::Image { image }
            }
            Placement::Unavailable(reason) => reason.clone(),
        };
        if needs_image_first(service) {
            missing.push((service.key.clone(), reason));
        }
    }
    let allowed = missing.is_empty() || (all_failed && !disturbs);
    for (service, reason) in missing {
        draft.plan.wait(Subject::Service(service), reason);
    }
    allowed
}

fn remove_dead(app: &App<'_>, services: &ServicePlans<'_>, draft: &mut Draft) {
    for container in &services.being_removed {
        draft
            .plan
            .wait(Subject::Service(container.key.clone()), Blocker::Removal);
    }
    for container in &services.dead {
        let removal = Step::RemoveDead {
            service: container.key.clone(),
            container: reference(container),
        };
        draft.unfinished |= app.current.is_busy(&removal.subject());
        draft.plan.push(app.current, removal);
    }
}

fn plan_unwanted(
    app: &App<'_>,
    name: &ServiceName,
    containers: &[&CurrentService],
    may_disturb: bool,
    draft: &mut Draft,
) -> Option<ServiceWork> {
    let service = ServiceKey {
        app: app.uuid.clone(),
        service: name.clone(),
    };
    if !draft.is_free(app.current, &service) {
        return None;
    }
    if !may_disturb {
        draft.unfinished = true;
        return None;
    }
    let reason = app.removal_reason();
    let steps = containers.iter().map(|container| kill(container, reason));
    Some(ServiceWork {
        service,
        steps: steps.collect(),
    })
}

/// Plans `work` under the locks of the app, unless they were refused a moment ago.
fn take_locks(app: &App<'_>, work: Vec<ServiceWork>, draft: &mut Draft) {
    let subject = Subject::Locks(app.uuid.clone());
    let Some(app_id) = app.id() else { return };
    if work.is_empty() {
        return;
    }
    match draft.plan.gate(app.current, &subject) {
        Gate::Busy => draft.wait_for_step_in_flight(),
        Gate::Held => {}
        Gate::Open => {
            let desired = app.desired.iter().flat_map(|app| app.services.keys());
            let running = app.containers.iter().map(|c| &c.key.service);
            draft.keep_locks = true;
            draft.plan.steps.push(Step::UnderLocks(LockedWork {
                app: app.uuid.clone(),
                app_id,
                services: desired.chain(running).cloned().collect(),
                work,
            }));
        }
    }
}

/// Records the release once it is complete, forgets an app of which nothing is left, and releases the locks when they
/// are no longer needed.
fn finish(app: &App<'_>, draft: &mut Draft) {
    let uuid = app.uuid;
    let settled = draft.plan.is_settled() && !draft.unfinished;
    let recorded = app.current.commits.get(uuid);
    let acting = app.current.purged.contains(uuid) || app.current.restored.contains(uuid);
    let record = match app.desired {
        // While the app is being restored, nothing counts as reached.
        _ if acting || !settled => None,
        Some(desired) => match &desired.commit {
            Some(commit) if recorded != Some(commit) => Some(Step::RecordCommit {
                app: uuid.clone(),
                commit: commit.clone(),
            }),
            None if recorded.is_some() => Some(Step::ForgetCommit { app: uuid.clone() }),
            _ => None,
        },
        None if recorded.is_some() && app.current.all_answer() => {
            Some(Step::ForgetCommit { app: uuid.clone() })
        }
        None => None,
    };
    if let Some(record) = record {
        draft.plan.push(app.current, record);
    }
    if app.current.locks.contains(uuid) && !draft.keep_locks {
        let release = Step::ReleaseLocks { app: uuid.clone() };
        draft.plan.steps.push(release);
    }
}

pub(crate) fn kill(container: &CurrentService, reason: StepReason) -> LockedStep {
    LockedStep::Kill {
        container: reference(container),
        grace: container.stop_grace,
        reason,
    }
}

pub(crate) fn reference(container: &CurrentService) -> ContainerRef {
    ContainerRef {
        engine: container.engine,
        id: container.container.clone(),
    }
}

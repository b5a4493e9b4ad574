//! The plan of one app: first what may happen at any time (pulls, volumes, networks, starts that
//! disturb nothing), then what the locks are needed for, and last the record that all of it is done.

use std::collections::{BTreeMap, BTreeSet};

use device_types::plan::{Blocker, StepReason};
use model::{
    AppId, AppUuid, ContainerId, CurrentService, DesiredApp, DesiredService, EngineKind,
    HANDING_OVER_PREFIX, NetworkMode, ServiceKey, ServiceName,
};

use crate::components::{ComponentState, plan_components};
use crate::host::{boot_to_wait_for, waits_for_reboot};
use crate::images::Pulls;
use crate::placement::{Placement, familiar, is_same_image, place};
use crate::services::{Disposition, ServicePlan, ServicePlans, classify};
use crate::stopping::dependents_first;
use crate::strategy::{Replacement, goes_first, needs_image_first, replace};
use crate::{
    ComponentKind, ContainerRef, CurrentState, LockedStep, LockedWork, Plan, ServiceWork,
    StartService, Step, Subject, WaitingOn,
};

/// One app, as it is and as it should be.
pub(crate) struct App<'a> {
    pub current: &'a CurrentState,
    pub uuid: &'a AppUuid,
    /// `None` if the app is to be removed.
    pub desired: Option<&'a DesiredApp>,
    pub containers: Vec<&'a CurrentService>,
    placements: BTreeMap<&'a ServiceName, Placement<'a>>,
}

impl<'a> App<'a> {
    fn look(current: &'a CurrentState, uuid: &'a AppUuid, desired: Option<&'a DesiredApp>) -> Self {
        let containers = current.services.iter();
        let services = desired.iter().flat_map(|app| app.services.values());
        App {
            current,
            uuid,
            desired,
            containers: containers.filter(|c| c.key.app == *uuid).collect(),
            placements: services
                .map(|service| (&service.key.service, place(current, service)))
                .collect(),
        }
    }

    /// The placement of `service`, which is one of this app's.
    pub(crate) fn placement(&self, service: &DesiredService) -> &Placement<'a> {
        const NOWHERE: &Placement<'_> = &Placement::Missing(None);
        self.placements.get(&service.key.service).unwrap_or(NOWHERE)
    }

    /// Why what the target does not have of the app goes.
    pub(crate) fn removal_reason(&self) -> StepReason {
        if self.current.purged.contains(self.uuid) {
            StepReason::Purge
        } else {
            StepReason::NotInTarget
        }
    }

    fn id(&self) -> Option<AppId> {
        let current = self.containers.first().map(|container| container.app_id);
        self.desired.map(|app| app.id).or(current)
    }
}

/// Steps and waits of the app that is being planned.
#[derive(Default)]
struct Draft {
    steps: Vec<Step>,
    waiting_on: Vec<WaitingOn>,
    /// Something about the app is in flight, or comes in a later plan.
    unfinished: bool,
    /// The locks, if they are held, are still of use.
    keep_locks: bool,
}

impl Draft {
    /// Says each thing once.
    fn wait(&mut self, subject: Subject, reason: Blocker) {
        let waiting = WaitingOn { subject, reason };
        if !self.waiting_on.contains(&waiting) {
            self.waiting_on.push(waiting);
        }
    }
}

pub(crate) fn plan_app<'a>(
    current: &'a CurrentState,
    uuid: &'a AppUuid,
    desired: Option<&'a DesiredApp>,
    pulls: &mut Pulls,
    plan: &mut Plan,
) {
    let app = App::look(current, uuid, desired);
    let services = classify(&app);
    let mut draft = Draft::default();

    let may_disturb = fetch_images(&app, &services, pulls, &mut draft);
    let components = plan_components(&app, &services);
    draft.keep_locks |= components.busy || !components.steps.is_empty();
    draft.unfinished |= components.busy || components.blocked;
    draft.steps.extend(components.steps);
    draft.waiting_on.extend(components.waiting_on);
    remove_dead(&app, &services, &mut draft);

    let mut work = Vec::new();
    for planned in services.wanted.values() {
        if let Some(steps) = plan_service(&app, &services, planned, may_disturb, &mut draft) {
            work.push(steps);
        }
    }
    for (name, containers) in &services.unwanted {
        if let Some(steps) = plan_unwanted(&app, name, containers, may_disturb, &mut draft) {
            work.push(steps);
        }
    }
    if dependents_first(app.current, &app.containers, &mut work) {
        draft.unfinished = true;
        draft.keep_locks = true;
    }
    take_locks(&app, work, &mut draft);
    finish(&app, &mut draft);

    plan.steps.append(&mut draft.steps);
    plan.waiting_on.append(&mut draft.waiting_on);
}

/// Wants the images that are missing, and tells whether steps that disturb services are allowed: not
/// before every image of the release is there, so that a service is down for as short as can be and
/// the locks are not held during downloads.
///
/// A service that is killed before its download is not waited for; while its old container is there
/// nothing of the app is pulled (docs/spec/device.md#update-strategies).
///
/// If nothing is to be disturbed (a first install), an image that failed holds up only its own
/// service and those that depend on it.
fn fetch_images(
    app: &App<'_>,
    services: &ServicePlans<'_>,
    pulls: &mut Pulls,
    draft: &mut Draft,
) -> bool {
    let disturbs =
        !services.unwanted.is_empty() || services.wanted.values().any(ServicePlan::disturbs);
    let mut missing = Vec::new();
    let mut all_failed = true;
    let room_first = services
        .wanted
        .values()
        .any(|planned| goes_first(app, planned));
    for planned in services.wanted.values() {
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
        draft.wait(Subject::Service(service), reason);
    }
    allowed
}

fn remove_dead(app: &App<'_>, services: &ServicePlans<'_>, draft: &mut Draft) {
    for container in &services.fading {
        draft.wait(Subject::Service(container.key.clone()), Blocker::Removal);
    }
    for container in &services.dead {
        let subject = Subject::Container(container.container.clone());
        if app.current.is_busy(&subject) {
            draft.unfinished = true;
        } else if let Some(failure) = app.current.held(&subject) {
            draft.wait(subject, failure.blocker());
        } else {
            draft.steps.push(Step::RemoveDead {
                service: container.key.clone(),
                container: reference(container),
            });
        }
    }
}

/// Whether a step about `service` may be planned now.
fn is_free(app: &App<'_>, service: &ServiceKey, draft: &mut Draft) -> bool {
    let subject = Subject::Service(service.clone());
    if app.current.is_busy(&subject) {
        draft.unfinished = true;
        draft.keep_locks = true;
        return false;
    }
    if let Some(failure) = app.current.held(&subject) {
        draft.wait(subject, failure.blocker());
        return false;
    }
    true
}

fn plan_service(
    app: &App<'_>,
    services: &ServicePlans<'_>,
    planned: &ServicePlan<'_>,
    may_disturb: bool,
    draft: &mut Draft,
) -> Option<ServiceWork> {
    let desired = planned.desired;
    let subject = || Subject::Service(desired.key.clone());
    // The engine may still be removing an older container.
    draft.unfinished |= planned.fading;
    let rests =
        planned.kept().is_some() && !planned.disturbs() && !planned.is_to_start(app.current);
    if rests {
        // Even a service at rest may have a step in flight, whose effect has not been observed yet.
        let busy = app.current.is_busy(&subject());
        draft.unfinished |= busy;
        draft.keep_locks |= busy;
        return None;
    }
    if !is_free(app, &desired.key, draft) {
        return None;
    }
    // A start that disturbs nothing comes first: it is what is left of an earlier plan.
    if let Some(kept) = planned.kept()
        && planned.is_to_start(app.current)
        && !planned.disturbs()
    {
        if waits_for_reboot(app.current, planned) {
            draft.wait(subject(), Blocker::Reboot);
            return None;
        }
        match may_start(services, desired, app.current) {
            Ok(_) => {
                draft.keep_locks = true;
                draft.steps.push(Step::StartExisting {
                    app_id: desired.app_id,
                    service: desired.key.clone(),
                    container: reference(kept),
                });
            }
            Err(reason) => draft.wait(subject(), reason),
        }
        return None;
    }
    if !may_disturb && !goes_first(app, planned) {
        // What it waits for is said with the image that is missing.
        draft.unfinished = true;
        return None;
    }
    let surplus = planned.surplus.iter();
    let mut steps: Vec<LockedStep> = surplus.map(|c| kill(c, StepReason::Duplicate)).collect();
    let mut start = false;
    match planned.disposition {
        Disposition::Keep(container) => {
            if planned.is_to_stop() {
                steps.push(LockedStep::Stop {
                    container: reference(container),
                    grace: container.stop_grace,
                });
            }
            if planned.is_misnamed() && planned.fading {
                // The container that is going may have the name.
                draft.wait(subject(), Blocker::Removal);
            } else if planned.is_misnamed() {
                steps.push(LockedStep::Rename {
                    container: reference(container),
                    name: desired.container_name(),
                });
            }
        }
        Disposition::Replace(container, reason) => match replace(app, desired) {
            Replacement::KillThenStart => {
                steps.push(kill(container, reason));
                start = true;
            }
            Replacement::DeleteThenStart => {
                steps.push(kill(container, reason));
                steps.extend(remove_image_of(app, services, container));
                start = true;
            }
            Replacement::HandOver => match start_step(app, services, planned) {
                Ok(LockedStep::Start(start)) => steps.push(LockedStep::HandOver {
                    old: reference(container),
                    rename: (!container.is_handing_over())
                        .then(|| format!("{HANDING_OVER_PREFIX}{}", container.name)),
                    grace: container.stop_grace,
                    timeout: desired.handover_timeout,
                    reason,
                    start,
                }),
                Ok(_) => {}
                Err(reason) => draft.wait(subject(), reason),
            },
            Replacement::Wait(reason) => draft.wait(subject(), reason),
        },
        Disposition::Missing => start = true,
    }
    if start {
        match start_step(app, services, planned) {
            Ok(step) => steps.push(step),
            Err(reason) => draft.wait(subject(), reason),
        }
    }
    (!steps.is_empty()).then(|| ServiceWork {
        service: desired.key.clone(),
        steps,
    })
}

/// The removal of the image that `container` was made from, if we pulled it and nothing else wants
/// it.
fn remove_image_of(
    app: &App<'_>,
    services: &ServicePlans<'_>,
    container: &CurrentService,
) -> Option<LockedStep> {
    let mut recorded = app.current.recorded_images.iter();
    let image = recorded.find(|image| familiar(image.as_str()) == familiar(&container.image))?;
    let mut wanted = services.wanted.values();
    let is_wanted = wanted.any(|planned| is_same_image(&planned.desired.config.image, image));
    let mut others = app.current.services.iter();
    let is_used = others.any(|other| {
        other.container != container.container && other.engine_image == container.engine_image
    });
    (!is_wanted && !is_used).then(|| LockedStep::RemoveImage {
        engine: container.engine,
        image: image.clone(),
    })
}

/// The creation and start of a service whose old containers are gone by then.
fn start_step(
    app: &App<'_>,
    services: &ServicePlans<'_>,
    planned: &ServicePlan<'_>,
) -> Result<LockedStep, Blocker> {
    let desired = planned.desired;
    if planned.fading {
        return Err(Blocker::Removal);
    }
    let image = match app.placement(desired) {
        Placement::Ready(image) => image,
        Placement::Missing(_) => {
            return Err(Blocker::Image {
                image: desired.config.image.clone(),
            });
        }
        Placement::Unavailable(reason) => return Err(reason.clone()),
    };
    for (name, state) in app.components_of(desired, image.engine) {
        if state != ComponentState::Right {
            return Err(Blocker::Component {
                name: name.to_owned(),
            });
        }
        if is_going(app, image.engine, name) {
            return Err(Blocker::Component {
                name: name.to_owned(),
            });
        }
    }
    // An old container of another service may still hold one of its ports.
    if publishes_ports(desired) && services.others_leave(desired, image.engine, app.current) {
        return Err(Blocker::Removal);
    }
    let starts_after = boot_to_wait_for(app.current, desired);
    let network_container = match starts_after {
        None => may_start(services, desired, app.current)?,
        // It is only made now, so that one reboot is enough for all that wait for one.
        Some(_) => network_container(services, desired)?,
    };
    Ok(LockedStep::Start(Box::new(StartService {
        engine: image.engine,
        service: desired.clone(),
        image: image.id.clone(),
        network_container,
        starts_after,
    })))
}

fn publishes_ports(service: &DesiredService) -> bool {
    !service.config.ports.is_empty() || service.config.network_mode == NetworkMode::Host
}

/// Whether a step about the volume or network is in flight: one that was observed as right may be on
/// its way out for a target that has been replaced since.
fn is_going(app: &App<'_>, engine: EngineKind, name: &str) -> bool {
    ComponentKind::ALL.into_iter().any(|kind| {
        let subject = Subject::Component(kind, engine, name.to_owned());
        app.current.is_busy(&subject)
    })
}

/// Whether everything that must have been started before `desired` was; answers the container whose
/// network stack it shares.
fn may_start(
    services: &ServicePlans<'_>,
    desired: &DesiredService,
    current: &CurrentState,
) -> Result<Option<ContainerId>, Blocker> {
    for name in &desired.depends_on {
        // One that is not of the release is no condition: the target was taken with a warning.
        if let Some(dependency) = services.wanted.get(name) {
            was_started(dependency, current).ok_or_else(|| Blocker::Dependency {
                service: name.clone(),
            })?;
        }
    }
    let NetworkMode::Service(name) = &desired.config.network_mode else {
        return Ok(None);
    };
    let host = services
        .wanted
        .get(name)
        .and_then(|host| was_started(host, current));
    let host = host.ok_or_else(|| Blocker::Dependency {
        service: name.clone(),
    })?;
    Ok(Some(host.container.clone()))
}

/// The container whose network stack `desired` shares, started or not.
fn network_container(
    services: &ServicePlans<'_>,
    desired: &DesiredService,
) -> Result<Option<ContainerId>, Blocker> {
    let NetworkMode::Service(name) = &desired.config.network_mode else {
        return Ok(None);
    };
    let host = services.wanted.get(name).and_then(ServicePlan::kept);
    let host = host.ok_or_else(|| Blocker::Dependency {
        service: name.clone(),
    })?;
    Ok(Some(host.container.clone()))
}

/// The container of a service that was started and does not change; health is not considered. One
/// that should not run counts as soon as it has its container.
fn was_started<'a>(
    planned: &ServicePlan<'a>,
    current: &CurrentState,
) -> Option<&'a CurrentService> {
    let busy = current.is_busy(&Subject::Service(planned.desired.key.clone()));
    planned
        .kept()
        .filter(|_| !busy && !planned.is_to_start(current))
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
    if !is_free(app, &service, draft) {
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

/// Puts `work` under the locks of the app, unless they were refused a moment ago.
fn take_locks(app: &App<'_>, work: Vec<ServiceWork>, draft: &mut Draft) {
    let subject = Subject::Locks(app.uuid.clone());
    let Some(app_id) = app.id() else { return };
    if work.is_empty() {
        return;
    }
    if app.current.is_busy(&subject) {
        draft.unfinished = true;
        draft.keep_locks = true;
    } else if let Some(failure) = app.current.held(&subject) {
        draft.wait(subject, failure.blocker());
    } else {
        let wanted = app.desired.iter().flat_map(|app| app.services.keys());
        let running = app.containers.iter().map(|c| &c.key.service);
        draft.keep_locks = true;
        draft.steps.push(Step::UnderLocks(LockedWork {
            app: app.uuid.clone(),
            app_id,
            services: wanted.chain(running).cloned().collect::<BTreeSet<_>>(),
            work,
        }));
    }
}

/// Records the release once all of it stands, forgets an app of which nothing is left, and gives the
/// locks back when they are of no more use.
fn finish(app: &App<'_>, draft: &mut Draft) {
    let uuid = app.uuid;
    let subject = Subject::App(uuid.clone());
    let settled = draft.steps.is_empty() && draft.waiting_on.is_empty() && !draft.unfinished;
    let recorded = app.current.commits.get(uuid);
    let acting = app.current.purged.contains(uuid) || app.current.restored.contains(uuid);
    let record = match app.desired {
        // Nothing has been reached while it comes back.
        _ if acting || !settled || app.current.is_busy(&subject) => None,
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
    if let Some(step) = record {
        match app.current.held(&subject) {
            Some(failure) => draft.wait(subject, failure.blocker()),
            None => draft.steps.push(step),
        }
    }
    if app.current.locks.contains(uuid) && !draft.keep_locks {
        draft.steps.push(Step::ReleaseLocks { app: uuid.clone() });
    }
}

fn kill(container: &CurrentService, reason: StepReason) -> LockedStep {
    LockedStep::Kill {
        container: reference(container),
        grace: container.stop_grace,
        reason,
    }
}

fn reference(container: &CurrentService) -> ContainerRef {
    ContainerRef {
        engine: container.engine,
        id: container.container.clone(),
    }
}

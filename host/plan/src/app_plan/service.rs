//! The plan of one service of the target: kept, started, renamed, stopped, or created again.

use device_types::plan::{Blocker, StepReason};
use model::{
    ContainerId, CurrentService, DesiredService, EngineKind, HANDING_OVER_PREFIX, NetworkMode,
};
use strum::VariantArray;

use super::{kill, reference};
use crate::app::App;
use crate::component::ComponentKind;
use crate::component_state::ComponentState;
use crate::current::CurrentState;
use crate::draft::Draft;
use crate::host::{boot_to_wait_for, waits_for_reboot};
use crate::placement::{is_same_image, short_reference};
use crate::services::{Disposition, ServicePlan, ServicePlans};
use crate::step::{LockedStep, ServiceWork, StartService, Step};
use crate::strategy::{Replacement, goes_first, replace};
use crate::subject::Subject;

pub(super) fn plan_service(
    app: &App<'_>,
    services: &ServicePlans<'_>,
    planned: &ServicePlan<'_>,
    may_disturb: bool,
    draft: &mut Draft,
) -> Option<ServiceWork> {
    let desired = planned.desired;
    let subject = || Subject::Service(desired.key.clone());
    // The engine may still be removing an older container.
    draft.unfinished |= planned.removal_pending;
    let rests =
        planned.kept().is_some() && !planned.disturbs() && !planned.is_to_start(app.current);
    if rests {
        // Even a service at rest may have a step in flight, whose effect has not been observed yet.
        if app.current.is_busy(&subject()) {
            draft.wait_for_step_in_flight();
        }
        return None;
    }
    if !draft.is_free(app.current, &desired.key) {
        return None;
    }
    // A start that disturbs nothing comes first: it is left over from an earlier plan.
    if let Some(kept) = planned.kept()
        && planned.is_to_start(app.current)
        && !planned.disturbs()
    {
        if waits_for_reboot(app.current, planned) {
            draft.plan.wait(subject(), Blocker::Reboot);
            return None;
        }
        let may_start = may_start(services, desired, app.current)
            .and_then(|_| has_components(app, desired, kept.engine));
        match may_start {
            Ok(()) => {
                draft.keep_locks = true;
                draft.plan.steps.push(Step::StartExisting {
                    app_id: desired.app_id,
                    service: desired.key.clone(),
                    container: reference(kept),
                });
            }
            Err(reason) => draft.plan.wait(subject(), reason),
        }
        return None;
    }
    if !may_disturb && !goes_first(app, planned) {
        // The reason for waiting is reported with the missing image.
        draft.unfinished = true;
        return None;
    }
    let duplicates = planned.duplicates.iter();
    let mut steps: Vec<LockedStep> = duplicates.map(|c| kill(c, StepReason::Duplicate)).collect();
    let mut start = false;
    match planned.disposition {
        Disposition::Keep(container) => {
            if planned.is_to_stop() {
                steps.push(LockedStep::Stop {
                    container: reference(container),
                    grace: container.stop_grace,
                });
            }
            if planned.is_misnamed() && planned.removal_pending {
                // The container that is being removed may still have the name.
                draft.plan.wait(subject(), Blocker::Removal);
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
                Err(reason) => draft.plan.wait(subject(), reason),
            },
            Replacement::Wait(reason) => draft.plan.wait(subject(), reason),
        },
        Disposition::Missing => start = true,
    }
    if start {
        match start_step(app, services, planned) {
            Ok(step) => steps.push(step),
            Err(reason) => draft.plan.wait(subject(), reason),
        }
    }
    (!steps.is_empty()).then(|| ServiceWork {
        service: desired.key.clone(),
        steps,
    })
}

/// Returns the removal of the image that `container` was created from, if the supervisor pulled it and nothing else
/// needs it.
fn remove_image_of(
    app: &App<'_>,
    services: &ServicePlans<'_>,
    container: &CurrentService,
) -> Option<LockedStep> {
    let mut recorded = app.current.recorded_images.iter();
    let image = recorded
        .find(|image| short_reference(image.as_str()) == short_reference(&container.image))?;
    let mut desired = services.desired.values();
    let is_wanted = desired.any(|planned| is_same_image(&planned.desired.config.image, image));
    let mut others = app.current.services.iter();
    let is_used = others.any(|other| {
        other.container != container.container && other.engine_image == container.engine_image
    });
    (!is_wanted && !is_used).then(|| LockedStep::RemoveImage {
        engine: container.engine,
        image: image.clone(),
    })
}

/// Creates and starts a service whose old containers will be gone by then.
fn start_step(
    app: &App<'_>,
    services: &ServicePlans<'_>,
    planned: &ServicePlan<'_>,
) -> Result<LockedStep, Blocker> {
    let desired = planned.desired;
    if planned.removal_pending {
        return Err(Blocker::Removal);
    }
    let image = app.placement(desired).image(desired)?;
    has_components(app, desired, image.engine)?;
    // An old container of another service may still occupy one of its ports.
    if publishes_ports(desired) && services.others_leave(desired, image.engine, app.current) {
        return Err(Blocker::Removal);
    }
    let starts_after = boot_to_wait_for(app.current, desired);
    let network_container = match starts_after {
        None => may_start(services, desired, app.current)?,
        // The container is only created now, so that one reboot is enough for all services that wait for one.
        Some(_) => network_container(services, desired, ServicePlan::kept)?,
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

/// Returns whether a step about the volume or network is in flight: one that was observed to be right may still be
/// being removed for a target that has been replaced since.
fn is_going(app: &App<'_>, engine: EngineKind, name: &str) -> bool {
    ComponentKind::VARIANTS.iter().any(|&kind| {
        let subject = Subject::Component(kind, engine, name.to_owned());
        app.current.is_busy(&subject)
    })
}

/// Checks that the engine has the volumes and networks of a service, as the target describes them.
fn has_components(
    app: &App<'_>,
    desired: &DesiredService,
    engine: EngineKind,
) -> Result<(), Blocker> {
    for (name, state) in app.components_of(desired, engine) {
        if state != ComponentState::Right || is_going(app, engine, name) {
            return Err(Blocker::Component {
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}

/// Checks that everything that must have been started before `desired` was, and returns the container whose network
/// stack it shares.
fn may_start(
    services: &ServicePlans<'_>,
    desired: &DesiredService,
    current: &CurrentState,
) -> Result<Option<ContainerId>, Blocker> {
    for name in &desired.depends_on {
        // A dependency outside the release is no condition: the target was accepted with a warning.
        if let Some(dependency) = services.desired.get(name) {
            was_started(dependency, current).ok_or_else(|| Blocker::Dependency {
                service: name.clone(),
            })?;
        }
    }
    network_container(services, desired, |host| was_started(host, current))
}

/// Returns the container whose network stack `desired` shares; `find` finds it from the plan of its service.
fn network_container<'a>(
    services: &ServicePlans<'a>,
    desired: &DesiredService,
    find: impl Fn(&ServicePlan<'a>) -> Option<&'a CurrentService>,
) -> Result<Option<ContainerId>, Blocker> {
    let NetworkMode::Service(name) = &desired.config.network_mode else {
        return Ok(None);
    };
    match services.desired.get(name).and_then(find) {
        Some(host) => Ok(Some(host.container.clone())),
        None => Err(Blocker::Dependency {
            service: name.clone(),
        }),
    }
}

/// Returns the container of a service that was started and does not change; health is ignored. A service that should
/// not run counts as soon as it has its container.
fn was_started<'a>(
    planned: &ServicePlan<'a>,
    current: &CurrentState,
) -> Option<&'a CurrentService> {
    let busy = current.is_busy(&Subject::Service(planned.desired.key.clone()));
    planned
        .kept()
        .filter(|_| !busy && !planned.is_to_start(current))
}

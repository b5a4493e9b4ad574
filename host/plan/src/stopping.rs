//! The order in which services of one app are stopped: the reverse of that in which they are started. One
//! that others depend on goes on until those that are to stop as well have stopped.

use model::{CurrentService, ServiceKey};

use crate::{CurrentState, LockedStep, ServiceWork, Subject};

/// Leaves out of `work` what comes in a later plan, once the services that depend on it have stopped;
/// answers whether there was any.
///
/// It waits for nothing but steps that are taken now or are in flight, so that a service that cannot be
/// stopped yet for a reason of its own holds up no other.
pub(crate) fn dependents_first(
    current: &CurrentState,
    containers: &[&CurrentService],
    work: &mut Vec<ServiceWork>,
) -> bool {
    let stopping: Vec<ServiceKey> = work
        .iter()
        .filter(|work| stops(work))
        .map(|work| work.service.clone())
        .collect();
    let in_flight = |service: &ServiceKey| current.is_busy(&Subject::Service(service.clone()));
    let waits = |work: &ServiceWork| {
        stops(work)
            && containers.iter().any(|other| {
                other.stops_before(&work.service)
                    && (stopping.contains(&other.key) || in_flight(&other.key))
            })
    };
    let goes_on = work.iter().any(|work| stops(work) && !waits(work))
        || containers.iter().any(|other| in_flight(&other.key));
    // Containers of different releases may depend on each other in a circle: then there is no order.
    if !goes_on {
        return false;
    }
    let all = work.len();
    work.retain(|work| !waits(work));
    work.len() < all
}

fn stops(work: &ServiceWork) -> bool {
    let ends =
        |step: &LockedStep| matches!(step, LockedStep::Stop { .. } | LockedStep::Kill { .. });
    work.steps.iter().any(ends)
}

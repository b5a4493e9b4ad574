//! The order in which services of one app are stopped: the reverse of the order in which they are started. A service
//! that others depend on keeps running until those of them that must stop too have stopped.

use model::{CurrentService, ServiceKey};

use crate::current::CurrentState;
use crate::step::{LockedStep, ServiceWork};
use crate::subject::Subject;

/// Removes from `work` what belongs in a later plan, once the services that depend on it have stopped; returns whether
/// anything was removed.
///
/// Work waits only for steps that are taken now or are in flight, so a service that cannot be stopped yet for another
/// reason delays no other.
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
    // Containers of different releases may depend on each other in a cycle: then there is no order.
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

//! The plan of an app while it is being made.

use model::ServiceKey;

use crate::current::CurrentState;
use crate::plan::{Gate, Plan};
use crate::subject::Subject;

/// Steps and waits of the app that is being planned.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) plan: Plan,
    /// Something about the app is in flight, or left to a later plan.
    pub(crate) unfinished: bool,
    /// The locks, if held, are still needed.
    pub(crate) keep_locks: bool,
}

impl Draft {
    /// Records that further planning depends on a step that is in flight.
    pub(crate) fn wait_for_step_in_flight(&mut self) {
        self.unfinished = true;
        self.keep_locks = true;
    }

    /// Returns whether a step about `service` may be planned now.
    pub(crate) fn is_free(&mut self, current: &CurrentState, service: &ServiceKey) -> bool {
        let gate = self.plan.gate(current, &Subject::Service(service.clone()));
        if gate == Gate::Busy {
            self.wait_for_step_in_flight();
        }
        gate == Gate::Open
    }
}

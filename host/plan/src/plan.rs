//! The plan itself.

use std::fmt;

use device_types::plan::Blocker;

use crate::blocked_subject::BlockedSubject;
use crate::current::CurrentState;
use crate::step::Step;
use crate::subject::Subject;

/// The steps to take now, and what cannot be done yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The steps to take now; all of them may run in parallel.
    pub steps: Vec<Step>,
    /// Empty if these steps, and those in flight, reach the target.
    pub waiting_on: Vec<BlockedSubject>,
}

/// Whether a step about a subject may be planned now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    /// A step is in flight.
    Busy,
    /// The last step failed, and it is still too early for the next attempt.
    Held,
}

impl Plan {
    /// Checks whether a step about `subject` may be planned. A held subject is added to what the plan waits for.
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

    /// Adds a blocker, unless the plan contains it already.
    pub(crate) fn wait(&mut self, subject: Subject, reason: Blocker) {
        let waiting = BlockedSubject { subject, reason };
        if !self.waiting_on.contains(&waiting) {
            self.waiting_on.push(waiting);
        }
    }

    pub(crate) fn append(&mut self, mut other: Plan) {
        self.steps.append(&mut other.steps);
        self.waiting_on.append(&mut other.waiting_on);
    }

    /// Returns whether nothing is left to do: if nothing is in flight either, the target is reached.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.steps.is_empty() && self.waiting_on.is_empty()
    }
}

/// One line per step, followed by what the plan waits on.
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

//! What a plan waits on: data, so that a person can see why nothing happens.

use std::fmt;

use device_types::plan::Blocker;

use crate::subject::Subject;

/// Something that the target needs but that cannot be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedSubject {
    /// The subject that cannot proceed.
    pub subject: Subject,
    /// What it needs, or what blocks it.
    pub reason: Blocker,
}

impl fmt::Display for BlockedSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = &self.subject;
        match &self.reason {
            Blocker::Image { image } => write!(f, "{subject} waits for the image `{image}`"),
            Blocker::EngineMissing { engine } => write!(
                f,
                "{subject} needs the {engine} engine, which this device does not have"
            ),
            Blocker::EngineSilent { engine, reason } => match subject {
                Subject::Engine(_) => write!(f, "the {engine} engine does not answer: {reason}"),
                _ => write!(f, "{subject} waits for the {engine} engine"),
            },
            Blocker::Dependency { service } => {
                write!(f, "{subject} waits for `{service}` to be started")
            }
            Blocker::Component { name } => write!(f, "{subject} waits for `{name}`"),
            Blocker::Removal => write!(f, "{subject} waits for an old container to be removed"),
            Blocker::Reboot => write!(f, "{subject} waits for a reboot"),
            Blocker::RebootedInVain { times, reasons } => write!(
                f,
                "the device was rebooted {times} times for {reasons} without reaching its target, and is not \
                 rebooted again before the target changes"
            ),
            Blocker::BackOff { reason, .. } => match subject {
                Subject::Locks(app) => write!(f, "the update of app {app} is locked: {reason}"),
                _ => write!(f, "{subject} is tried again later: {reason}"),
            },
            other => write!(f, "{subject}: {other}"),
        }
    }
}

//! What a plan waits on: data, so that a person can be told why nothing happens.

use std::fmt;

use model::{EngineKind, ImageRef, ServiceName};

use crate::Subject;

/// Something that the target needs and that cannot be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingOn {
    /// What cannot be done.
    pub subject: Subject,
    /// What it takes, or what stands in the way.
    pub reason: Reason,
}

/// Why something cannot be done yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// No step of the app may disturb a service before this image is there.
    Image(ImageRef),
    /// The image runs on an engine that this device does not have.
    NoEngine(EngineKind),
    /// The engine does not answer.
    Silent(EngineKind, String),
    /// A service that must have been started before.
    Service(ServiceName),
    /// A volume or network that it uses, by its engine name.
    Component(String),
    /// An old container, of its own or one that may hold its ports, is still being removed.
    Removing,
    /// It is started after the next boot.
    Reboot,
    /// The device was rebooted so often for what it names, and that is still to be done: it is not done again
    /// before there is another target.
    RebootedInVain(u32, String),
    /// It failed, and is tried again later.
    Failed(String),
}

impl fmt::Display for WaitingOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = &self.subject;
        match &self.reason {
            Reason::Image(image) => write!(f, "{subject} waits for the image `{image}`"),
            Reason::NoEngine(kind) => {
                write!(
                    f,
                    "{subject} needs the {kind} engine, which this device does not have"
                )
            }
            Reason::Silent(kind, why) => match subject {
                Subject::Engine(_) => write!(f, "the {kind} engine does not answer: {why}"),
                _ => write!(f, "{subject} waits for the {kind} engine"),
            },
            Reason::Service(service) => write!(f, "{subject} waits for `{service}` to be started"),
            Reason::Component(name) => write!(f, "{subject} waits for `{name}`"),
            Reason::Removing => write!(f, "{subject} waits for an old container to be removed"),
            Reason::Reboot => write!(f, "{subject} waits for a reboot"),
            Reason::RebootedInVain(times, what) => write!(
                f,
                "the device was rebooted {times} times for {what} without reaching its target, and is not rebooted \
                 again before the target changes"
            ),
            Reason::Failed(why) => match subject {
                Subject::Locks(app) => write!(f, "the update of app {app} is locked: {why}"),
                _ => write!(f, "{subject} is tried again later: {why}"),
            },
        }
    }
}

//! The subjects of steps.

use std::fmt;

use model::{AppUuid, ContainerId, EngineKind, HostPart, ImageRef, ServiceKey};

use crate::component::ComponentKind;

/// The subject of a step. At most one step per subject is in flight, and failures are counted per subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// An image, by its reference, regardless of the engine.
    Image(ImageRef),
    /// A volume or network, by its engine and its name there.
    Component(ComponentKind, EngineKind, String),
    /// A service, in the target or with a container.
    Service(ServiceKey),
    /// A container that the engine failed to remove.
    Container(ContainerId),
    /// The update locks of an app.
    Locks(AppUuid),
    /// The store's records of an app.
    App(AppUuid),
    /// An engine as a whole; no step has this subject.
    Engine(EngineKind),
    /// A part of the host's configuration.
    Host(HostPart),
    /// The next boot of the host.
    Reboot,
    /// The version of the host's operating system.
    Os,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Image(image) => write!(f, "image {image}"),
            Subject::Component(kind, engine, name) => write!(f, "{kind} {name} on {engine}"),
            Subject::Service(service) => service.fmt(f),
            Subject::Container(id) => write!(f, "container {id}"),
            Subject::Locks(app) => write!(f, "locks of {app}"),
            Subject::App(app) => app.fmt(f),
            Subject::Engine(engine) => write!(f, "{engine} engine"),
            Subject::Host(part) => write!(f, "the host's {part}"),
            Subject::Reboot => f.write_str("the reboot of the host"),
            Subject::Os => f.write_str("the operating system"),
        }
    }
}

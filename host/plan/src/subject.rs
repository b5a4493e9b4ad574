//! The subjects of steps.

use model::{AppUuid, ContainerId, EngineKind, HostPart, ImageRef, ServiceKey};

use crate::component::ComponentKind;

/// The subject of a step. At most one step per subject is in flight, and failures are counted per subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub enum Subject {
    /// An image, by its reference, regardless of the engine.
    #[display("image {_0}")]
    Image(ImageRef),
    /// A volume or network, by its engine and its name there.
    #[display("{_0} {_2} on {_1}")]
    Component(ComponentKind, EngineKind, String),
    /// A service, in the target or with a container.
    Service(ServiceKey),
    /// A container that the engine failed to remove.
    #[display("container {_0}")]
    Container(ContainerId),
    /// The update locks of an app.
    #[display("locks of {_0}")]
    Locks(AppUuid),
    /// The store's records of an app.
    App(AppUuid),
    /// An engine as a whole; no step has this subject.
    #[display("{_0} engine")]
    Engine(EngineKind),
    /// A part of the host's configuration.
    #[display("the host's {_0}")]
    Host(HostPart),
    /// The next boot of the host.
    #[display("the reboot of the host")]
    Reboot,
    /// The version of the host's operating system.
    #[display("the operating system")]
    Os,
}

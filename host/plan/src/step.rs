//! The steps: each carries all that the executor needs, so that a plan can be printed and compared
//! untouched.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use device_types::plan::StepReason;
use model::{
    AppId, AppUuid, BootId, Commit, ContainerId, DesiredHost, DesiredService, EngineImageId,
    EngineKind, HostPart, ImageId, ImageRef, ServiceKey, ServiceName,
};

use crate::{ComponentKind, DesiredComponent};

/// Something to do now. All steps of one plan may run side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Downloads an image that the target needs and no engine holds.
    PullImage {
        /// As the target names it.
        image: ImageRef,
        /// `None` asks the registry which engine runs it.
        engine: Option<EngineKind>,
        /// The services that run it, for the records of whose image is whose.
        users: Vec<ImageUser>,
    },
    /// Removes an image that we pulled and that nothing uses, and forgets it.
    RemoveImage {
        /// As the record names it.
        image: ImageRef,
        /// `None` where no engine holds it, so that only the record goes.
        engine: Option<EngineKind>,
    },
    /// Makes a volume or network that the target has and its engine has not.
    CreateComponent {
        /// Where it is made.
        engine: EngineKind,
        /// What it is made from.
        component: DesiredComponent,
    },
    /// Removes a volume or network that nothing uses any more.
    RemoveComponent {
        /// Where it is.
        engine: EngineKind,
        /// Which of the two.
        kind: ComponentKind,
        /// As the engine knows it.
        name: String,
        /// Why it goes.
        reason: StepReason,
    },
    /// A container that the engine failed to remove.
    RemoveDead {
        /// The service that it was of.
        service: ServiceKey,
        /// The container to remove again.
        container: ContainerRef,
    },
    /// A container that is as the target wants it and was not started yet, or was stopped by us.
    /// It disturbs nothing, so it needs no lock.
    StartExisting {
        /// The app of the service, as the API numbers it.
        app_id: AppId,
        /// The service that it is of.
        service: ServiceKey,
        /// The container to start.
        container: ContainerRef,
    },
    /// Everything that disturbs a service; the locks of the whole app are held around it.
    UnderLocks(LockedWork),
    /// The release runs whole.
    RecordCommit {
        /// The app that the release is of.
        app: AppUuid,
        /// The release, from here on the app's current one.
        commit: Commit,
    },
    /// Nothing is left of the app.
    ForgetCommit {
        /// The app that is gone.
        app: AppUuid,
    },
    /// No step that needs the locks is left or can be taken now.
    ReleaseLocks {
        /// The app whose locks are held.
        app: AppUuid,
    },
    /// Brings a part of the host to what the target wants.
    Configure {
        /// The part that differs.
        part: HostPart,
        /// The whole of the wanted configuration; only `part` of it is applied.
        wanted: DesiredHost,
    },
    /// Everything else is done, and some of it takes effect with the next boot. It needs the locks of all
    /// apps, which are taken with it.
    Reboot {
        /// What waits for it, in words.
        reasons: Vec<String>,
    },
}

/// What needs the update locks of one app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedWork {
    /// The app whose locks are taken.
    pub app: AppUuid,
    /// The same app's number, by which the lock folders are named.
    pub app_id: AppId,
    /// Whose locks are taken: all services of the app, current and wanted.
    pub services: BTreeSet<ServiceName>,
    /// Different services side by side.
    pub work: Vec<ServiceWork>,
}

/// The steps of one service, in order: a failure leaves out the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceWork {
    /// The service that is disturbed.
    pub service: ServiceKey,
    /// What is done to it, each when the one before has succeeded.
    pub steps: Vec<LockedStep>,
}

/// A step that disturbs a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockedStep {
    /// Stops it and keeps the container.
    Stop {
        /// The container to stop.
        container: ContainerRef,
        /// What it is given to stop before it is killed.
        grace: Duration,
    },
    /// Stops it and removes the container.
    Kill {
        /// The container to remove.
        container: ContainerRef,
        /// What it is given to stop before it is killed.
        grace: Duration,
        /// Why it goes.
        reason: StepReason,
    },
    /// The release is another, the configuration the same.
    Rename {
        /// The container, running or not.
        container: ContainerRef,
        /// What it is called from here on: `<service>_<imageId>_<releaseId>_<commit>`
        /// (docs/spec/device.md#container-identity).
        name: String,
    },
    /// Removes the image of a container that is gone by then, before the next one is pulled. One that
    /// is in use after all is left.
    RemoveImage {
        /// The engine that holds it.
        engine: EngineKind,
        /// The image to remove.
        image: ImageRef,
    },
    /// Starts the new container beside the old one, which is killed when the new one says that it has
    /// taken over, or when `timeout` is over (docs/spec/device.md#hand-over).
    HandOver {
        /// The running container of the service.
        old: ContainerRef,
        /// What the old one is called meanwhile; `None` where it is called so already.
        rename: Option<String>,
        /// What the old one is given to stop before it is killed.
        grace: Duration,
        /// How long the new one has to say that it has taken over.
        timeout: Duration,
        /// Why the service is made anew.
        reason: StepReason,
        /// The new container.
        start: Box<StartService>,
    },
    /// Creates the container, and starts it where the target wants it running.
    Start(Box<StartService>),
}

/// A container to make and start: the last step of a new or replaced service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartService {
    /// Where it is made: the engine that holds the image.
    pub engine: EngineKind,
    /// What it is made from.
    pub service: DesiredService,
    /// What the service's image reference names now.
    pub image: EngineImageId,
    /// The container whose network stack it shares.
    pub network_container: Option<ContainerId>,
    /// It is made and not started: that is for the boot after this one.
    pub starts_after: Option<BootId>,
}

/// A container and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRef {
    /// The engine that has it.
    pub engine: EngineKind,
    /// The engine's id of it.
    pub id: ContainerId,
}

/// A service that an image is pulled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUser {
    /// The app of the service, as the API numbers it.
    pub app_id: AppId,
    /// The service that runs the image.
    pub service: ServiceKey,
    /// The image's number in the target, for this service.
    pub image_id: ImageId,
}

/// What a step is about. There is at most one step in flight for a subject, and failures are counted
/// by it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// An image, by its reference, whichever engine is to hold it.
    Image(ImageRef),
    /// A volume or network, by its engine and the name there.
    Component(ComponentKind, EngineKind, String),
    /// A service, in the target or with a container.
    Service(ServiceKey),
    /// A container that the engine failed to remove.
    Container(ContainerId),
    /// The update locks of an app.
    Locks(AppUuid),
    /// What the store holds of an app.
    App(AppUuid),
    /// An engine as a whole; no step is about it.
    Engine(EngineKind),
    /// A part of the host's configuration.
    Host(HostPart),
    /// The next boot of the host.
    Reboot,
}

impl Step {
    /// What this is about; [`Step::UnderLocks`] is about each service of its work as well.
    #[must_use]
    pub fn subject(&self) -> Subject {
        match self {
            Step::PullImage { image, .. } | Step::RemoveImage { image, .. } => {
                Subject::Image(image.clone())
            }
            Step::CreateComponent { engine, component } => Subject::Component(
                component.kind(),
                *engine,
                component.engine_name().to_owned(),
            ),
            Step::RemoveComponent {
                engine, kind, name, ..
            } => Subject::Component(*kind, *engine, name.clone()),
            Step::RemoveDead { container, .. } => Subject::Container(container.id.clone()),
            Step::StartExisting { service, .. } => Subject::Service(service.clone()),
            Step::UnderLocks(locked) => Subject::Locks(locked.app.clone()),
            Step::RecordCommit { app, .. } | Step::ForgetCommit { app } => {
                Subject::App(app.clone())
            }
            Step::ReleaseLocks { app } => Subject::Locks(app.clone()),
            Step::Configure { part, .. } => Subject::Host(*part),
            Step::Reboot { .. } => Subject::Reboot,
        }
    }
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
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::PullImage {
                image,
                engine: Some(engine),
                ..
            } => write!(f, "pull {image} on {engine}"),
            Step::PullImage { image, .. } => write!(f, "pull {image}"),
            Step::RemoveImage {
                image,
                engine: Some(engine),
            } => write!(f, "remove image {image} on {engine}"),
            Step::RemoveImage { image, .. } => write!(f, "forget image {image}"),
            Step::CreateComponent { engine, component } => {
                let (kind, name) = (component.kind(), component.engine_name());
                write!(f, "create {kind} {name} on {engine}")
            }
            Step::RemoveComponent {
                engine, kind, name, ..
            } => write!(f, "remove {kind} {name} on {engine}"),
            Step::RemoveDead { service, container } => {
                write!(f, "remove dead {service} ({})", container.id)
            }
            Step::StartExisting {
                service, container, ..
            } => {
                write!(f, "start existing {service} ({})", container.id)
            }
            Step::UnderLocks(locked) => locked.fmt(f),
            Step::RecordCommit { app, commit } => write!(f, "record commit {commit} of {app}"),
            Step::ForgetCommit { app } => write!(f, "forget commit of {app}"),
            Step::ReleaseLocks { app } => write!(f, "release locks of {app}"),
            Step::Configure { part, .. } => write!(f, "configure the host's {part}"),
            Step::Reboot { reasons } => write!(f, "reboot for {}", reasons.join(", ")),
        }
    }
}

impl fmt::Display for LockedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let services: Vec<&str> = self.services.iter().map(ServiceName::as_str).collect();
        write!(f, "under locks of {} ({})", self.app, services.join(", "))?;
        for work in &self.work {
            let service = &work.service;
            for step in &work.steps {
                match step {
                    LockedStep::Stop { container, .. } => {
                        write!(f, "\n  stop {service} ({})", container.id)?;
                    }
                    LockedStep::Kill { container, .. } => {
                        write!(f, "\n  kill {service} ({})", container.id)?;
                    }
                    LockedStep::RemoveImage { engine, image } => {
                        write!(f, "\n  remove image {image} on {engine}")?;
                    }
                    LockedStep::HandOver { old, start, .. } => {
                        let engine = start.engine;
                        write!(f, "\n  hand {service} ({}) over on {engine}", old.id)?;
                    }
                    LockedStep::Rename { name, .. } => write!(f, "\n  rename {service} to {name}")?,
                    LockedStep::Start(start) => {
                        let starts = start.service.running && start.starts_after.is_none();
                        let verb = if starts { "start" } else { "create" };
                        write!(f, "\n  {verb} {service} on {}", start.engine)?;
                        if let Some(container) = &start.network_container {
                            write!(f, " in the network of {container}")?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

//! The steps. Each carries everything that the executor needs, so that a plan can be printed and compared as data.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use device_types::plan::StepReason;
use model::{
    AppId, AppUuid, BootId, Commit, ContainerId, DesiredHost, DesiredOs, DesiredService,
    EngineImageId, EngineKind, HostPart, ImageId, ImageRef, OsVersion, ServiceKey, ServiceName,
};

use crate::component::{ComponentKind, DesiredComponent};
use crate::subject::Subject;

/// A step to take now. All steps of one plan may run in parallel.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum Step {
    /// Downloads an image that the target needs and no engine holds.
    #[display("pull {image}{}", on(engine.as_ref()))]
    PullImage {
        /// The image reference in the target.
        image: ImageRef,
        /// The engine that pulls it; if `None`, the registry is queried for the engine that runs it.
        engine: Option<EngineKind>,
        /// The services that use the image, for the image records.
        users: Vec<ImageUser>,
    },
    /// Removes an image that the supervisor pulled and that nothing uses, and its record.
    #[display("{} image {image}{}", if engine.is_some() { "remove" } else { "forget" }, on(engine.as_ref()))]
    RemoveImage {
        /// The image reference in the record.
        image: ImageRef,
        /// The engine that has it; `None` if only the record is left.
        engine: Option<EngineKind>,
    },
    /// Creates a volume or network of the target that its engine does not have.
    #[display("create {} {} on {engine}", component.kind(), component.engine_name())]
    CreateComponent {
        /// The engine that creates it.
        engine: EngineKind,
        /// The configuration from which it is created.
        component: DesiredComponent,
    },
    /// Removes a volume or network that nothing uses any more.
    #[display("remove {kind} {name} on {engine}")]
    RemoveComponent {
        /// The engine that has it.
        engine: EngineKind,
        /// Whether it is a volume or a network.
        kind: ComponentKind,
        /// Its name at the engine.
        name: String,
        /// Why it is removed.
        reason: StepReason,
    },
    /// Removes a container that the engine failed to remove, or keeps refusing to start.
    #[display("remove dead {service} ({})", container.id)]
    RemoveDead {
        /// The service of the container.
        service: ServiceKey,
        /// The container to remove again.
        container: ContainerRef,
    },
    /// Starts a container that matches the target and was not started yet, or was stopped by the supervisor. It
    /// disturbs nothing, so it needs no lock.
    #[display("start existing {service} ({})", container.id)]
    StartExisting {
        /// The app of the service, as the API numbers it.
        app_id: AppId,
        /// The service of the container.
        service: ServiceKey,
        /// The container to start.
        container: ContainerRef,
    },
    /// Steps that disturb services; meanwhile the locks of the whole app are held.
    UnderLocks(LockedWork),
    /// Records that a release runs completely.
    #[display("record commit {commit} of {app}")]
    RecordCommit {
        /// The app of the release.
        app: AppUuid,
        /// The release, which becomes the app's current one.
        commit: Commit,
    },
    /// Deletes the record of an app of which nothing is left.
    #[display("forget commit of {app}")]
    ForgetCommit {
        /// The app.
        app: AppUuid,
    },
    /// Releases the locks, because no step that needs them is left or can be taken now.
    #[display("release locks of {app}")]
    ReleaseLocks {
        /// The app whose locks are held.
        app: AppUuid,
    },
    /// Changes a part of the host to match the target.
    #[display("configure the host's {part}")]
    Configure {
        /// The part that differs.
        part: HostPart,
        /// The complete desired configuration; only `part` of it is applied.
        desired: DesiredHost,
    },
    /// Has a version of the operating system installed next to the running one. The step ends when the installation has
    /// begun.
    #[display("stage version {} of the operating system", os.version)]
    StageOs {
        /// The version, and its location.
        os: DesiredOs,
    },
    /// Makes every later boot start the running version of the operating system, which is healthy.
    #[display("commit version {version} of the operating system")]
    CommitOs {
        /// The version.
        version: OsVersion,
    },
    /// Makes the next boot start the version before this one.
    #[display("roll back version {version} of the operating system")]
    RollBackOs {
        /// The version that is rolled back.
        version: OsVersion,
    },
    /// Reboots the host, because everything else is done and some of it takes effect with the next boot. Needs the
    /// locks of all apps, which are taken as part of the step.
    #[display("{}reboot for {}", before_reboot(activates.as_ref()), reasons.join(", "))]
    Reboot {
        /// What needs the reboot, in words.
        reasons: Vec<String>,
        /// The version of the operating system that the boot should start, which is activated under the same locks.
        activates: Option<OsVersion>,
    },
}

/// The steps that need the update locks of one app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedWork {
    /// The app whose locks are taken.
    pub app: AppUuid,
    /// The same app's number, by which the lock folders are named.
    pub app_id: AppId,
    /// The services whose locks are taken: all of the app, current and desired.
    pub services: BTreeSet<ServiceName>,
    /// The work on each service; different services run in parallel.
    pub work: Vec<ServiceWork>,
}

/// The steps of one service, in order: after a failure the remaining ones are skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceWork {
    /// The service that is disturbed.
    pub service: ServiceKey,
    /// The steps, each taken after the previous one has succeeded.
    pub steps: Vec<LockedStep>,
}

/// A step that disturbs a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockedStep {
    /// Stops the container and keeps it.
    Stop {
        /// The container to stop.
        container: ContainerRef,
        /// The time that it has to stop before it is killed.
        grace: Duration,
    },
    /// Stops the container and removes it.
    Kill {
        /// The container to remove.
        container: ContainerRef,
        /// The time that it has to stop before it is killed.
        grace: Duration,
        /// Why it is removed.
        reason: StepReason,
    },
    /// Renames a container whose release has changed but whose configuration has not.
    Rename {
        /// The container, running or not.
        container: ContainerRef,
        /// The new name: `<service>_<imageId>_<releaseId>_<commit>`
        /// (docs/spec/device.md#container-identity).
        name: String,
    },
    /// Removes the image of a container that has been removed, before the next one is pulled. An image that is still
    /// in use stays.
    RemoveImage {
        /// The engine that holds it.
        engine: EngineKind,
        /// The image to remove.
        image: ImageRef,
    },
    /// Starts the new container next to the old one, which is killed when the new one reports that it has taken over,
    /// or when `timeout` is over (docs/spec/device.md#hand-over).
    HandOver {
        /// The running container of the service.
        old: ContainerRef,
        /// The temporary name of the old one; `None` if it already has that name.
        rename: Option<String>,
        /// The time that the old one has to stop before it is killed.
        grace: Duration,
        /// How long the new one may take to report that it has taken over.
        timeout: Duration,
        /// Why the service is recreated.
        reason: StepReason,
        /// The new container.
        start: Box<StartService>,
    },
    /// Creates the container, and starts it if it should run.
    Start(Box<StartService>),
}

/// A container to create and start: the last step of a new or replaced service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartService {
    /// The engine that creates it, which has the image.
    pub engine: EngineKind,
    /// The configuration from which it is created.
    pub service: DesiredService,
    /// The image to which the service's reference currently refers.
    pub image: EngineImageId,
    /// The container whose network stack it shares.
    pub network_container: Option<ContainerId>,
    /// If set, the container is created but not started: it starts in a boot after this one.
    pub starts_after: Option<BootId>,
}

/// A container and its engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRef {
    /// The engine that has it.
    pub engine: EngineKind,
    /// Its id at the engine.
    pub id: ContainerId,
}

/// A service for which an image is pulled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUser {
    /// The app of the service, as the API numbers it.
    pub app_id: AppId,
    /// The service that runs the image.
    pub service: ServiceKey,
    /// The image's number in the target, for this service.
    pub image_id: ImageId,
}

impl Step {
    /// Returns the subject of the step; [`Step::UnderLocks`] also concerns each service of its work.
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
            Step::StageOs { .. } | Step::CommitOs { .. } | Step::RollBackOs { .. } => Subject::Os,
            Step::Reboot { .. } => Subject::Reboot,
        }
    }
}

/// Returns the end of a step's text that names its engine, if it has one.
fn on(engine: Option<&EngineKind>) -> String {
    engine.map_or_else(String::new, |engine| format!(" on {engine}"))
}

fn before_reboot(version: Option<&OsVersion>) -> String {
    let activate = |version| format!("activate version {version} of the operating system, and ");
    version.map_or_else(String::new, activate)
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

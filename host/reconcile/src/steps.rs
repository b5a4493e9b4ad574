//! The steps themselves: each does what the plan says, tells the loop what came of it, and decides
//! nothing. Functions that disturb a service ask for the guard of its locks.

use std::sync::Arc;
use std::time::Duration;

use engine::{ContainerSpec, Engine, EngineError, Engines, NetworkSpec, PullProgress, VolumeSpec};
use model::{
    AppId, AppUuid, BOOT_LABEL, Branding, Commit, Container, ContainerState, DesiredNetwork,
    DesiredVolume, EngineKind, ImageRef, Network, ServiceKey, ServiceState, Volume, error_chain,
};
use plan::{ContainerRef, ImageUser, LockedStep, ServiceWork, StartService, Step};
use store::Definition;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Semaphore, watch};

use crate::definitions;
use crate::extra_firmware;
use crate::hand_over::{self, HandOver};
use crate::health::Health;
use crate::journal::Journal;
use crate::logs::LogHub;
use crate::messages::{Kept, Message, StepFailure};
use crate::progress::Progress;
use crate::tally::Counts;
use crate::targets::Targets;
use crate::view::{Effect, NETWORK_CONTAINER_LABEL};
use crate::{Happening, Host, InForce, Locks, Moments, Signing, UpdateLocks};

/// What every step may use.
pub(crate) struct World {
    pub engines: Engines,
    pub branding: Branding,
    pub journal: Journal,
    pub locks: Locks,
    pub hub: LogHub,
    pub host: Arc<dyn Host>,
    pub in_force: watch::Sender<Arc<InForce>>,
    pub progress: Arc<Progress>,
    pub health: Health,
    pub counts: Counts,
    /// What callers are told of targets and of local mode.
    pub targets: watch::Sender<Targets>,
    pub signing: watch::Sender<Arc<Signing>>,
    pub happened: Arc<dyn Fn(Happening) + Send + Sync>,
    pub moments: Moments,
    pub pulls: Semaphore,
    pub steps: Semaphore,
    pub loop_: UnboundedSender<Message>,
}

pub(crate) type Outcome = Result<(), StepFailure>;

impl World {
    /// Tells the loop; one that has ended needs to know nothing.
    pub(crate) fn tell(&self, message: Message) {
        let _ = self.loop_.send(message);
    }

    pub(crate) fn effect(&self, effect: Effect) {
        self.tell(Message::Effect(effect));
    }

    pub(crate) fn engine(&self, kind: EngineKind) -> Result<&Arc<dyn Engine>, StepFailure> {
        let missing = || StepFailure::new(format!("this device has no {kind} engine"));
        self.engines.get(kind).ok_or_else(missing)
    }

    pub(crate) fn log(&self, line: impl Into<String>) {
        self.hub.system(line.into());
    }

    /// Keeps what something is about to be made from.
    async fn define(&self, definition: serde_json::Result<Definition>) -> Outcome {
        let definition = definition.map_err(|error| StepFailure::new(error_chain(&error)))?;
        let kept = self.journal.put_definition(definition.clone()).await;
        kept.map_err(StepFailure::new)?;
        self.tell(Message::Kept(Kept::Definition(definition)));
        Ok(())
    }

    /// Logs why `what` failed, and answers it as the step's failure.
    fn failed(&self, what: &str, error: &EngineError) -> StepFailure {
        let reason = error_chain(error);
        self.log(format!("Failed to {what} due to '{reason}'"));
        StepFailure::new(reason)
    }
}

/// A step that needs no lock.
pub(crate) async fn take(world: &World, step: Step) -> Outcome {
    match step {
        Step::PullImage {
            image,
            engine,
            users,
        } => pull_image(world, &image, engine, &users).await,
        Step::RemoveImage { image, engine } => remove_image(world, &image, engine).await,
        Step::CreateVolume { engine, volume } => create_volume(world, engine, volume).await,
        Step::RemoveVolume { engine, name } => remove_volume(world, engine, name).await,
        Step::CreateNetwork { engine, network } => create_network(world, engine, network).await,
        Step::RemoveNetwork { engine, name } => remove_network(world, engine, name).await,
        Step::RemoveDead { container, .. } => {
            let engine = world.engine(container.engine)?;
            let removed = engine.remove_container(&container.id).await;
            removed.map_err(|error| world.failed("remove a dead container", &error))?;
            world.effect(Effect::ContainerRemoved(container.engine, container.id));
            Ok(())
        }
        Step::StartExisting {
            app_id,
            service,
            container,
        } => start_existing(world, app_id, &service, &container).await,
        Step::RecordCommit { app, commit } => record_commit(world, app, commit).await,
        Step::ForgetCommit { app } => {
            let kept = world.journal.forget_commit(app.clone()).await;
            kept.map_err(StepFailure::new)?;
            world.tell(Message::Kept(Kept::NoCommit(app)));
            Ok(())
        }
        Step::Configure { part, wanted } => {
            world.log(format!("Changing the host's {part}"));
            let configured = world.host.configure(part, &wanted).await;
            // Whatever came of it, the host is another now.
            world.tell(Message::HostChanged);
            configured.map_err(|why| {
                world.log(format!("Failed to change the host's {part} due to '{why}'"));
                StepFailure::new(why)
            })
        }
        // The loop's own: they are about its guards, and about all services.
        Step::UnderLocks(_) | Step::ReleaseLocks { .. } | Step::Reboot { .. } => Ok(()),
    }
}

async fn pull_image(
    world: &World,
    image: &ImageRef,
    engine: Option<EngineKind>,
    users: &[ImageUser],
) -> Outcome {
    let _permit = world.pulls.acquire().await;
    world.log(format!("Downloading image '{image}'"));
    let first = std::sync::Once::new();
    let progress = |at: PullProgress| {
        world.progress.set(image, at.percent);
        first.call_once(|| world.moments.reached("in-pull"));
    };
    let account = world.engines.account_for(image);
    let pulling = async {
        let kind = match engine {
            Some(kind) => kind,
            None => {
                let kind = world.engines.kind_of(image, account).await?;
                // Told before the image is there, so that its networks are made meanwhile.
                world.tell(Message::Kind(image.clone(), kind));
                kind
            }
        };
        match world.engines.get(kind) {
            Some(engine) => engine.pull_image(image, account, &progress).await,
            None => Err(EngineError::Invalid(format!(
                "it runs on the {kind} engine, which this device does not have"
            ))),
        }
    };
    // While the transfer begins, and well before it ends: an image that a killed supervisor pulled and
    // did not record would be nobody's to remove.
    let recording = async {
        let kept = world.journal.record_image(image.clone(), users).await;
        if kept.is_ok() {
            world.tell(Message::Kept(Kept::Image(image.clone())));
        }
        kept
    };
    let (kept, pulled) = futures::join!(recording, pulling);
    kept.map_err(StepFailure::new)?;
    let mut pulled =
        pulled.map_err(|error| world.failed(&format!("download image '{image}'"), &error))?;
    first.call_once(|| world.moments.reached("in-pull"));
    world.log(format!("Downloaded image '{image}'"));
    // An engine may list it by another form of the reference; the one that was asked for names it too.
    if !pulled.references.contains(image) {
        pulled.references.push(image.clone());
    }
    world.effect(Effect::Pulled(pulled));
    Ok(())
}

async fn remove_image(world: &World, image: &ImageRef, engine: Option<EngineKind>) -> Outcome {
    if let Some(kind) = engine {
        world.log(format!("Deleting image '{image}'"));
        match world.engine(kind)?.remove_image(image).await {
            Ok(()) => {
                world.effect(Effect::ImageRemoved(kind, image.clone()));
                world.log(format!("Deleted image '{image}'"));
            }
            // Somebody else's container uses it by now: it is no longer ours to remove.
            Err(EngineError::InUse { .. }) => {}
            Err(error) => return Err(world.failed(&format!("delete image '{image}'"), &error)),
        }
    }
    let kept = world.journal.forget_image(image.clone()).await;
    kept.map_err(StepFailure::new)?;
    world.tell(Message::Kept(Kept::NoImage(image.clone())));
    Ok(())
}

async fn create_volume(world: &World, engine: EngineKind, volume: DesiredVolume) -> Outcome {
    let name = &volume.engine_name;
    world.define(definitions::of_volume(&volume)).await?;
    world.log(format!("Creating volume '{name}'"));
    let spec = VolumeSpec {
        name,
        config: &volume.config,
    };
    let made = world.engine(engine)?.create_volume(&spec).await;
    made.map_err(|error| world.failed(&format!("create volume '{name}'"), &error))?;
    world.effect(Effect::VolumeMade(Volume {
        engine,
        name: volume.engine_name,
        labels: volume.config.labels,
    }));
    Ok(())
}

async fn remove_volume(world: &World, engine: EngineKind, name: String) -> Outcome {
    world.log(format!("Removing volume '{name}'"));
    let removed = world.engine(engine)?.remove_volume(&name).await;
    removed.map_err(|error| world.failed(&format!("remove volume '{name}'"), &error))?;
    world.effect(Effect::VolumeRemoved(engine, name));
    Ok(())
}

async fn create_network(world: &World, engine: EngineKind, network: DesiredNetwork) -> Outcome {
    let name = &network.engine_name;
    world.define(definitions::of_network(&network)).await?;
    world.log(format!("Creating network '{name}'"));
    let spec = NetworkSpec {
        name,
        config: &network.config,
    };
    match world.engine(engine)?.create_network(&spec).await {
        Ok(()) => {}
        // The network of the API may be shared with another supervisor of this machine.
        Err(EngineError::Conflict { .. }) if *name == world.branding.network => {
            world.tell(Message::Effect(Effect::ApiNetworkIsShared(engine)));
            return Ok(());
        }
        Err(error) => return Err(world.failed(&format!("create network '{name}'"), &error)),
    }
    world.effect(Effect::NetworkMade(Network {
        engine,
        // Nobody asks for it before it is listed.
        id: String::new(),
        name: network.engine_name,
        labels: network.config.labels,
    }));
    Ok(())
}

async fn remove_network(world: &World, engine: EngineKind, name: String) -> Outcome {
    world.log(format!("Removing network '{name}'"));
    let removed = world.engine(engine)?.remove_network(&name).await;
    removed.map_err(|error| world.failed(&format!("remove network '{name}'"), &error))?;
    world.effect(Effect::NetworkRemoved(engine, name));
    Ok(())
}

async fn start_existing(
    world: &World,
    app_id: AppId,
    service: &ServiceKey,
    container: &ContainerRef,
) -> Outcome {
    let name = &service.service;
    // The folder that is mounted into it may have gone with a reboot.
    let (locks, prepared) = (world.locks.clone(), name.clone());
    let prepared = tokio::task::spawn_blocking(move || locks.prepare(app_id, &prepared));
    if let Ok(Err(error)) = prepared.await {
        tracing::warn!(%error, "failed to make the lock folder of `{name}`");
    }
    world.tell(Message::Doing(service.clone(), ServiceState::Starting));
    world.log(format!("Starting service '{name}'"));
    let started = world
        .engine(container.engine)?
        .start_container(&container.id)
        .await;
    started.map_err(|error| start_failure(world, service, &error))?;
    // From now on it is its restart policy's again: one that ends at once is not started once more.
    if let Err(why) = world.journal.forget_stop(container.id.clone()).await {
        tracing::warn!("failed to forget a stop of `{}`: {why}", container.id);
    }
    world.tell(Message::Kept(Kept::NotStopped(container.id.clone())));
    world.effect(Effect::ContainerIs(
        container.engine,
        container.id.clone(),
        ContainerState::Running,
    ));
    world.log(format!("Started service '{name}'"));
    Ok(())
}

async fn record_commit(world: &World, app: AppUuid, commit: Commit) -> Outcome {
    let kept = world.journal.set_commit(app.clone(), commit.clone()).await;
    kept.map_err(StepFailure::new)?;
    world.tell(Message::Kept(Kept::Commit(app, commit)));
    Ok(())
}

/// The steps of one service, in order.
pub(crate) async fn under_locks(world: &World, work: ServiceWork, locks: &UpdateLocks) -> Outcome {
    let service = work.service;
    for step in work.steps {
        match step {
            LockedStep::Stop { container, grace } => {
                stop(world, &service, &container, grace, locks).await?;
            }
            LockedStep::Kill { container, grace } => {
                kill(world, &service, &container, grace, locks).await?;
            }
            LockedStep::Rename { container, name } => {
                rename(world, &service, &container, name, locks).await?;
            }
            LockedStep::RemoveImage { engine, image } => {
                // The kill was what mattered: an image that stays costs room, and the pull will say so.
                if let Err(failure) = remove_image(world, &image, Some(engine)).await {
                    tracing::warn!("failed to remove the image `{image}`: {}", failure.reason);
                }
            }
            LockedStep::HandOver {
                old,
                rename,
                grace,
                timeout,
                start,
            } => {
                let over = HandOver {
                    old: &old,
                    rename,
                    grace,
                    timeout,
                };
                hand_over::hand_over(world, &service, over, *start, locks).await?;
            }
            LockedStep::Start(start) => create_and_start(world, *start, locks).await?,
        }
    }
    Ok(())
}

async fn stop(
    world: &World,
    service: &ServiceKey,
    container: &ContainerRef,
    grace: Duration,
    _locks: &UpdateLocks,
) -> Outcome {
    let name = &service.service;
    remember_stop(world, container).await?;
    world.tell(Message::Doing(service.clone(), ServiceState::Stopping));
    world.log(format!("Stopping service '{name}'"));
    let stopped = world
        .engine(container.engine)?
        .stop_container(&container.id, grace)
        .await;
    stopped.map_err(|error| world.failed(&format!("stop service '{name}'"), &error))?;
    world.effect(Effect::ContainerIs(
        container.engine,
        container.id.clone(),
        ContainerState::Exited,
    ));
    world.log(format!("Stopped service '{name}'"));
    Ok(())
}

pub(crate) async fn kill(
    world: &World,
    service: &ServiceKey,
    container: &ContainerRef,
    grace: Duration,
    _locks: &UpdateLocks,
) -> Outcome {
    let name = &service.service;
    // Between the stop and the removal the target may become what this container was made for: then it
    // must be started again, which it is for no container that ended by itself.
    remember_stop(world, container).await?;
    world.tell(Message::Doing(service.clone(), ServiceState::Stopping));
    world.log(format!("Killing service '{name}'"));
    let engine = world.engine(container.engine)?;
    let killed = async {
        engine.stop_container(&container.id, grace).await?;
        engine.remove_container(&container.id).await
    };
    let killed = killed.await;
    killed.map_err(|error| world.failed(&format!("kill service '{name}'"), &error))?;
    world.effect(Effect::ContainerRemoved(
        container.engine,
        container.id.clone(),
    ));
    world.log(format!("Killed service '{name}'"));
    world.moments.reached("killed-not-started");
    Ok(())
}

pub(crate) async fn rename(
    world: &World,
    service: &ServiceKey,
    container: &ContainerRef,
    name: String,
    _locks: &UpdateLocks,
) -> Outcome {
    let renamed = world
        .engine(container.engine)?
        .rename_container(&container.id, &name)
        .await;
    let what = format!("rename service '{}'", service.service);
    renamed.map_err(|error| world.failed(&what, &error))?;
    world.effect(Effect::ContainerNamed(
        container.engine,
        container.id.clone(),
        name,
    ));
    world.moments.reached("renamed");
    Ok(())
}

pub(crate) async fn create_and_start(
    world: &World,
    start: StartService,
    _locks: &UpdateLocks,
) -> Outcome {
    let StartService {
        engine: kind,
        service,
        image,
        network_container,
        starts_after,
    } = start;
    let engine = world.engine(kind)?;
    let label = format!("'{} {}'", service.key.service, service.config.image);
    world.tell(Message::Doing(
        service.key.clone(),
        ServiceState::Installing,
    ));
    world.log(format!("Installing service {label}"));
    world.define(definitions::of_service(&service)).await?;
    let name = service.container_name();
    let mut config = service.config;
    if let Some(container) = &network_container {
        let label = world.branding.label(NETWORK_CONTAINER_LABEL);
        config.labels.insert(label, container.to_string());
    }
    if let Some(boot) = &starts_after {
        let label = world.branding.label(BOOT_LABEL);
        config.labels.insert(label, boot.to_string());
    }
    let spec = ContainerSpec {
        name: &name,
        config: &config,
        init_environment: &service.init_environment,
        image_id: &image,
        network_container: network_container.as_ref(),
    };
    let created = async {
        extra_firmware::ensure(world, engine.as_ref(), spec.config).await?;
        engine.create_container(&spec).await
    };
    let created = created.await;
    let created =
        created.map_err(|error| world.failed(&format!("install service {label}"), &error))?;
    for warning in &created.warnings {
        world.log(format!("Warning for service {label}: {warning}"));
    }
    let id = created.id;
    world.effect(Effect::ContainerMade(Container {
        engine: kind,
        id: id.clone(),
        name,
        labels: config.labels,
        image: config.image.to_string(),
        image_id: image,
        state: ContainerState::Created,
        exit_code: None,
        created_at_ms: crate::clock::now_ms(),
    }));
    world.moments.reached("after-create");
    if !service.running || starts_after.is_some() {
        world.log(format!("Installed service {label}"));
        return Ok(());
    }
    world.tell(Message::Doing(service.key.clone(), ServiceState::Starting));
    world.log(format!("Starting service {label}"));
    let started = engine.start_container(&id).await;
    started.map_err(|error| start_failure(world, &service.key, &error))?;
    world.effect(Effect::ContainerIs(kind, id, ContainerState::Running));
    world.log(format!("Started service {label}"));
    Ok(())
}

async fn remember_stop(world: &World, container: &ContainerRef) -> Outcome {
    let kept = world.journal.remember_stop(container.id.clone()).await;
    kept.map_err(StepFailure::new)?;
    world.tell(Message::Kept(Kept::Stopped(container.id.clone())));
    Ok(())
}

fn start_failure(world: &World, service: &ServiceKey, error: &EngineError) -> StepFailure {
    let name = &service.service;
    let mut reason = error_chain(error);
    if reason.to_ascii_lowercase().contains("exec format error") {
        reason
            .push_str(": the image is made for another processor architecture than this device's");
    }
    world.log(format!(
        "Failed to start service '{name}' due to '{reason}'"
    ));
    StepFailure::new(reason)
}

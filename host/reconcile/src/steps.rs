//! The steps themselves: each does what the plan says, tells the loop what came of it, and decides
//! nothing. Functions that disturb a service ask for the guard of its locks.

use std::sync::Arc;
use std::time::Duration;

use device_types::event::{Audience, Event};
use engine::{ContainerSpec, Engine, EngineError, Engines, NetworkSpec, PullProgress, VolumeSpec};
use model::{
    AppId, AppUuid, BOOT_LABEL, Branding, Commit, Container, ContainerState, DesiredNetwork,
    DesiredVolume, EngineKind, ImageRef, Network, ServiceKey, ServiceState, Volume, error_chain,
};
use plan::{
    ComponentKind, ContainerRef, DesiredComponent, ImageUser, LockedStep, ServiceWork,
    StartService, Step,
};
use store::Definition;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Semaphore, watch};

use crate::config::OnEvent;
use crate::counters::Counters;
use crate::definitions;
use crate::extra_firmware;
use crate::hand_over::{self, HandOver};
use crate::health::Health;
use crate::logs::LogHub;
use crate::messages::{Message, StepFailure, StoredRecord};
use crate::persistence::Persistence;
use crate::progress::Progress;
use crate::targets::Targets;
use crate::view::{Effect, NETWORK_CONTAINER_LABEL};
use crate::{EffectiveSettings, Host, Locks, Moments, SigningState, UpdateLocks};

/// What every step may use.
pub(crate) struct StepContext {
    pub engines: Engines,
    pub branding: Branding,
    pub journal: Persistence,
    pub locks: Locks,
    pub host: Arc<dyn Host>,
    pub telemetry: Telemetry,
    pub channels: TargetChannels,
    pub moments: Moments,
    pub pulls: Semaphore,
    pub steps: Semaphore,
    pub messages: UnboundedSender<Message>,
}

/// What the loop and its steps record of their work, for whoever watches the device. It decides nothing.
pub(crate) struct Telemetry {
    pub hub: LogHub,
    pub progress: Arc<Progress>,
    pub health: Health,
    pub counters: Counters,
    on_event: OnEvent,
}

impl Telemetry {
    pub(crate) fn new(hub: LogHub, on_event: OnEvent) -> Self {
        Telemetry {
            hub,
            progress: Arc::default(),
            health: Health::default(),
            counters: Counters::default(),
            on_event,
        }
    }

    pub(crate) fn send_event(&self, audience: Audience, event: Event) {
        (self.on_event)(audience, event);
    }
}

/// What callers and other parts of the supervisor see of the targets, each with its changes.
pub(crate) struct TargetChannels {
    /// The targets of all sources, and where local mode stands.
    pub targets: watch::Sender<Targets>,
    pub effective_settings: watch::Sender<Arc<EffectiveSettings>>,
    pub signing: watch::Sender<Arc<SigningState>>,
}

impl TargetChannels {
    pub(crate) fn new(targets: Targets, signing: SigningState) -> Self {
        TargetChannels {
            targets: watch::Sender::new(targets),
            effective_settings: watch::Sender::default(),
            signing: watch::Sender::new(Arc::new(signing)),
        }
    }
}

pub(crate) type StepResult = Result<(), StepFailure>;

impl StepContext {
    /// Tells the loop; one that has ended needs to know nothing.
    pub(crate) fn tell(&self, message: Message) {
        let _ = self.messages.send(message);
    }

    pub(crate) fn effect(&self, effect: Effect) {
        self.tell(Message::Effect(effect));
    }

    pub(crate) fn engine(&self, kind: EngineKind) -> Result<&Arc<dyn Engine>, StepFailure> {
        let missing = || StepFailure::new(format!("this device has no {kind} engine"));
        self.engines.get(kind).ok_or_else(missing)
    }

    pub(crate) fn log(&self, line: impl Into<String>) {
        self.telemetry.hub.system(line.into());
    }

    /// Keeps what something is about to be made from.
    async fn define(&self, definition: serde_json::Result<Definition>) -> StepResult {
        let definition = definition.map_err(|error| StepFailure::new(error_chain(&error)))?;
        let kept = self.journal.put_definition(definition.clone()).await;
        kept.map_err(StepFailure::new)?;
        self.tell(Message::Stored(StoredRecord::Definition(definition)));
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
pub(crate) async fn execute(context: &StepContext, step: Step) -> StepResult {
    match step {
        Step::PullImage {
            image,
            engine,
            users,
        } => pull_image(context, &image, engine, &users).await,
        Step::RemoveImage { image, engine } => remove_image(context, &image, engine).await,
        Step::CreateComponent { engine, component } => match component {
            DesiredComponent::Volume(volume) => create_volume(context, engine, volume).await,
            DesiredComponent::Network(network) => create_network(context, engine, network).await,
        },
        Step::RemoveComponent {
            engine, kind, name, ..
        } => remove_component(context, engine, kind, name).await,
        Step::RemoveDead { container, .. } => {
            let engine = context.engine(container.engine)?;
            let removed = engine.remove_container(&container.id).await;
            removed.map_err(|error| context.failed("remove a dead container", &error))?;
            context.effect(Effect::ContainerRemoved(container.engine, container.id));
            Ok(())
        }
        Step::StartExisting {
            app_id,
            service,
            container,
        } => start_existing(context, app_id, &service, &container).await,
        Step::RecordCommit { app, commit } => record_commit(context, app, commit).await,
        Step::ForgetCommit { app } => {
            let kept = context.journal.forget_commit(app.clone()).await;
            kept.map_err(StepFailure::new)?;
            context.tell(Message::Stored(StoredRecord::NoCommit(app)));
            Ok(())
        }
        Step::Configure { part, wanted } => {
            context.log(format!("Changing the host's {part}"));
            let configured = context.host.configure(part, &wanted).await;
            // Whatever came of it, the host is another now.
            context.tell(Message::HostChanged);
            configured.map_err(|why| {
                context.log(format!("Failed to change the host's {part} due to '{why}'"));
                StepFailure::new(why)
            })
        }
        // The loop's own: they are about its guards, and about all services.
        Step::UnderLocks(_) | Step::ReleaseLocks { .. } | Step::Reboot { .. } => Ok(()),
    }
}

async fn pull_image(
    context: &StepContext,
    image: &ImageRef,
    engine: Option<EngineKind>,
    users: &[ImageUser],
) -> StepResult {
    let _permit = context.pulls.acquire().await;
    context.log(format!("Downloading image '{image}'"));
    let first = std::sync::Once::new();
    let progress = |at: PullProgress| {
        context.telemetry.progress.set(image, at.percent);
        first.call_once(|| context.moments.reached("in-pull"));
    };
    let account = context.engines.account_for(image);
    let pulling = async {
        let kind = match engine {
            Some(kind) => kind,
            None => {
                let kind = context.engines.kind_of(image, account).await?;
                // Told before the image is there, so that its networks are made meanwhile.
                context.tell(Message::Kind(image.clone(), kind));
                kind
            }
        };
        match context.engines.get(kind) {
            Some(engine) => engine.pull_image(image, account, &progress).await,
            None => Err(EngineError::Invalid(format!(
                "it runs on the {kind} engine, which this device does not have"
            ))),
        }
    };
    // While the transfer begins, and well before it ends: an image that a killed supervisor pulled and
    // did not record would be nobody's to remove.
    let recording = async {
        let kept = context.journal.record_image(image.clone(), users).await;
        if kept.is_ok() {
            context.tell(Message::Stored(StoredRecord::Image(image.clone())));
        }
        kept
    };
    let (kept, pulled) = futures::join!(recording, pulling);
    kept.map_err(StepFailure::new)?;
    let mut pulled =
        pulled.map_err(|error| context.failed(&format!("download image '{image}'"), &error))?;
    first.call_once(|| context.moments.reached("in-pull"));
    context.log(format!("Downloaded image '{image}'"));
    // An engine may list it by another form of the reference; the one that was asked for names it too.
    if !pulled.references.contains(image) {
        pulled.references.push(image.clone());
    }
    context.effect(Effect::Pulled(pulled));
    Ok(())
}

async fn remove_image(
    context: &StepContext,
    image: &ImageRef,
    engine: Option<EngineKind>,
) -> StepResult {
    if let Some(kind) = engine {
        context.log(format!("Deleting image '{image}'"));
        match context.engine(kind)?.remove_image(image).await {
            Ok(()) => {
                context.effect(Effect::ImageRemoved(kind, image.clone()));
                context.log(format!("Deleted image '{image}'"));
            }
            // Somebody else's container uses it by now: it is no longer ours to remove.
            Err(EngineError::InUse { .. }) => {}
            Err(error) => return Err(context.failed(&format!("delete image '{image}'"), &error)),
        }
    }
    let kept = context.journal.forget_image(image.clone()).await;
    kept.map_err(StepFailure::new)?;
    context.tell(Message::Stored(StoredRecord::NoImage(image.clone())));
    Ok(())
}

async fn create_volume(
    context: &StepContext,
    engine: EngineKind,
    volume: DesiredVolume,
) -> StepResult {
    let name = &volume.engine_name;
    context.define(definitions::of_volume(&volume)).await?;
    context.log(format!("Creating volume '{name}'"));
    let spec = VolumeSpec {
        name,
        config: &volume.config,
    };
    let made = context.engine(engine)?.create_volume(&spec).await;
    made.map_err(|error| context.failed(&format!("create volume '{name}'"), &error))?;
    context.effect(Effect::VolumeMade(Volume {
        engine,
        name: volume.engine_name,
        labels: volume.config.labels,
    }));
    Ok(())
}

async fn remove_component(
    context: &StepContext,
    engine: EngineKind,
    kind: ComponentKind,
    name: String,
) -> StepResult {
    context.log(format!("Removing {kind} '{name}'"));
    let api = context.engine(engine)?;
    let removed = match kind {
        ComponentKind::Volume => api.remove_volume(&name).await,
        ComponentKind::Network => api.remove_network(&name).await,
    };
    removed.map_err(|error| context.failed(&format!("remove {kind} '{name}'"), &error))?;
    context.effect(Effect::ComponentRemoved(kind, engine, name));
    Ok(())
}

async fn create_network(
    context: &StepContext,
    engine: EngineKind,
    network: DesiredNetwork,
) -> StepResult {
    let name = &network.engine_name;
    context.define(definitions::of_network(&network)).await?;
    context.log(format!("Creating network '{name}'"));
    let spec = NetworkSpec {
        name,
        config: &network.config,
    };
    match context.engine(engine)?.create_network(&spec).await {
        Ok(()) => {}
        // The network of the API may be shared with another supervisor of this machine.
        Err(EngineError::Conflict { .. }) if *name == context.branding.network => {
            context.tell(Message::Effect(Effect::ApiNetworkIsShared(engine)));
            return Ok(());
        }
        Err(error) => return Err(context.failed(&format!("create network '{name}'"), &error)),
    }
    context.effect(Effect::NetworkMade(Network {
        engine,
        // Nobody asks for it before it is listed.
        id: String::new(),
        name: network.engine_name,
        labels: network.config.labels,
    }));
    Ok(())
}

async fn start_existing(
    context: &StepContext,
    app_id: AppId,
    service: &ServiceKey,
    container: &ContainerRef,
) -> StepResult {
    let name = &service.service;
    // The folder that is mounted into it may have gone with a reboot.
    let (locks, prepared) = (context.locks.clone(), name.clone());
    let prepared = tokio::task::spawn_blocking(move || locks.prepare(app_id, &prepared));
    if let Ok(Err(error)) = prepared.await {
        tracing::warn!(%error, "failed to make the lock folder of `{name}`");
    }
    context.tell(Message::ServiceState(
        service.clone(),
        ServiceState::Starting,
    ));
    context.log(format!("Starting service '{name}'"));
    let started = context
        .engine(container.engine)?
        .start_container(&container.id)
        .await;
    started.map_err(|error| start_failure(context, service, &error))?;
    // From now on it is its restart policy's again: one that ends at once is not started once more.
    if let Err(why) = context.journal.forget_stop(container.id.clone()).await {
        tracing::warn!(container = %container.id, "failed to forget a stop of `{}`: {why}", container.id);
    }
    context.tell(Message::Stored(StoredRecord::NotStopped(
        container.id.clone(),
    )));
    context.effect(Effect::ContainerIs(
        container.engine,
        container.id.clone(),
        ContainerState::Running,
    ));
    context.log(format!("Started service '{name}'"));
    Ok(())
}

async fn record_commit(context: &StepContext, app: AppUuid, commit: Commit) -> StepResult {
    let kept = context
        .journal
        .set_commit(app.clone(), commit.clone())
        .await;
    kept.map_err(StepFailure::new)?;
    context.tell(Message::Stored(StoredRecord::Commit(app, commit)));
    Ok(())
}

/// The steps of one service, in order.
pub(crate) async fn under_locks(
    context: &StepContext,
    work: ServiceWork,
    locks: &UpdateLocks,
) -> StepResult {
    let service = work.service;
    for step in work.steps {
        match step {
            LockedStep::Stop { container, grace } => {
                stop(context, &service, &container, grace, locks).await?;
            }
            LockedStep::Kill {
                container, grace, ..
            } => {
                kill(context, &service, &container, grace, locks).await?;
            }
            LockedStep::Rename { container, name } => {
                rename(context, &service, &container, name, locks).await?;
            }
            LockedStep::RemoveImage { engine, image } => {
                // The kill was what mattered: an image that stays costs room, and the pull will say so.
                if let Err(failure) = remove_image(context, &image, Some(engine)).await {
                    tracing::warn!(%image, "failed to remove the image `{image}`: {}", failure.reason);
                }
            }
            LockedStep::HandOver {
                old,
                rename,
                grace,
                timeout,
                start,
                ..
            } => {
                let over = HandOver {
                    old: &old,
                    rename,
                    grace,
                    timeout,
                };
                hand_over::hand_over(context, &service, over, *start, locks).await?;
            }
            LockedStep::Start(start) => create_and_start(context, *start, locks).await?,
        }
    }
    Ok(())
}

async fn stop(
    context: &StepContext,
    service: &ServiceKey,
    container: &ContainerRef,
    grace: Duration,
    _locks: &UpdateLocks,
) -> StepResult {
    let name = &service.service;
    remember_stop(context, container).await?;
    context.tell(Message::ServiceState(
        service.clone(),
        ServiceState::Stopping,
    ));
    context.log(format!("Stopping service '{name}'"));
    let stopped = context
        .engine(container.engine)?
        .stop_container(&container.id, grace)
        .await;
    stopped.map_err(|error| context.failed(&format!("stop service '{name}'"), &error))?;
    context.effect(Effect::ContainerIs(
        container.engine,
        container.id.clone(),
        ContainerState::Exited,
    ));
    context.log(format!("Stopped service '{name}'"));
    Ok(())
}

pub(crate) async fn kill(
    context: &StepContext,
    service: &ServiceKey,
    container: &ContainerRef,
    grace: Duration,
    _locks: &UpdateLocks,
) -> StepResult {
    let name = &service.service;
    // Between the stop and the removal the target may become what this container was made for: then it
    // must be started again, which it is for no container that ended by itself.
    remember_stop(context, container).await?;
    context.tell(Message::ServiceState(
        service.clone(),
        ServiceState::Stopping,
    ));
    context.log(format!("Killing service '{name}'"));
    let engine = context.engine(container.engine)?;
    let killed = async {
        engine.stop_container(&container.id, grace).await?;
        engine.remove_container(&container.id).await
    };
    let killed = killed.await;
    killed.map_err(|error| context.failed(&format!("kill service '{name}'"), &error))?;
    context.effect(Effect::ContainerRemoved(
        container.engine,
        container.id.clone(),
    ));
    context.log(format!("Killed service '{name}'"));
    context.moments.reached("killed-not-started");
    Ok(())
}

pub(crate) async fn rename(
    context: &StepContext,
    service: &ServiceKey,
    container: &ContainerRef,
    name: String,
    _locks: &UpdateLocks,
) -> StepResult {
    let renamed = context
        .engine(container.engine)?
        .rename_container(&container.id, &name)
        .await;
    let what = format!("rename service '{}'", service.service);
    renamed.map_err(|error| context.failed(&what, &error))?;
    context.effect(Effect::ContainerNamed(
        container.engine,
        container.id.clone(),
        name,
    ));
    context.moments.reached("renamed");
    Ok(())
}

pub(crate) async fn create_and_start(
    context: &StepContext,
    start: StartService,
    _locks: &UpdateLocks,
) -> StepResult {
    let StartService {
        engine: kind,
        service,
        image,
        network_container,
        starts_after,
    } = start;
    let engine = context.engine(kind)?;
    let label = format!("'{} {}'", service.key.service, service.config.image);
    context.tell(Message::ServiceState(
        service.key.clone(),
        ServiceState::Installing,
    ));
    context.log(format!("Installing service {label}"));
    context.define(definitions::of_service(&service)).await?;
    let name = service.container_name();
    let mut config = service.config;
    if let Some(container) = &network_container {
        let label = context.branding.label(NETWORK_CONTAINER_LABEL);
        config.labels.insert(label, container.to_string());
    }
    if let Some(boot) = &starts_after {
        let label = context.branding.label(BOOT_LABEL);
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
        extra_firmware::ensure(context, engine.as_ref(), spec.config).await?;
        engine.create_container(&spec).await
    };
    let created = created.await;
    let created =
        created.map_err(|error| context.failed(&format!("install service {label}"), &error))?;
    for warning in &created.warnings {
        context.log(format!("Warning for service {label}: {warning}"));
    }
    let id = created.id;
    context.effect(Effect::ContainerMade(Container {
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
    context.moments.reached("after-create");
    if !service.running || starts_after.is_some() {
        context.log(format!("Installed service {label}"));
        return Ok(());
    }
    context.tell(Message::ServiceState(
        service.key.clone(),
        ServiceState::Starting,
    ));
    context.log(format!("Starting service {label}"));
    let started = engine.start_container(&id).await;
    started.map_err(|error| start_failure(context, &service.key, &error))?;
    context.effect(Effect::ContainerIs(kind, id, ContainerState::Running));
    context.log(format!("Started service {label}"));
    Ok(())
}

async fn remember_stop(context: &StepContext, container: &ContainerRef) -> StepResult {
    let kept = context.journal.remember_stop(container.id.clone()).await;
    kept.map_err(StepFailure::new)?;
    context.tell(Message::Stored(StoredRecord::Stopped(container.id.clone())));
    Ok(())
}

fn start_failure(context: &StepContext, service: &ServiceKey, error: &EngineError) -> StepFailure {
    let name = &service.service;
    let mut reason = error_chain(error);
    if reason.to_ascii_lowercase().contains("exec format error") {
        reason
            .push_str(": the image is made for another processor architecture than this device's");
    }
    context.log(format!(
        "Failed to start service '{name}' due to '{reason}'"
    ));
    StepFailure::new(reason)
}

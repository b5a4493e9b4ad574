//! The handle that the API and the binary hold.

mod keys;
mod locking;
mod services;
mod targets;

use std::sync::Arc;

use device_types::{DevicePlan, ReconcilerStats};
use model::compose::DeviceFacts;
use model::contracts::Offers;
use model::{
    ActionError, CONFIG_DIGEST_LABEL, DesiredNetwork, DeviceStatus, IpamPool, NetworkConfig,
    Settings,
};
use store::StoreError;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::config::ReconcilerConfig;
use crate::events::EngineEvents;
use crate::host::EffectiveSettings;
use crate::logs::{LogHub, LogSubscription};
use crate::messages::{Command, Message};
use crate::persistence::{LocalMode, Persistence};
use crate::signing::TargetJudge;
use crate::steps::{StepContext, TargetChannels, Telemetry};
use crate::target::{ParsedTarget, TargetReader};
use crate::targets::{AcceptedTarget, Targets};
use crate::task::{ReconcilerTask, StartState};
use crate::{Locks, SetTargetError, SigningState};

/// The network by which services reach the API, and its gateway, on which the API listens.
const API_SUBNET: &str = "10.114.104.0/25";
const API_GATEWAY: &str = "10.114.104.1";

/// The store did not answer at the start.
#[derive(Debug, thiserror::Error)]
#[error("failed to read what the reconciler starts from")]
pub struct StartError(#[from] StoreError);

/// The reconciler of one device. Cheap to clone; it stops with [`Reconciler::shutdown`].
#[derive(Clone)]
pub struct Reconciler {
    inner: Arc<Inner>,
}

struct Inner {
    context: Arc<StepContext>,
    facts: Arc<dyn Fn() -> DeviceFacts + Send + Sync>,
    offers: Offers,
    judge: Arc<TargetJudge>,
    /// The device has a cloud.
    managed: bool,
    status: watch::Receiver<Arc<DeviceStatus>>,
    messages: UnboundedSender<Message>,
    stop: CancellationToken,
    ended: CancellationToken,
    /// One target at a time: they take effect in the order in which they are stored.
    setting: tokio::sync::Mutex<()>,
    stored_target_is_unreadable: bool,
}

impl Reconciler {
    /// Reads the stored target and starts to apply it. Must be called within a runtime; blocks for
    /// the store alone, and answers before the engines were asked anything.
    ///
    /// # Errors
    /// [`StartError`] where the store cannot be read.
    pub fn start(config: ReconcilerConfig) -> Result<Reconciler, StartError> {
        config.moments.follow(&config.store);
        let journal = Persistence::new(config.store.clone());
        let mut memory = journal.recover()?;
        let facts = (config.facts)();
        let locks = Locks::new(
            &config.host_root,
            &facts.branding,
            &memory.lock_marker,
            config.store.clone(),
        );
        locks.sweep();
        locks.recall_leases()?;

        // A device without a cloud has no other mode. What was left of an earlier one is cleaned up
        // first (docs/spec/device.md#local-mode).
        if memory.local_mode == LocalMode::Off && memory.snapshot.is_some() {
            memory.local_mode = LocalMode::Leaving;
        } else if memory.local_mode == LocalMode::Off && !config.managed {
            journal.enter_local_mode()?;
            memory.local_mode = LocalMode::On;
        }
        let reader = || TargetReader {
            facts: facts.clone(),
            offers: config.offers.clone(),
            store: config.store.clone(),
        };
        let stored = memory.cloud_target.as_ref().filter(|_| config.managed);
        let cloud = stored.map(|body| reader().stored_of_the_cloud(body));
        let stored = memory.local_target.as_ref();
        let stored = stored.filter(|_| memory.local_mode == LocalMode::On);
        let local = stored.map(|body| reader().local(body));
        // What runs is left alone until there is a target that can be read.
        let unreadable = match memory.local_mode {
            LocalMode::On => matches!(local, Some(Err(_))),
            LocalMode::Leaving | LocalMode::Off => matches!(cloud, Some(Err(_))),
        };
        let targets = Targets {
            mode: memory.local_mode,
            local: recalled(local),
            cloud: recalled(cloud),
        };
        let wanted = match targets.mode {
            LocalMode::On => Some(targets.wanted_in_local_mode()).filter(|_| !unreadable),
            LocalMode::Off => targets.wanted_of_the_cloud(),
            LocalMode::Leaving => None,
        };
        let resumes = match targets.mode {
            LocalMode::Leaving => targets.wanted_of_the_cloud(),
            LocalMode::On | LocalMode::Off => None,
        };

        let judge = TargetJudge {
            read_policy: config.target_policy,
        };
        let signing = SigningState {
            is_required: judge.is_required(),
            refused: None,
        };
        if signing.is_required {
            tracing::info!("targets are taken only as far as the policy has them signed");
        }

        let stop = CancellationToken::new();
        let ended = CancellationToken::new();
        let (sender, messages) = tokio::sync::mpsc::unbounded_channel();
        let limits = config.limits;
        let hub = LogHub::start(
            config.engines.clone(),
            limits.log_lines,
            journal.store(),
            stop.clone(),
        );
        let context = Arc::new(StepContext {
            host: config.host,
            telemetry: Telemetry::new(hub, config.on_event),
            channels: TargetChannels::new(targets, signing),
            branding: facts.branding.clone(),
            journal,
            locks,
            moments: config.moments,
            pulls: Semaphore::new(limits.pulls.max(1)),
            steps: Semaphore::new(limits.steps.max(1)),
            messages: sender.clone(),
            engines: config.engines,
        });
        // Until the engines have been asked, the device is checking what there is to do.
        let checking = DeviceStatus {
            applying: wanted.is_some(),
            update_pending: wanted.is_some(),
            ..DeviceStatus::default()
        };
        let (publish, status) = watch::channel(Arc::new(checking));
        let announced = EngineEvents::listen(&context.engines, limits.engine_retry_cap, &stop);
        let (desired, target, settings) = match wanted {
            Some(wanted) => (Some(wanted.desired), wanted.target, wanted.settings),
            None => (None, None, Settings::default()),
        };
        let keeping = context.locks.clone().keep_leases();
        tokio::spawn(stop.clone().run_until_cancelled_owned(keeping));
        let start = StartState {
            memory,
            desired,
            target,
            settings,
            resumes,
            api_network: api_network(&facts),
            managed: config.managed,
        };
        let task = ReconcilerTask::new(Arc::clone(&context), &limits, start, publish);
        let running = task.run(messages, announced, stop.clone(), limits.shutdown);
        let end = ended.clone().drop_guard();
        tokio::spawn(async move {
            running.await;
            drop(end);
        });
        Ok(Reconciler {
            inner: Arc::new(Inner {
                context,
                facts: config.facts,
                offers: config.offers,
                judge: Arc::new(judge),
                managed: config.managed,
                status,
                messages: sender,
                stop,
                ended,
                setting: tokio::sync::Mutex::new(()),
                stored_target_is_unreadable: unreadable,
            }),
        })
    }

    /// The device's state as last published.
    #[must_use]
    pub fn status(&self) -> Arc<DeviceStatus> {
        self.inner.status.borrow().clone()
    }

    /// Told of each change of the state.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<DeviceStatus>> {
        self.inner.status.clone()
    }

    /// What is about to happen, and what holds it up. Changes nothing.
    ///
    /// # Errors
    /// If the supervisor is stopping.
    pub async fn plan(&self) -> Result<DevicePlan, String> {
        let (reply, snapshot) = oneshot::channel();
        self.command(Command::Snapshot(reply));
        let snapshot = snapshot.await.map_err(|_| stopping().to_string())?;
        let cloud_apps = self
            .inner
            .context
            .channels
            .targets
            .borrow()
            .apps_of_the_cloud();
        let signing = self.signing().borrow().clone();
        let locks = self.inner.context.locks.clone();
        tokio::task::spawn_blocking(move || snapshot.device_plan(&locks, &cloud_apps, &signing))
            .await
            .map_err(|_| stopping().to_string())
    }

    /// What has been counted since the start.
    #[must_use]
    pub fn stats(&self) -> ReconcilerStats {
        let context = &self.inner.context;
        let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
        ReconcilerStats {
            downloads_running: count(context.telemetry.progress.all().len()),
            locks_held: count(context.locks.held()),
            ..context.telemetry.counters.read()
        }
    }

    /// What the variables in force say, typed, and told of each change.
    #[must_use]
    pub fn effective_settings(&self) -> watch::Receiver<Arc<EffectiveSettings>> {
        self.inner.context.channels.effective_settings.subscribe()
    }

    /// Whether targets have to be signed, what became of the cloud's last one, and each change of that.
    #[must_use]
    pub fn signing(&self) -> watch::Receiver<Arc<SigningState>> {
        self.inner.context.channels.signing.subscribe()
    }

    /// Tells the status whether somebody is asking right now what there is to do: an update is pending
    /// then (docs/spec/device.md#v1-device).
    pub fn set_checking(&self, checking: bool) {
        self.command(Command::Checking(checking));
    }

    /// Looks at the engines, and tries at once what waits to be tried again. `force` overrides update
    /// locks until the target is reached; `cancel` breaks pulls off, to begin anew those still wanted.
    pub fn trigger(&self, force: bool, cancel: bool) {
        self.command(Command::Trigger { force, cancel });
    }

    /// Begins what waits for the next update: services get the keys to the API that they have by now.
    pub fn begin_update(&self) {
        self.command(Command::BeginUpdate);
    }

    /// Returns once the loop has taken what it was told so far; never, once it has ended. It never waits
    /// for an engine, so one that does not answer soon stands still.
    pub async fn answers(&self) {
        let (asked, answered) = oneshot::channel();
        self.command(Command::Answer(asked));
        let _ = answered.await;
        if self.inner.ended.is_cancelled() {
            std::future::pending().await
        }
    }

    /// A new reader of what services print and what the supervisor does, from now on.
    #[must_use]
    pub fn logs(&self) -> LogSubscription {
        self.inner.context.telemetry.hub.subscribe()
    }

    /// As [`Reconciler::logs`], for the cloud: also outside local mode, where nobody else hears anything.
    #[must_use]
    pub fn logs_for_the_cloud(&self) -> LogSubscription {
        self.inner.context.telemetry.hub.subscribe_for_the_cloud()
    }

    /// The cloud wants nothing of what services have printed so far.
    pub fn forget_logs_for_the_cloud(&self) {
        self.inner.context.telemetry.hub.forget_for_the_cloud();
    }

    /// What keeps the device from working, one sentence each.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.inner.ended.is_cancelled() {
            problems.push("the reconciler has ended".to_owned());
        }
        let targets = &self.inner.context.channels.targets;
        let taken = |targets: &Targets| match targets.mode {
            LocalMode::On => targets.local.is_some(),
            LocalMode::Leaving | LocalMode::Off => targets.cloud.is_some(),
        };
        if self.inner.stored_target_is_unreadable && !taken(&targets.borrow()) {
            problems.push("the stored target state cannot be read".to_owned());
        }
        problems.extend(self.inner.context.telemetry.health.problems());
        problems
    }

    /// Ends the loop, after steps that disturb a service have ended or 3 s have gone by. Services are
    /// left running.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        self.inner.ended.cancelled().await;
        let context = Arc::clone(&self.inner.context);
        let keeping = tokio::task::spawn_blocking(move || {
            context
                .telemetry
                .hub
                .keep_positions(context.journal.store())
        });
        let _ = keeping.await;
    }

    fn command(&self, command: Command) {
        // A loop that has ended takes no commands; `problems` says so.
        let _ = self.inner.messages.send(Message::Command(command));
    }
}

/// A target that was stored, where it can still be read.
fn recalled(read: Option<Result<ParsedTarget, SetTargetError>>) -> Option<AcceptedTarget> {
    match read? {
        Ok(read) => {
            for warning in &read.warnings {
                tracing::warn!("{warning}");
            }
            Some(read.taken)
        }
        Err(error) => {
            tracing::error!("the stored target state is not applied: {error}");
            None
        }
    }
}

fn stopping() -> ActionError {
    ActionError::Failed(
        "the supervisor is stopping; what was begun is finished after its next start".into(),
    )
}

/// The network of the API, as an engine takes it. It is made where it is missing and never compared.
fn api_network(facts: &DeviceFacts) -> DesiredNetwork {
    let branding = &facts.branding;
    let digest = "api".to_owned();
    DesiredNetwork {
        engine_name: branding.network.clone(),
        config: NetworkConfig {
            driver: "bridge".into(),
            ipam_driver: "default".into(),
            ipam: vec![IpamPool {
                subnet: Some(API_SUBNET.into()),
                gateway: Some(API_GATEWAY.into()),
                ..IpamPool::default()
            }],
            labels: [
                (branding.label("supervised"), "true".to_owned()),
                (branding.label("device-uuid"), facts.uuid.to_string()),
                (branding.label(CONFIG_DIGEST_LABEL), digest.clone()),
            ]
            .into(),
            ..NetworkConfig::default()
        },
        digest,
    }
}

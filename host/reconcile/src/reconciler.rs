//! The handle that the API and the binary hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use engine::EngineError;

use model::compose::DeviceFacts;
use model::{
    Action, ActionError, CONFIG_DIGEST_LABEL, ContainerId, DesiredNetwork, DesiredState,
    DeviceStatus, IpamPool, NetworkConfig, TargetState,
};
use serde_json::Value;
use store::{StoreError, TargetSource};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::config::ReconcilerConfig;
use crate::events::Announced;
use crate::health::Health;
use crate::journal::{Journal, LocalMode};
use crate::lap::{Lap, Start};
use crate::local_mode::Local;
use crate::logs::{LogHub, LogSubscription};
use crate::messages::{Command, Message};
use crate::observe::chain;
use crate::progress::Progress;
use crate::steps::World;
use crate::{Locks, SetTargetError, target};

/// The network by which services reach the API, and its gateway, on which the API listens.
const API_SUBNET: &str = "10.114.104.0/25";
const API_GATEWAY: &str = "10.114.104.1";

/// The volume with firmware beyond the host's own, which clean-ups spare (device behaviour 6.8).
const EXTRA_FIRMWARE: &str = "extra-firmware";

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
    world: Arc<World>,
    facts: Arc<dyn Fn() -> DeviceFacts + Send + Sync>,
    status: watch::Receiver<Arc<DeviceStatus>>,
    loop_: UnboundedSender<Message>,
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
        let journal = Journal::new(config.store.clone());
        let mut memory = journal.recall(TargetSource::Local)?;
        let facts = (config.facts)();
        let locks = Locks::new(&config.host_root, &facts.branding, &memory.lock_marker);
        locks.sweep();

        // A device without a cloud has no other mode. What was left of an earlier one is cleaned up
        // first (device behaviour 4.3).
        if memory.local_mode == LocalMode::Off && memory.snapshot.is_some() {
            memory.local_mode = LocalMode::Leaving;
        } else if memory.local_mode == LocalMode::Off && !config.managed {
            journal.enter_local_mode()?;
            memory.local_mode = LocalMode::On;
        }
        let local = memory.local_mode == LocalMode::On;
        let stored = memory.target.as_ref().filter(|_| local);
        let read = stored.map(|body| target::read(body, &facts, &config.store));
        let (taken, desired, unreadable) = match read {
            None => (None, local.then(DesiredState::default), false),
            Some(Ok(read)) => {
                for warning in &read.resolved.warnings {
                    tracing::warn!("{warning}");
                }
                (Some(read.target), Some(read.resolved.desired), false)
            }
            Some(Err(error)) => {
                // What runs is left alone until there is a target that can be read.
                tracing::error!("the stored target state is not applied: {error}");
                (None, None, true)
            }
        };

        let stop = CancellationToken::new();
        let ended = CancellationToken::new();
        let (sender, messages) = tokio::sync::mpsc::unbounded_channel();
        let limits = config.limits;
        let world = Arc::new(World {
            hub: LogHub::start(config.engines.clone(), limits.log_lines, stop.clone()),
            branding: facts.branding.clone(),
            journal,
            locks,
            progress: Arc::new(Progress::default()),
            health: Health::default(),
            local: Mutex::new(Local {
                on: local,
                target: taken.clone(),
            }),
            abort_at: config.abort_at,
            pulls: Semaphore::new(limits.pulls.max(1)),
            steps: Semaphore::new(limits.steps.max(1)),
            loop_: sender.clone(),
            engines: config.engines,
        });
        // Until the engines have been asked, the device is checking what there is to do.
        let checking = DeviceStatus {
            applying: desired.is_some(),
            update_pending: desired.is_some(),
            ..DeviceStatus::default()
        };
        let (publish, status) = watch::channel(Arc::new(checking));
        let announced = Announced::listen(&world.engines, limits.engine_retry_cap, &stop);
        let settings = match &taken {
            Some(target) => target::settings(target),
            None => target::settings(&TargetState::default()),
        };
        let start = Start {
            memory,
            desired,
            settings,
            api_network: api_network(&facts),
            managed: config.managed,
        };
        let lap = Lap::new(Arc::clone(&world), limits, start, publish);
        let running = lap.run(messages, announced, stop.clone());
        let end = ended.clone().drop_guard();
        tokio::spawn(async move {
            running.await;
            drop(end);
        });
        Ok(Reconciler {
            inner: Arc::new(Inner {
                world,
                facts: config.facts,
                status,
                loop_: sender,
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

    /// Takes a new local target: checks it whole, stores it, and answers, with one sentence for each
    /// thing in it that will not be done, once the state says that it is being applied. `force`
    /// overrides update locks until it has been.
    ///
    /// # Errors
    /// [`SetTargetError`]; then nothing has changed.
    pub async fn set_local_target(
        &self,
        body: Value,
        force: bool,
    ) -> Result<Vec<String>, SetTargetError> {
        let inner = &self.inner;
        let _one_at_a_time = inner.setting.lock().await;
        if !self.local_mode() {
            return Err(SetTargetError::NotLocalMode);
        }
        let facts = Arc::clone(&inner.facts);
        let store = inner.world.journal.store().clone();
        let reading = move || {
            let read = target::read(&body, &facts(), &store);
            read.map(|read| (read, body))
        };
        let read = tokio::task::spawn_blocking(reading).await;
        let (read, body) = read.map_err(|error| SetTargetError::Store(error.to_string()))??;
        let (taken, acknowledged) = oneshot::channel();
        let command = if target::leaves_local_mode(&read.target) {
            let noted = inner.world.journal.set_local_mode(LocalMode::Leaving).await;
            noted.map_err(SetTargetError::Store)?;
            *self.local() = Local::default();
            Command::LeaveLocalMode { taken }
        } else {
            let stored = inner
                .world
                .journal
                .set_target(TargetSource::Local, body)
                .await;
            stored.map_err(SetTargetError::Store)?;
            let settings = target::settings(&read.target);
            self.local().target = Some(read.target);
            Command::Target {
                desired: read.resolved.desired,
                settings,
                force,
                taken,
            }
        };
        self.command(command);
        // Should the loop have ended, the next start takes the target up.
        let _ = acknowledged.await;
        Ok(read.resolved.warnings)
    }

    /// The object `{ "local": … }` of `GET /v2/local/target-state`.
    #[must_use]
    pub fn local_target(&self) -> Value {
        let local = self.local();
        let (on, target) = (local.on, local.target.clone());
        drop(local);
        match target {
            Some(target) => target.to_local_json(on),
            None => target::none(&(self.inner.facts)()).to_local_json(on),
        }
    }

    #[must_use]
    pub fn local_mode(&self) -> bool {
        self.local().on
    }

    /// Looks at the engines, and tries at once what waits to be tried again. `force` overrides update
    /// locks until the target is reached; `cancel` breaks pulls off, to begin anew those still wanted.
    pub fn trigger(&self, force: bool, cancel: bool) {
        self.command(Command::Trigger { force, cancel });
    }

    /// Does something with the services of one app beside the target, and answers when it is done. It
    /// goes on where the caller does not wait.
    ///
    /// # Errors
    /// [`ActionError::Locked`] where an update lock is in the way: nothing was done.
    pub async fn act(&self, action: Action) -> Result<(), ActionError> {
        let (answer, answered) = oneshot::channel();
        self.command(Command::Act(action, answer));
        match answered.await {
            Ok(outcome) => outcome,
            Err(_) => Err(stopping()),
        }
    }

    /// Removes every volume of ours that no container uses and no target names (device behaviour 6.8).
    ///
    /// # Errors
    /// Why one could not be removed; others may have been.
    pub async fn clean_up_volumes(&self) -> Result<(), String> {
        let world = &self.inner.world;
        let (asked, answered) = oneshot::channel();
        self.command(Command::WantedVolumes(asked));
        let wanted = answered.await.map_err(|_| stopping().to_string())?;
        for engine in world.engines.all() {
            let failed = |error: EngineError| chain(&error);
            for volume in engine.volumes().await.map_err(failed)? {
                if wanted.contains(&volume.name) || volume.name == EXTRA_FIRMWARE {
                    continue;
                }
                match engine.remove_volume(&volume.name).await {
                    Ok(()) => world
                        .hub
                        .system(format!("Removed volume '{}'", volume.name)),
                    Err(EngineError::InUse { .. }) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        self.trigger(false, false);
        Ok(())
    }

    /// The environment that a container was made with.
    ///
    /// # Errors
    /// Where no engine has it, or none answers.
    pub async fn environment(
        &self,
        container: &ContainerId,
    ) -> Result<BTreeMap<String, String>, String> {
        let mut reason = format!("no engine has the container `{container}`");
        for engine in self.inner.world.engines.all() {
            match engine.environment(container).await {
                Ok(environment) => return Ok(environment),
                Err(EngineError::NotFound { .. }) => {}
                Err(error) => reason = chain(&error),
            }
        }
        Err(reason)
    }

    /// Takes the update locks of all apps; answers once they are held, with what resolves when all
    /// services have been stopped as well. Nothing is changed from then on until
    /// [`Self::resume`].
    ///
    /// # Errors
    /// [`ActionError::Locked`] where an update lock is in the way: nothing was done.
    pub async fn quiesce(
        &self,
        force: bool,
    ) -> Result<impl Future<Output = ()> + Send + use<>, ActionError> {
        let (locked, answered) = oneshot::channel();
        let (stopped, all_stopped) = oneshot::channel();
        self.command(Command::Quiesce {
            force,
            locked,
            stopped,
        });
        match answered.await {
            // A loop that ends meanwhile stops nothing more.
            Ok(outcome) => outcome.map(|()| async move {
                let _ = all_stopped.await;
            }),
            Err(_) => Err(stopping()),
        }
    }

    /// Goes on after [`Self::quiesce`]: locks are released and services started again.
    pub fn resume(&self) {
        self.command(Command::Resume);
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
        self.inner.world.hub.subscribe()
    }

    /// What keeps the device from working, one sentence each.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.inner.ended.is_cancelled() {
            problems.push("the reconciler has ended".to_owned());
        }
        if self.inner.stored_target_is_unreadable && self.local().target.is_none() {
            problems.push("the stored target state cannot be read".to_owned());
        }
        problems.extend(self.inner.world.health.problems());
        problems
    }

    /// Ends the loop, after steps that disturb a service have ended or 3 s have gone by. Services are
    /// left running.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        self.inner.ended.cancelled().await;
    }

    fn command(&self, command: Command) {
        // A loop that has ended takes no commands; `problems` says so.
        let _ = self.inner.loop_.send(Message::Command(command));
    }

    fn local(&self) -> std::sync::MutexGuard<'_, Local> {
        self.inner
            .world
            .local
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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

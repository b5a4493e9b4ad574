//! The handle that the API and the binary hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::EngineError;

use model::compose::{DeviceFacts, EXTRA_FIRMWARE};
use model::contracts::Offers;
use model::{
    Action, ActionError, AppId, CONFIG_DIGEST_LABEL, ContainerId, DesiredHost, DesiredNetwork,
    DeviceStatus, IpamPool, LockRefusal, LockRequest, NetworkConfig, ServiceName, Settings,
    TargetState, UpdateLock,
};
use serde_json::Value;
use store::{StoreError, TargetSource};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::config::ReconcilerConfig;
use crate::events::Announced;
use crate::health::Health;
use crate::host::InForce;
use crate::journal::{Journal, LocalMode};
use crate::lap::{Lap, Start};
use crate::logs::{LogHub, LogSubscription};
use crate::messages::{Command, Message};
use crate::observe::chain;
use crate::progress::Progress;
use crate::steps::World;
use crate::tally::Counts;
use crate::target::{Read, Reader};
use crate::targets::{Taken, Targets, Turn};
use crate::{AllLocks, LockError, LockPolicy, Locks, Outlook, SetTargetError, Tally, target};

/// The network by which services reach the API, and its gateway, on which the API listens.
const API_SUBNET: &str = "10.114.104.0/25";
const API_GATEWAY: &str = "10.114.104.1";

/// How long the answer to a new target waits for what is to be said of the host.
const SOON: Duration = Duration::from_secs(10);

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
    offers: Offers,
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
        let mut memory = journal.recall()?;
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
        // first (device behaviour 4.3).
        if memory.local_mode == LocalMode::Off && memory.snapshot.is_some() {
            memory.local_mode = LocalMode::Leaving;
        } else if memory.local_mode == LocalMode::Off && !config.managed {
            journal.enter_local_mode()?;
            memory.local_mode = LocalMode::On;
        }
        let reader = || Reader {
            facts: facts.clone(),
            offers: config.offers.clone(),
            store: config.store.clone(),
        };
        let stored = memory.cloud_target.as_ref().filter(|_| config.managed);
        let cloud = stored.map(|body| reader().cloud(body));
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

        let stop = CancellationToken::new();
        let ended = CancellationToken::new();
        let (sender, messages) = tokio::sync::mpsc::unbounded_channel();
        let limits = config.limits;
        let world = Arc::new(World {
            host: config.host,
            in_force: watch::channel(Arc::default()).0,
            hub: LogHub::start(config.engines.clone(), limits.log_lines, stop.clone()),
            branding: facts.branding.clone(),
            journal,
            locks,
            progress: Arc::new(Progress::default()),
            health: Health::default(),
            counts: Counts::default(),
            targets: watch::channel(targets).0,
            happened: config.happened,
            abort_at: config.abort_at,
            pulls: Semaphore::new(limits.pulls.max(1)),
            steps: Semaphore::new(limits.steps.max(1)),
            loop_: sender.clone(),
            engines: config.engines,
        });
        // Until the engines have been asked, the device is checking what there is to do.
        let checking = DeviceStatus {
            applying: wanted.is_some(),
            update_pending: wanted.is_some(),
            ..DeviceStatus::default()
        };
        let (publish, status) = watch::channel(Arc::new(checking));
        let announced = Announced::listen(&world.engines, limits.engine_retry_cap, &stop);
        let (desired, target, settings) = match wanted {
            Some(wanted) => (Some(wanted.desired), wanted.target, wanted.settings),
            None => (None, None, Settings::default()),
        };
        let keeping = world.locks.clone().keep_leases();
        tokio::spawn(stop.clone().run_until_cancelled_owned(keeping));
        let start = Start {
            memory,
            desired,
            target,
            settings,
            resumes,
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
                offers: config.offers,
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
        let reader = self.reader();
        let reading = move || reader.local(&body).map(|read| (read, body));
        let read = tokio::task::spawn_blocking(reading).await;
        let (read, body) = read.map_err(|error| SetTargetError::Store(error.to_string()))??;
        let journal = &inner.world.journal;
        let targets = &inner.world.targets;
        let variables = read.taken.target.config.clone();
        let (taken, acknowledged) = oneshot::channel();
        let command = if target::leaves_local_mode(&read.taken.target) {
            let noted = journal.set_local_mode(LocalMode::Leaving).await;
            noted.map_err(SetTargetError::Store)?;
            self.leave_local_mode(taken)
        } else {
            let stored = journal.set_target(TargetSource::Local, body).await;
            stored.map_err(SetTargetError::Store)?;
            targets.send_modify(|targets| targets.local = Some(read.taken));
            Command::Target {
                wanted: targets.borrow().wanted_in_local_mode(),
                force,
                taken,
            }
        };
        self.command(command);
        // Should the loop have ended, the next start takes the target up.
        let _ = acknowledged.await;
        let mut warnings = read.warnings;
        warnings.extend(self.warnings_of_host(&variables).await);
        Ok(warnings)
    }

    /// What of the boot configuration that these variables name will not be done, as far as that can be told
    /// soon.
    async fn warnings_of_host(&self, variables: &BTreeMap<String, String>) -> Vec<String> {
        let wanted = DesiredHost::of(variables);
        if wanted.boot_config.is_empty() {
            return Vec::new();
        }
        let look = self.inner.world.host.compare(&wanted);
        let Ok(look) = tokio::time::timeout(SOON, look).await else {
            return Vec::new();
        };
        let failed = look.failed.into_iter();
        let failed = failed.map(|(part, why)| format!("the host's {part} is not changed: {why}"));
        look.warnings.into_iter().chain(failed).collect()
    }

    /// Takes a new target from the cloud: checks it whole, stores it, and answers, with one sentence for
    /// each thing in it that will not be done, once the device is measured by it in place of what was
    /// being applied. In local mode nothing of it takes effect but that the mode may end, and the apps
    /// that are no fleet. `force` overrides update locks until it has been reached.
    ///
    /// # Errors
    /// [`SetTargetError::Invalid`] or [`SetTargetError::Store`]; then nothing has changed.
    pub async fn set_cloud_target(
        &self,
        body: Value,
        force: bool,
    ) -> Result<Vec<String>, SetTargetError> {
        let inner = &self.inner;
        let _one_at_a_time = inner.setting.lock().await;
        let targets = &inner.world.targets;
        // A mode switch in progress ends first (device behaviour 4.3).
        let mut mode = targets.subscribe();
        let settled = mode.wait_for(|targets| targets.mode != LocalMode::Leaving);
        settled
            .await
            .map(drop)
            .map_err(|_| SetTargetError::Store("the supervisor is stopping".into()))?;

        let reader = self.reader();
        let reading = move || reader.cloud(&body).map(|read| (read, body));
        let read = tokio::task::spawn_blocking(reading).await;
        let (read, body) = read.map_err(|error| SetTargetError::Store(error.to_string()))??;
        let journal = &inner.world.journal;
        let turn = targets.borrow().turn(&read.taken.target);
        let (taken, acknowledged) = oneshot::channel();
        let command = match turn {
            Turn::Stays => {
                let stored = journal.set_target(TargetSource::Cloud, body).await;
                stored.map_err(SetTargetError::Store)?;
                targets.send_modify(|targets| targets.cloud = Some(read.taken));
                let targets = targets.borrow();
                let wanted = match targets.local_mode() {
                    // What runs is left alone until there is a local target that can be read.
                    true if inner.stored_target_is_unreadable && targets.local.is_none() => None,
                    true => Some(targets.wanted_in_local_mode()),
                    false => targets.wanted_of_the_cloud(),
                };
                wanted.map(|wanted| Command::Target {
                    wanted,
                    force,
                    taken,
                })
            }
            Turn::Enters => {
                // The variables and the name stay what they are, without the apps.
                let first = TargetState {
                    apps: Default::default(),
                    ..(*read.taken.target).clone()
                };
                let local = first.to_local_json(true);
                let stored = journal.open_local_mode(local, body).await;
                stored.map_err(SetTargetError::Store)?;
                targets.send_modify(|targets| {
                    targets.mode = LocalMode::On;
                    targets.cloud = Some(read.taken);
                    targets.local = Some(Taken {
                        target: Arc::new(first),
                        desired: Arc::default(),
                    });
                });
                let wanted = targets.borrow().wanted_in_local_mode();
                Some(Command::EnterLocalMode { wanted, taken })
            }
            Turn::Leaves => {
                let stored = async {
                    journal.set_local_mode(LocalMode::Leaving).await?;
                    journal.set_target(TargetSource::Cloud, body).await
                };
                stored.await.map_err(SetTargetError::Store)?;
                targets.send_modify(|targets| targets.cloud = Some(read.taken));
                Some(self.leave_local_mode(taken))
            }
        };
        for warning in &read.warnings {
            inner.world.hub.system(warning.clone());
            tracing::warn!("the cloud's target: {warning}");
        }
        if let Some(command) = command {
            self.command(command);
            // Should the loop have ended, the next start takes the target up.
            let _ = acknowledged.await;
        }
        Ok(read.warnings)
    }

    /// What is told of local mode as it ends, and to the loop. The store knows already.
    fn leave_local_mode(&self, taken: oneshot::Sender<()>) -> Command {
        let targets = &self.inner.world.targets;
        targets.send_modify(|targets| {
            targets.mode = LocalMode::Leaving;
            targets.local = None;
        });
        Command::LeaveLocalMode {
            resumes: targets.borrow().wanted_of_the_cloud(),
            taken,
        }
    }

    fn reader(&self) -> Reader {
        Reader {
            facts: self.facts(),
            offers: self.inner.offers.clone(),
            store: self.inner.world.journal.store().clone(),
        }
    }

    /// The facts, with the name as targets have it.
    fn facts(&self) -> DeviceFacts {
        let facts = (self.inner.facts)();
        let name = self
            .inner
            .world
            .targets
            .borrow()
            .in_force()
            .map(|target| target.name.clone());
        DeviceFacts {
            name: name.unwrap_or(facts.name),
            ..facts
        }
    }

    /// The device's name, of the target in force.
    #[must_use]
    pub fn device_name(&self) -> String {
        self.facts().name
    }

    /// The configuration variables in force, without the defaults of those that are not set.
    #[must_use]
    pub fn variables(&self) -> BTreeMap<String, String> {
        self.inner.world.targets.borrow().variables()
    }

    /// What is about to happen, and what holds it up. Changes nothing.
    ///
    /// # Errors
    /// Where the supervisor is stopping.
    pub async fn outlook(&self) -> Result<Outlook, String> {
        let (asked, answered) = oneshot::channel();
        self.command(Command::Look(asked));
        let sight = answered.await.map_err(|_| stopping().to_string())?;
        let of_the_cloud = self.inner.world.targets.borrow().apps_of_the_cloud();
        let locks = self.inner.world.locks.clone();
        let looking = tokio::task::spawn_blocking(move || sight.outlook(&locks, &of_the_cloud));
        looking.await.map_err(|_| stopping().to_string())
    }

    /// What has been counted since the start.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let world = &self.inner.world;
        let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
        Tally {
            downloads_running: count(world.progress.all().len()),
            locks_held: count(world.locks.held()),
            ..world.counts.read()
        }
    }

    /// What the variables in force say, typed, and told of each change.
    #[must_use]
    pub fn in_force(&self) -> watch::Receiver<Arc<InForce>> {
        self.inner.world.in_force.subscribe()
    }

    /// Tells the status whether somebody is asking right now what there is to do: an update is pending
    /// then (device API, "Device state").
    pub fn set_checking(&self, checking: bool) {
        self.command(Command::Checking(checking));
    }

    /// The object `{ "local": … }` of `GET /v2/local/target-state`. Where no local target was set it has
    /// no apps; name and variables are the device's all the same, since clients change them and post all
    /// of it again.
    #[must_use]
    pub fn local_target(&self) -> Value {
        let targets = self.inner.world.targets.borrow();
        if let Some(local) = &targets.local {
            return local.target.to_local_json(targets.local_mode());
        }
        let (on, config) = (targets.local_mode(), targets.variables());
        drop(targets);
        let none = TargetState {
            name: self.device_name(),
            config,
            ..TargetState::default()
        };
        none.to_local_json(on)
    }

    /// Whether the device is in local mode (device behaviour 4.3).
    #[must_use]
    pub fn local_mode(&self) -> bool {
        self.inner.world.targets.borrow().local_mode()
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
        let mut wanted = answered.await.map_err(|_| stopping().to_string())?;
        // In local mode the fleet's volumes wait for its end.
        if let Some(cloud) = &world.targets.borrow().cloud {
            let volumes = cloud
                .desired
                .apps
                .values()
                .flat_map(|app| app.volumes.values());
            wanted.extend(volumes.map(|volume| volume.engine_name.clone()));
        }
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

    /// Takes the update locks of all apps that have containers, or none: for what may disturb any of them.
    /// Waits up to 10 s for other operations of this supervisor, and not for a user. `force` overrides
    /// users' locks, and so does `SUPERVISOR_OVERRIDE_LOCK` of the target.
    ///
    /// # Errors
    /// [`LockError`]; then none is held.
    pub async fn lock_all_apps(&self, force: bool) -> Result<AllLocks, LockError> {
        let (asked, answered) = oneshot::channel();
        self.command(Command::Locking(asked));
        // Once the loop has ended nothing is known but the folders.
        let (apps, override_locks) = match answered.await {
            Ok(locking) => (locking.apps, locking.override_locks),
            Err(_) => (None, false),
        };
        let policy = match force || override_locks {
            true => LockPolicy::Override,
            false => LockPolicy::Respect,
        };
        self.inner.world.locks.take_all(apps, policy).await
    }

    /// Who holds which update lock now.
    ///
    /// # Errors
    /// Where the lock folders cannot be read.
    pub async fn update_locks(&self) -> Result<Vec<UpdateLock>, String> {
        let locks = self.inner.world.locks.clone();
        match tokio::task::spawn_blocking(move || locks.list()).await {
            Ok(listed) => listed.map_err(|error| chain(&error)),
            Err(_) => Err(stopping().to_string()),
        }
    }

    /// Takes the update lock of a service for it, or renews the one that was taken so. It ends by itself
    /// when its time is over.
    ///
    /// # Errors
    /// [`LockRefusal`]; a lock that was held before is held still.
    pub async fn lease_lock(&self, request: LockRequest) -> Result<UpdateLock, LockRefusal> {
        let locks = self.inner.world.locks.clone();
        match tokio::task::spawn_blocking(move || locks.lease(&request)).await {
            Ok(leased) => leased,
            Err(_) => Err(LockRefusal::Failed(stopping().to_string())),
        }
    }

    /// Gives back what [`Self::lease_lock`] took.
    ///
    /// # Errors
    /// [`LockRefusal`].
    pub async fn give_lock_back(
        &self,
        app: AppId,
        service: ServiceName,
    ) -> Result<(), LockRefusal> {
        let locks = self.inner.world.locks.clone();
        match tokio::task::spawn_blocking(move || locks.give_back(app, &service)).await {
            Ok(given) => given,
            Err(_) => Err(LockRefusal::Failed(stopping().to_string())),
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
        let targets = &self.inner.world.targets;
        let taken = |targets: &Targets| match targets.mode {
            LocalMode::On => targets.local.is_some(),
            LocalMode::Leaving | LocalMode::Off => targets.cloud.is_some(),
        };
        if self.inner.stored_target_is_unreadable && !taken(&targets.borrow()) {
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
}

/// A target that was stored, where it can still be read.
fn recalled(read: Option<Result<Read, SetTargetError>>) -> Option<Taken> {
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

//! The loop: observe, plan, apply, publish. One task owns everything here; it waits for something to
//! happen and for nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{
    AppUuid, Commit, ContainerId, ContainerState, DesiredNetwork, DesiredState, DeviceStatus,
    EngineKind, ImageRef, ServiceKey, ServiceState,
};
use plan::{CurrentState, EngineHealth, Failure, Plan, Step, Subject, plan};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::Limits;
use crate::events::Announced;
use crate::journal::{LocalMode, Memory};
use crate::local_mode::{Snapshot, clean_up};
use crate::logs::{LogSource, LogSources};
use crate::messages::{Command, Kept, Message, Settings, StepFailure};
use crate::steps::World;
use crate::view::{KINDS, Kind, Listing, View};
use crate::{LockPolicy, UpdateLocks, apply, backoff, locks, observe, status};

/// How long an engine may take to list what it holds before it counts as silent.
const LISTING_TIMEOUT: Duration = Duration::from_secs(60);

/// Percent of each pull in flight.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    percent: Mutex<BTreeMap<ImageRef, u8>>,
    changed: Notify,
}

impl Progress {
    pub(crate) fn set(&self, image: &ImageRef, percent: u8) {
        let mut held = self.percent.lock().unwrap_or_else(PoisonError::into_inner);
        // Only whole percents wake the loop: at most a hundred times a pull.
        if held.insert(image.clone(), percent) != Some(percent) {
            self.changed.notify_one();
        }
    }

    fn remove(&self, image: &ImageRef) {
        let mut held = self.percent.lock().unwrap_or_else(PoisonError::into_inner);
        held.remove(image);
    }

    fn all(&self) -> BTreeMap<ImageRef, u8> {
        let held = self.percent.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }
}

/// Something that failed and is to be tried again.
struct Failing {
    count: u32,
    reason: String,
    retry_at: Instant,
}

/// When an engine that does not answer is asked again.
struct Silent {
    count: u32,
    retry_at: Instant,
}

/// What the loop starts from.
pub(crate) struct Start {
    pub memory: Memory,
    /// `None` where no target was ever given, or it cannot be read: then nothing is touched.
    pub desired: Option<DesiredState>,
    pub settings: Settings,
    pub api_network: DesiredNetwork,
    pub managed: bool,
}

pub(crate) struct Lap {
    world: Arc<World>,
    limits: Limits,
    settings: Settings,
    /// What registries said since the target was set.
    image_kinds: BTreeMap<ImageRef, EngineKind>,
    view: View,
    /// `None` where no target was ever given: then nothing is touched.
    desired: Option<DesiredState>,
    api_network: DesiredNetwork,
    mode: LocalMode,
    snapshot: Snapshot,
    commits: BTreeMap<AppUuid, Commit>,
    recorded_images: BTreeSet<ImageRef>,
    stopped: BTreeSet<ContainerId>,
    guards: BTreeMap<AppUuid, Vec<Arc<UpdateLocks>>>,
    /// What a step is in flight for, and since when.
    busy: BTreeMap<Subject, Instant>,
    doing: BTreeMap<ServiceKey, ServiceState>,
    cancels: BTreeMap<ImageRef, CancellationToken>,
    failing: BTreeMap<Subject, Failing>,
    silent: BTreeMap<EngineKind, Silent>,
    listing: BTreeSet<EngineKind>,
    lock_watches: BTreeMap<AppUuid, AbortHandle>,
    /// Locks are overridden until the target is reached.
    force: bool,
    plan: Plan,
    downloaded: bool,
    /// Images that were pulled since the target was set, each until it turns out to be missing.
    pulled: BTreeSet<ImageRef>,
    cleaning: bool,
    /// Local mode, once left, is entered again: the device was killed while leaving it, and has no
    /// cloud.
    reenters: bool,
    /// Callers that wait for their command to show in the status.
    taken: Vec<oneshot::Sender<()>>,
    publish: watch::Sender<Arc<DeviceStatus>>,
}

impl Lap {
    pub(crate) fn new(
        world: Arc<World>,
        limits: Limits,
        start: Start,
        publish: watch::Sender<Arc<DeviceStatus>>,
    ) -> Self {
        let memory = start.memory;
        let snapshot = memory.snapshot.map(serde_json::from_value::<Snapshot>);
        Lap {
            view: View::new(&world.engines, world.branding.clone()),
            world,
            limits,
            settings: start.settings,
            image_kinds: BTreeMap::new(),
            desired: start.desired,
            api_network: start.api_network,
            mode: memory.local_mode,
            // One that cannot be read protects nothing that it should: then all that is there now is
            // taken for older.
            snapshot: snapshot.and_then(Result::ok).unwrap_or_default(),
            commits: memory.commits,
            recorded_images: memory.recorded_images,
            stopped: memory.stopped,
            guards: BTreeMap::new(),
            busy: BTreeMap::new(),
            doing: BTreeMap::new(),
            cancels: BTreeMap::new(),
            failing: BTreeMap::new(),
            silent: BTreeMap::new(),
            listing: BTreeSet::new(),
            lock_watches: BTreeMap::new(),
            force: false,
            plan: Plan::default(),
            downloaded: false,
            pulled: BTreeSet::new(),
            cleaning: false,
            reenters: !start.managed && memory.local_mode == LocalMode::Leaving,
            taken: Vec::new(),
            publish,
        }
    }

    /// Runs until `stop`. Services are left as they are.
    pub(crate) async fn run(
        mut self,
        mut messages: UnboundedReceiver<Message>,
        announced: Arc<Announced>,
        stop: CancellationToken,
    ) {
        let progress = Arc::clone(&self.world.progress);
        loop {
            self.keep_snapshot().await;
            self.observe();
            let applying = self.decide();
            self.publish(applying);
            let wake = self.next_try();
            tokio::select! {
                message = messages.recv() => {
                    let Some(message) = message else { return };
                    self.hear(message);
                    // Whatever else has happened by now is part of the same lap.
                    while let Ok(message) = messages.try_recv() {
                        self.hear(message);
                    }
                }
                announced = announced.next() => self.announce(announced),
                () = progress.changed.notified() => {}
                () = until(wake) => self.retry_silent(),
                () = stop.cancelled() => break,
            }
        }
        self.end(messages).await;
    }

    // -- observe ---------------------------------------------------------------------------------

    /// Starts to list what may have changed, on all engines at once.
    fn observe(&mut self) {
        let now = Instant::now();
        for engine in self.world.engines.all() {
            let kind = engine.kind();
            let waits = self
                .silent
                .get(&kind)
                .is_some_and(|silent| silent.retry_at > now);
            if waits || self.listing.contains(&kind) {
                continue;
            }
            let Some((kinds, begun)) = self.view.begin(kind) else {
                continue;
            };
            self.listing.insert(kind);
            let engine = Arc::clone(engine);
            let world = Arc::clone(&self.world);
            tokio::spawn(async move {
                // In a task of its own, so that a panic in an engine is a failure like any other.
                let listing = tokio::spawn(async move {
                    let listing = observe::list(engine.as_ref(), &kinds, begun);
                    tokio::time::timeout(LISTING_TIMEOUT, listing).await
                });
                let failed = |why: &str| Listing::failed(kind, begun, why);
                let listing = match listing.await {
                    Ok(Ok(listing)) => listing,
                    Ok(Err(_)) => failed("it did not list what it holds in time"),
                    Err(_) => failed("it broke off while listing what it holds"),
                };
                world.tell(Message::Listed(listing));
            });
        }
    }

    fn announce(&mut self, announced: BTreeMap<EngineKind, Vec<Kind>>) {
        for (engine, kinds) in announced {
            // An engine that says something answers.
            self.silent.remove(&engine);
            self.view.mark(engine, &kinds);
        }
    }

    fn retry_silent(&mut self) {
        let now = Instant::now();
        for (engine, silent) in &self.silent {
            if silent.retry_at <= now {
                self.view.mark(*engine, &KINDS);
            }
        }
    }

    fn listed(&mut self, listing: Listing) {
        let engine = listing.engine;
        self.listing.remove(&engine);
        if let Some(why) = &listing.failure {
            let count = self
                .silent
                .get(&engine)
                .map_or(1, |silent| silent.count + 1);
            if count == 1 {
                tracing::warn!("the {engine} engine does not answer: {why}");
            }
            let delay = backoff::delay(count, self.limits.engine_retry_cap);
            let retry_at = Instant::now() + delay;
            self.silent.insert(engine, Silent { count, retry_at });
        } else if self.silent.remove(&engine).is_some() {
            tracing::info!("the {engine} engine answers again");
        }
        self.view.listed(listing);
    }

    // -- plan and apply --------------------------------------------------------------------------

    /// Makes a plan and starts its steps; answers whether there is anything left to do.
    fn decide(&mut self) -> bool {
        if self.mode == LocalMode::Leaving {
            self.leave_local_mode();
            return true;
        }
        if self.desired.is_some() && !self.view.is_known() {
            return true;
        }
        let current = self.current();
        let Some(desired) = &self.desired else {
            self.plan = Plan::default();
            return false;
        };
        let mut plan = plan(&current, desired);
        let steps = std::mem::take(&mut plan.steps);
        let waits = !plan.waiting_on.is_empty();
        self.plan = plan;
        let mut acts = false;
        for step in steps {
            match step {
                Step::ReleaseLocks { app } => {
                    self.guards.remove(&app);
                }
                step => {
                    acts = true;
                    self.start(step);
                }
            }
        }
        let rests = !acts && current.busy.is_empty();
        // What our own steps were taken to have done is looked at once they have all ended.
        if rests && self.view.verify() {
            self.observe();
        }
        if rests {
            self.forget_stops();
        }
        if rests && !waits {
            self.failing.clear();
            self.downloaded = false;
            self.force = false;
        }
        !rests || waits
    }

    fn current(&mut self) -> CurrentState {
        let now = Instant::now();
        let mut busy: BTreeSet<Subject> = self.busy.keys().cloned().collect();
        busy.extend(self.view.unknown().cloned());
        let failed = self.failing.iter().map(|(subject, failing)| {
            let failure = Failure {
                reason: failing.reason.clone(),
                held: failing.retry_at > now,
            };
            (subject.clone(), failure)
        });
        CurrentState {
            default_engine: self.world.engines.default_kind(),
            image_kinds: self.image_kinds.clone(),
            recorded_images: self.recorded_images.clone(),
            api_network: Some(self.api_network.clone()),
            commits: self.commits.clone(),
            locks: self.guards.keys().cloned().collect(),
            stopped: self.stopped.clone(),
            local_mode: self.mode == LocalMode::On,
            busy,
            failed: failed.collect(),
            ..self.view.current()
        }
    }

    fn start(&mut self, step: Step) {
        let now = Instant::now();
        self.busy.insert(step.subject(), now);
        if let Step::UnderLocks(locked) = step {
            let services = locked.work.iter().map(|work| work.service.clone());
            self.busy
                .extend(services.map(|service| (Subject::Service(service), now)));
            let held = self.guards.get(&locked.app).cloned().unwrap_or_default();
            let policy = match self.force || self.settings.override_locks {
                true => LockPolicy::Override,
                false => LockPolicy::Respect,
            };
            apply::spawn_locked(&self.world, locked, held, policy);
            return;
        }
        let cancel = CancellationToken::new();
        if let Step::PullImage { image, .. } = &step {
            if self.pulled.remove(image) {
                // It was pulled, and is not listed: without a wait that would go round and round.
                let why = "it was downloaded, but the engine does not have it by that name";
                self.busy.remove(&step.subject());
                self.failed(step.subject(), StepFailure::new(why));
                return;
            }
            self.cancels.insert(image.clone(), cancel.clone());
        }
        apply::spawn(&self.world, step, cancel);
    }

    /// Forgets that we stopped containers that are gone or run again.
    fn forget_stops(&mut self) {
        if self.stopped.is_empty() || !self.silent.is_empty() {
            return;
        }
        for id in &self.stopped {
            let container = self.view.container(id);
            if container.is_none_or(|container| container.state == ContainerState::Running) {
                let (world, id) = (Arc::clone(&self.world), id.clone());
                tokio::spawn(async move {
                    match world.journal.forget_stop(id.clone()).await {
                        Ok(()) => world.tell(Message::Kept(Kept::NotStopped(id))),
                        Err(why) => tracing::warn!("failed to forget a stop of `{id}`: {why}"),
                    }
                });
            }
        }
    }

    // -- what happened ---------------------------------------------------------------------------

    fn hear(&mut self, message: Message) {
        match message {
            Message::Listed(listing) => self.listed(listing),
            Message::Effect(effect) => self.view.put(effect),
            Message::Doing(service, Some(state)) => {
                self.doing.insert(service, state);
            }
            Message::Doing(service, None) => {
                self.doing.remove(&service);
            }
            Message::Kind(image, kind) => {
                self.image_kinds.insert(image, kind);
            }
            Message::Kept(kept) => self.kept(kept),
            Message::LocksTaken(app, guard) => self.guards.entry(app).or_default().push(guard),
            Message::LockGone(app) => {
                self.lock_watches.remove(&app);
                self.failing.remove(&Subject::Locks(app));
            }
            Message::Finished(subject, outcome) => self.finished(subject, outcome),
            Message::LeftLocalMode => self.left_local_mode(),
            Message::Command(command) => self.obey(command),
        }
    }

    fn kept(&mut self, kept: Kept) {
        match kept {
            Kept::Image(image) => {
                self.recorded_images.insert(image);
            }
            Kept::NoImage(image) => {
                self.recorded_images.remove(&image);
            }
            Kept::Commit(app, commit) => {
                self.commits.insert(app, commit);
            }
            Kept::NoCommit(app) => {
                self.commits.remove(&app);
            }
            Kept::Stopped(container) => {
                self.stopped.insert(container);
            }
            Kept::NotStopped(container) => {
                self.stopped.remove(&container);
            }
        }
    }

    fn finished(&mut self, subject: Subject, outcome: Result<(), StepFailure>) {
        self.busy.remove(&subject);
        match &subject {
            Subject::Image(image) => {
                let pulled = self.cancels.remove(image).is_some();
                self.world.progress.remove(image);
                if pulled && outcome.is_ok() {
                    self.downloaded = true;
                    self.pulled.insert(image.clone());
                }
            }
            Subject::Service(service) => {
                self.doing.remove(service);
            }
            _ => {}
        }
        match outcome {
            Ok(()) => {
                self.failing.remove(&subject);
            }
            Err(failure) if failure.cancelled => {
                if matches!(subject, Subject::Image(_)) {
                    self.view.forget(subject);
                }
            }
            Err(failure) => self.failed(subject, failure),
        }
    }

    fn failed(&mut self, subject: Subject, failure: StepFailure) {
        let count = self
            .failing
            .get(&subject)
            .map_or(1, |failing| failing.count + 1);
        let cap = self.limits.retry_cap.min(self.settings.poll_interval);
        let delay = backoff::delay(count, cap);
        let reason = failure.reason;
        tracing::debug!("{subject} failed, tried again in {delay:?}: {reason}");
        if let Subject::Locks(app) = &subject {
            let seconds = delay.as_secs_f64().ceil();
            self.world.hub.system(format!(
                "Updates are locked, retrying in {seconds}s. Reason: {reason}"
            ));
            if let Some(path) = failure.lock {
                self.watch_lock(app.clone(), path);
            }
        } else {
            self.view.forget(subject.clone());
        }
        let failing = Failing {
            count,
            reason,
            retry_at: Instant::now() + delay,
        };
        self.failing.insert(subject, failing);
    }

    /// Tries again as soon as the user's lock is gone.
    fn watch_lock(&mut self, app: AppUuid, path: std::path::PathBuf) {
        let world = Arc::clone(&self.world);
        let watched = app.clone();
        let watch = tokio::spawn(async move {
            match locks::until_removed(&path).await {
                Ok(()) => world.tell(Message::LockGone(watched)),
                Err(error) => tracing::debug!(%error, "failed to watch `{}`", path.display()),
            }
        });
        if let Some(before) = self.lock_watches.insert(app, watch.abort_handle()) {
            before.abort();
        }
    }

    // -- commands --------------------------------------------------------------------------------

    fn obey(&mut self, command: Command) {
        match command {
            Command::Target {
                desired,
                settings,
                force,
                taken,
            } => {
                self.cancel_pulls(|image| !wants(&desired, image));
                self.desired = Some(desired);
                self.failing.clear();
                self.downloaded = false;
                self.image_kinds.clear();
                self.pulled.clear();
                self.settings = settings;
                self.force = force;
                self.taken.push(taken);
            }
            Command::LeaveLocalMode { taken } => {
                self.mode = LocalMode::Leaving;
                self.desired = None;
                self.plan = Plan::default();
                self.failing.clear();
                self.cancel_pulls(|_| true);
                self.taken.push(taken);
            }
            Command::Answer(asked) => drop(asked),
            Command::Trigger { force, cancel } => {
                let now = Instant::now();
                for failing in self.failing.values_mut() {
                    failing.retry_at = now;
                }
                self.silent
                    .values_mut()
                    .for_each(|silent| silent.retry_at = now);
                for engine in self.world.engines.all() {
                    self.view.mark(engine.kind(), &KINDS);
                }
                self.image_kinds.clear();
                self.force |= force;
                if cancel {
                    self.cancel_pulls(|_| true);
                }
            }
        }
    }

    fn cancel_pulls(&self, is_unwanted: impl Fn(&ImageRef) -> bool) {
        for (image, cancel) in &self.cancels {
            if is_unwanted(image) {
                cancel.cancel();
            }
        }
    }

    // -- local mode ------------------------------------------------------------------------------

    /// Notes what was there when local mode was entered: before the first step that adds to it.
    async fn keep_snapshot(&mut self) {
        if self.mode != LocalMode::On || !self.view.is_known() {
            return;
        }
        let mut snapshot = self.snapshot.clone();
        for (engine, view) in &self.view.engines {
            let answers = !self.silent.contains_key(engine);
            if answers && !snapshot.has(*engine) {
                snapshot.add(*engine, view);
            }
        }
        if snapshot == self.snapshot {
            return;
        }
        self.snapshot = snapshot;
        match serde_json::to_value(&self.snapshot) {
            Ok(value) => {
                if let Err(why) = self.world.journal.set_snapshot(value).await {
                    tracing::error!("failed to keep the snapshot of local mode: {why}");
                }
            }
            Err(error) => tracing::error!(%error, "failed to write the snapshot of local mode"),
        }
    }

    fn leave_local_mode(&mut self) {
        if self.cleaning || !self.busy.is_empty() {
            return;
        }
        self.cleaning = true;
        let world = Arc::clone(&self.world);
        let snapshot = std::mem::take(&mut self.snapshot);
        let pulled = self.recorded_images.clone();
        let reenters = self.reenters;
        tokio::spawn(async move {
            clean_up(&world, &snapshot, &pulled).await;
            world.hub.system("Left local mode".into());
            let mut noted = world.journal.close_local_mode().await;
            if reenters && noted.is_ok() {
                noted = world.journal.set_local_mode(LocalMode::On).await;
            }
            if let Err(why) = noted {
                tracing::error!("failed to note that local mode is over: {why}");
            }
            world.tell(Message::LeftLocalMode);
        });
    }

    fn left_local_mode(&mut self) {
        self.cleaning = false;
        self.guards.clear();
        self.commits.clear();
        self.mode = LocalMode::Off;
        if std::mem::take(&mut self.reenters) {
            self.mode = LocalMode::On;
            self.desired = Some(DesiredState::default());
            let mut local = self
                .world
                .local
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            local.on = true;
        }
        // A snapshot of the next local mode must not hold what has just been removed.
        self.view.forget_all();
    }

    // -- publish ---------------------------------------------------------------------------------

    fn publish(&mut self, applying: bool) {
        // Outside local mode the log is a cloud's (device behaviour 1.4).
        self.world.hub.set_silent(self.mode == LocalMode::Off);
        let services: Vec<_> = self.view.services().collect();
        let sources: LogSources = services
            .iter()
            .map(|service| {
                let source = LogSource {
                    engine: service.engine,
                    service: service.key.service.clone(),
                    id: service.id,
                };
                (service.container.clone(), source)
            })
            .collect();
        self.world.hub.set_sources(sources);
        let status = status::draw(&status::Sources {
            services,
            images: self
                .view
                .engines
                .values()
                .flat_map(|view| &view.images)
                .collect(),
            desired: self.desired.as_ref(),
            commits: &self.commits,
            busy: &self.busy.keys().cloned().collect(),
            doing: &self.doing,
            progress: self.world.progress.all(),
            waiting_on: &self.plan.waiting_on,
            applying,
            downloaded: self.downloaded,
            failed: !self.failing.is_empty(),
        });
        self.publish.send_if_modified(|held| {
            let changed = **held != status;
            if changed {
                *held = Arc::new(status);
            }
            changed
        });
        let steps = self
            .busy
            .iter()
            .map(|(subject, since)| (subject.clone(), *since));
        let steps = steps.filter(|(subject, _)| !matches!(subject, Subject::Image(_)));
        let silent = self
            .view
            .engines
            .iter()
            .filter_map(|(kind, view)| match &view.health {
                EngineHealth::Answers => None,
                EngineHealth::Silent(why) => Some((*kind, why.clone())),
            });
        self.world
            .health
            .set(silent.collect(), steps.min_by_key(|(_, since)| *since));
        for taken in self.taken.drain(..) {
            // A caller that has gone does not need to know.
            let _ = taken.send(());
        }
    }

    /// The next time at which something is to be tried again.
    fn next_try(&self) -> Option<Instant> {
        let now = Instant::now();
        let failing = self.failing.values().map(|failing| failing.retry_at);
        let silent = self.silent.values().map(|silent| silent.retry_at);
        failing.chain(silent).filter(|at| *at > now).min()
    }

    /// Lets the steps that disturb a service end, for a moment: a service should not be left killed
    /// because its supervisor was told to stop. Locks go with the guards.
    async fn end(mut self, mut messages: UnboundedReceiver<Message>) {
        self.cancel_pulls(|_| true);
        let patience = self.limits.shutdown;
        let disturbing = |busy: &BTreeMap<Subject, Instant>| {
            let mut subjects = busy.keys();
            subjects.any(|subject| matches!(subject, Subject::Service(_)))
        };
        let finishing = async {
            while disturbing(&self.busy) {
                match messages.recv().await {
                    Some(message) => self.hear(message),
                    None => return,
                }
            }
        };
        if tokio::time::timeout(patience, finishing).await.is_err() {
            tracing::warn!(
                "stopping while a service is being changed; it is finished at the next start"
            );
        }
    }
}

fn wants(desired: &DesiredState, image: &ImageRef) -> bool {
    let mut services = desired.apps.values().flat_map(|app| app.services.values());
    services.any(|service| service.config.image == *image)
}

async fn until(wake: Option<Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

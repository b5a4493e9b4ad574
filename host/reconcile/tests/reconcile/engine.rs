//! An engine in memory that fails, hangs and freezes on request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use engine::{
    ContainerSpec, Containers, CreatedContainer, Engine, EngineError, EngineEvent, EngineInfo,
    Images, LogLine, LogsFrom, NetworkSpec, Networks, PullProgress, RegistryAuth, VolumeSpec,
    Volumes,
};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use model::{
    Container, ContainerHealth, ContainerId, ContainerState, EngineImageId, EngineKind, Image,
    ImageRef, Network, Volume,
};
use tokio::sync::{Notify, broadcast};
use tokio_stream::wrappers::BroadcastStream;

use crate::witness::Witness;

/// Cheap to clone; clones are the same engine.
#[derive(Clone)]
pub(crate) struct MemoryEngine {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    events: Arc<Mutex<broadcast::Sender<EngineEvent>>>,
    /// Calls through a clone that is cut off never return: its supervisor was killed.
    cut_off: Arc<Mutex<bool>>,
    /// Passed by each changing call, before and after it takes effect.
    gate: Arc<Mutex<Option<Gate>>>,
}

pub(crate) type Gate = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

#[derive(Clone, Default)]
struct State {
    images: BTreeMap<ImageRef, EngineImageId>,
    containers: Vec<Container>,
    volumes: Vec<Volume>,
    networks: Vec<Network>,
    /// Every call that changes something, such as `stop web`.
    calls: Vec<String>,
    /// Calls that fail, and how many more times.
    failing: BTreeMap<String, u32>,
    /// Starts that the runtime refuses because of an earlier one, and how many more times.
    stuck: BTreeMap<String, u32>,
    /// Calls that do not return until they are released.
    held: BTreeSet<String>,
    waiting: usize,
    silent: bool,
    numbered: u64,
    logs: BTreeMap<ContainerId, broadcast::Sender<LogLine>>,
    /// What containers have printed so far.
    printed: BTreeMap<ContainerId, Vec<LogLine>>,
    /// The position at which each reading of a container's output was to begin.
    log_starts: Vec<LogsFrom>,
    /// Containers whose output is being read.
    readers: u32,
    /// Changing calls until the engine is cut off.
    calls_left: Option<usize>,
    witness: Witness,
    /// The result of the health check of running containers, by image.
    health: BTreeMap<String, ContainerHealth>,
    /// The number of output lines kept per container, if it is not the usual one.
    log_lines: Option<usize>,
}

/// The course of a call.
enum CallOutcome {
    Whole,
    /// It has no effect and never returns.
    CutOff,
    /// It takes effect and never returns.
    CutOffAfter,
}

impl MemoryEngine {
    pub(crate) fn new() -> Self {
        MemoryEngine::with_events(1024)
    }

    /// Returns an engine whose event channel holds this many events.
    fn with_events(capacity: usize) -> Self {
        MemoryEngine {
            state: Arc::default(),
            changed: Arc::default(),
            events: Arc::new(Mutex::new(broadcast::Sender::new(capacity))),
            cut_off: Arc::default(),
            gate: Arc::default(),
        }
    }

    /// Returns a separate engine with the same objects, on which nothing is printed.
    pub(crate) fn copy(&self) -> Self {
        let copy = MemoryEngine::with_events(64);
        *copy.state() = State {
            log_lines: Some(1),
            ..self.state().clone()
        };
        copy
    }

    pub(crate) fn pass_each(&self, gate: Gate) {
        *self.gate.lock().unwrap() = Some(gate);
    }

    async fn pass(&self) {
        let gate = self.gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate().await;
        }
    }

    /// Accesses the witness.
    pub(crate) fn witness<T>(&self, ask: impl FnOnce(&mut Witness) -> T) -> T {
        ask(&mut self.state().witness)
    }

    pub(crate) fn held_networks(&self) -> Vec<Network> {
        self.state().networks.clone()
    }

    pub(crate) fn held_volumes(&self) -> Vec<Volume> {
        self.state().volumes.clone()
    }

    pub(crate) fn held_images(&self) -> Vec<ImageRef> {
        self.state().images.keys().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns the same engine, for the next supervisor.
    pub(crate) fn for_next_supervisor(&self) -> Self {
        self.state().calls_left = None;
        *self.events.lock().unwrap() = broadcast::Sender::new(1024);
        MemoryEngine {
            cut_off: Arc::default(),
            ..self.clone()
        }
    }

    /// Cuts the supervisor off in the middle of its `n`th changing call: in half of the cases after
    /// it took effect.
    pub(crate) fn cut_off_at(&self, calls: usize) {
        self.state().calls_left = Some(calls);
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        *self.cut_off.lock().unwrap()
    }

    pub(crate) fn fail(&self, call: &str, times: u32) {
        self.state().failing.insert(call.to_owned(), times);
    }

    /// Makes the next starts of a service's container fail because of an earlier start.
    pub(crate) fn refuse_starts(&self, service: &str, times: u32) {
        let call = format!("start {service}");
        self.state().stuck.insert(call, times);
    }

    pub(crate) fn hold(&self, call: &str) {
        self.state().held.insert(call.to_owned());
    }

    pub(crate) fn let_go(&self, call: &str) {
        self.state().held.remove(call);
        self.changed.notify_waiters();
    }

    /// Returns the number of calls that are held.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting
    }

    /// Makes the engine unresponsive, and ends its event streams.
    pub(crate) fn go_silent(&self) {
        self.state().silent = true;
        *self.events.lock().unwrap() = broadcast::Sender::new(1024);
    }

    pub(crate) fn come_back(&self) {
        self.state().silent = false;
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    pub(crate) fn forget_calls(&self) {
        self.state().calls.clear();
    }

    /// Returns container names with their states, in the order of creation.
    pub(crate) fn picture(&self) -> Vec<String> {
        let state = self.state();
        let containers = state.containers.iter();
        containers
            .map(|c| format!("{} {:?}", c.name, c.state))
            .collect()
    }

    pub(crate) fn held_containers(&self) -> Vec<Container> {
        self.state().containers.clone()
    }

    pub(crate) fn held_names(&self) -> Vec<String> {
        let state = self.state();
        let networks = state.networks.iter().map(|network| network.name.clone());
        let volumes = state.volumes.iter().map(|volume| volume.name.clone());
        let images = state.images.keys().map(ToString::to_string);
        networks.chain(volumes).chain(images).collect()
    }

    pub(crate) fn id_of(&self, service: &str) -> ContainerId {
        let state = self.state();
        let container = state.containers.iter().find(|c| service_of(c) == service);
        container.unwrap().id.clone()
    }

    /// Removes the container without the supervisor's knowledge.
    pub(crate) fn vanish(&self, service: &str) {
        self.state().containers.retain(|c| service_of(c) != service);
        self.announce();
    }

    /// Makes the container exit by itself.
    pub(crate) fn end(&self, service: &str) {
        self.end_with(service, 0);
    }

    /// Makes the container exit by itself with this code.
    pub(crate) fn end_with(&self, service: &str, code: i64) {
        for container in &mut self.state().containers {
            if service_of(container) == service {
                container.state = ContainerState::Exited;
                container.exit_code = Some(code);
            }
        }
        self.announce();
    }

    /// Sets the result of the health check of running containers of an image.
    pub(crate) fn health_of(&self, image: &str, health: ContainerHealth) {
        self.state().health.insert(image.to_owned(), health);
        self.announce();
    }

    pub(crate) fn print(&self, service: &str, message: &str) {
        self.print_at(service, message, 1);
    }

    /// Prints a line at a time, in milliseconds since the epoch.
    pub(crate) fn print_at(&self, service: &str, message: &str, timestamp_ms: i64) {
        let id = self.id_of(service);
        let line = LogLine {
            message: message.to_owned(),
            timestamp_ms,
            stderr: false,
        };
        let mut state = self.state();
        state
            .printed
            .entry(id.clone())
            .or_default()
            .push(line.clone());
        // Without readers, nothing receives it yet.
        let _ = state.logs[&id].send(line);
    }

    pub(crate) fn readers(&self) -> u32 {
        self.state().readers
    }

    pub(crate) fn log_starts(&self) -> Vec<LogsFrom> {
        self.state().log_starts.clone()
    }

    fn announce(&self) {
        let _ = self.events.lock().unwrap().send(EngineEvent::Other);
    }

    /// Begins every call; `what` is `None` if the call changes nothing.
    async fn enter(&self, what: Option<&str>) -> Result<bool, EngineError> {
        if self.is_cut_off() {
            std::future::pending::<()>().await;
        }
        // Long enough for others to run in between.
        tokio::time::sleep(Duration::from_millis(1)).await;
        if let Some(call) = what
            && self.state().held.contains(call)
        {
            self.state().waiting += 1;
            self.changed.notify_waiters();
            loop {
                let waiting = self.changed.notified();
                if !self.state().held.contains(call) {
                    break;
                }
                waiting.await;
            }
            self.state().waiting -= 1;
        }
        if what.is_some() {
            self.pass().await;
        }
        match self.note(what)? {
            CallOutcome::Whole => Ok(false),
            CallOutcome::CutOffAfter => Ok(true),
            CallOutcome::CutOff => {
                self.changed.notify_waiters();
                std::future::pending().await
            }
        }
    }

    fn note(&self, what: Option<&str>) -> Result<CallOutcome, EngineError> {
        let mut state = self.state();
        if state.silent {
            return Err(EngineError::Unreachable {
                engine: EngineKind::Docker,
                address: "memory".to_owned(),
                source: "connection refused".into(),
            });
        }
        let Some(call) = what else {
            return Ok(CallOutcome::Whole);
        };
        state.calls.push(call.to_owned());
        if let Some(left) = state.failing.get_mut(call)
            && *left > 0
        {
            *left -= 1;
            return Err(EngineError::failed(call, "the test makes it fail"));
        }
        if let Some(left @ 1..) = state.stuck.get_mut(call) {
            *left -= 1;
            return Err(EngineError::StuckInRuntime {
                name: call.to_owned(),
                source: "container with given ID already exists".into(),
            });
        }
        let after = state.calls.len().is_multiple_of(2);
        match &mut state.calls_left {
            None => Ok(CallOutcome::Whole),
            Some(0) => {
                *self.cut_off.lock().unwrap() = true;
                Ok(if after {
                    CallOutcome::CutOffAfter
                } else {
                    CallOutcome::CutOff
                })
            }
            Some(left) => {
                *left -= 1;
                Ok(CallOutcome::Whole)
            }
        }
    }

    /// Ends every changing call.
    async fn leave(&self, cut_off_after: bool) {
        self.announce();
        self.changed.notify_waiters();
        self.pass().await;
        if cut_off_after {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until something about the engine may have changed.
    pub(crate) async fn changed(&self) {
        let _ = tokio::time::timeout(Duration::from_millis(10), self.changed.notified()).await;
    }

    fn service_of_id(&self, id: &ContainerId) -> String {
        let state = self.state();
        let found = state.containers.iter().find(|c| c.id == *id);
        found.map_or_else(|| id.to_string(), |c| service_of(c).to_owned())
    }
}

pub(crate) fn service_of(container: &Container) -> &str {
    container
        .labels
        .get("io.platform.service-name")
        .map_or("?", String::as_str)
}

fn not_found(what: &str) -> EngineError {
    EngineError::NotFound {
        what: what.to_owned(),
    }
}

#[async_trait]
impl Engine for MemoryEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::Docker
    }

    async fn info(&self) -> Result<EngineInfo, EngineError> {
        self.enter(None).await?;
        Ok(EngineInfo {
            version: "1".into(),
            api_version: String::new(),
        })
    }

    async fn events(&self) -> Result<BoxStream<'static, EngineEvent>, EngineError> {
        self.enter(None).await?;
        let events = BroadcastStream::new(self.events.lock().unwrap().subscribe());
        Ok(events
            .filter_map(|event| std::future::ready(event.ok()))
            .boxed())
    }
}

#[async_trait]
impl Images for MemoryEngine {
    async fn images(&self) -> Result<Vec<Image>, EngineError> {
        self.enter(None).await?;
        let state = self.state();
        let images = state.images.iter().map(|(reference, id)| Image {
            engine: EngineKind::Docker,
            id: id.clone(),
            references: vec![reference.clone()],
            size: 1,
        });
        Ok(images.collect())
    }

    async fn pull_image(
        &self,
        image: &ImageRef,
        _auth: Option<&RegistryAuth>,
        progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<Image, EngineError> {
        progress(PullProgress { percent: 50 });
        let cut_off = self.enter(Some(&format!("pull {image}"))).await?;
        if image.as_str().starts_with("missing") {
            return Err(not_found(&format!("image `{image}`")));
        }
        let id: EngineImageId = format!("sha256:{image}").parse().unwrap();
        self.state().images.insert(image.clone(), id.clone());
        self.leave(cut_off).await;
        Ok(Image {
            engine: EngineKind::Docker,
            id,
            references: vec![image.clone()],
            size: 1,
        })
    }

    async fn remove_image(&self, image: &ImageRef) -> Result<(), EngineError> {
        let cut_off = self.enter(Some(&format!("remove image {image}"))).await?;
        self.state().images.remove(image);
        self.leave(cut_off).await;
        Ok(())
    }
}

#[async_trait]
impl Containers for MemoryEngine {
    async fn containers(&self) -> Result<Vec<Container>, EngineError> {
        self.enter(None).await?;
        let state = self.state();
        let mut containers = state.containers.clone();
        for container in &mut containers {
            let health = state.health.get(&container.image).copied();
            container.health = health.filter(|_| container.state == ContainerState::Running);
        }
        Ok(containers)
    }

    async fn create_container(
        &self,
        spec: &ContainerSpec<'_>,
    ) -> Result<CreatedContainer, EngineError> {
        let service = spec.config.labels["io.platform.service-name"].clone();
        let cut_off = self.enter(Some(&format!("create {service}"))).await?;
        let id: ContainerId = {
            let mut state = self.state();
            if state.containers.iter().any(|c| c.name == spec.name) {
                return Err(EngineError::Conflict {
                    what: format!("container `{}`", spec.name),
                    hint: "remove it".into(),
                });
            }
            state.numbered += 1;
            let number = state.numbered;
            let id: ContainerId = format!("c{number}").parse().unwrap();
            state.containers.push(Container {
                engine: EngineKind::Docker,
                id: id.clone(),
                name: spec.name.to_owned(),
                labels: spec.config.labels.clone(),
                image: spec.config.image.to_string(),
                image_id: spec.image_id.clone(),
                state: ContainerState::Created,
                exit_code: None,
                health: None,
                created_at_ms: i64::try_from(number).unwrap(),
            });
            let lines = state.log_lines.unwrap_or(4096);
            state.logs.insert(id.clone(), broadcast::Sender::new(lines));
            id
        };
        self.leave(cut_off).await;
        Ok(CreatedContainer {
            id,
            warnings: Vec::new(),
        })
    }

    async fn start_container(&self, id: &ContainerId) -> Result<(), EngineError> {
        let service = self.service_of_id(id);
        let cut_off = self.enter(Some(&format!("start {service}"))).await?;
        {
            let mut state = self.state();
            let container = state.containers.iter_mut().find(|c| c.id == *id);
            container.ok_or_else(|| not_found(id.as_str()))?.state = ContainerState::Running;
            let state = &mut *state;
            state.witness.see_start(id, &state.containers);
        }
        self.leave(cut_off).await;
        Ok(())
    }

    async fn stop_container(&self, id: &ContainerId, _grace: Duration) -> Result<(), EngineError> {
        let service = self.service_of_id(id);
        let cut_off = self.enter(Some(&format!("stop {service}"))).await?;
        {
            let mut state = self.state();
            let state = &mut *state;
            state.witness.see_disturbance("stop", id, &state.containers);
            for container in &mut state.containers {
                if container.id == *id && container.state != ContainerState::Created {
                    container.state = ContainerState::Exited;
                }
            }
        }
        self.leave(cut_off).await;
        Ok(())
    }

    async fn remove_container(&self, id: &ContainerId) -> Result<(), EngineError> {
        let service = self.service_of_id(id);
        let cut_off = self.enter(Some(&format!("remove {service}"))).await?;
        {
            let mut state = self.state();
            let state = &mut *state;
            let (seen, containers) = (&mut state.witness, &mut state.containers);
            seen.see_disturbance("removal", id, containers);
            containers.retain(|c| c.id != *id);
        }
        self.leave(cut_off).await;
        Ok(())
    }

    async fn rename_container(&self, id: &ContainerId, name: &str) -> Result<(), EngineError> {
        let service = self.service_of_id(id);
        let cut_off = self.enter(Some(&format!("rename {service}"))).await?;
        {
            let mut state = self.state();
            let state = &mut *state;
            state.witness.see_rename(id, &state.containers);
            for container in &mut state.containers {
                if container.id == *id {
                    name.clone_into(&mut container.name);
                }
            }
        }
        self.leave(cut_off).await;
        Ok(())
    }

    async fn environment(&self, _: &ContainerId) -> Result<BTreeMap<String, String>, EngineError> {
        self.enter(None).await?;
        Ok(BTreeMap::new())
    }

    async fn logs(
        &self,
        id: &ContainerId,
        from: LogsFrom,
    ) -> Result<BoxStream<'static, Result<LogLine, EngineError>>, EngineError> {
        self.enter(None).await?;
        let mut state = self.state();
        state.log_starts.push(from);
        if let Some(left) = state.failing.get_mut("logs")
            && *left > 0
        {
            *left -= 1;
            return Err(EngineError::failed("logs", "the test makes it fail"));
        }
        let sender = state.logs.get(id).ok_or_else(|| not_found(id.as_str()))?;
        let new = BroadcastStream::new(sender.subscribe());
        let printed = state.printed.get(id).cloned().unwrap_or_default();
        state.readers += 1;
        let reading = Reading(self.clone());
        self.changed.notify_waiters();
        let stored = printed.into_iter().filter(move |line| match from {
            LogsFrom::Start => true,
            LogsFrom::Since(since) => line.timestamp_ms >= since,
        });
        Ok(futures::stream::iter(stored.map(Ok))
            .chain(new)
            .filter_map(move |line| {
                let _ = &reading;
                std::future::ready(line.ok().map(Ok))
            })
            .boxed())
    }
}

#[async_trait]
impl Volumes for MemoryEngine {
    async fn volumes(&self) -> Result<Vec<Volume>, EngineError> {
        self.enter(None).await?;
        Ok(self.state().volumes.clone())
    }

    async fn create_volume(&self, spec: &VolumeSpec<'_>) -> Result<(), EngineError> {
        let cut_off = self
            .enter(Some(&format!("create volume {}", spec.name)))
            .await?;
        {
            let mut state = self.state();
            if state.volumes.iter().all(|volume| volume.name != spec.name) {
                state.volumes.push(Volume {
                    engine: EngineKind::Docker,
                    name: spec.name.to_owned(),
                    labels: spec.config.labels.clone(),
                });
                state.witness.see_volume(spec.name);
            }
        }
        self.leave(cut_off).await;
        Ok(())
    }

    async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        let cut_off = self.enter(Some(&format!("remove volume {name}"))).await?;
        self.state().volumes.retain(|volume| volume.name != name);
        self.witness(|seen| seen.births.remove(name));
        self.leave(cut_off).await;
        Ok(())
    }
}

#[async_trait]
impl Networks for MemoryEngine {
    async fn networks(&self) -> Result<Vec<Network>, EngineError> {
        self.enter(None).await?;
        Ok(self.state().networks.clone())
    }

    async fn create_network(&self, spec: &NetworkSpec<'_>) -> Result<(), EngineError> {
        let cut_off = self
            .enter(Some(&format!("create network {}", spec.name)))
            .await?;
        {
            let mut state = self.state();
            if state
                .networks
                .iter()
                .all(|network| network.name != spec.name)
            {
                state.networks.push(Network {
                    engine: EngineKind::Docker,
                    id: spec.name.to_owned(),
                    name: spec.name.to_owned(),
                    labels: spec.config.labels.clone(),
                });
            }
        }
        self.leave(cut_off).await;
        Ok(())
    }

    async fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        let cut_off = self.enter(Some(&format!("remove network {name}"))).await?;
        self.state().networks.retain(|network| network.name != name);
        self.leave(cut_off).await;
        Ok(())
    }
}

/// Counts a reader for as long as its stream lives.
struct Reading(MemoryEngine);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.state().readers -= 1;
        self.0.changed.notify_waiters();
    }
}

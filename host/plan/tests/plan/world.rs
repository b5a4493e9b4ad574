//! Engines that carry out plans in any order, and fail a number of times.

use std::collections::BTreeSet;

use device_types::Moment;
use model::{ContainerId, ContainerState, CurrentService, DesiredState, EngineKind, Image};
use plan::{
    AnyStep, ComponentKind, CurrentComponent, CurrentState, EngineHealth, Failure, Forecast,
    LockedStep, ServiceWork, Step, Subject, plan,
};
use proptest::test_runner::TestCaseError;

use crate::build::{Device, Docker, Wasm};

/// Far more than any plan of these sizes needs.
const MAX_TICKS: usize = 3000;

pub(crate) struct World {
    /// The complete state, including engines that do not answer.
    state: CurrentState,
    in_flight: Vec<Flight>,
    choices: Vec<u32>,
    chosen: usize,
    failures: u32,
    silent_until: u32,
    numbered: u64,
    /// The prefix of the ids of new containers.
    prefix: &'static str,
    pub boots: u32,
    /// Containers that were stopped or removed while they ran or could run.
    pub disturbed: BTreeSet<String>,
}

enum Flight {
    Plain(Step),
    Work(ServiceWork),
}

impl World {
    pub(crate) fn new(device: Device, choices: Vec<u32>, failures: u32, silent_until: u32) -> Self {
        World {
            state: device.0,
            in_flight: Vec::new(),
            choices,
            chosen: 0,
            failures,
            silent_until,
            numbered: 0,
            prefix: "new",
            boots: 0,
            disturbed: BTreeSet::new(),
        }
    }

    fn choose(&mut self, from: usize) -> usize {
        self.chosen += 1;
        let choice = self.choices[self.chosen % self.choices.len()];
        // Avoid the same choice when the list starts over.
        (choice as usize).wrapping_add(self.chosen) % from.max(1)
    }

    /// Returns the observed state: nothing from an engine that does not answer.
    fn observed(&self) -> CurrentState {
        let mut observed = self.state.clone();
        if self.silent_until > 0 {
            let silent = EngineHealth::Silent("refused".into());
            observed.engines.insert(Docker, silent);
            observed.services.retain(|service| service.engine != Docker);
            observed.images.retain(|image| image.engine != Docker);
            observed.networks.retain(|network| network.engine != Docker);
            observed.volumes.retain(|volume| volume.engine != Docker);
        }
        observed
    }

    /// Plans and acts until nothing is left to do.
    pub(crate) fn run(&mut self, desired: &DesiredState) -> Result<usize, String> {
        for tick in 0..MAX_TICKS {
            let planned = plan(&self.observed(), desired);
            if planned.is_settled() && self.in_flight.is_empty() {
                return Ok(tick);
            }
            for step in planned.steps {
                self.begin(step, desired)?;
            }
            if self.in_flight.is_empty() {
                // Everything left waits: for time, for the engine, or for Docker to finish a
                // removal.
                self.silent_until = self.silent_until.saturating_sub(1);
                self.state.failed.values_mut().for_each(|f| f.held = false);
                let containers = &mut self.state.services;
                containers.retain(|c| c.state != ContainerState::Removing);
            } else {
                self.finish_one();
            }
        }
        let last = plan(&self.observed(), desired);
        Err(format!(
            "no end after {MAX_TICKS} ticks; the last plan:\n{last}"
        ))
    }

    /// Follows a forecast step by step, without planning.
    pub(crate) fn follow(&mut self, forecast: Forecast) -> Result<(), String> {
        self.prefix = "foreseen-";
        // Whatever an engine is removing is gone at some point.
        let containers = &mut self.state.services;
        containers.retain(|c| c.state != ContainerState::Removing);
        for foreseen in forecast.steps {
            let line = format!("{foreseen:?}");
            let done = match foreseen.step {
                AnyStep::Free(step) => self.act(step),
                AnyStep::Locked(service, step) => self.work(ServiceWork {
                    service,
                    steps: vec![step],
                }),
            };
            if !done {
                return Err(format!("it could not be done: {line}"));
            }
        }
        self.state.locks.clear();
        Ok(())
    }

    fn begin(&mut self, step: Step, desired: &DesiredState) -> Result<(), String> {
        let subject = step.subject();
        if self.state.busy.contains(&subject) {
            return Err(format!("{subject} is busy: {step}"));
        }
        match step {
            Step::UnderLocks(locked) => {
                self.state.locks.insert(locked.app.clone());
                for work in locked.work {
                    self.check_images(&work, desired)?;
                    let subject = Subject::Service(work.service.clone());
                    if !self.state.busy.insert(subject.clone()) {
                        return Err(format!("{subject} is busy"));
                    }
                    self.in_flight.push(Flight::Work(work));
                }
            }
            Step::ReleaseLocks { app } => {
                let working = self
                    .in_flight
                    .iter()
                    .any(|flight| matches!(flight, Flight::Work(work) if work.service.app == app));
                if working {
                    return Err(format!("the locks of {app} were released under a step"));
                }
                self.state.locks.remove(&app);
            }
            step => {
                if matches!(step, Step::Reboot { .. }) && !self.in_flight.is_empty() {
                    return Err("it would reboot under a step".into());
                }
                self.state.busy.insert(subject);
                self.in_flight.push(Flight::Plain(step));
            }
        }
        Ok(())
    }

    /// Checks that nothing is killed before every image of the app is present.
    fn check_images(&self, work: &ServiceWork, desired: &DesiredState) -> Result<(), String> {
        let kills = |step: &LockedStep| matches!(step, LockedStep::Kill { .. });
        let Some(app) = desired.apps.get(&work.service.app) else {
            return Ok(());
        };
        let early = app
            .services
            .get(&work.service.service)
            .is_some_and(|service| {
                use model::UpdateStrategy::{DeleteThenDownload, KillThenDownload};
                matches!(service.strategy, KillThenDownload | DeleteThenDownload)
            });
        if early || !work.steps.iter().any(kills) {
            return Ok(());
        }
        let waits = |service: &&model::DesiredService| {
            use model::UpdateStrategy::{DownloadThenKill, HandOver};
            matches!(service.strategy, DownloadThenKill | HandOver)
        };
        for service in app.services.values().filter(waits) {
            let made = self.state.services.iter().any(|container| {
                container.key == service.key && container.digest.as_ref() == Some(&service.digest)
            });
            let mut images = self.state.images.iter();
            let held = images.any(|image| image.references.contains(&service.config.image));
            if !made && !held {
                return Err(format!(
                    "a kill before the image of {} was there",
                    service.key
                ));
            }
        }
        Ok(())
    }

    fn finish_one(&mut self) {
        let place = self.choose(self.in_flight.len());
        let flight = self.in_flight.swap_remove(place);
        let subject = match &flight {
            Flight::Plain(step) => step.subject(),
            Flight::Work(work) => Subject::Service(work.service.clone()),
        };
        self.state.busy.remove(&subject);
        let container_to_start = match &flight {
            Flight::Plain(Step::StartExisting { container, .. }) => Some(container.id.clone()),
            _ => None,
        };
        let succeeded = match flight {
            Flight::Plain(step) => !self.fails() && self.act(step),
            Flight::Work(work) => self.work(work),
        };
        if succeeded {
            self.state.failed.remove(&subject);
        } else {
            let failure = Failure {
                reason: "the test makes it fail".into(),
                held: true,
                retry_at: Moment(0),
                failures: 1,
                postponed_by: None,
                stuck_container: container_to_start.filter(|_| self.choose(2) == 0),
            };
            self.state.failed.insert(subject, failure);
        }
    }

    fn fails(&mut self) -> bool {
        let fails = self.failures > 0 && self.choose(3) == 0;
        self.failures -= u32::from(fails);
        fails
    }

    /// Takes the steps of one service, each of which may be the last.
    fn work(&mut self, work: ServiceWork) -> bool {
        for step in work.steps {
            if self.fails() {
                return false;
            }
            match step {
                LockedStep::Stop { container, .. } => self.stop(container.id.as_str()),
                LockedStep::Kill { container, .. } => {
                    self.stop(container.id.as_str());
                    if self.fails() {
                        return false;
                    }
                    self.state
                        .services
                        .retain(|held| held.container != container.id);
                }
                LockedStep::Rename { container, name } => {
                    // Numbers of images and releases are unique, but in these tests only within an
                    // app.
                    let app = &work.service.app;
                    let mut held = self.state.services.iter().filter(|c| c.key.app == *app);
                    let is_used = held.any(|held| held.name == name);
                    assert!(!is_used, "the name {name} is taken");
                    for held in &mut self.state.services {
                        if held.container == container.id {
                            held.name.clone_from(&name);
                        }
                    }
                }
                LockedStep::RemoveImage { image, .. } => {
                    self.state
                        .images
                        .retain(|held| !held.references.contains(&image));
                    self.state.recorded_images.remove(&image);
                }
                LockedStep::HandOver {
                    old, rename, start, ..
                } => {
                    for held in &mut self.state.services {
                        if let Some(name) = &rename
                            && held.container == old.id
                        {
                            held.name.clone_from(name);
                        }
                    }
                    if self.fails() || !self.make(*start, Some(&old.id)) || self.fails() {
                        return false;
                    }
                    self.stop(old.id.as_str());
                    self.state.services.retain(|held| held.container != old.id);
                }
                LockedStep::Start(start) => {
                    if !self.make(*start, None) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Creates and starts a container, and checks that the only other container of its service is
    /// `beside`.
    fn make(&mut self, start: plan::StartService, beside: Option<&ContainerId>) -> bool {
        let service = start.service;
        // A container on an engine that does not answer cannot be seen; it is removed once it can.
        let silent = self.silent_until > 0;
        let mut held = self.state.services.iter();
        let twin = held.find(|c| {
            let unseen = silent && c.engine == Docker;
            c.key == service.key && !unseen && beside != Some(&c.container)
        });
        assert!(twin.is_none(), "{} has a container already", service.key);
        for network in service.config.networks.keys() {
            assert!(
                self.has(&self.state.networks, start.engine, network),
                "{} starts before its network is there",
                service.key
            );
        }
        self.numbered += 1;
        let id: ContainerId = format!("{}{}", self.prefix, self.numbered).parse().unwrap();
        if let Some(host) = start.network_container {
            let mut held = self.state.services.iter();
            assert!(
                held.any(|held| held.container == host),
                "{host} is not there"
            );
            let joined = &mut self.state.network_containers;
            joined.insert(id.clone(), host);
        }
        self.state.services.push(CurrentService {
            engine: start.engine,
            container: id,
            name: service.container_name(),
            image: service.config.image.to_string(),
            engine_image: start.image,
            state: ContainerState::Created,
            waits_in_boot: start.starts_after.clone(),
            stop_grace: std::time::Duration::from_secs(10),
            depends_on: service.depends_on.iter().cloned().collect(),
            digest: Some(service.digest.clone()),
            created_at_ms: 1_000_000 + i64::try_from(self.numbered).unwrap(),
            app_id: service.app_id,
            id: service.id,
            device: None,
            release: None,
            exit_code: None,
            health: None,
            key: service.key,
        });
        let starts = start.starts_after.is_none();
        if service.running && starts {
            if self.fails() {
                return false;
            }
            self.state.services.last_mut().unwrap().state = ContainerState::Running;
        }
        true
    }

    fn has(&self, held: &[CurrentComponent], engine: EngineKind, name: &str) -> bool {
        held.iter().any(|c| c.engine == engine && c.name == name)
    }

    fn stop(&mut self, id: &str) {
        self.disturbed.insert(id.to_owned());
        for held in &mut self.state.services {
            if held.container.as_str() == id && held.state != ContainerState::Created {
                held.state = ContainerState::Exited;
            }
        }
        self.state.stopped.insert(id.parse().unwrap());
    }

    /// Takes a step without locks; returns whether that was possible.
    fn act(&mut self, step: Step) -> bool {
        let state = &mut self.state;
        match step {
            Step::PullImage { image, .. } => {
                let engine = if image.as_str().starts_with("wasm") {
                    Wasm
                } else {
                    Docker
                };
                if engine == Docker && self.silent_until > 0 {
                    return false;
                }
                state.recorded_images.insert(image.clone());
                state.images.push(Image {
                    engine,
                    id: format!("id:{image}").parse().unwrap(),
                    references: vec![image],
                    size: 0,
                });
            }
            Step::RemoveImage { image, .. } => {
                let mut services = state.services.iter();
                let used = services.any(|service| service.image == image.as_str());
                assert!(!used && !state.local_mode, "{image} is used");
                state
                    .images
                    .retain(|held| !held.references.contains(&image));
                state.recorded_images.remove(&image);
            }
            Step::CreateComponent { engine, component } => {
                let (name, digest) = (component.engine_name(), component.digest());
                let made = current_component(engine, name.to_owned(), digest.to_owned());
                components(state, component.kind()).push(made);
            }
            Step::RemoveComponent {
                engine, kind, name, ..
            } => {
                components(state, kind).retain(|held| held.engine != engine || held.name != name);
            }
            Step::RemoveDead { container, .. } => {
                state.services.retain(|held| held.container != container.id);
            }
            Step::StartExisting { container, .. } => {
                for held in &mut state.services {
                    if held.container == container.id {
                        held.state = ContainerState::Running;
                    }
                }
                state.stopped.remove(&container.id);
            }
            Step::RecordCommit { app, commit } => {
                state.commits.insert(app, commit);
            }
            Step::ForgetCommit { app } => {
                state.commits.remove(&app);
            }
            Step::Configure { part, .. } => {
                state.host.differs.remove(&part);
                state.host.reboot_due = true;
            }
            Step::Reboot { .. } => {
                self.boots += 1;
                assert!(self.boots <= 16, "it reboots again and again");
                state.host.boot = Some(format!("boot{}", self.boots).parse().unwrap());
                state.host.reboot_due = false;
            }
            // No target here names a version of the operating system.
            Step::StageOs { .. } | Step::CommitOs { .. } | Step::RollBackOs { .. } => {}
            Step::UnderLocks(_) | Step::ReleaseLocks { .. } => {}
        }
        true
    }

    /// Checks that the state is the target, without using the planner.
    pub(crate) fn check_is(&self, desired: &DesiredState) -> Result<(), TestCaseError> {
        let state = &self.state;
        let fail = |why: String| Err(TestCaseError::fail(why));
        for container in &state.services {
            let app = desired.apps.get(&container.key.app);
            if app.is_none_or(|app| !app.services.contains_key(&container.key.service)) {
                return fail(format!("{} is still there", container.key));
            }
        }
        for app in desired.apps.values() {
            for service in app.services.values() {
                let mut held = state.services.iter().filter(|c| c.key == service.key);
                let (Some(container), None) = (held.next(), held.next()) else {
                    return fail(format!("{} has not one container", service.key));
                };
                if container.digest.as_ref() != Some(&service.digest)
                    || container.name != service.container_name()
                {
                    return fail(format!("{} is not as wanted: {container:?}", service.key));
                }
                let runs = !matches!(
                    container.state,
                    ContainerState::Created | ContainerState::Exited
                );
                let ended = container.state == ContainerState::Exited
                    && !state.stopped.contains(&container.container);
                if runs != service.running && !(service.running && ended) {
                    return fail(format!("{}: {:?}", service.key, container.state));
                }
            }
            if state.commits.get(&app.uuid) != app.commit.as_ref() {
                return fail(format!("the commit of {} is not recorded", app.uuid));
            }
        }
        for network in &state.networks {
            let mut apps = desired.apps.values().flat_map(|app| app.networks.values());
            if !apps.any(|it| it.engine_name == network.name) {
                return fail(format!("network {} is still there", network.name));
            }
        }
        if !state.locks.is_empty() {
            return fail(format!("locks are held: {:?}", state.locks));
        }
        Ok(())
    }
}

fn current_component(engine: EngineKind, name: String, digest: String) -> CurrentComponent {
    // `shop_front`, `1_data`: apps of these tests.
    let app = match name.split('_').next() {
        Some("shop" | "1") => "shop",
        _ => "cafe",
    };
    CurrentComponent {
        engine,
        app: Some(app.parse().unwrap()),
        name,
        digest: Some(digest),
    }
}

fn components(state: &mut CurrentState, kind: ComponentKind) -> &mut Vec<CurrentComponent> {
    match kind {
        ComponentKind::Volume => &mut state.volumes,
        ComponentKind::Network => &mut state.networks,
    }
}

//! The actions of successive supervisors that an engine in memory has seen.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::{Container, ContainerId, ContainerState};

use crate::engine::service_of;

#[derive(Clone, Default)]
pub(crate) struct Witness {
    /// The folder of lock folders, in which the witness checks whether locks are held.
    pub(crate) locks: Option<PathBuf>,
    /// Containers that were stopped or removed, by id, with the numbers of their apps.
    pub(crate) disturbed: BTreeMap<String, String>,
    /// Volumes by name, each with a number that no other has or had.
    pub(crate) births: BTreeMap<String, u64>,
    /// Violations of rules for supervisors.
    pub(crate) violations: Vec<String>,
    volumes: u64,
}

impl Witness {
    pub(crate) fn see_volume(&mut self, name: &str) {
        self.volumes += 1;
        self.births.insert(name.to_owned(), self.volumes);
    }

    pub(crate) fn see_disturbance(&mut self, what: &str, id: &ContainerId, all: &[Container]) {
        if let Some(container) = all.iter().find(|container| container.id == *id) {
            self.look_for_lock(what, container);
            self.disturbed.insert(id.to_string(), app_of(container));
        }
    }

    pub(crate) fn see_rename(&mut self, id: &ContainerId, all: &[Container]) {
        if let Some(container) = all.iter().find(|container| container.id == *id) {
            self.look_for_lock("renaming", container);
        }
    }

    /// Checks that a service runs twice only in a hand-over.
    pub(crate) fn see_start(&mut self, id: &ContainerId, all: &[Container]) {
        let Some(started) = all.iter().find(|container| container.id == *id) else {
            return;
        };
        let twin = all.iter().find(|other| {
            other.id != *id
                && service_of(other) == service_of(started)
                && app_of(other) == app_of(started)
                && other.state == ContainerState::Running
        });
        let strategy = started.labels.get("io.platform.update.strategy");
        if let Some(twin) = twin
            && strategy.map(String::as_str) != Some("hand-over")
        {
            let (one, other) = (&started.name, &twin.name);
            self.violations.push(format!("{one} runs beside {other}"));
        }
    }

    fn look_for_lock(&mut self, what: &str, container: &Container) {
        let Some(locks) = &self.locks else { return };
        let folder = locks.join(app_of(container)).join(service_of(container));
        if !folder.join("updates.lock").exists() {
            let name = &container.name;
            self.violations
                .push(format!("{what} of {name} without its lock"));
        }
    }
}

/// Returns the number of its app.
pub(crate) fn app_of(container: &Container) -> String {
    let label = container.labels.get("io.platform.app-id");
    label.cloned().unwrap_or_default()
}

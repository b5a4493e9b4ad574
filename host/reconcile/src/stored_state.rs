//! The loop's copy of the store's contents, updated with each [`StoredRecord`].

use std::collections::{BTreeMap, BTreeSet};

use model::{
    AppId, AppUuid, Commit, ContainerId, CurrentService, DesiredApp, DesiredObject, DesiredService,
    ImageRef, ServiceName,
};
use plan::{ComponentKind, CurrentState};
use serde::de::DeserializeOwned;

use crate::definitions::{Definitions, component_subject, service_subject};
use crate::messages::StoredRecord;

/// The state that outlives the supervisor, except for `held`.
#[derive(Debug, Default)]
pub(crate) struct StoredState {
    pub commits: BTreeMap<AppUuid, Commit>,
    pub recorded_images: BTreeSet<ImageRef>,
    /// The definition of each existing object.
    pub definitions: Definitions,
    /// Containers that the supervisor itself has stopped.
    pub stopped: BTreeSet<ContainerId>,
    /// Those that stay stopped because a client of the API stopped them. Such a stop lasts until the supervisor starts
    /// again, so this is not stored (docs/spec/device.md#stopped-services).
    pub held: BTreeSet<ContainerId>,
    /// The services that may have API keys, after the keys of all others were forgotten; `None` before that.
    pub services_with_keys: Option<BTreeSet<(AppId, ServiceName)>>,
}

impl StoredState {
    pub(crate) fn apply(&mut self, record: StoredRecord) {
        match record {
            StoredRecord::Image(image, _) => {
                self.recorded_images.insert(image);
            }
            StoredRecord::NoImage(image) => {
                self.recorded_images.remove(&image);
            }
            StoredRecord::Definition(definition) => self.definitions.put(definition),
            StoredRecord::Commit(app, commit) => {
                self.commits.insert(app, commit);
            }
            StoredRecord::NoCommit(app) => {
                self.commits.remove(&app);
            }
            StoredRecord::Stopped(container) => {
                self.stopped.insert(container);
            }
            StoredRecord::NotStopped(container) => {
                self.stopped.remove(&container);
            }
        }
    }

    pub(crate) fn release(&mut self, containers: &BTreeSet<ContainerId>) {
        self.held.retain(|id| !containers.contains(id));
    }

    /// Returns what an app is made of: these services, and its volumes and networks in `current`; `None` if the
    /// definition of one is unknown. What nothing records, such as the app's name, is as in the target.
    pub(crate) fn read_app(
        &self,
        target: &DesiredApp,
        services: impl Iterator<Item = CurrentService>,
        current: &CurrentState,
    ) -> Option<DesiredApp> {
        let services = services.map(|service| {
            let service = self.read_service(target, service)?;
            Some((service.key.service.clone(), service))
        });
        Some(DesiredApp {
            commit: self.commits.get(&target.uuid).cloned(),
            services: services.collect::<Option<_>>()?,
            volumes: self.read_components(
                target,
                current,
                ComponentKind::Volume,
                &target.volumes,
            )?,
            networks: self.read_components(
                target,
                current,
                ComponentKind::Network,
                &target.networks,
            )?,
            ..target.clone()
        })
    }

    fn read_service(&self, target: &DesiredApp, current: CurrentService) -> Option<DesiredService> {
        let digest = current.digest?;
        let release = current.release?;
        let same = target.services.get(&current.key.service);
        let same = same.filter(|desired| desired.digest == digest).cloned();
        let subject = service_subject(&current.key);
        let made: DesiredService = same.or_else(|| self.definitions.get(subject, &digest))?;
        Some(DesiredService {
            key: current.key,
            app_id: current.app_id,
            id: current.id,
            // A later release may have given it another name.
            image_id: release.image_id,
            release: release.id,
            commit: release.commit?,
            ..made
        })
    }

    /// Returns the definitions of the volumes, or the networks, of an app, by their names at the engine.
    fn read_components<C: Clone + DeserializeOwned>(
        &self,
        target: &DesiredApp,
        current: &CurrentState,
        kind: ComponentKind,
        desired: &BTreeMap<String, DesiredObject<C>>,
    ) -> Option<BTreeMap<String, DesiredObject<C>>> {
        let components = current.components(kind).iter();
        let ours = components.filter(|component| component.app.as_ref() == Some(&target.uuid));
        let definitions = ours.map(|component| {
            let (name, digest) = (&component.name, component.digest.as_ref()?);
            let mut objects = desired.values();
            let same = objects.find(|it| it.engine_name == *name && it.digest == *digest);
            let subject = component_subject(kind, name);
            let stored = || self.definitions.get(subject, digest);
            Some((name.clone(), same.cloned().or_else(stored)?))
        });
        definitions.collect()
    }

    /// Copies all of it into the planner's input.
    pub(crate) fn describe(&self, current: &mut CurrentState) {
        current.commits.clone_from(&self.commits);
        current.recorded_images.clone_from(&self.recorded_images);
        current.stopped.clone_from(&self.stopped);
        current.held.clone_from(&self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(id: &str) -> ContainerId {
        id.parse().unwrap()
    }

    #[test]
    fn a_record_is_undone_by_its_opposite() {
        let app: AppUuid = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let image: ImageRef = "web:1".parse().unwrap();
        let commit: Commit = "abc".parse().unwrap();
        let mut stored = StoredState::default();
        stored.apply(StoredRecord::Image(image.clone(), Vec::new()));
        stored.apply(StoredRecord::Commit(app.clone(), commit));
        stored.apply(StoredRecord::Stopped(container("a")));
        let mut current = CurrentState::default();
        stored.describe(&mut current);
        assert!(current.recorded_images.contains(&image));
        assert!(current.commits.contains_key(&app));
        assert!(current.stopped.contains(&container("a")));
        stored.apply(StoredRecord::NoImage(image));
        stored.apply(StoredRecord::NoCommit(app));
        stored.apply(StoredRecord::NotStopped(container("a")));
        stored.describe(&mut current);
        assert!(current.recorded_images.is_empty() && current.commits.is_empty());
        assert!(current.stopped.is_empty());
    }

    #[test]
    fn a_container_is_held_until_it_is_released() {
        let mut stored = StoredState::default();
        let [a, b, c] = ["a", "b", "c"].map(container);
        stored.held.extend([a.clone(), b.clone(), c.clone()]);
        stored.release(&[a, b].into());
        let mut current = CurrentState::default();
        stored.describe(&mut current);
        assert_eq!(current.held, [c].into());
    }
}

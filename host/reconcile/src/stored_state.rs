//! The loop's copy of the store's contents, updated with each [`StoredRecord`].

use std::collections::{BTreeMap, BTreeSet};

use model::{AppId, AppUuid, Commit, ContainerId, ImageRef, ServiceName};
use plan::CurrentState;

use crate::definitions::Definitions;
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

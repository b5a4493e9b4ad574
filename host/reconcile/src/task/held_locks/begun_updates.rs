//! The updates of apps that no plugin postpones any more: plugins are not asked about the rest of an update whose first
//! services are gone already. Its locks may be free meanwhile, since they are not held during downloads
//! (docs/spec/device.md#locks-gates).

use std::collections::BTreeMap;

use model::{AppUuid, Commit};

use crate::PendingUpdate;

/// Updates that plugins were asked about, by their apps, until the target is reached.
#[derive(Debug, Default)]
pub(crate) struct BegunUpdates {
    /// The release that each update leads to, while plugins are asked and the locks are taken.
    queries: BTreeMap<AppUuid, Option<Commit>>,
    /// The release that each update leads to which has taken its locks.
    updates: BTreeMap<AppUuid, Option<Commit>>,
}

impl BegunUpdates {
    /// Records that plugins are asked about an update before its locks are taken.
    pub(crate) fn begin_query(&mut self, update: &PendingUpdate) {
        let target = update.target_commit.clone();
        self.queries.insert(update.app.clone(), target);
    }

    /// Records whether the locks of an app were taken. Returns whether an update that plugins were asked about begins
    /// with it.
    pub(crate) fn end_locking(&mut self, app: &AppUuid, has_locks: bool) -> bool {
        let Some(target) = self.queries.remove(app).filter(|_| has_locks) else {
            return false;
        };
        self.updates.insert(app.clone(), target);
        true
    }

    /// Returns whether the update of an app to this release has begun.
    pub(crate) fn has_begun(&self, app: &AppUuid, target: Option<&Commit>) -> bool {
        let begun = self.updates.get(app);
        begun.is_some_and(|begun| begun.as_ref() == target)
    }

    /// Forgets the updates of all other apps.
    pub(crate) fn retain(&mut self, is_unchanged: impl Fn(&AppUuid) -> bool) {
        self.updates.retain(|app, _| is_unchanged(app));
    }

    /// Forgets all of them: the target is reached.
    pub(crate) fn clear(&mut self) {
        self.updates.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::AppId;

    use super::*;

    #[test]
    fn an_update_has_begun_once_its_locks_are_taken_and_for_its_own_release_alone() {
        let app: AppUuid = "fleet".parse().unwrap();
        let commit = |text: &str| Some(text.parse::<Commit>().unwrap());
        let update = PendingUpdate {
            app_id: AppId(1),
            app: app.clone(),
            services: BTreeSet::new(),
            running_commit: commit("c1"),
            target_commit: commit("c2"),
        };
        let begins =
            |updates: &BegunUpdates, to: &str| updates.has_begun(&app, commit(to).as_ref());
        let mut updates = BegunUpdates::default();
        // Locks that are taken for another purpose.
        assert!(!updates.end_locking(&app, true));
        assert!(!begins(&updates, "c2"));
        updates.begin_query(&update);
        assert!(!updates.end_locking(&app, false));
        assert!(!updates.end_locking(&app, true));
        assert!(!begins(&updates, "c2"), "it was postponed");
        updates.begin_query(&update);
        assert!(!begins(&updates, "c2"));
        assert!(updates.end_locking(&app, true));
        assert!(begins(&updates, "c2") && !begins(&updates, "c3"));
        assert!(!updates.has_begun(&app, None));
        // The next phase is locked.
        assert!(!updates.end_locking(&app, false));
        updates.retain(|_| true);
        assert!(begins(&updates, "c2"));
        updates.retain(|_| false);
        assert!(!begins(&updates, "c2"));
    }
}

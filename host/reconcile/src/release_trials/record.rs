//! The stored record of an app's releases.

use model::{Commit, DesiredApp, RejectedRelease};
use serde::{Deserialize, Serialize};

/// The maximum number of releases of an app that are remembered as not healthy; the newest are kept.
const MOST_REJECTED: usize = 8;

/// The stored record of an app's releases, under the app's uuid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReleaseRecord {
    /// The app at the time its release was last found healthy: the state to which the device returns.
    #[serde(default)]
    pub(super) healthy: Option<DesiredApp>,
    /// Releases that were not healthy, the latest at the end.
    #[serde(default)]
    pub(super) rejected: Vec<RejectedRelease>,
    #[serde(default)]
    trial: Option<StoredTrial>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTrial {
    commit: Commit,
    /// The number of supervisor starts since the trial began.
    starts: u32,
}

impl ReleaseRecord {
    /// Returns whether this release was not healthy.
    pub(super) fn has_rejected(&self, commit: &Commit) -> bool {
        self.rejected.iter().any(|it| it.commit == *commit)
    }

    pub(super) fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// Returns the number of supervisor starts since the trial began.
    pub(super) fn starts(&self) -> u32 {
        self.trial.as_ref().map_or(0, |trial| trial.starts)
    }

    /// Records that the supervisor has started; returns whether that changes the record.
    pub(super) fn count_start(&mut self) -> bool {
        let Some(trial) = &mut self.trial else {
            return false;
        };
        trial.starts = trial.starts.saturating_add(1);
        true
    }

    /// Records that the trial of a release begins; returns whether that changes the record. If the supervisor has
    /// started since, the trial continues.
    pub(super) fn begin_trial(&mut self, commit: &Commit) -> bool {
        let stored = self.trial.as_ref();
        let is_new = stored.is_none_or(|stored| stored.commit != *commit);
        if is_new {
            self.trial = Some(StoredTrial {
                commit: commit.clone(),
                starts: 0,
            });
        }
        is_new
    }

    /// Records that the app is healthy.
    pub(super) fn accept(&mut self, app: &DesiredApp) {
        self.healthy = Some(app.clone());
        self.trial = None;
    }

    /// Records that a release was not healthy.
    pub(super) fn reject(&mut self, rejected: RejectedRelease) {
        self.trial = None;
        self.rejected.push(rejected);
        let surplus = self.rejected.len().saturating_sub(MOST_REJECTED);
        self.rejected.drain(..surplus);
    }
}

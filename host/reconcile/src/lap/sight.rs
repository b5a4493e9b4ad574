//! What the loop knows, copied for somebody who asks what comes.

use std::borrow::Cow;
use std::time::Duration;

use tokio::time::Instant;

use super::Lap;
use crate::clock::now_ms;
use crate::journal::LocalMode;
use crate::outlook::{Mood, Sight, Waiting};

impl Lap {
    pub(super) fn sight(&mut self) -> Sight {
        let mood = match &self.desired {
            _ if self.mode == LocalMode::Leaving => Mood::LeavingLocalMode,
            None => Mood::NoTarget,
            Some(_) if !self.view.is_known() => Mood::Looking,
            Some(_) => Mood::Settled,
        };
        let mut current = self.current();
        // What has failed and is not listed yet counts as busy for the planner, but nothing is done about it.
        current.busy = self.busy.keys().cloned().collect();
        let now = Instant::now();
        let failing = self.failing.iter().map(|(subject, failing)| {
            let left = failing.retry_at.saturating_duration_since(now);
            let waiting = Waiting {
                until_ms: now_ms().saturating_add(millis(left)),
                failures: failing.count,
                reason: failing.reason.clone(),
            };
            (subject.clone(), waiting)
        });
        let desired = self.wanted_now().map(Cow::into_owned).unwrap_or_default();
        let apps = desired.apps.keys();
        let apps = apps.chain(current.services.iter().map(|service| &service.key.app));
        Sight {
            mood,
            failing: failing.collect(),
            overridden: apps
                .filter(|app| self.policy(app) == crate::LockPolicy::Override)
                .cloned()
                .collect(),
            going_down: self.quiesce.is_some(),
            progress: self.world.progress.all(),
            current,
            desired,
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

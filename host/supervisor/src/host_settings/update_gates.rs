//! Asks the plugins that may postpone updates, also while they are still being loaded: an update does not pass a gate that
//! cannot be asked yet, unless that takes too long (docs/spec/device.md#locks-gates).

use std::time::Duration;

use parking_lot::Mutex;
use plugins::Postponement;
use tokio::time::{Instant, timeout};

use super::{PLUGINS_LOAD, for_plugins};
use crate::endpoints::{PluginEndpoints, SETTLED_WITHIN};

/// How long updates wait for gates that are being loaded, so that a file that is never read or compiled does not hold up
/// all updates. If no update has asked for this long, the next one is another one, and waits for as long.
const LOADED_WITHIN: Duration = Duration::from_secs(3600);
/// Stands in people's messages for the name of a gate whose file has not been read.
const UNREAD: &str = "(not read yet)";

/// The gates for updates. Remembers since when updates have been waiting for gates that are being loaded.
#[derive(Default)]
pub(super) struct UpdateGates(Mutex<Option<LoadWait>>);

#[derive(Clone, Copy)]
struct LoadWait {
    since: Instant,
    /// When an update last asked.
    last: Instant,
}

impl UpdateGates {
    /// Asks the gates whether an app may be disturbed now; returns `None` if nothing is in the way.
    pub(super) async fn postponement(
        &self,
        endpoints: &PluginEndpoints,
        update: &reconcile::PendingUpdate,
    ) -> Option<Postponement> {
        let begun = Instant::now();
        let loaded = timeout(self.patience(), endpoints.with_update_gates()).await;
        let plugins = if let Ok(plugins) = loaded {
            *self.0.lock() = None;
            plugins?
        } else {
            let gate = endpoints.loading_update_gate();
            if let Some(delay) = self.delay(begun) {
                return Some(postponement(gate, delay));
            }
            let plugin = gate.as_deref().unwrap_or(UNREAD);
            tracing::warn!(
                plugin,
                app_id = %update.app_id,
                "the update of app {} continues although the plugin `{plugin}`, which may postpone it, was not queried: it \
                 has been loading for an hour",
                update.app_id
            );
            // Those that are loaded are asked.
            endpoints.plugins()?
        };
        plugins.postponement(&for_plugins(update)).await
    }

    /// Returns how long a query waits for gates. The first one spares the update a postponement if they are loaded in
    /// time; meanwhile, actions on the app cannot take its locks, so later ones do not wait.
    fn patience(&self) -> Duration {
        match *self.0.lock() {
            None => SETTLED_WITHIN,
            Some(_) => Duration::ZERO,
        }
    }

    /// Records that a query, begun at this time, found gates that are being loaded. Returns the delay until the next
    /// query; `None` if updates have waited for long enough.
    fn delay(&self, begun: Instant) -> Option<Duration> {
        let now = Instant::now();
        let mut wait = self.0.lock();
        let same = wait.filter(|wait| begun < wait.last + LOADED_WITHIN);
        let since = same.map_or(begun, |wait| wait.since);
        *wait = Some(LoadWait { since, last: now });
        let left = (since + LOADED_WITHIN).saturating_duration_since(now);
        (!left.is_zero()).then(|| PLUGINS_LOAD.min(left))
    }
}

fn postponement(gate: Option<String>, delay: Duration) -> Postponement {
    let reason = match gate {
        Some(_) => "it is still being loaded, and cannot be queried yet",
        None => "the files of the plugins have not been read yet, and one of them may be a gate",
    };
    Postponement {
        plugin: gate.unwrap_or_else(|| UNREAD.to_owned()),
        reason: reason.to_owned(),
        delay,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn update() -> reconcile::PendingUpdate {
        reconcile::PendingUpdate {
            app_id: model::AppId(1),
            app: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            services: BTreeSet::new(),
            running_commit: None,
            target_commit: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_update_waits_for_plugins_that_are_being_loaded_and_for_an_hour_at_most() {
        let endpoints = PluginEndpoints::that_never_begin();
        let gates = UpdateGates::default();
        let begin = Instant::now();
        let mut queries = 0;
        while let Some(postponement) = gates.postponement(&endpoints, &update()).await {
            queries += 1;
            assert_eq!(postponement.plugin, UNREAD);
            assert!(postponement.delay <= PLUGINS_LOAD);
            assert!(begin.elapsed() < LOADED_WITHIN);
            tokio::time::sleep(postponement.delay).await;
        }
        // Only the first query waits.
        let others = LOADED_WITHIN - SETTLED_WITHIN;
        assert_eq!(queries, others.as_secs() / PLUGINS_LOAD.as_secs());
        assert_eq!(begin.elapsed().as_secs(), LOADED_WITHIN.as_secs());
        // The rest of the update does not wait again, but another one does.
        assert_eq!(gates.postponement(&endpoints, &update()).await, None);
        tokio::time::sleep(2 * LOADED_WITHIN).await;
        let other = gates.postponement(&endpoints, &update()).await;
        assert_eq!(other.map(|other| other.delay), Some(PLUGINS_LOAD));
    }

    #[tokio::test(start_paused = true)]
    async fn an_update_does_not_wait_for_plugins_that_cannot_be_loaded() {
        let begin = Instant::now();
        let gates = UpdateGates::default();
        let endpoints = PluginEndpoints::that_failed();
        assert_eq!(gates.postponement(&endpoints, &update()).await, None);
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }

    #[test]
    fn a_gate_that_is_being_loaded_is_named() {
        let gate = postponement(Some("press".to_owned()), PLUGINS_LOAD);
        assert_eq!(gate.plugin, "press");
        assert!(gate.reason.starts_with("it is still being loaded"));
    }
}

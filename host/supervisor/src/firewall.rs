//! `HOST_FIREWALL_MODE`, followed while the supervisor runs (docs/spec/device.md#firewall).
//!
//! The default, `off`, leaves the host without a table of ours: the API listens on loopback and on the gateway of
//! services; if its owner lets it listen elsewhere, that is intentional.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{FirewallMode, error_chain};
use os::{Firewall, FirewallError, FirewallRules};
use parking_lot::Mutex;
use reconcile::EffectiveSettings;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often the presence of the table is checked, and failed changes are tried again.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The settings that do not depend on a target.
pub(crate) struct FirewallSettings {
    pub(crate) firewall: Firewall,
    pub(crate) api_port: u16,
    /// The interface of the network over which services reach the API.
    pub(crate) network: String,
    /// TCP ports that stay open.
    pub(crate) tcp: BTreeSet<u16>,
    /// The users of wasm services, the first and the last.
    pub(crate) service_users: (u32, u32),
}

/// The firewall that a target requests. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct FirewallState {
    problem: Arc<Mutex<Option<String>>>,
}

impl FirewallState {
    /// Returns the reason why the device has no firewall, although its target requests one.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().clone()
    }

    /// Logs a problem once, and keeps it in the device's health as long as it lasts.
    fn note(&self, problem_now: Option<String>) {
        let mut problem = self.problem.lock();
        if *problem == problem_now {
            return;
        }
        match &problem_now {
            Some(why) => tracing::error!("{why}"),
            None => tracing::info!("the host's firewall matches the target"),
        }
        *problem = problem_now;
    }

    /// Follows the effective settings until `stop`; then the table is removed.
    pub(crate) fn follow(
        &self,
        settings: FirewallSettings,
        mut in_force: watch::Receiver<Arc<EffectiveSettings>>,
        stop: &CancellationToken,
    ) -> JoinHandle<()> {
        let (state, stop) = (self.clone(), stop.clone());
        tokio::spawn(async move {
            let mut table = TableState::Unknown;
            loop {
                let now = in_force.borrow_and_update().clone();
                let outcome = settings.bring_about(&now, &mut table).await;
                state.note(outcome.err().map(|error| {
                    let mode = now.settings.firewall;
                    format!(
                        "failed to set up the host's firewall for `HOST_FIREWALL_MODE` `{mode}`: {}",
                        error_chain(&error)
                    )
                }));
                tokio::select! {
                    changed = in_force.changed() => if changed.is_err() { break },
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                    () = stop.cancelled() => break,
                }
            }
            if !matches!(table, TableState::Absent)
                && let Err(error) = settings.firewall.remove().await
                && !matches!(table, TableState::Unknown)
            {
                tracing::warn!(
                    "failed to remove the host's firewall: {}",
                    error_chain(&error)
                );
            }
        })
    }
}

/// The state of the table, as far as this process has set it.
enum TableState {
    Unknown,
    Absent,
    Present(FirewallRules),
}

impl FirewallSettings {
    async fn bring_about(
        &self,
        now: &EffectiveSettings,
        table: &mut TableState,
    ) -> Result<(), FirewallError> {
        let Some(rules) = self.rules(now) else {
            if !matches!(table, TableState::Absent) {
                self.remove_if_there().await?;
                *table = TableState::Absent;
            }
            return Ok(());
        };
        if let TableState::Present(before) = table
            && *before == rules
            && self.firewall.is_there().await?
        {
            return Ok(());
        }
        self.firewall.put(&rules).await?;
        if matches!(table, TableState::Unknown | TableState::Absent) {
            tracing::info!("the host's firewall is on: `nft list table inet supervisor` shows it");
        }
        *table = TableState::Present(rules);
        Ok(())
    }

    /// Removes a table that a killed supervisor may have left. A host without `nft` has none.
    async fn remove_if_there(&self) -> Result<(), FirewallError> {
        match self.firewall.is_there().await {
            Ok(true) => self.firewall.remove().await,
            Ok(false) | Err(FirewallError::NotInstalled) => Ok(()),
            // No firewall was requested, and a process without the rights to check has not created
            // one.
            Err(error) => {
                tracing::debug!(
                    "failed to check whether a firewall table is left: {}",
                    error_chain(&error)
                );
                Ok(())
            }
        }
    }

    /// Returns `None` if there should be no table.
    fn rules(&self, now: &EffectiveSettings) -> Option<FirewallRules> {
        let is_on = match now.settings.firewall {
            FirewallMode::On => true,
            FirewallMode::Off => false,
            FirewallMode::Auto => now.exposure.host_network,
        };
        is_on.then(|| FirewallRules {
            api_port: self.api_port,
            api_is_for_all: now.exposure.local_mode,
            network: self.network.clone(),
            tcp: self.tcp.clone(),
            published: now.exposure.published.clone(),
            service_users: self.service_users,
        })
    }
}

#[cfg(test)]
mod tests {
    use reconcile::Exposure;

    use super::*;

    fn settings(firewall: Firewall) -> FirewallSettings {
        FirewallSettings {
            firewall,
            api_port: 48484,
            network: "supervisor0".to_owned(),
            tcp: [22222].into(),
            service_users: (1_900_000_000, 1_900_065_535),
        }
    }

    fn in_force(mode: FirewallMode, exposure: Exposure) -> EffectiveSettings {
        let mut now = EffectiveSettings {
            exposure,
            ..EffectiveSettings::default()
        };
        now.settings.firewall = mode;
        now
    }

    #[test]
    fn there_is_a_table_where_the_mode_asks_for_one() {
        let host_network = Exposure {
            host_network: true,
            ..Exposure::default()
        };
        let settings = settings(Firewall::rehearsal());
        for (mode, exposure, is_on) in [
            (FirewallMode::On, Exposure::default(), true),
            (FirewallMode::Off, host_network.clone(), false),
            (FirewallMode::Auto, Exposure::default(), false),
            (FirewallMode::Auto, host_network, true),
        ] {
            let rules = settings.rules(&in_force(mode, exposure));
            assert_eq!(rules.is_some(), is_on, "{mode}");
        }
        let exposure = Exposure {
            local_mode: true,
            published: [(model::Protocol::Tcp, 8080)].into(),
            ..Exposure::default()
        };
        let rules = settings.rules(&in_force(FirewallMode::On, exposure.clone()));
        let rules = rules.unwrap();
        assert!(rules.api_is_for_all);
        assert_eq!(rules.published, exposure.published);
        assert_eq!(rules.tcp, [22222].into());
    }

    #[tokio::test]
    async fn a_device_that_cannot_have_its_firewall_says_so_until_nobody_asks_for_one() {
        let state = FirewallState::default();
        let off = Arc::new(in_force(FirewallMode::Off, Exposure::default()));
        let (sender, receiver) = watch::channel(Arc::clone(&off));
        let stop = CancellationToken::new();
        let ends = state.follow(
            settings(Firewall::from_nft("/nowhere/nft")),
            receiver,
            &stop,
        );
        let until = async |is_there: bool| {
            let there = async {
                while state.problem().is_some() != is_there {
                    tokio::task::yield_now().await;
                }
            };
            let there = tokio::time::timeout(Duration::from_secs(30), there).await;
            there.expect("the problem changes in time");
        };
        assert_eq!(state.problem(), None);
        sender.send_replace(Arc::new(in_force(FirewallMode::On, Exposure::default())));
        until(true).await;
        let problem = state.problem().unwrap();
        assert!(problem.contains("`HOST_FIREWALL_MODE` `on`"), "{problem}");
        assert!(
            problem.contains("install the package `nftables`"),
            "{problem}"
        );
        sender.send_replace(off);
        until(false).await;
        stop.cancel();
        ends.await.unwrap();
    }
}

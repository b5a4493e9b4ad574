//! Applies the target's variables to the host, while the supervisor runs: the VPN, the host's name on the local
//! network, and a copy of the variables for programs of the host (docs/spec/device.md#config-variables,
//! docs/spec/device.md#target-copy).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use model::Settings;
use os::{Action, HostOs, OsError, UnitName};
use reconcile::{EffectiveSettings, Reconciler};
use secure_fs::SecureFile;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The minimum time between two switches of the VPN: a device that can only be reached through it must not be lost
/// because a variable changes back and forth.
const VPN_REST: Duration = Duration::from_secs(3600);
/// The delay before a failed action is tried again.
const RETRY: Duration = Duration::from_secs(60);
/// The longest copy that is compared, in bytes; a longer one is written again.
const LONGEST: u64 = 4 << 20;
/// The units that announce the host's name on the local network.
const DISCOVERY: [&str; 2] = ["avahi-daemon.service", "avahi-daemon.socket"];

/// The followed variables of one host.
pub(crate) struct Variables {
    os: Arc<dyn HostOs>,
    /// `None` on a device without a cloud: its VPN does not concern the supervisor.
    vpn: Option<UnitName>,
    /// The copy of the variables, for programs of the host that run as root.
    copy: Option<SecureFile>,
    switched: Option<Instant>,
    discoverable: Option<bool>,
}

impl Variables {
    pub(crate) fn new(
        os: Arc<dyn HostOs>,
        vpn: Option<UnitName>,
        copy: Option<SecureFile>,
    ) -> Self {
        Variables {
            os,
            vpn,
            copy,
            switched: None,
            discoverable: None,
        }
    }

    /// Follows the variables of `reconciler` until `stop`.
    pub(crate) fn follow(mut self, reconciler: &Reconciler, stop: &CancellationToken) {
        let mut settings = reconciler.effective_settings();
        let following = async move {
            // A device is reachable after each start, even if its variables then switch the VPN
            // off.
            let mut wake = self.switch_vpn(true).await;
            loop {
                let now = settings.borrow_and_update().clone();
                self.copy(&now).await;
                wake = earlier(wake, self.discover(&now.settings).await);
                wake = earlier(wake, self.switch_vpn(now.settings.vpn).await);
                let at = wake.unwrap_or_else(Instant::now);
                tokio::select! {
                    changed = settings.changed() => if changed.is_err() { return },
                    () = tokio::time::sleep_until(at), if wake.is_some() => {}
                }
                wake = None;
            }
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(following));
    }

    /// Returns the time of the next check.
    async fn switch_vpn(&mut self, on: bool) -> Option<Instant> {
        let vpn = self.vpn.clone()?;
        match is_on(&*self.os, &vpn).await {
            Ok(Some(is)) if is != on => {}
            Ok(_) => return None,
            Err(error) => {
                tracing::debug!(unit = %vpn, "failed to determine the state of `{vpn}`: {error}");
                return Some(Instant::now() + RETRY);
            }
        }
        if let Some(next) = self.switched.map(|at| at + VPN_REST)
            && next > Instant::now()
        {
            return Some(next);
        }
        match switch(&*self.os, &vpn, on).await {
            Ok(()) => {
                tracing::info!("the VPN is switched {}", if on { "on" } else { "off" });
                self.switched = Some(Instant::now());
                None
            }
            Err(error) => {
                tracing::warn!("failed to switch the VPN: {error}");
                Some(Instant::now() + RETRY)
            }
        }
    }

    async fn discover(&mut self, settings: &Settings) -> Option<Instant> {
        let on = settings.discoverable;
        // On a host without any setting, the state of its image is assumed.
        if self.discoverable.unwrap_or(true) == on {
            self.discoverable = Some(on);
            return None;
        }
        for name in DISCOVERY {
            let Ok(unit) = name.parse::<UnitName>() else {
                continue;
            };
            let switched = async {
                match is_on(&*self.os, &unit).await? {
                    Some(is) if is != on => switch(&*self.os, &unit, on).await,
                    _ => Ok(()),
                }
            };
            if let Err(error) = switched.await {
                tracing::warn!(%unit, "failed to switch `{unit}`: {error}");
                return Some(Instant::now() + RETRY);
            }
        }
        self.discoverable = Some(on);
        None
    }

    async fn copy(&self, now: &EffectiveSettings) {
        let (Some(variables), Some(copy)) = (now.variables.clone(), &self.copy) else {
            return;
        };
        let to = copy.clone();
        let written = tokio::task::spawn_blocking(move || write(&to, &variables)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(
                %error,
                path = %copy.path().display(),
                "failed to write `{}`",
                copy.path().display()
            );
        }
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Returns whether a unit is on; `None` if the host has no such unit.
async fn is_on(os: &dyn HostOs, unit: &UnitName) -> Result<Option<bool>, OsError> {
    let state = os.unit(unit).await?;
    let off = ["inactive", "deactivating"].contains(&state.active_state.as_str());
    Ok(state.is_loaded().then_some(!off))
}

async fn switch(os: &dyn HostOs, unit: &UnitName, on: bool) -> Result<(), OsError> {
    let action = if on { Action::Start } else { Action::Stop };
    os.act(action(unit.clone())).await
}

/// Writes the copy atomically; an equal one is kept.
fn write(copy: &SecureFile, variables: &BTreeMap<String, String>) -> io::Result<()> {
    let text = serde_json::to_vec(variables).map_err(io::Error::other)?;
    match copy.read(LONGEST) {
        Ok(Some(before)) if before == text => Ok(()),
        _ => copy.replace(&text),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use model::Branding;
    use os::{Rehearsal, UnitState};

    use super::*;
    use crate::run_folder::RunFolder;

    fn on(root: &Path) -> (Arc<Rehearsal>, UnitName, Variables) {
        let os = Arc::new(Rehearsal::new(root));
        let vpn: UnitName = "openvpn.service".parse().unwrap();
        let copy = RunFolder::open(root, &Branding::default()).variables();
        let variables = Variables::new(os.clone(), Some(vpn.clone()), copy);
        (os, vpn, variables)
    }

    #[tokio::test(start_paused = true)]
    async fn the_vpn_is_switched_once_an_hour_at_most() {
        let root = tempfile::tempdir().unwrap();
        let (os, vpn, mut variables) = on(root.path());
        assert_eq!(variables.switch_vpn(false).await, None, "there is none");
        os.set_unit(vpn.clone(), UnitState::new("loaded", "active", "running"));
        assert_eq!(variables.switch_vpn(true).await, None, "it is on");
        assert_eq!(variables.switch_vpn(false).await, None);
        let next = variables.switch_vpn(true).await.unwrap();
        assert_eq!(os.actions(), [Action::Stop(vpn.clone())]);
        tokio::time::sleep_until(next).await;
        assert_eq!(variables.switch_vpn(true).await, None);
        let expected = [Action::Stop(vpn.clone()), Action::Start(vpn)];
        assert_eq!(os.actions(), expected);
    }

    #[tokio::test]
    async fn what_tells_the_name_is_switched_where_the_variable_changes() {
        let root = tempfile::tempdir().unwrap();
        let (os, _, mut variables) = on(root.path());
        let unit: UnitName = "avahi-daemon.service".parse().unwrap();
        os.set_unit(unit.clone(), UnitState::new("loaded", "active", "running"));
        let mut settings = Settings::default();
        variables.discover(&settings).await;
        assert_eq!(os.actions(), []);
        settings.discoverable = false;
        variables.discover(&settings).await;
        assert_eq!(os.actions(), [Action::Stop(unit.clone())]);
        settings.discoverable = true;
        variables.discover(&settings).await;
        assert_eq!(
            os.actions(),
            [Action::Stop(unit.clone()), Action::Start(unit)]
        );
    }

    #[tokio::test]
    async fn programs_of_the_host_find_the_variables() {
        let root = tempfile::tempdir().unwrap();
        let (_, _, variables) = on(root.path());
        variables.copy(&EffectiveSettings::default()).await;
        let path = root.path().join("run/supervisor/target-state-config");
        assert!(!path.exists(), "nobody has said anything");
        let set = [("SUPERVISOR_DELTA".to_owned(), "1".to_owned())];
        let now = EffectiveSettings {
            variables: Some(set.into()),
            ..EffectiveSettings::default()
        };
        variables.copy(&now).await;
        assert_eq!(fs::read(&path).unwrap(), br#"{"SUPERVISOR_DELTA":"1"}"#);
    }
}

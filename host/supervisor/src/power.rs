//! Brings the host down: all apps are locked, services stopped, and only then the init system is
//! called (docs/spec/device.md#v1-power, docs/spec/device.md#locks-host-update).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api::{Events, ListenSwitch};
use device_types::Event;
use device_types::event::{Audience, PowerRequested};
use model::{ActionError, PowerAction};
use os::{Action, HostOs};
use parking_lot::Mutex;
use reconcile::Reconciler;

use crate::boots::Boots;

/// Files on the state partition that a host update keeps until it knows whether the new system is
/// healthy: a reboot would roll it back.
const BREADCRUMBS: [&str; 2] = ["rollback-health-breadcrumb", "rollback-altboot-breadcrumb"];
const STATE_PARTITION: &str = "mnt/state";

/// The time between the answer and the end, so that the answer is sent.
const NOTICE: Duration = Duration::from_secs(1);
/// How long services may take to stop, all at once; the host stops the remaining ones.
const STOPPING: Duration = Duration::from_secs(120);
/// How long a host that has accepted the request may take to end this process.
const GOING_DOWN: Duration = Duration::from_secs(300);

/// The parts that are needed to bring the host down.
#[derive(Clone)]
pub(crate) struct Power {
    pub(crate) os: Arc<dyn HostOs>,
    pub(crate) host_root: PathBuf,
    /// Whether the host only logs what it would do: everything continues at once.
    pub(crate) rehearses: bool,
    pub(crate) boots: Arc<Boots>,
    pub(crate) events: Events,
    /// Ends when the host goes down.
    pub(crate) listening: ListenSwitch,
    /// The action for which the host goes down, once that is certain.
    pub(crate) agreed: Arc<Mutex<Option<PowerAction>>>,
}

impl Power {
    /// Returns when all apps are locked; the rest follows automatically. If it is called again, the action in progress
    /// is carried out only once.
    ///
    /// # Errors
    /// If a lock prevents it, the host is being updated, or it goes down for another action.
    pub(crate) async fn go_down(
        &self,
        reconciler: &Reconciler,
        action: PowerAction,
        force: bool,
    ) -> Result<(), ActionError> {
        if !force && is_being_updated(&self.host_root) {
            let why = "Waiting for Host OS update to finish".to_owned();
            return Err(ActionError::Locked(why));
        }
        match *self.agreed.lock() {
            Some(agreed) if agreed == action => return Ok(()),
            Some(agreed) => {
                let why = format!("the device is already about to {}", words(agreed));
                return Err(ActionError::Locked(why));
            }
            None => {}
        }
        let all_stopped = reconciler.quiesce(force).await?;
        *self.agreed.lock() = Some(action);
        let pause = self.listening.pause();
        let requested = Event::Power(PowerRequested { action, force });
        self.events.publish(Audience::Everyone, requested);
        let (power, reconciler) = (self.clone(), reconciler.clone());
        tokio::spawn(async move {
            let stopped = tokio::time::timeout(STOPPING, all_stopped);
            let (stopped, ()) = tokio::join!(stopped, tokio::time::sleep(NOTICE));
            if stopped.is_err() {
                tracing::warn!("the host is going down although a service has not stopped yet");
            }
            power.tell_host(action).await;
            // The process still runs: services should run again.
            *power.agreed.lock() = None;
            reconciler.resume();
            drop(pause);
        });
        Ok(())
    }

    async fn tell_host(&self, action: PowerAction) {
        let what = words(action);
        let action = match action {
            PowerAction::Reboot => Action::Reboot,
            PowerAction::PowerOff => Action::PowerOff,
        };
        match self.os.act(action).await {
            Ok(()) if self.rehearses => self.boots.rehearse(),
            Ok(()) => {
                tokio::time::sleep(GOING_DOWN).await;
                tracing::error!(
                    "the host accepted the request to {what} but did not do it; starting the services again"
                );
            }
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "failed to {what}; starting the services again"
                );
            }
        }
    }
}

fn words(action: PowerAction) -> &'static str {
    match action {
        PowerAction::Reboot => "reboot",
        PowerAction::PowerOff => "power off",
    }
}

/// Returns whether a host update waits for its verdict. A file that cannot be checked counts as
/// present.
fn is_being_updated(host_root: &Path) -> bool {
    let folder = host_root.join(STATE_PARTITION);
    let mut files = BREADCRUMBS.iter().map(|name| folder.join(name));
    files.any(|file| match file.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breadcrumb_says_that_the_host_is_being_updated() {
        let root = tempfile::tempdir().unwrap();
        assert!(!is_being_updated(root.path()));
        let folder = root.path().join(STATE_PARTITION);
        std::fs::create_dir_all(&folder).unwrap();
        assert!(!is_being_updated(root.path()));
        for name in BREADCRUMBS {
            let file = folder.join(name);
            std::fs::write(&file, "").unwrap();
            assert!(is_being_updated(root.path()), "{name}");
            std::fs::remove_file(&file).unwrap();
        }
    }
}

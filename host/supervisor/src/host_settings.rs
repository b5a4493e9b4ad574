//! Applies a target's host configuration: the boot configuration through the plugin that writes it on this board, the
//! journal's storage in `config.json`, and the reboot that they require.

mod boot_config;
mod persistent_logging;
mod update_gates;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use model::{
    ActionError, AppUuid, BootId, Commit, DesiredHost, HostPart, OS_BUNDLE, OsVersion, PowerAction,
};
use os::ConfigJson;
use plugins::{
    Action, BootConfigError, GateVerdict, InstalledRelease, OsCall, OsUpdateError, PendingUpdate,
};
use reconcile::{
    HostComparison, OsAction, OsObservation, Reconciler, ReleaseVerdict, UpdatePostponement,
};
use tokio::sync::watch;

use crate::boots::Boots;
use crate::endpoints::PluginEndpoints;
use crate::power::Power;
use update_gates::UpdateGates;

/// The delay before plugins are asked again about a release or an update while they are being loaded.
const PLUGINS_LOAD: Duration = Duration::from_secs(10);

/// The host of this process. Cloning shares it.
#[derive(Clone)]
pub(crate) struct HostSettings {
    boots: Arc<Boots>,
    config_json: ConfigJson,
    power: Power,
    /// Whether versions of the operating system may be downloaded without TLS.
    allow_plain: bool,
    update_gates: Arc<UpdateGates>,
    /// The parts that are started after the loop that calls them.
    parts: watch::Sender<Option<Parts>>,
}

#[derive(Clone)]
struct Parts {
    reconciler: Reconciler,
    plugins: PluginEndpoints,
}

impl HostSettings {
    pub(crate) fn new(
        boots: Arc<Boots>,
        config_json: ConfigJson,
        power: Power,
        allow_plain: bool,
    ) -> Self {
        HostSettings {
            boots,
            config_json,
            power,
            allow_plain,
            update_gates: Arc::default(),
            parts: watch::channel(None).0,
        }
    }

    /// Attaches the parts; from now on requests are answered.
    pub(crate) fn attach(&self, reconciler: &Reconciler, plugins: &PluginEndpoints) {
        let parts = Parts {
            reconciler: reconciler.clone(),
            plugins: plugins.clone(),
        };
        self.parts.send_replace(Some(parts));
    }

    /// Drops the parts, which in turn hold this.
    pub(crate) fn detach(&self) {
        self.parts.send_replace(None);
    }

    /// Returns the parts, once they are attached.
    async fn parts(&self) -> Result<Parts, String> {
        let mut parts = self.parts.subscribe();
        let there = parts.wait_for(Option::is_some).await;
        let there = there.ok().and_then(|parts| parts.clone());
        there.ok_or_else(|| "the supervisor is stopping".to_owned())
    }

    /// Returns the current configuration of the host, by variable, whatever its origin. Waits for
    /// the plugin of the boot configuration for as long as that takes.
    pub(crate) async fn current(&self) -> BTreeMap<String, String> {
        let mut current = BTreeMap::new();
        if self.persistent_logging().await == Ok(true) {
            current.insert(
                "SUPERVISOR_PERSISTENT_LOGGING".to_owned(),
                "true".to_owned(),
            );
        }
        let Ok(parts) = self.parts().await else {
            return current;
        };
        if let Some(plugins) = parts.plugins.wait_until_settled(Action::BootConfig).await {
            match plugins.boot_settings().await {
                Ok(settings) => current.extend(settings.into_iter().map(|of| (of.name, of.value))),
                Err(BootConfigError::Unavailable) => {}
                Err(error) => {
                    tracing::warn!("failed to read the boot configuration for the cloud: {error}")
                }
            }
        }
        current
    }

    /// Records that the device must be rebooted for a change that is about to be made.
    async fn require_reboot(&self) -> Result<(), String> {
        let boots = Arc::clone(&self.boots);
        let marked = tokio::task::spawn_blocking(move || boots.require_reboot()).await;
        let failed = |why: &dyn std::fmt::Display| {
            format!("failed to record that the device must be rebooted for it: {why}")
        };
        match marked {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(&error)),
            Err(error) => Err(failed(&error)),
        }
    }
}

impl reconcile::Host for HostSettings {
    fn boot(&self) -> Option<BootId> {
        self.boots.current()
    }

    fn compare<'a>(&'a self, desired: &'a DesiredHost) -> BoxFuture<'a, HostComparison> {
        async move {
            let mut look = HostComparison {
                reboot_due: self.boots.is_reboot_due(),
                ..HostComparison::default()
            };
            match self.persistent_logging().await {
                Ok(is) if is != desired.persistent_logging => {
                    look.differs.insert(HostPart::PersistentLogging);
                }
                // An unreadable file is reported elsewhere; no change to it is required here.
                Err(why) if desired.persistent_logging => {
                    look.failed.insert(HostPart::PersistentLogging, why);
                }
                _ => {}
            }
            self.look_at_boot_config(desired, &mut look).await;
            look
        }
        .boxed()
    }

    fn configure<'a>(
        &'a self,
        part: HostPart,
        desired: &'a DesiredHost,
    ) -> BoxFuture<'a, Result<(), String>> {
        match part {
            HostPart::BootConfig => self.set_boot_config(desired).boxed(),
            HostPart::PersistentLogging => self
                .set_persistent_logging(desired.persistent_logging)
                .boxed(),
        }
    }

    fn reboot(&self, force: bool) -> BoxFuture<'_, Result<(), ActionError>> {
        async move {
            let parts = self.parts().await.map_err(ActionError::Failed)?;
            let reboot = PowerAction::Reboot;
            self.power.go_down(&parts.reconciler, reboot, force).await
        }
        .boxed()
    }

    fn look_at_os(&self) -> BoxFuture<'_, OsObservation> {
        async move {
            let parts = match self.parts().await {
                Ok(parts) => parts,
                Err(why) => return OsObservation::Failed(why),
            };
            let Some(plugins) = parts.plugins.settled_in_time(Action::OsUpdate).await else {
                return OsObservation::Failed("plugins have not been loaded".to_owned());
            };
            match plugins.os_status().await {
                Ok(status) => os_look(status),
                Err(OsUpdateError::Unavailable) => OsObservation::Unavailable,
                Err(OsUpdateError::Failed(why)) => OsObservation::Failed(why),
            }
        }
        .boxed()
    }

    fn update_os<'a>(&'a self, action: &'a OsAction) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let call = match action {
                OsAction::Stage(os) if os.bundle.is_plain_http() && !self.allow_plain => {
                    return Err(format!(
                        "`{OS_BUNDLE}` has no TLS: use an address with `https://`, or set `allow_plain = true` in the \
                         supervisor's configuration if the network is yours alone"
                    ));
                }
                OsAction::Stage(os) => OsCall::Stage {
                    source: os.bundle.to_string(),
                    version: os.version.to_string(),
                },
                OsAction::Activate => OsCall::Activate,
                OsAction::Commit => OsCall::Commit,
                OsAction::RollBack => OsCall::RollBack,
            };
            let parts = self.parts().await?;
            let plugins = parts.plugins.settled_in_time(Action::OsUpdate).await;
            let plugins = plugins.ok_or("plugins have not been loaded")?;
            let done = plugins.update_os(call).await;
            done.map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn postponement<'a>(
        &'a self,
        update: &'a reconcile::PendingUpdate,
    ) -> BoxFuture<'a, Option<UpdatePostponement>> {
        async move {
            let parts = self.parts().await.ok()?;
            let gates = &self.update_gates;
            let postponement = gates.postponement(&parts.plugins, update).await?;
            Some(UpdatePostponement {
                plugin: postponement.plugin,
                reason: postponement.reason,
                delay: postponement.delay,
            })
        }
        .boxed()
    }

    fn note_begun_update(&self, app: &AppUuid) {
        if let Some(parts) = &*self.parts.borrow() {
            parts.plugins.note_begun_update(app);
        }
    }

    fn judges_releases(&self) -> bool {
        let parts = self.parts.borrow();
        // The judgement itself waits for the plugins to be loaded.
        parts
            .as_ref()
            .is_none_or(|parts| parts.plugins.may_judge_releases())
    }

    fn judge_release<'a>(
        &'a self,
        release: &'a reconcile::InstalledRelease,
    ) -> BoxFuture<'a, ReleaseVerdict> {
        async move {
            let Ok(parts) = self.parts().await else {
                return ReleaseVerdict::Healthy;
            };
            let Some(plugins) = parts.plugins.settled_in_time(Action::Events).await else {
                return ReleaseVerdict::NotYet {
                    reason: "the plugins that judge it are still being loaded".to_owned(),
                    delay: PLUGINS_LOAD,
                };
            };
            match plugins.judge_release(&installed_release(release)).await {
                GateVerdict::Healthy => ReleaseVerdict::Healthy,
                GateVerdict::NotYet {
                    plugin,
                    reason,
                    delay,
                } => ReleaseVerdict::NotYet {
                    reason: format!("the plugin `{plugin}` has not found it healthy: {reason}"),
                    delay,
                },
                GateVerdict::Unhealthy { plugin, reason } => ReleaseVerdict::Unhealthy {
                    reason: format!("the plugin `{plugin}` finds it unhealthy: {reason}"),
                },
            }
        }
        .boxed()
    }
}

/// Converts the status, whose versions have been checked before.
fn os_look(status: plugins::OsStatus) -> OsObservation {
    let staged = status.staged.map(OsVersion::try_from).transpose();
    match (OsVersion::try_from(status.running), staged) {
        (Ok(running), Ok(staged)) => OsObservation::Status {
            status: reconcile::OsStatus {
                running,
                staged,
                committed: status.committed,
                installing: status.installing,
            },
            failure: status.failure,
        },
        (Err(error), _) | (_, Err(error)) => OsObservation::Failed(error.to_string()),
    }
}

fn installed_release(release: &reconcile::InstalledRelease) -> InstalledRelease {
    InstalledRelease {
        app_id: release.app_id.0,
        app_uuid: release.app.to_string(),
        services: release.services.iter().map(ToString::to_string).collect(),
        commit: release.commit.to_string(),
    }
}

fn for_plugins(update: &reconcile::PendingUpdate) -> PendingUpdate {
    let commit = |commit: &Option<Commit>| commit.as_ref().map(Commit::to_string);
    PendingUpdate {
        app_id: update.app_id.0,
        app_uuid: update.app.to_string(),
        services: update.services.iter().map(ToString::to_string).collect(),
        running_commit: commit(&update.running_commit),
        target_commit: commit(&update.target_commit),
    }
}

//! The interface of the loop to the host itself: its configuration, and its reboot. The binary implements it with the
//! operating system and the plugins.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use futures::future::BoxFuture;
use model::{
    ActionError, AppId, AppUuid, BootId, Commit, DesiredHost, DesiredOs, DesiredState, HostPart,
    NetworkMode, Protocol, ServiceName, Settings,
};
use plan::OsStatus;

/// The host that the device runs on.
pub trait Host: Send + Sync + 'static {
    /// Returns the current boot of the host, if it is known; called at the start and after each reboot that did not
    /// take place.
    fn boot(&self) -> Option<BootId>;

    /// Compares the host with the desired configuration; changes nothing. May take as long as loading the plugins.
    fn compare<'a>(&'a self, desired: &'a DesiredHost) -> BoxFuture<'a, HostComparison>;

    /// Applies the desired configuration of one part. If it takes effect with the next boot, [`HostComparison::reboot_due`]
    /// says so from then on, even after a restart of the supervisor.
    ///
    /// # Errors
    /// Returns the reason why the part is not configured as desired, for people.
    fn configure<'a>(
        &'a self,
        part: HostPart,
        desired: &'a DesiredHost,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Reboots, like a request to the API: returns once all apps are locked; after that, services are stopped and the
    /// host goes down.
    ///
    /// # Errors
    /// Returns [`ActionError::Locked`] if a lock prevents the reboot.
    fn reboot(&self, force: bool) -> BoxFuture<'_, Result<(), ActionError>>;

    /// Returns the state of the operating system. Answers within seconds, unless plugins are still being loaded.
    fn look_at_os(&self) -> BoxFuture<'_, OsObservation>;

    /// Does something with the operating system, or begins to.
    ///
    /// # Errors
    /// Returns the reason why it was not done, for people.
    fn update_os<'a>(&'a self, action: &'a OsAction) -> BoxFuture<'a, Result<(), String>>;

    /// Returns whether a plugin wants an update to wait; called before its first service is disturbed, and again after
    /// the returned delay. Answers within seconds.
    fn postponement<'a>(
        &'a self,
        update: &'a PendingUpdate,
    ) -> BoxFuture<'a, Option<UpdatePostponement>>;

    /// Called when an update begins that plugins could postpone: the locks of its app are held. Returns at once.
    fn note_begun_update(&self, app: &AppUuid);

    /// Returns whether there may be plugins that judge new releases.
    fn judges_releases(&self) -> bool;

    /// Returns the plugins' verdict on a release whose services all run and pass their checks. Answers within seconds.
    fn judge_release<'a>(&'a self, release: &'a InstalledRelease) -> BoxFuture<'a, ReleaseVerdict>;
}

/// The state of the operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OsObservation {
    /// This device has no provider for it.
    Unavailable,
    /// The status as its provider reports it.
    Status {
        /// The running and the staged version.
        status: OsStatus,
        /// Why the last installation failed, for people.
        failure: Option<String>,
    },
    /// The provider failed to report it, for this reason.
    Failed(String),
}

/// An operation on the operating system (`wit/os-update.wit`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OsAction {
    /// Begins to install a version next to the running one.
    Stage(DesiredOs),
    /// Makes the next boot start the staged version.
    Activate,
    /// Makes every later boot start the running version.
    Commit,
    /// Makes the next boot start the version before the uncommitted one.
    RollBack,
}

/// A release that was installed a short while ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledRelease {
    /// The app's number.
    pub app_id: AppId,
    /// The app.
    pub app: AppUuid,
    /// Its services.
    pub services: BTreeSet<ServiceName>,
    /// The release.
    pub commit: Commit,
}

/// A verdict on a release. The reasons are for people, each a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseVerdict {
    /// It is healthy, or there was nobody to judge it.
    Healthy,
    /// It may still become healthy.
    NotYet {
        /// The judging plugin, and its reason.
        reason: String,
        /// The delay until the next query.
        delay: Duration,
    },
    /// It is not healthy, and will not become so.
    Unhealthy {
        /// The judging plugin, and its reason.
        reason: String,
    },
}

/// An update of one app, of which no service has been disturbed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingUpdate {
    /// The app's number.
    pub app_id: AppId,
    /// The app.
    pub app: AppUuid,
    /// The services that would be disturbed.
    pub services: BTreeSet<ServiceName>,
    /// The release that runs completely.
    pub running_commit: Option<Commit>,
    /// The release that the target names.
    pub target_commit: Option<Commit>,
}

/// Why an update waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatePostponement {
    /// The plugin that postpones it.
    pub plugin: String,
    /// Its reason, for people.
    pub reason: String,
    /// The delay until the next query.
    pub delay: Duration,
}

/// The result of comparing the host with its desired configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostComparison {
    /// Whether something was configured in this boot that takes effect with the next.
    pub reboot_due: bool,
    /// Parts that differ from the desired configuration.
    pub differs: BTreeSet<HostPart>,
    /// Parts that cannot be configured so, or cannot be checked, and why.
    pub failed: BTreeMap<HostPart, String>,
    /// Desired settings that will not be applied, one sentence each.
    pub warnings: Vec<String>,
    /// Whether the result may change without any event on this side.
    pub look_again: bool,
}

/// The settings of the current target for the other parts of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EffectiveSettings {
    /// Typed, each with its default if it is not set or cannot be read.
    pub settings: Settings,
    /// The variables as in the target; `None` before there is one.
    pub variables: Option<BTreeMap<String, String>>,
    /// The ways in which others can reach the device.
    pub exposure: Exposure,
}

/// What the target makes reachable from outside, for a firewall on the host (docs/spec/device.md#firewall).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exposure {
    /// Whether the device is in local mode, in which developers' machines reach its API.
    pub local_mode: bool,
    /// Whether a service uses the host's network, and so any port it likes.
    pub host_network: bool,
    /// Ports of the host that services have published to others, if the release names them.
    pub published: BTreeSet<(Protocol, u16)>,
}

impl Exposure {
    pub(crate) fn from_desired(desired: Option<&DesiredState>, local_mode: bool) -> Self {
        let apps = desired
            .into_iter()
            .flat_map(|desired| desired.apps.values());
        let mut exposure = Exposure {
            local_mode,
            ..Exposure::default()
        };
        for service in apps.flat_map(|app| app.services.values()) {
            exposure.host_network |= service.config.network_mode == NetworkMode::Host;
            let ports = service.config.ports.iter();
            let ports = ports.filter(|port| !is_loopback(&port.host_ip));
            let ports = ports.filter_map(|port| Some((port.protocol, port.host_port?)));
            exposure.published.extend(ports);
        }
        exposure
    }
}

/// Returns whether a port that is published at this address of the host is reachable only from the host.
fn is_loopback(host_ip: &str) -> bool {
    let address = host_ip.parse::<IpAddr>();
    address.is_ok_and(|address| address.to_canonical().is_loopback())
}

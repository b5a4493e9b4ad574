//! What the loop asks of the host itself: how it is configured, and to be rebooted. The binary implements it
//! over the operating system and the plugins.

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
    /// The boot that the host is in, where it says; asked for at the start and after each reboot that did not
    /// take place.
    fn boot(&self) -> Option<BootId>;

    /// Compares the host with what is wanted of it; changes nothing. May take as long as plugins take to be
    /// loaded.
    fn compare<'a>(&'a self, wanted: &'a DesiredHost) -> BoxFuture<'a, HostLook>;

    /// Brings one part to what is wanted. Where that takes effect with the next boot, [`HostLook::reboot_due`]
    /// says so from then on, also after a restart of the supervisor.
    ///
    /// # Errors
    /// Why it is not as wanted now, for people.
    fn configure<'a>(
        &'a self,
        part: HostPart,
        wanted: &'a DesiredHost,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Reboots, as a request of the API would: answers once all apps are locked; services are stopped and the
    /// host goes down after that.
    ///
    /// # Errors
    /// [`ActionError::Locked`] where a lock is in the way.
    fn reboot(&self, force: bool) -> BoxFuture<'_, Result<(), ActionError>>;

    /// How the operating system stands. Answers within seconds, but for plugins that are still being loaded.
    fn look_at_os(&self) -> BoxFuture<'_, OsLook>;

    /// Does something with the operating system, or begins to.
    ///
    /// # Errors
    /// Why it was not done, for people.
    fn update_os<'a>(&'a self, action: &'a OsAction) -> BoxFuture<'a, Result<(), String>>;

    /// Whether somebody wants an update to wait; asked before its first service is disturbed, and again after the time
    /// that was answered. Answers within seconds.
    fn postponement<'a>(
        &'a self,
        update: &'a PendingUpdate,
    ) -> BoxFuture<'a, Option<UpdatePostponement>>;

    /// Whether somebody may have to say that new releases are healthy.
    fn judges_releases(&self) -> bool;

    /// Whether somebody finds that a release is healthy, all of whose services run and pass their checks. Answers within
    /// seconds.
    fn judge_release<'a>(&'a self, release: &'a InstalledRelease) -> BoxFuture<'a, ReleaseVerdict>;
}

/// How the operating system stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OsLook {
    /// Nobody on this device updates it.
    Unavailable,
    /// As its provider says.
    Status {
        /// What runs and what is staged.
        status: OsStatus,
        /// Why the last installation failed, for people.
        failure: Option<String>,
    },
    /// The provider could not say, and why.
    Failed(String),
}

/// What is done with the operating system (`wit/os-update.wit`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OsAction {
    /// Begin to install a version beside the one that runs.
    Stage(DesiredOs),
    /// Have the next boot start the staged version.
    Activate,
    /// Have each later boot start the version that runs.
    Commit,
    /// Have the next boot start what ran before the version that is not committed.
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

/// What is found of a release. The reasons are for people, each a sentence without an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseVerdict {
    /// It is healthy, or nobody was asked.
    Healthy,
    /// It may still become healthy.
    NotYet {
        /// Who says so, and why.
        reason: String,
        /// When to ask again.
        delay: Duration,
    },
    /// It is not healthy, and does not become so.
    Unhealthy {
        /// Who says so, and why.
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
    /// The release that runs whole.
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
    /// When to ask again.
    pub delay: Duration,
}

/// What a look at the host has shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostLook {
    /// Something was configured in this boot that takes effect with the next.
    pub reboot_due: bool,
    /// Parts that are not as wanted.
    pub differs: BTreeSet<HostPart>,
    /// Parts that cannot be made so, or not be looked at, and why.
    pub failed: BTreeMap<HostPart, String>,
    /// What is wanted and will not be done, one sentence each.
    pub warnings: Vec<String>,
    /// It may come out differently without anything having happened here.
    pub look_again: bool,
}

/// What the target in force says to the parts of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EffectiveSettings {
    /// Typed, each with its default where it is not set or cannot be read.
    pub settings: Settings,
    /// As the target has them; `None` before there is one.
    pub variables: Option<BTreeMap<String, String>>,
    /// By what ways others may come to the device.
    pub exposure: Exposure,
}

/// What the target has open to others, for a firewall of the host's (docs/spec/device.md#firewall).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exposure {
    /// The device is in local mode, where developers' machines reach its API.
    pub local_mode: bool,
    /// A service has the host's network, and with it whatever ports it likes.
    pub host_network: bool,
    /// Ports of the host that services have published to others, where the release names them.
    pub published: BTreeSet<(Protocol, u16)>,
}

impl Exposure {
    pub(crate) fn of(desired: Option<&DesiredState>, local_mode: bool) -> Self {
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

/// Whether a port that is published at this address of the host is for the host alone.
fn is_loopback(host_ip: &str) -> bool {
    let address = host_ip.parse::<IpAddr>();
    address.is_ok_and(|address| address.to_canonical().is_loopback())
}

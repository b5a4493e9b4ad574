//! The files in a container's folder, which the engine and the service's process share.
//!
//! Each file has one writer at a time: the engine writes [`Launch`] before the process starts; the process writes
//! [`State`] and [`PortTable`] while it lives. Readers treat the contents as possibly damaged: sizes are bounded, and a
//! file that does not parse is an error to log, never a panic.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use confinement::{ControlGroup, MissingWall, Report};
use model::{ContainerHealth, PortMapping, Protocol, RestartPolicy};
use serde::{Deserialize, Serialize};

use crate::HealthCheck;
use crate::process::ProcessId;

mod files;

pub use files::{open_plain, read, write, write_for_services, write_volatile};

/// What to run: a [`Launch`].
pub const LAUNCH: &str = "launch.json";
/// The state of the container: a [`State`].
pub const STATE: &str = "state.json";
/// The ports that the service listens on: a [`PortTable`].
pub const PORTS: &str = "ports.json";
/// Locked for as long as a process serves the container.
pub const LOCK: &str = "lock";
/// The members of a network, in the network's folder.
pub const MEMBERS: &str = "members.json";

/// The exit code of a process that could not start its service.
pub const NOT_STARTED: u8 = 125;

/// Everything that the process of a service needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The compiled component, in the folder of a `compiled_code::Cache`.
    pub component: PathBuf,
    /// The arguments of the program; the first is its own name.
    pub arguments: Vec<String>,
    /// All its environment variables: none are inherited.
    pub environment: BTreeMap<String, String>,
    /// The working directory; empty means `/`.
    pub working_dir: String,
    /// All folders of the file system that it sees.
    pub folders: Vec<Folder>,
    /// When the process starts the service again after it has ended.
    pub restart: RestartPolicy,
    /// The limit on linear memory and tables, in bytes; 0 means no limit.
    pub memory_limit: u64,
    /// The limit on CPUs, in billionths; 0 means no limit.
    pub nano_cpus: u64,
    /// Numbers of the CPUs to run on; empty means all.
    pub cpuset: Vec<usize>,
    /// As in the kernel, -1000 to 1000; other numbers are clamped to that, and 0 means the runner's own default.
    pub oom_score_adj: i64,
    /// Control groups to enter before the service runs.
    pub cgroups: Vec<ControlGroup>,
    /// The user that the process switches to; `None` keeps the supervisor's.
    pub user: Option<ServiceUser>,
    /// Walls that are missing, as far as the engine knows.
    pub missing_walls: Vec<MissingWall>,
    /// Whether the service is not started if a wall is missing.
    pub requires_confinement: bool,
    /// Which sockets it may use, and to which addresses.
    pub network: Network,
    /// Ports of the host that are forwarded to the service.
    pub ports: Vec<PortMapping>,
    /// How the process checks whether the service is healthy.
    #[serde(default)]
    pub health_check: Option<HealthCheck>,
}

/// A user of the host for only one service, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceUser {
    /// The user, and the group of which it is the only member.
    pub uid: u32,
    /// The group of all services of the app, which owns what they share.
    pub app_gid: u32,
}

/// Who owns the contents of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FolderOwner {
    /// Only the service.
    Service,
    /// The services of the app that mount it.
    App,
    /// The host: owners and modes are left unchanged.
    Host,
    /// The supervisor: a folder that it shares with the service, [`crate::SupervisorFolder`].
    Supervisor,
}

/// A folder that the service sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folder {
    /// The path on the host.
    pub host: PathBuf,
    /// The absolute path at which the service sees it.
    pub guest: String,
    /// Whether the service cannot change anything in it.
    pub read_only: bool,
    /// Whether it is emptied at each start of the process, as memory would be.
    pub volatile: bool,
    /// Who owns its contents.
    pub owner: FolderOwner,
}

/// What the service can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// No sockets at all.
    None,
    /// The host's own network, without any change of addresses.
    Host,
    /// A loopback address of its own.
    Own(OwnNetwork),
}

/// The network of a service that has its own loopback address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnNetwork {
    /// An address in 127.0.0.0/8: its own, or that of the container whose network stack it shares.
    pub address: Ipv4Addr,
    /// The [`Members`] file of each network that it is in.
    pub tables: Vec<PathBuf>,
    /// Whether it may connect to other machines.
    pub outward: bool,
    /// The supervisor's API, if the service may reach it.
    pub api: Option<Api>,
    /// Names with fixed addresses (compose `extra_hosts`).
    pub extra_hosts: BTreeMap<String, ExtraHost>,
}

impl OwnNetwork {
    /// Returns a network in which nothing can be reached.
    #[must_use]
    pub fn unreachable() -> Self {
        OwnNetwork {
            address: Ipv4Addr::UNSPECIFIED,
            tables: Vec::new(),
            outward: false,
            api: None,
            extra_hosts: BTreeMap::new(),
        }
    }
}

/// The meaning of a name in `extra_hosts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExtraHost {
    /// A fixed address, of either version.
    Address(IpAddr),
    /// The host itself, by its address towards other machines.
    HostGateway,
}

/// The address of the supervisor's API, and its name for services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Api {
    /// The address of the API, as seen from this host.
    pub address: SocketAddr,
    /// The host's name or address in the service's environment.
    pub host: String,
}

/// The members of a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members(pub Vec<Member>);

/// One container in a network. Those that share one network stack have the same address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The container's loopback address.
    pub address: Ipv4Addr,
    /// The container's folder, where its [`State`] and [`PortTable`] are.
    pub folder: PathBuf,
    /// Its names in the network: the service's name and its aliases, case-insensitive.
    pub names: Vec<String>,
}

/// The ports that a service asked for, and the real ports of its own address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTable {
    /// TCP ports, by the port that the service asked for.
    pub tcp: BTreeMap<u16, u16>,
    /// UDP ports, by the port that the service asked for.
    pub udp: BTreeMap<u16, u16>,
}

impl PortTable {
    /// Returns the ports of one protocol.
    #[must_use]
    pub fn for_protocol(&self, protocol: Protocol) -> &BTreeMap<u16, u16> {
        match protocol {
            Protocol::Tcp => &self.tcp,
            Protocol::Udp => &self.udp,
        }
    }

    /// Returns the ports of one protocol.
    pub fn for_protocol_mut(&mut self, protocol: Protocol) -> &mut BTreeMap<u16, u16> {
        match protocol {
            Protocol::Tcp => &mut self.tcp,
            Protocol::Udp => &mut self.udp,
        }
    }
}

/// The state of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The stage in its life.
    pub status: Status,
    /// The process that serves it, or the last one that did.
    pub process: Option<ProcessId>,
    /// The exit code of the last run, once it has ended.
    pub exit_code: Option<i64>,
    /// The time of the last start, in milliseconds since the epoch.
    pub started_at_ms: Option<i64>,
    /// The time of the last end, in milliseconds since the epoch.
    pub finished_at_ms: Option<i64>,
    /// How often its restart policy has started it again.
    pub restarts: u64,
    /// Why it could not be started.
    pub error: Option<String>,
    /// The walls that its process is behind.
    #[serde(default)]
    pub confinement: Option<Report>,
    /// The health according to the service's health check; `None` if it has no check or does not run.
    #[serde(default)]
    pub health: Option<ContainerHealth>,
}

/// The stages in a container's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Never started.
    Created,
    /// Its process exists.
    Running,
    /// Ended, and waiting to be started again.
    Restarting,
    /// Ended, and not to be started again.
    Exited,
}

impl State {
    /// Returns the state of a container that was never started.
    #[must_use]
    pub fn created() -> Self {
        State {
            status: Status::Created,
            process: None,
            exit_code: None,
            started_at_ms: None,
            finished_at_ms: None,
            restarts: 0,
            error: None,
            confinement: None,
            health: None,
        }
    }

    /// Notes that the service could not be started; the status of a container that never ran stays unchanged.
    pub fn fail(&mut self, reason: String) {
        self.error = Some(reason);
        if self.started_at_ms.is_some() {
            self.status = Status::Exited;
            self.exit_code = Some(i64::from(NOT_STARTED));
        }
    }

    /// Whether a process serves the container now.
    #[must_use]
    pub fn is_served(&self) -> bool {
        matches!(self.status, Status::Running | Status::Restarting)
            && self.process.as_ref().is_some_and(ProcessId::is_alive)
    }
}

/// Makes a path below the working folder, which is the engine's, relative to it: a service's user has no access to the
/// folders above.
#[must_use]
pub fn near(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).to_owned()
}

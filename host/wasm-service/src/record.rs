//! The files in a container's folder, which the engine and the service's process share.
//!
//! Each file has one writer at a time: [`Launch`] is the engine's, written before the process starts;
//! [`State`] and [`PortTable`] are the process's own while it lives. Readers take whatever they find
//! there as possibly damaged: sizes are bounded, and a file that does not parse is an error to log,
//! never a panic.

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
/// How it goes.
pub const STATE: &str = "state.json";
/// Which ports it listens on, see [`PortTable`].
pub const PORTS: &str = "ports.json";
/// Locked for as long as a process serves the container.
pub const LOCK: &str = "lock";
/// The members of a network, in the network's folder.
pub const MEMBERS: &str = "members.json";

/// The exit code of a process that could not start its service.
pub const NOT_STARTED: u8 = 125;

/// Everything that the process of a service has to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The compiled component, in the folder of a `compiled_code::Cache`.
    pub component: PathBuf,
    /// What the program is called with; the first is its own name.
    pub arguments: Vec<String>,
    /// All variables that it sees: none are inherited.
    pub environment: BTreeMap<String, String>,
    /// Empty is `/`.
    pub working_dir: String,
    /// What it sees of the file system, and nothing else.
    pub folders: Vec<Folder>,
    /// When the process starts it again after it ended.
    pub restart: RestartPolicy,
    /// Bytes of linear memory and tables; 0 is no limit.
    pub memory_limit: u64,
    /// CPUs in billionths; 0 is no limit.
    pub nano_cpus: u64,
    /// Numbers of the CPUs to run on; empty is all.
    pub cpuset: Vec<usize>,
    /// As the kernel has it, -1000 to 1000; more is cut to that, and 0 takes the runner's own
    /// default.
    pub oom_score_adj: i64,
    /// Control groups to enter before anything runs.
    pub cgroups: Vec<ControlGroup>,
    /// Who the process becomes; `None` leaves it who the supervisor is.
    pub user: Option<ServiceUser>,
    /// Walls that the engine knows to be missing.
    pub missing_walls: Vec<MissingWall>,
    /// Whether a service is not started where a wall is missing.
    pub requires_confinement: bool,
    /// Which sockets it may have, and towards whom.
    pub network: Network,
    /// Ports of the host that lead to the service.
    pub ports: Vec<PortMapping>,
    /// How the process finds out whether the service is healthy.
    #[serde(default)]
    pub health_check: Option<HealthCheck>,
}

/// A user of the host that is one service's, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceUser {
    /// The user, and the group that it alone is in.
    pub uid: u32,
    /// The group of all services of the app: what they share belongs to it.
    pub app_gid: u32,
}

/// Whose what is in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FolderOwner {
    /// The service's alone.
    Service,
    /// The services' of the app that mount it.
    App,
    /// The host's: owners and modes are left as they are.
    Host,
}

/// A folder that the service sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folder {
    /// On the host.
    pub host: PathBuf,
    /// The absolute path by which the service sees it.
    pub guest: String,
    /// The service can change nothing in it.
    pub read_only: bool,
    /// Emptied at each start of the process, as memory would be.
    pub volatile: bool,
    /// Whose it is.
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

/// The place of a service that has a loopback address of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnNetwork {
    /// In 127.0.0.0/8: its own, or that of the container whose network stack it shares.
    pub address: Ipv4Addr,
    /// The [`Members`] file of each network that it is in.
    pub tables: Vec<PathBuf>,
    /// Whether it may connect to other machines.
    pub outward: bool,
    /// The supervisor's API, where it may be reached.
    pub api: Option<Api>,
    /// Names with fixed addresses (compose `extra_hosts`).
    pub extra_hosts: BTreeMap<String, ExtraHost>,
}

impl OwnNetwork {
    /// Where nothing can be reached.
    #[must_use]
    pub fn nowhere() -> Self {
        OwnNetwork {
            address: Ipv4Addr::UNSPECIFIED,
            tables: Vec::new(),
            outward: false,
            api: None,
            extra_hosts: BTreeMap::new(),
        }
    }
}

/// An address that a name of `extra_hosts` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExtraHost {
    /// A fixed address, of either version.
    Address(IpAddr),
    /// The host itself, by its address towards other machines.
    HostGateway,
}

/// Where the supervisor's API is, and what services call it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Api {
    /// Where it listens, as this host reaches it.
    pub address: SocketAddr,
    /// The host's name or address in the service's environment.
    pub host: String,
}

/// Who is in a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members(pub Vec<Member>);

/// One container in a network. Those that share one network stack have the same address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The container's loopback address.
    pub address: Ipv4Addr,
    /// The container's folder, where its [`State`] and [`PortTable`] are.
    pub folder: PathBuf,
    /// What the others call it: the service's name, its aliases. Compared without case.
    pub names: Vec<String>,
}

/// The ports that a service believes to listen on, and the ports that they really are, of its own
/// address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTable {
    /// Of TCP, by the port that the service asked for.
    pub tcp: BTreeMap<u16, u16>,
    /// Of UDP, by the port that the service asked for.
    pub udp: BTreeMap<u16, u16>,
}

impl PortTable {
    /// Of one protocol.
    #[must_use]
    pub fn of(&self, protocol: Protocol) -> &BTreeMap<u16, u16> {
        match protocol {
            Protocol::Tcp => &self.tcp,
            Protocol::Udp => &self.udp,
        }
    }

    /// Of one protocol.
    pub fn of_mut(&mut self, protocol: Protocol) -> &mut BTreeMap<u16, u16> {
        match protocol {
            Protocol::Tcp => &mut self.tcp,
            Protocol::Udp => &mut self.udp,
        }
    }
}

/// How a container is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Where it is in its life.
    pub status: Status,
    /// The process that serves it, or the last one that did.
    pub process: Option<ProcessId>,
    /// Of the last run, once it has ended.
    pub exit_code: Option<i64>,
    /// Milliseconds since the epoch.
    pub started_at_ms: Option<i64>,
    /// Milliseconds since the epoch.
    pub finished_at_ms: Option<i64>,
    /// How often it was started again by its restart policy.
    pub restarts: u64,
    /// Why it could not be started.
    pub error: Option<String>,
    /// The walls that its process is behind.
    #[serde(default)]
    pub confinement: Option<Report>,
    /// What the service's health check says; none if it has no check, or does not run.
    #[serde(default)]
    pub health: Option<ContainerHealth>,
}

/// Where a container is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Never started.
    Created,
    /// Its process is there.
    Running,
    /// Ended, and waiting to be started again.
    Restarting,
    /// Ended, and left so.
    Exited,
}

impl State {
    /// Of a container that was never started.
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

    /// Notes that the service could not be started; a container that never ran is as it was created.
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

/// What is below the working folder, the engine's, by its path from there: the folders above are not for a service's
/// user.
#[must_use]
pub fn near(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).to_owned()
}

//! A service's configuration as an engine takes it: compose fields after parsing, with defaults,
//! forced labels and injected variables in (device behaviour 4.4 to 4.7).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ImageRef, ServiceName};

/// Everything that a container is made from, but its name. Two equal values make equal containers, so
/// the digest of this value, stored as a label, tells whether a running container is still wanted.
///
/// Fields whose order has no meaning are sorted when the value is built. A new field must be left out
/// of the serialised form while it has its default, or every container would be made anew after an
/// upgrade of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceConfig {
    pub image: ImageRef,
    /// `None` leaves the image's own.
    pub command: Option<Vec<String>>,
    /// `None` leaves the image's own.
    pub entrypoint: Option<Vec<String>>,
    pub environment: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
    pub restart: RestartPolicy,
    pub network_mode: NetworkMode,
    /// By the engine's network name (`<appUuid>_<name>`). The one that `network_mode` names is joined
    /// at creation, the others before the start.
    pub networks: BTreeMap<String, NetworkAttachment>,
    pub ports: Vec<PortMapping>,
    pub mounts: Vec<Mount>,
    /// Path to options.
    pub tmpfs: BTreeMap<String, String>,
    pub devices: Vec<DeviceMapping>,
    pub healthcheck: Option<Healthcheck>,
    /// Bytes; 0 is no limit.
    pub mem_limit: u64,
    /// Bytes; 0 is none.
    pub mem_reservation: u64,
    /// Bytes.
    pub shm_size: u64,
    /// Seconds.
    pub stop_grace_period: u64,
    /// `None` leaves the image's own, or SIGTERM.
    pub stop_signal: Option<String>,
    pub ulimits: BTreeMap<String, Ulimit>,
    pub sysctls: BTreeMap<String, String>,
    pub dns: Vec<String>,
    pub dns_search: Vec<String>,
    pub dns_opt: Vec<String>,
    pub cap_add: Vec<String>,
    pub cap_drop: Vec<String>,
    /// `host:address`.
    pub extra_hosts: Vec<String>,
    pub group_add: Vec<String>,
    pub security_opt: Vec<String>,
    /// CPUs in billionths; 0 is no limit. Not compared (device behaviour 4.4).
    #[serde(skip)]
    pub nano_cpus: i64,
    pub cpu_shares: i64,
    pub cpu_quota: i64,
    pub oom_score_adj: i64,
    pub cpuset: String,
    pub domainname: String,
    pub hostname: String,
    pub mac_address: String,
    pub pid: String,
    pub userns_mode: String,
    pub cgroup_parent: String,
    pub user: String,
    pub working_dir: String,
    pub ipc: String,
    /// 0 is no limit.
    pub pids_limit: i64,
    pub privileged: bool,
    pub read_only: bool,
    pub oom_kill_disable: bool,
    pub init: Option<bool>,
    pub tty: bool,
    /// One graphics processor of the host, whichever.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpu: bool,
}

/// When the engine starts an ended container again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    No,
    Always,
    OnFailure,
    UnlessStopped,
}

/// What a container's network stack is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    Bridge,
    Host,
    None,
    /// The stack of another service of the same app, which must have a container.
    Service(ServiceName),
    /// A network of the app, by its engine name.
    Network(String),
}

/// How a service stands in one network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NetworkAttachment {
    /// Names beside the container's own; the service's name is always one.
    pub aliases: Vec<String>,
    pub ipv4_address: Option<String>,
    pub ipv6_address: Option<String>,
    pub link_local_ips: Vec<String>,
}

/// One published port; ranges are written out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortMapping {
    /// Address of the host; empty is all of them.
    pub host_ip: String,
    /// `None` lets the engine choose.
    pub host_port: Option<u16>,
    pub container_port: u16,
    pub protocol: Protocol,
}

/// What a published port carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Tcp,
    Udp,
}

/// What is mounted into a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "type")]
pub enum Mount {
    /// A named volume, by its engine name (`<appId>_<name>`).
    Volume {
        source: String,
        target: String,
        read_only: bool,
    },
    /// A volume without a name, which goes with its container.
    Anonymous { target: String },
    /// Memory; 0 is no limit in bytes.
    Tmpfs { target: String, size: u64 },
    /// A folder or file of the host, as it is seen from the engine. Only the supervisor adds these.
    Bind {
        source: String,
        target: String,
        read_only: bool,
    },
}

/// A device of the host in a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceMapping {
    pub host: String,
    pub container: String,
    pub permissions: String,
}

/// Overlaid field by field on the image's own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Healthcheck {
    /// Empty inherits; `["NONE"]` turns the image's off.
    pub test: Vec<String>,
    /// Nanoseconds, as the other durations here.
    pub interval: Option<i64>,
    pub timeout: Option<i64>,
    pub start_period: Option<i64>,
    pub retries: Option<i64>,
}

/// A limit of the kernel for each process of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ulimit {
    pub soft: i64,
    pub hard: i64,
}

/// One address pool of a network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IpamPool {
    pub subnet: Option<String>,
    pub gateway: Option<String>,
    pub ip_range: Option<String>,
    pub aux_addresses: BTreeMap<String, String>,
}

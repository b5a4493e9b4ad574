//! A service's configuration as an engine takes it: compose fields after parsing, with defaults,
//! forced labels and injected variables in (docs/spec/device.md#compose).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ImageRef, ServiceName};

/// Everything from which a container is created, except its name. Equal values give equal containers, so
/// the digest of this value, stored as a label, tells whether a running container is still wanted.
///
/// Fields whose order has no meaning are sorted when the value is built. A new field must be left out
/// of the serialized form while it has its default, or every container would be made anew after an
/// upgrade of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceConfig {
    /// The image reference in the target.
    pub image: ImageRef,
    /// `None` keeps the image's own.
    pub command: Option<Vec<String>>,
    /// `None` keeps the image's own.
    pub entrypoint: Option<Vec<String>>,
    /// All variables but those of the image: the release's, and the supervisor's
    /// (docs/spec/device.md#service-environment).
    pub environment: BTreeMap<String, String>,
    /// The release's labels, and the supervisor's own, which win (docs/spec/device.md#container-labels).
    pub labels: BTreeMap<String, String>,
    /// What the engine does when the container ends; `always` if the release does not say.
    pub restart: RestartPolicy,
    /// The network stack that the container is made with.
    pub network_mode: NetworkMode,
    /// By the engine's network name (`<appUuid>_<name>`). The one that `network_mode` names is joined
    /// at creation, the others before the start.
    pub networks: BTreeMap<String, NetworkAttachment>,
    /// Published ports, sorted.
    pub ports: Vec<PortMapping>,
    /// All mounts except `tmpfs`, including those of feature labels (docs/spec/device.md#feature-labels).
    pub mounts: Vec<Mount>,
    /// Options by path.
    pub tmpfs: BTreeMap<String, String>,
    /// Devices of the host, sorted.
    pub devices: Vec<DeviceMapping>,
    /// `None` keeps the image's own.
    pub healthcheck: Option<Healthcheck>,
    /// In bytes; 0 is no limit.
    pub mem_limit: u64,
    /// In bytes; 0 is no reservation.
    pub mem_reservation: u64,
    /// In bytes.
    pub shm_size: u64,
    /// In seconds.
    pub stop_grace_period: u64,
    /// `None` leaves the image's own, or SIGTERM.
    pub stop_signal: Option<String>,
    /// By the kernel's name, without `RLIMIT_` and in lower case: `nofile`.
    pub ulimits: BTreeMap<String, Ulimit>,
    /// Kernel parameters of the container's namespaces, by name with dots.
    pub sysctls: BTreeMap<String, String>,
    /// Name servers, in the order that they are asked.
    pub dns: Vec<String>,
    /// Domains that short names are looked up in, in that order.
    pub dns_search: Vec<String>,
    /// Options of the resolver (resolv.conf(5)), sorted.
    pub dns_opt: Vec<String>,
    /// Capabilities in addition to the engine's default ones, as the release writes them, sorted.
    pub cap_add: Vec<String>,
    /// Capabilities to remove from the engine's default ones, sorted; `ALL` is all.
    pub cap_drop: Vec<String>,
    /// Entries for the hosts file, as `host:address`.
    pub extra_hosts: Vec<String>,
    /// Groups in addition to the user's own, by name or number, sorted.
    pub group_add: Vec<String>,
    /// Options such as `apparmor=unconfined`, sorted.
    pub security_opt: Vec<String>,
    /// CPUs in billionths; 0 is no limit. Not compared (docs/spec/device.md#compose-compared).
    #[serde(skip)]
    pub nano_cpus: i64,
    /// The weight against other containers; 0 leaves the engine's.
    pub cpu_shares: i64,
    /// Microseconds of processor time in each period; 0 leaves the engine's, -1 is no limit.
    pub cpu_quota: i64,
    /// -1000 to 1000, as the kernel has it (proc_pid_oom_score_adj(5)).
    pub oom_score_adj: i64,
    /// The CPUs on which it may run, for example `0-2,4`; empty means all.
    pub cpuset: String,
    /// Empty means none.
    pub domainname: String,
    /// Empty means the engine's default, which is derived from the container's id.
    pub hostname: String,
    /// With colons; if empty, the engine chooses.
    pub mac_address: String,
    /// The processes that it sees: `host` for all, or empty for only its own.
    pub pid: String,
    /// The user namespace: `host`, or empty for the engine's setting.
    pub userns_mode: String,
    /// The control group that the container's is made in; empty leaves the engine's.
    pub cgroup_parent: String,
    /// `user[:group]`, by name or number; if empty, the image's own.
    pub user: String,
    /// Without a slash at its end; if empty, the image's own.
    pub working_dir: String,
    /// The System V IPC namespace: `shareable` if the release does not say, `private`, `host`.
    pub ipc: String,
    /// The number of processes; 0 is no limit.
    pub pids_limit: i64,
    /// Whether it has all capabilities and all devices of the host.
    pub privileged: bool,
    /// The root file system cannot be written to.
    pub read_only: bool,
    /// The kernel does not kill it for want of memory.
    pub oom_kill_disable: bool,
    /// A small init runs as process 1; `None` leaves the engine's default.
    pub init: Option<bool>,
    /// Whether it has a terminal; true if the release does not say.
    pub tty: bool,
    /// Whether it uses a graphics processor of the host, whichever is available.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpu: bool,
}

/// When the engine starts an ended container again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// Never restart it.
    No,
    /// Restart it however it ended, and when the engine starts.
    Always,
    /// Restart it if its exit code is not 0, however often.
    OnFailure,
    /// Restart it however it ended, but not when the engine starts if the container was stopped.
    UnlessStopped,
}

/// The network stack of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// The engine's default bridge.
    Bridge,
    /// The host's own.
    Host,
    /// Only the loopback interface.
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
    /// A fixed address in the network's pool; `None` lets the engine choose.
    pub ipv4_address: Option<String>,
    /// A fixed address in the network's pool; `None` lets the engine choose.
    pub ipv6_address: Option<String>,
    /// Link-local addresses that it has besides.
    pub link_local_ips: Vec<String>,
}

/// One published port; ranges are written out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortMapping {
    /// Address of the host; empty is all of them.
    pub host_ip: String,
    /// `None` lets the engine choose.
    pub host_port: Option<u16>,
    /// The port that the service listens on.
    pub container_port: u16,
    /// The protocol; TCP if the release does not say.
    pub protocol: Protocol,
}

/// The protocol of a published port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Connections (RFC 9293).
    Tcp,
    /// Datagrams (RFC 768).
    Udp,
}

/// A mount of a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "type")]
pub enum Mount {
    /// A named volume, by its engine name (`<appId>_<name>`).
    Volume {
        /// The volume's name in the engine.
        source: String,
        /// Absolute path in the container.
        target: String,
        /// The service cannot write to it.
        read_only: bool,
    },
    /// A volume without a name, which goes with its container.
    Anonymous {
        /// Absolute path in the container.
        target: String,
    },
    /// Memory; 0 is no limit in bytes.
    Tmpfs {
        /// Absolute path in the container.
        target: String,
        /// In bytes.
        size: u64,
    },
    /// A folder or file of the host, as it is seen from the engine. Only the supervisor adds these.
    Bind {
        /// Absolute path on the host.
        source: String,
        /// Absolute path in the container.
        target: String,
        /// The service cannot write to it.
        read_only: bool,
    },
}

/// A device of the host in a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceMapping {
    /// Absolute path on the host.
    pub host: String,
    /// Absolute path in the container; the one on the host if the release does not say.
    pub container: String,
    /// Of `r`, `w` and `m` (make nodes); `rwm` if the release does not say.
    pub permissions: String,
}

/// Overlaid field by field on the image's own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Healthcheck {
    /// Empty inherits; `["NONE"]` turns the image's off.
    pub test: Vec<String>,
    /// Nanoseconds, as the other durations here.
    pub interval: Option<i64>,
    /// How long one check may take.
    pub timeout: Option<i64>,
    /// For how long after the start failing checks do not count.
    pub start_period: Option<i64>,
    /// How many checks in a row fail before the container is unhealthy.
    pub retries: Option<i64>,
}

/// A limit of the kernel for each process of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ulimit {
    /// The limit that holds; a process may raise it up to `hard`. -1 is none.
    pub soft: i64,
    /// The limit of the limit. -1 is none.
    pub hard: i64,
}

/// One address pool of a network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IpamPool {
    /// In CIDR form, for example `172.28.0.0/16`.
    pub subnet: Option<String>,
    /// The host's address in the subnet.
    pub gateway: Option<String>,
    /// The part of the subnet that containers get addresses from, in CIDR form.
    pub ip_range: Option<String>,
    /// Addresses of the subnet that no container gets, by the host that has them.
    pub aux_addresses: BTreeMap<String, String>,
}

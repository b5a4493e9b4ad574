//! A service's configuration in the engine's terms: compose fields after parsing, including
//! defaults, forced labels and injected variables (docs/spec/device.md#compose).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ImageRef, ServiceName};

/// Everything from which a container is created, except its name. Equal values result in equal containers, so the
/// digest of this value, stored as a label, shows whether a running container is still up to date.
///
/// Fields whose order has no meaning are sorted when the value is built. A new field must be left out of the serialized
/// form while it has its default, or every container would be recreated after an upgrade of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceConfig {
    /// The image reference in the target.
    pub image: ImageRef,
    /// `None` keeps the image's own.
    pub command: Option<Vec<String>>,
    /// `None` keeps the image's own.
    pub entrypoint: Option<Vec<String>>,
    /// All variables except those of the image: the release's, and the supervisor's
    /// (docs/spec/device.md#service-environment).
    pub environment: BTreeMap<String, String>,
    /// The release's labels, and the supervisor's own, which take precedence (docs/spec/device.md#container-labels).
    pub labels: BTreeMap<String, String>,
    /// What the engine does when the container ends; `always` if the release does not set it.
    pub restart: RestartPolicy,
    /// The network stack that the container is created with.
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
    /// `None` keeps the image's own, or SIGTERM.
    pub stop_signal: Option<String>,
    /// By the kernel's name, without `RLIMIT_` and in lower case: `nofile`.
    pub ulimits: BTreeMap<String, Ulimit>,
    /// Kernel parameters of the container's namespaces, by name with dots.
    pub sysctls: BTreeMap<String, String>,
    /// Name servers, in the order in which they are asked.
    pub dns: Vec<String>,
    /// Domains in which short names are looked up, in that order.
    pub dns_search: Vec<String>,
    /// Options of the resolver (resolv.conf(5)), sorted.
    pub dns_opt: Vec<String>,
    /// Capabilities in addition to the engine's default ones, as the release writes them, sorted.
    pub cap_add: Vec<String>,
    /// Capabilities to remove from the engine's default ones, sorted; `ALL` means all.
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
    /// -1000 to 1000, as defined by the kernel (proc_pid_oom_score_adj(5)).
    pub oom_score_adj: i64,
    /// The CPUs on which it may run, for example `0-2,4`; empty means all.
    pub cpuset: String,
    /// Empty means none.
    pub domainname: String,
    /// Empty means the engine's default, which is derived from the container's id.
    pub hostname: String,
    /// With colons; if empty, the engine chooses.
    pub mac_address: String,
    /// The visible processes: `host` for all, or empty for only its own.
    pub pid: String,
    /// The user namespace: `host`, or empty for the engine's setting.
    pub userns_mode: String,
    /// The control group in which the container's is created; empty keeps the engine's default.
    pub cgroup_parent: String,
    /// `user[:group]`, by name or number; if empty, the image's own.
    pub user: String,
    /// Without a slash at its end; if empty, the image's own.
    pub working_dir: String,
    /// The System V IPC namespace: `shareable` if the release does not set it, `private`, `host`.
    pub ipc: String,
    /// The maximum number of processes; 0 is no limit.
    pub pids_limit: i64,
    /// Whether it has all capabilities and all devices of the host.
    pub privileged: bool,
    /// Whether the root file system is read-only.
    pub read_only: bool,
    /// Whether the kernel must not kill it when memory runs out.
    pub oom_kill_disable: bool,
    /// Whether a small init runs as process 1; `None` keeps the engine's default.
    pub init: Option<bool>,
    /// Whether it has a terminal; true if the release does not set it.
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

/// The settings of a service in one network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NetworkAttachment {
    /// Names in addition to the container's own; the service's name is always one of them.
    pub aliases: Vec<String>,
    /// A fixed address in the network's pool; `None` lets the engine choose.
    pub ipv4_address: Option<String>,
    /// A fixed address in the network's pool; `None` lets the engine choose.
    pub ipv6_address: Option<String>,
    /// Additional link-local addresses.
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
    /// The protocol; TCP if the release does not set it.
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
        /// Whether the mount is read-only.
        read_only: bool,
    },
    /// A volume without a name, which is removed with its container.
    Anonymous {
        /// Absolute path in the container.
        target: String,
    },
    /// Memory.
    Tmpfs {
        /// Absolute path in the container.
        target: String,
        /// In bytes; 0 is no limit.
        size: u64,
    },
    /// A folder or file of the host, as the engine sees it. Only the supervisor adds these.
    Bind {
        /// Absolute path on the host.
        source: String,
        /// Absolute path in the container.
        target: String,
        /// Whether the mount is read-only.
        read_only: bool,
    },
}

/// A device of the host in a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceMapping {
    /// Absolute path on the host.
    pub host: String,
    /// Absolute path in the container; the one on the host if the release does not set it.
    pub container: String,
    /// Any of `r`, `w` and `m` (create nodes); `rwm` if the release does not set it.
    pub permissions: String,
}

/// A health check, which overlays the image's own field by field.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Healthcheck {
    /// Empty inherits; `["NONE"]` disables the image's.
    pub test: Vec<String>,
    /// In nanoseconds, like the other durations here.
    pub interval: Option<i64>,
    /// How long one check may take.
    pub timeout: Option<i64>,
    /// How long after the start failing checks do not count.
    pub start_period: Option<i64>,
    /// How many checks in a row fail before the container is unhealthy.
    pub retries: Option<i64>,
}

/// A limit of the kernel for each process of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ulimit {
    /// The effective limit; a process may raise it up to `hard`. -1 is none.
    pub soft: i64,
    /// The upper bound for `soft`. -1 is none.
    pub hard: i64,
}

/// One address pool of a network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IpamPool {
    /// In CIDR form, for example `172.28.0.0/16`.
    pub subnet: Option<String>,
    /// The host's address in the subnet.
    pub gateway: Option<String>,
    /// The part of the subnet from which containers get addresses, in CIDR form.
    pub ip_range: Option<String>,
    /// Addresses of the subnet that no container gets, by the name of the host that has them.
    pub aux_addresses: BTreeMap<String, String>,
}

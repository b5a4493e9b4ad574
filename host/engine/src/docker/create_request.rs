//! What the engine is told when a container is made: a pure translation of [`ServiceConfig`], tested
//! by what it writes.
//!
//! A field that means nothing beside the chosen network mode, or that the engine's version does not
//! know, is left out with a warning that names it. Nothing else is decided here.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{
    ContainerCreateBody, DeviceMapping, DeviceRequest, EndpointIpamConfig, EndpointSettings,
    HealthConfig, HostConfig, MountTmpfsOptions, MountType, NetworkingConfig, PortBinding, PortMap,
    ResourcesUlimits, RestartPolicyNameEnum,
};
use model::{
    Branding, Mount, NetworkAttachment, NetworkMode, PortMapping, Protocol, RestartPolicy,
    ServiceConfig,
};
use serde_json::Value;

use super::connect::ApiVersion;
use super::joins;
use crate::{ContainerSpec, EngineError};

/// The label, below the branding's namespace, with the reference that a container was made from: the
/// engine itself is told the image's id, so that a tag that has moved since changes nothing.
pub(super) const IMAGE_LABEL: &str = "image-reference";

/// The body of the request and what goes with it.
#[derive(Debug)]
pub(super) struct CreateRequest {
    pub(super) body: Value,
    pub(super) warnings: Vec<String>,
    /// The networks to join after the creation: the engine takes one at creation (API below 1.44).
    pub(super) joins: BTreeMap<String, NetworkAttachment>,
}

pub(super) fn build(
    spec: &ContainerSpec<'_>,
    version: ApiVersion,
    branding: &Branding,
) -> Result<CreateRequest, EngineError> {
    let config = spec.config;
    let mut left_out = LeftOut::default();
    let network = Network::of(spec)?;
    let joins = network.joins(config, &mut left_out);

    let mut labels = config.labels.clone();
    labels.insert(branding.label(IMAGE_LABEL), config.image.to_string());
    if !joins.is_empty() {
        labels.insert(branding.label(joins::LABEL), joins::to_label(&joins));
    }

    let body = ContainerCreateBody {
        image: Some(spec.image_id.to_string()),
        cmd: config.command.clone(),
        entrypoint: config.entrypoint.clone(),
        env: Some(environment(spec)),
        labels: Some(labels.into_iter().collect()),
        hostname: network.own_stack("hostname", &config.hostname, &mut left_out),
        domainname: network.own_stack("domainname", &config.domainname, &mut left_out),
        user: text(&config.user),
        working_dir: text(&config.working_dir),
        tty: Some(config.tty),
        stop_signal: config.stop_signal.clone(),
        stop_timeout: left_out.unless_since(
            version,
            "stop_grace_period",
            25,
            i64::try_from(config.stop_grace_period).ok(),
        ),
        healthcheck: healthcheck(config, version, &mut left_out),
        exposed_ports: exposed_ports(network.ports(config)),
        network_disabled: matches!(config.network_mode, NetworkMode::None).then_some(true),
        networking_config: network.at_creation(config),
        host_config: Some(host_config(spec, version, &network, &mut left_out)),
        ..Default::default()
    };
    let mut body = serde_json::to_value(body)
        .map_err(|error| EngineError::failed(format!("describe `{}`", spec.name), error))?;
    set_mac_address(&mut body, config, version, &network, &mut left_out);
    Ok(CreateRequest {
        body,
        warnings: left_out.warnings,
        joins,
    })
}

/// How the engine is to see one network that a container joins.
pub(super) fn endpoint(attachment: &NetworkAttachment) -> EndpointSettings {
    let has_address = attachment.ipv4_address.is_some()
        || attachment.ipv6_address.is_some()
        || !attachment.link_local_ips.is_empty();
    EndpointSettings {
        aliases: list(&attachment.aliases),
        ipam_config: has_address.then(|| EndpointIpamConfig {
            ipv4_address: attachment.ipv4_address.clone(),
            ipv6_address: attachment.ipv6_address.clone(),
            link_local_ips: list(&attachment.link_local_ips),
        }),
        ..Default::default()
    }
}

fn host_config(
    spec: &ContainerSpec<'_>,
    version: ApiVersion,
    network: &Network,
    left_out: &mut LeftOut,
) -> HostConfig {
    let config = spec.config;
    let (binds, mounts) = mounts(config);
    HostConfig {
        network_mode: Some(network.mode.clone()),
        port_bindings: port_bindings(network.own_ports(config, left_out)),
        restart_policy: Some(bollard::models::RestartPolicy {
            name: Some(match config.restart {
                RestartPolicy::No => RestartPolicyNameEnum::NO,
                RestartPolicy::Always => RestartPolicyNameEnum::ALWAYS,
                RestartPolicy::OnFailure => RestartPolicyNameEnum::ON_FAILURE,
                RestartPolicy::UnlessStopped => RestartPolicyNameEnum::UNLESS_STOPPED,
            }),
            maximum_retry_count: Some(0),
        }),
        binds: list(&binds),
        mounts: (!mounts.is_empty()).then_some(mounts),
        tmpfs: map(&config.tmpfs),
        devices: devices(config),
        memory: bytes(config.mem_limit),
        memory_reservation: bytes(config.mem_reservation),
        shm_size: bytes(config.shm_size),
        ulimits: ulimits(config),
        sysctls: map(&config.sysctls),
        dns: network.own_list("dns", &config.dns, left_out),
        dns_search: network.own_list("dns_search", &config.dns_search, left_out),
        dns_options: network.own_list("dns_opt", &config.dns_opt, left_out),
        extra_hosts: network.own_list("extra_hosts", &config.extra_hosts, left_out),
        cap_add: list(&config.cap_add),
        cap_drop: list(&config.cap_drop),
        group_add: list(&config.group_add),
        security_opt: list(&config.security_opt),
        nano_cpus: left_out.unless_since(version, "cpus", 25, number(config.nano_cpus)),
        cpu_shares: number(config.cpu_shares),
        cpu_quota: number(config.cpu_quota),
        cpuset_cpus: text(&config.cpuset),
        oom_score_adj: number(config.oom_score_adj),
        oom_kill_disable: config.oom_kill_disable.then_some(true),
        pids_limit: number(config.pids_limit),
        pid_mode: text(&config.pid),
        ipc_mode: ipc(config, version),
        userns_mode: text(&config.userns_mode),
        cgroup_parent: text(&config.cgroup_parent),
        privileged: config.privileged.then_some(true),
        readonly_rootfs: config.read_only.then_some(true),
        init: left_out.unless_since(version, "init", 25, config.init),
        device_requests: left_out.unless_since(version, "gpu", 40, graphics(config)),
        ..Default::default()
    }
}

/// One device with the capability, whichever (docs/spec/device.md#feature-labels).
fn graphics(config: &ServiceConfig) -> Option<Vec<DeviceRequest>> {
    config.gpu.then(|| {
        vec![DeviceRequest {
            count: Some(1),
            capabilities: Some(vec![vec!["gpu".into()]]),
            ..Default::default()
        }]
    })
}

/// The warnings of one translation.
#[derive(Default)]
struct LeftOut {
    warnings: Vec<String>,
}

impl LeftOut {
    /// `value`, unless it is set and the engine's API is older than 1.`minor`.
    fn unless_since<T>(
        &mut self,
        version: ApiVersion,
        field: &str,
        minor: usize,
        value: Option<T>,
    ) -> Option<T> {
        if value.is_some() && version < (ApiVersion { major: 1, minor }) {
            self.warnings.push(format!(
                "`{field}` is ignored: this Docker engine has API {version}, and the field needs 1.{minor}"
            ));
            return None;
        }
        value
    }

    fn beside_network_mode(&mut self, field: &str, mode: &str) {
        self.warnings.push(format!(
            "`{field}` is ignored: it has no meaning with network_mode `{mode}`"
        ));
    }
}

/// What `network_mode` comes to.
struct Network {
    /// In the engine's words.
    mode: String,
    /// The mode as warnings call it.
    shown: String,
    /// The network that is joined at creation.
    first: Option<String>,
    /// The container has a network stack of its own, and may join networks.
    joinable: bool,
    /// Another container's stack is shared, so everything about the stack is that one's.
    shared: bool,
}

impl Network {
    fn of(spec: &ContainerSpec<'_>) -> Result<Self, EngineError> {
        let plain = |mode: &str, joinable| Network {
            mode: mode.to_owned(),
            shown: mode.to_owned(),
            first: None,
            joinable,
            shared: false,
        };
        Ok(match &spec.config.network_mode {
            NetworkMode::Bridge => plain("bridge", true),
            NetworkMode::Host => plain("host", false),
            NetworkMode::None => plain("none", false),
            NetworkMode::Network(name) => Network {
                first: Some(name.clone()),
                ..plain(name, true)
            },
            NetworkMode::Service(service) => {
                let Some(container) = spec.network_container else {
                    return Err(EngineError::Invalid(format!(
                        "`{}` shares the network of the service `{service}`, which has no container yet",
                        spec.name
                    )));
                };
                Network {
                    mode: format!("container:{container}"),
                    shown: format!("service:{service}"),
                    first: None,
                    joinable: false,
                    shared: true,
                }
            }
        })
    }

    fn at_creation(&self, config: &ServiceConfig) -> Option<NetworkingConfig> {
        let first = self.first.as_ref()?;
        let attachment = config.networks.get(first).cloned().unwrap_or_default();
        Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(first.clone(), endpoint(&attachment))])),
        })
    }

    fn joins(
        &self,
        config: &ServiceConfig,
        left_out: &mut LeftOut,
    ) -> BTreeMap<String, NetworkAttachment> {
        let mut joins = config.networks.clone();
        if let Some(first) = &self.first {
            joins.remove(first);
        }
        if !self.joinable && !joins.is_empty() {
            left_out.beside_network_mode("networks", &self.shown);
            joins.clear();
        }
        joins
    }

    fn own_stack(&self, field: &str, value: &str, left_out: &mut LeftOut) -> Option<String> {
        if self.shared && !value.is_empty() {
            left_out.beside_network_mode(field, &self.shown);
            return None;
        }
        text(value)
    }

    fn own_list(
        &self,
        field: &str,
        value: &[String],
        left_out: &mut LeftOut,
    ) -> Option<Vec<String>> {
        if self.shared && !value.is_empty() {
            left_out.beside_network_mode(field, &self.shown);
            return None;
        }
        list(value)
    }

    fn ports<'a>(&self, config: &'a ServiceConfig) -> &'a [PortMapping] {
        if self.joinable { &config.ports } else { &[] }
    }

    fn own_ports<'a>(
        &self,
        config: &'a ServiceConfig,
        left_out: &mut LeftOut,
    ) -> &'a [PortMapping] {
        if !self.joinable && !config.ports.is_empty() {
            left_out.beside_network_mode("ports", &self.shown);
        }
        self.ports(config)
    }
}

/// Below API 1.44 the address is the container's, from there on the endpoint's.
fn set_mac_address(
    body: &mut Value,
    config: &ServiceConfig,
    version: ApiVersion,
    network: &Network,
    left_out: &mut LeftOut,
) {
    if config.mac_address.is_empty() {
        return;
    }
    if !network.joinable {
        left_out.beside_network_mode("mac_address", &network.shown);
        return;
    }
    let address = Value::from(config.mac_address.clone());
    if version
        < (ApiVersion {
            major: 1,
            minor: 44,
        })
    {
        body["MacAddress"] = address;
    } else {
        let first = network.first.as_deref().unwrap_or("bridge");
        body["NetworkingConfig"]["EndpointsConfig"][first]["MacAddress"] = address;
    }
}

/// Variables in the form `NAME=value`; what the service itself sets wins over what is given at
/// creation alone.
fn environment(spec: &ContainerSpec<'_>) -> Vec<String> {
    let mut all: BTreeMap<&String, &String> = spec.init_environment.iter().collect();
    all.extend(&spec.config.environment);
    all.iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn healthcheck(
    config: &ServiceConfig,
    version: ApiVersion,
    left_out: &mut LeftOut,
) -> Option<HealthConfig> {
    let check = config.healthcheck.clone()?;
    Some(HealthConfig {
        test: list(&check.test),
        interval: check.interval,
        timeout: check.timeout,
        retries: check.retries,
        start_period: left_out.unless_since(
            version,
            "healthcheck.start_period",
            29,
            check.start_period,
        ),
        start_interval: None,
    })
}

/// Binds and all other mounts. A bind's host path is made by the engine where it is missing, also when
/// it starts the container after a boot that emptied `/tmp`, so binds take the older notation, unless
/// a colon in a path rules it out.
fn mounts(config: &ServiceConfig) -> (Vec<String>, Vec<bollard::models::Mount>) {
    let (mut binds, mut mounts) = (Vec::new(), Vec::new());
    for mount in &config.mounts {
        let of_type = |typ| bollard::models::Mount {
            typ: Some(typ),
            ..Default::default()
        };
        mounts.push(match mount {
            Mount::Bind {
                source,
                target,
                read_only,
            } if !source.contains(':') && !target.contains(':') => {
                let mode = if *read_only { "ro" } else { "rw" };
                binds.push(format!("{source}:{target}:{mode}"));
                continue;
            }
            Mount::Bind {
                source,
                target,
                read_only,
            } => bollard::models::Mount {
                source: Some(source.clone()),
                target: Some(target.clone()),
                read_only: Some(*read_only),
                ..of_type(MountType::BIND)
            },
            Mount::Volume {
                source,
                target,
                read_only,
            } => bollard::models::Mount {
                source: Some(source.clone()),
                target: Some(target.clone()),
                read_only: Some(*read_only),
                ..of_type(MountType::VOLUME)
            },
            Mount::Anonymous { target } => bollard::models::Mount {
                target: Some(target.clone()),
                ..of_type(MountType::VOLUME)
            },
            Mount::Tmpfs { target, size } => bollard::models::Mount {
                target: Some(target.clone()),
                tmpfs_options: bytes(*size).map(|size| MountTmpfsOptions {
                    size_bytes: Some(size),
                    ..Default::default()
                }),
                ..of_type(MountType::TMPFS)
            },
        });
    }
    (binds, mounts)
}

fn devices(config: &ServiceConfig) -> Option<Vec<DeviceMapping>> {
    let devices = config.devices.iter().map(|device| DeviceMapping {
        path_on_host: Some(device.host.clone()),
        path_in_container: Some(device.container.clone()),
        cgroup_permissions: Some(device.permissions.clone()),
    });
    (!config.devices.is_empty()).then(|| devices.collect())
}

fn ulimits(config: &ServiceConfig) -> Option<Vec<ResourcesUlimits>> {
    let ulimits = config.ulimits.iter().map(|(name, limit)| ResourcesUlimits {
        name: Some(name.clone()),
        soft: Some(limit.soft),
        hard: Some(limit.hard),
    });
    (!config.ulimits.is_empty()).then(|| ulimits.collect())
}

/// `shareable`, the default of a service, is what engines before API 1.32 do unasked.
fn ipc(config: &ServiceConfig, version: ApiVersion) -> Option<String> {
    if config.ipc == "shareable"
        && version
            < (ApiVersion {
                major: 1,
                minor: 32,
            })
    {
        return None;
    }
    text(&config.ipc)
}

fn port_name(port: &PortMapping) -> String {
    let protocol = match port.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    };
    format!("{}/{protocol}", port.container_port)
}

fn exposed_ports(ports: &[PortMapping]) -> Option<Vec<String>> {
    list(&ports.iter().map(port_name).collect::<Vec<_>>())
}

fn port_bindings(ports: &[PortMapping]) -> Option<PortMap> {
    let mut bindings = PortMap::new();
    for port in ports {
        let of_port = bindings.entry(port_name(port)).or_default();
        of_port.get_or_insert_default().push(PortBinding {
            host_ip: text(&port.host_ip),
            // Empty lets the engine choose.
            host_port: Some(
                port.host_port
                    .map_or(String::new(), |port| port.to_string()),
            ),
        });
    }
    (!bindings.is_empty()).then_some(bindings)
}

fn text(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

fn number(value: i64) -> Option<i64> {
    (value != 0).then_some(value)
}

fn bytes(value: u64) -> Option<i64> {
    number(i64::try_from(value).unwrap_or(i64::MAX))
}

fn list(values: &[String]) -> Option<Vec<String>> {
    (!values.is_empty()).then(|| values.to_vec())
}

fn map(values: &BTreeMap<String, String>) -> Option<HashMap<String, String>> {
    (!values.is_empty()).then(|| values.clone().into_iter().collect())
}

#[cfg(test)]
mod tests;

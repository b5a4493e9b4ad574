//! The request that creates a container: a pure translation of [`ServiceConfig`], tested by its
//! output.
//!
//! A field that has no meaning in the chosen network mode, or that the engine's version does not
//! know, is left out with a warning that names it. Nothing else is decided here.

use std::collections::{BTreeMap, HashMap};

use bollard::ClientVersion;
use bollard::models::{
    ContainerCreateBody, DeviceMapping, DeviceRequest, HealthConfig, HostConfig, MountTmpfsOptions,
    MountType, PortBinding, PortMap, ResourcesUlimits, RestartPolicyNameEnum,
};
use model::{
    Branding, Mount, NetworkAttachment, NetworkMode, PortMapping, Protocol, RestartPolicy,
    ServiceConfig,
};
use serde_json::Value;

use super::connect::api_1;
use super::joins;
use crate::{ContainerSpec, EngineError};

mod network;

use network::{Network, OmittedFields};

/// The label, below the branding's namespace, with the reference that a container was created from:
/// the engine itself receives the image's id, so a tag that has moved since changes nothing.
pub(super) const IMAGE_LABEL: &str = "image-reference";

/// The body of the request and what goes with it.
#[derive(Debug)]
pub(super) struct CreateRequest {
    pub(super) body: Value,
    pub(super) warnings: Vec<String>,
    /// The networks to join after the creation: the engine accepts only one at creation (API below
    /// 1.44).
    pub(super) joins: BTreeMap<String, NetworkAttachment>,
}

pub(super) fn build(
    spec: &ContainerSpec<'_>,
    version: ClientVersion,
    branding: &Branding,
) -> Result<CreateRequest, EngineError> {
    let config = spec.config;
    let mut left_out = OmittedFields::default();
    let network = Network::from_spec(spec)?;
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
        hostname: network.own_stack("hostname", set(&config.hostname), &mut left_out),
        domainname: network.own_stack("domainname", set(&config.domainname), &mut left_out),
        user: set(&config.user),
        working_dir: set(&config.working_dir),
        tty: Some(config.tty),
        stop_signal: config.stop_signal.clone(),
        stop_timeout: left_out.unless_since(
            version,
            "stop_grace_period",
            25,
            i64::try_from(config.stop_grace_period).ok(),
        ),
        healthcheck: healthcheck(config, version, &mut left_out),
        exposed_ports: set(&network.ports(config).iter().map(port_name).collect()),
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

fn host_config(
    spec: &ContainerSpec<'_>,
    version: ClientVersion,
    network: &Network,
    left_out: &mut OmittedFields,
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
        binds: set(&binds),
        mounts: set(&mounts),
        tmpfs: map(&config.tmpfs),
        devices: devices(config),
        memory: bytes(config.mem_limit),
        memory_reservation: bytes(config.mem_reservation),
        shm_size: bytes(config.shm_size),
        ulimits: ulimits(config),
        sysctls: map(&config.sysctls),
        dns: network.own_stack("dns", set(&config.dns), left_out),
        dns_search: network.own_stack("dns_search", set(&config.dns_search), left_out),
        dns_options: network.own_stack("dns_opt", set(&config.dns_opt), left_out),
        extra_hosts: network.own_stack("extra_hosts", set(&config.extra_hosts), left_out),
        cap_add: set(&config.cap_add),
        cap_drop: set(&config.cap_drop),
        group_add: set(&config.group_add),
        security_opt: set(&config.security_opt),
        nano_cpus: left_out.unless_since(version, "cpus", 25, set(&config.nano_cpus)),
        cpu_shares: set(&config.cpu_shares),
        cpu_quota: set(&config.cpu_quota),
        cpuset_cpus: set(&config.cpuset),
        oom_score_adj: set(&config.oom_score_adj),
        oom_kill_disable: set(&config.oom_kill_disable),
        pids_limit: set(&config.pids_limit),
        pid_mode: set(&config.pid),
        ipc_mode: ipc(config, version),
        userns_mode: set(&config.userns_mode),
        cgroup_parent: set(&config.cgroup_parent),
        privileged: set(&config.privileged),
        readonly_rootfs: set(&config.read_only),
        init: left_out.unless_since(version, "init", 25, config.init),
        device_requests: left_out.unless_since(version, "gpu", 40, graphics(config)),
        ..Default::default()
    }
}

/// Requests one device with the capability, whichever it is (docs/spec/device.md#feature-labels).
fn graphics(config: &ServiceConfig) -> Option<Vec<DeviceRequest>> {
    config.gpu.then(|| {
        vec![DeviceRequest {
            count: Some(1),
            capabilities: Some(vec![vec!["gpu".into()]]),
            ..Default::default()
        }]
    })
}

/// Sets the MAC address: on the container below API 1.44, on the endpoint from there on.
fn set_mac_address(
    body: &mut Value,
    config: &ServiceConfig,
    version: ClientVersion,
    network: &Network,
    left_out: &mut OmittedFields,
) {
    if config.mac_address.is_empty() {
        return;
    }
    if !network.joinable {
        left_out.beside_network_mode("mac_address", &network.name);
        return;
    }
    let address = Value::from(config.mac_address.clone());
    if version < api_1(44) {
        body["MacAddress"] = address;
    } else {
        let first = network.first.as_deref().unwrap_or("bridge");
        body["NetworkingConfig"]["EndpointsConfig"][first]["MacAddress"] = address;
    }
}

/// Returns the variables in the form `NAME=value`; the service's own values take precedence over
/// those that are added only at creation.
fn environment(spec: &ContainerSpec<'_>) -> Vec<String> {
    let mut all: BTreeMap<&String, &String> = spec.init_environment.iter().collect();
    all.extend(&spec.config.environment);
    all.iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn healthcheck(
    config: &ServiceConfig,
    version: ClientVersion,
    left_out: &mut OmittedFields,
) -> Option<HealthConfig> {
    let check = config.healthcheck.clone()?;
    Some(HealthConfig {
        test: set(&check.test),
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

/// Returns the binds and all other mounts. If the host path of a bind is missing, the engine
/// creates it, even when it starts the container after a boot that emptied `/tmp`. So binds use the
/// older notation, unless a colon in a path rules it out.
fn mounts(config: &ServiceConfig) -> (Vec<String>, Vec<bollard::models::Mount>) {
    let (mut binds, mut mounts) = (Vec::new(), Vec::new());
    for mount in &config.mounts {
        let (typ, source, target, size) = match mount {
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
            } => (MountType::BIND, Some((source, read_only)), target, 0),
            Mount::Volume {
                source,
                target,
                read_only,
            } => (MountType::VOLUME, Some((source, read_only)), target, 0),
            Mount::Anonymous { target } => (MountType::VOLUME, None, target, 0),
            Mount::Tmpfs { target, size } => (MountType::TMPFS, None, target, *size),
        };
        mounts.push(bollard::models::Mount {
            typ: Some(typ),
            source: source.map(|(source, _)| source.clone()),
            target: Some(target.clone()),
            read_only: source.map(|(_, read_only)| *read_only),
            tmpfs_options: bytes(size).map(|size| MountTmpfsOptions {
                size_bytes: Some(size),
                ..Default::default()
            }),
            ..Default::default()
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
    set(&devices.collect())
}

fn ulimits(config: &ServiceConfig) -> Option<Vec<ResourcesUlimits>> {
    let ulimits = config.ulimits.iter().map(|(name, limit)| ResourcesUlimits {
        name: Some(name.clone()),
        soft: Some(limit.soft),
        hard: Some(limit.hard),
    });
    set(&ulimits.collect())
}

/// Returns the IPC mode. `shareable`, the default of a service, is what engines before API 1.32 do
/// anyway.
fn ipc(config: &ServiceConfig, version: ClientVersion) -> Option<String> {
    if config.ipc == "shareable" && version < api_1(32) {
        return None;
    }
    set(&config.ipc)
}

fn port_name(port: &PortMapping) -> String {
    let protocol = match port.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    };
    format!("{}/{protocol}", port.container_port)
}

fn port_bindings(ports: &[PortMapping]) -> Option<PortMap> {
    let mut bindings = PortMap::new();
    for port in ports {
        let of_port = bindings.entry(port_name(port)).or_default();
        of_port.get_or_insert_default().push(PortBinding {
            host_ip: set(&port.host_ip),
            // If empty, the engine chooses.
            host_port: Some(
                port.host_port
                    .map_or(String::new(), |port| port.to_string()),
            ),
        });
    }
    set(&bindings)
}

/// Returns `value`, unless it is the default of a service that does not set it.
fn set<T: Clone + Default + PartialEq>(value: &T) -> Option<T> {
    (*value != T::default()).then(|| value.clone())
}

fn bytes(value: u64) -> Option<i64> {
    set(&i64::try_from(value).unwrap_or(i64::MAX))
}

fn map(values: &BTreeMap<String, String>) -> Option<HashMap<String, String>> {
    (!values.is_empty()).then(|| values.clone().into_iter().collect())
}

#[cfg(test)]
mod tests;

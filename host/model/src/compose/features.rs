//! The additions of feature labels (`io.platform.features.…`) to a service: one arm each
//! (docs/spec/device.md#feature-labels).

use std::collections::BTreeMap;

use super::api_keys::KeyError;
use super::environment;
use super::mounts;
use super::networks::SUPERVISOR_GATEWAY;
use super::service_context::ServiceContext;
use crate::{Branding, Mount, NetworkAttachment, NetworkMode, ServiceConfig, truthy_text};

/// The host's own address, if a service shares the host's network or is a component in a file.
const LOOPBACK: &str = "127.0.0.1";

/// The volume with firmware in addition to the host's own. All services that request it share it,
/// and no clean-up removes it (docs/spec/device.md#extra-firmware).
pub const EXTRA_FIRMWARE: &str = "extra-firmware";

/// The parts that a feature may read and change.
pub(super) struct FeatureContext<'a> {
    pub(super) config: &'a mut ServiceConfig,
    pub(super) init_environment: &'a mut BTreeMap<String, String>,
    pub(super) place: ServiceContext<'a>,
    /// Warnings, one sentence each.
    pub(super) warnings: Vec<String>,
}

impl FeatureContext<'_> {
    /// Mounts a path of the host.
    fn bind(&mut self, path: &str, target: &str, read_only: bool) {
        let source = format!("{}{path}", self.place.facts.host_root.trim_end_matches('/'));
        self.mount(Mount::Bind {
            source,
            target: target.to_owned(),
            read_only,
        });
    }

    /// Adds a mount, replacing the service's own mount at that path.
    fn mount(&mut self, mount: Mount) {
        let target = mounts::target_of(&mount).to_owned();
        let all = &mut self.config.mounts;
        let before = all.len();
        all.retain(|other| mounts::target_of(other) != target);
        if all.len() < before {
            self.warnings.push(format!(
                "`volumes` mounts at `{target}`, where a feature label mounts something as well: the mount of the label is used"
            ));
        }
        all.push(mount);
        all.sort_unstable();
    }
}

/// Grants the features that the labels request. Returns the warnings.
pub(super) fn grant(mut granted: FeatureContext<'_>) -> Result<Vec<String>, KeyError> {
    let namespace = granted.place.facts.branding.label("features.");
    let labels = granted.config.labels.iter();
    let features: Vec<String> = labels
        .filter(|(_, value)| truthy_text(value))
        .filter_map(|(name, _)| Some(name.strip_prefix(&namespace)?.to_owned()))
        .collect();
    for feature in features {
        grant_feature(&mut granted, &feature)?;
    }
    Ok(granted.warnings)
}

/// Grants one feature. To add one, add an arm.
fn grant_feature(granted: &mut FeatureContext<'_>, feature: &str) -> Result<(), KeyError> {
    let host = &granted.place.facts.host;
    match feature {
        "supervisor-api" => supervisor_api(granted)?,
        "platform-api" => platform_api(granted),
        "dbus" => granted.bind("/run/dbus", "/host/run/dbus", false),
        "journal-logs" => {
            for path in ["/var/log/journal", "/run/log/journal", "/etc/machine-id"] {
                granted.bind(path, path, true);
            }
        }
        "kernel-modules" if host.has_kernel_modules => {
            granted.bind("/lib/modules", "/lib/modules", false);
        }
        "firmware" if host.has_firmware => granted.bind("/lib/firmware", "/lib/firmware", false),
        "kernel-modules" | "firmware" => {}
        "sysfs" => granted.bind("/sys", "/sys", false),
        "procfs" => granted.bind("/proc", "/proc", false),
        "gpu" => granted.config.gpu = true,
        "platform-socket" => engine_socket(granted),
        "host-os.board-rev" => board_revision(granted),
        "extra-firmware" => granted.mount(Mount::Volume {
            source: EXTRA_FIRMWARE.into(),
            target: format!("/{EXTRA_FIRMWARE}"),
            read_only: false,
        }),
        // It concerns an app whose contract is not met; the service itself is like any other.
        "optional" => {}
        _ => {
            let label = granted
                .place
                .facts
                .branding
                .label(&format!("features.{feature}"));
            granted.warnings.push(format!(
                "`labels.{}` is not supported and was ignored",
                crate::excerpt::cut(&label)
            ));
        }
    }
    Ok(())
}

/// Returns whether the service may reach the device's API.
pub(super) fn has_supervisor_api(labels: &BTreeMap<String, String>, branding: &Branding) -> bool {
    labels
        .get(&branding.label("features.supervisor-api"))
        .is_some_and(|value| truthy_text(value))
}

fn supervisor_api(granted: &mut FeatureContext<'_>) -> Result<(), KeyError> {
    let ServiceContext {
        app,
        service,
        facts,
        keys,
        ..
    } = granted.place;
    let config = &mut *granted.config;
    let branding = &facts.branding;
    let key = keys.service_key(app.id, &service.name)?;
    let host = match config.network_mode {
        // A component file runs on the wasm engine, on the host's loopback.
        _ if config.image.is_file() => LOOPBACK,
        NetworkMode::Host => LOOPBACK,
        NetworkMode::Bridge | NetworkMode::Network(_) => {
            config
                .networks
                .insert(branding.network.clone(), NetworkAttachment::default());
            SUPERVISOR_GATEWAY
        }
        NetworkMode::Service(_) => SUPERVISOR_GATEWAY,
        NetworkMode::None => {
            granted.warnings.push(
                "with `network_mode` `none` it cannot reach the supervisor's API, which its label requests"
                    .into(),
            );
            SUPERVISOR_GATEWAY
        }
    };
    let port = facts.api_port.to_string();
    let variables = &mut config.environment;
    environment::default(variables, branding, "APP_ID", &app.id.to_string());
    environment::force(variables, branding, "SUPERVISOR_API_KEY", key.reveal());
    environment::force(variables, branding, "SUPERVISOR_PORT", &port);
    environment::force(variables, branding, "SUPERVISOR_HOST", host);
    let address = format!("http://{host}:{port}");
    environment::force(variables, branding, "SUPERVISOR_ADDRESS", &address);
    // Not part of the compared configuration: renaming a device must not restart services.
    let mut at_init = BTreeMap::new();
    environment::default(&mut at_init, branding, "DEVICE_NAME_AT_INIT", &facts.name);
    at_init.retain(|name, _| !variables.contains_key(name));
    granted.init_environment.extend(at_init);
    Ok(())
}

fn platform_api(granted: &mut FeatureContext<'_>) {
    let Some(cloud) = &granted.place.facts.host.cloud else {
        let label = granted.place.facts.branding.label("features.platform-api");
        granted.warnings.push(format!(
            "`labels.{label}` has no effect: the device has no cloud"
        ));
        return;
    };
    let branding = &granted.place.facts.branding;
    let variables = &mut granted.config.environment;
    environment::force(variables, branding, "API_KEY", cloud.key.reveal());
    environment::force(variables, branding, "API_URL", &cloud.url);
}

fn engine_socket(granted: &mut FeatureContext<'_>) {
    let Some(socket) = granted.place.facts.host.engine_socket.clone() else {
        let label = granted
            .place
            .facts
            .branding
            .label("features.platform-socket");
        granted.warnings.push(format!(
            "`labels.{label}` has no effect: this device has no container engine with a socket"
        ));
        return;
    };
    // The path is already as the engine sees it, whatever the host root.
    for target in [socket.as_str(), "/host/run/docker.sock"] {
        granted.mount(Mount::Bind {
            source: socket.clone(),
            target: target.to_owned(),
            read_only: false,
        });
    }
    let variables = &mut granted.config.environment;
    variables
        .entry("DOCKER_HOST".into())
        .or_insert_with(|| format!("unix://{socket}"));
}

fn board_revision(granted: &mut FeatureContext<'_>) {
    let host = &granted.place.facts.host;
    let variables = [
        ("HOST_OS_BOARD_REV", &host.board_revision),
        ("HOST_OS_BUILD", &host.os_build),
    ];
    for (name, value) in variables {
        if let Some(value) = value {
            let environment = &mut granted.config.environment;
            environment::force(environment, &granted.place.facts.branding, name, value);
        }
    }
}

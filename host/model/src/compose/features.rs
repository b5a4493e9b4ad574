//! What feature labels (`io.platform.features.…`) add to a service: one row each (docs/spec/device.md#feature-labels).

use std::collections::BTreeMap;

use super::environment;
use super::mounts;
use super::networks::SUPERVISOR_GATEWAY;
use super::resolve::{ApiKeys, KeyError};
use crate::{
    Branding, DeviceFacts, Mount, NetworkAttachment, NetworkMode, ServiceConfig, TargetApp,
    TargetService, truthy_text,
};

/// The host's own address, if a service shares the host's network or runs on the wasm engine.
const LOOPBACK: &str = "127.0.0.1";

/// A feature and what it does. To add one, add a row.
struct Feature {
    /// The label, without the namespace.
    label: &'static str,
    grant: fn(&mut FeatureContext<'_>) -> Result<(), KeyError>,
}

const FEATURES: &[Feature] = &[
    Feature {
        label: "features.supervisor-api",
        grant: supervisor_api,
    },
    Feature {
        label: "features.platform-api",
        grant: platform_api,
    },
    Feature {
        label: "features.dbus",
        grant: |granted| {
            granted.bind("/run/dbus", "/host/run/dbus", false);
            Ok(())
        },
    },
    Feature {
        label: "features.journal-logs",
        grant: |granted| {
            for path in ["/var/log/journal", "/run/log/journal", "/etc/machine-id"] {
                granted.bind(path, path, true);
            }
            Ok(())
        },
    },
    Feature {
        label: "features.kernel-modules",
        grant: |granted| {
            if granted.facts.host.has_kernel_modules {
                granted.bind("/lib/modules", "/lib/modules", false);
            }
            Ok(())
        },
    },
    Feature {
        label: "features.firmware",
        grant: |granted| {
            if granted.facts.host.has_firmware {
                granted.bind("/lib/firmware", "/lib/firmware", false);
            }
            Ok(())
        },
    },
    Feature {
        label: "features.sysfs",
        grant: |granted| {
            granted.bind("/sys", "/sys", false);
            Ok(())
        },
    },
    Feature {
        label: "features.procfs",
        grant: |granted| {
            granted.bind("/proc", "/proc", false);
            Ok(())
        },
    },
    Feature {
        label: "features.gpu",
        grant: |granted| {
            granted.config.gpu = true;
            Ok(())
        },
    },
    Feature {
        label: "features.platform-socket",
        grant: engine_socket,
    },
    Feature {
        label: "features.host-os.board-rev",
        grant: board_revision,
    },
    Feature {
        label: "features.extra-firmware",
        grant: |granted| {
            let target = format!("/{EXTRA_FIRMWARE}");
            granted.mount(Mount::Volume {
                source: EXTRA_FIRMWARE.into(),
                target,
                read_only: false,
            });
            Ok(())
        },
    },
    Feature {
        label: "features.optional",
        // It says what becomes of an app whose contract is not met; the service itself is as any other.
        grant: |_| Ok(()),
    },
];

/// The volume with firmware beyond the host's own. All services that ask for it share it, and no
/// clean-up removes it (docs/spec/device.md#extra-firmware).
pub const EXTRA_FIRMWARE: &str = "extra-firmware";

/// What a feature may read and change.
pub(super) struct FeatureContext<'a> {
    pub(super) config: &'a mut ServiceConfig,
    pub(super) init_environment: &'a mut BTreeMap<String, String>,
    pub(super) service: &'a TargetService,
    pub(super) app: &'a TargetApp,
    pub(super) facts: &'a DeviceFacts,
    pub(super) keys: &'a dyn ApiKeys,
    /// Warnings, one sentence each.
    pub(super) warnings: Vec<String>,
}

impl FeatureContext<'_> {
    /// Mounts a path of the host.
    fn bind(&mut self, path: &str, target: &str, read_only: bool) {
        let source = format!("{}{path}", self.facts.host_root.trim_end_matches('/'));
        self.mount(Mount::Bind {
            source,
            target: target.to_owned(),
            read_only,
        });
    }

    /// Mounts it instead of what the service mounts there.
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

/// Grants what the labels ask for. Returns the warnings.
pub(super) fn grant(mut granted: FeatureContext<'_>) -> Result<Vec<String>, KeyError> {
    let namespace = granted.facts.branding.label("features.");
    let wanted: Vec<String> = granted
        .config
        .labels
        .iter()
        .filter(|(name, value)| name.starts_with(&namespace) && truthy_text(value))
        .map(|(name, _)| name.clone())
        .collect();
    for name in wanted {
        let feature = FEATURES
            .iter()
            .find(|feature| granted.facts.branding.label(feature.label) == name);
        match feature {
            Some(feature) => (feature.grant)(&mut granted)?,
            None => granted.warnings.push(format!(
                "`labels.{}` is not supported and was ignored",
                crate::target::cut(&name)
            )),
        }
    }
    Ok(granted.warnings)
}

/// Whether the service may reach the device's API.
pub(super) fn has_supervisor_api(labels: &BTreeMap<String, String>, branding: &Branding) -> bool {
    labels
        .get(&branding.label("features.supervisor-api"))
        .is_some_and(|value| truthy_text(value))
}

fn supervisor_api(granted: &mut FeatureContext<'_>) -> Result<(), KeyError> {
    let FeatureContext {
        config,
        service,
        app,
        facts,
        ..
    } = granted;
    let branding = &facts.branding;
    let key = granted.keys.service_key(app.id, &service.name)?;
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
    set_api_host(variables, branding, host, &port);
    // Not part of the configuration that is compared: a renamed device is no reason to start anew.
    let mut at_init = BTreeMap::new();
    environment::default(&mut at_init, branding, "DEVICE_NAME_AT_INIT", &facts.name);
    at_init.retain(|name, _| !variables.contains_key(name));
    granted.init_environment.extend(at_init);
    Ok(())
}

fn platform_api(granted: &mut FeatureContext<'_>) -> Result<(), KeyError> {
    let Some(cloud) = &granted.facts.host.cloud else {
        let label = granted.facts.branding.label("features.platform-api");
        granted.warnings.push(format!(
            "`labels.{label}` has no effect: the device has no cloud"
        ));
        return Ok(());
    };
    let branding = &granted.facts.branding;
    let variables = &mut granted.config.environment;
    environment::force(variables, branding, "API_KEY", cloud.key.reveal());
    environment::force(variables, branding, "API_URL", &cloud.url);
    Ok(())
}

fn engine_socket(granted: &mut FeatureContext<'_>) -> Result<(), KeyError> {
    let Some(socket) = granted.facts.host.engine_socket.clone() else {
        let label = granted.facts.branding.label("features.platform-socket");
        granted.warnings.push(format!(
            "`labels.{label}` has no effect: this device has no container engine with a socket"
        ));
        return Ok(());
    };
    // The path is the engine's own view already, whatever the host root.
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
    Ok(())
}

fn board_revision(granted: &mut FeatureContext<'_>) -> Result<(), KeyError> {
    let host = &granted.facts.host;
    let known = [
        ("HOST_OS_BOARD_REV", &host.board_revision),
        ("HOST_OS_BUILD", &host.os_build),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            let variables = &mut granted.config.environment;
            environment::force(variables, &granted.facts.branding, name, value);
        }
    }
    Ok(())
}

fn set_api_host(
    variables: &mut BTreeMap<String, String>,
    branding: &Branding,
    host: &str,
    port: &str,
) {
    let address = format!("http://{host}:{port}");
    environment::force(variables, branding, "SUPERVISOR_HOST", host);
    environment::force(variables, branding, "SUPERVISOR_ADDRESS", &address);
}

/// Points a service's variables at the host's loopback instead of the bridge's gateway, if it has
/// the API's label; else nothing changes.
///
/// The kind of an image from a registry is known only once it is looked at, so a configuration is
/// resolved (and its digest taken) for the bridge. The wasm engine, whose services live on the host's
/// loopback, calls this on the environment that it hands to the service.
pub fn use_loopback_for_api(
    environment: &mut BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
    branding: &Branding,
) {
    if !has_supervisor_api(labels, branding) {
        return;
    }
    if let Some(port) = environment.get(&branding.env("SUPERVISOR_PORT")).cloned() {
        set_api_host(environment, branding, LOOPBACK, &port);
    }
}

//! Which fields of a container's request remain under its network mode and the version of its
//! engine.

use std::collections::{BTreeMap, HashMap};

use bollard::ClientVersion;
use bollard::models::NetworkingConfig;
use model::{NetworkAttachment, NetworkMode, PortMapping, ServiceConfig};

use super::super::connect::api_1;
use super::super::joins::endpoint;
use crate::{ContainerSpec, EngineError};

/// The warnings of one translation.
#[derive(Default)]
pub(super) struct OmittedFields {
    pub(super) warnings: Vec<String>,
}

impl OmittedFields {
    /// Returns `value`, unless it is set and the engine's API is older than 1.`minor`.
    pub(super) fn unless_since<T>(
        &mut self,
        version: ClientVersion,
        field: &str,
        minor: usize,
        value: Option<T>,
    ) -> Option<T> {
        if value.is_some() && version < api_1(minor) {
            self.warnings.push(format!(
                "`{field}` is ignored: this Docker engine has API {version}, and the field needs 1.{minor}"
            ));
            return None;
        }
        value
    }

    pub(super) fn beside_network_mode(&mut self, field: &str, mode: &str) {
        self.warnings.push(format!(
            "`{field}` is ignored: it has no meaning with network_mode `{mode}`"
        ));
    }
}

/// The effect of `network_mode`.
pub(super) struct Network {
    /// The mode in the engine's terms.
    pub(super) mode: String,
    /// The name of the mode in warnings.
    pub(super) name: String,
    /// The network that is joined at creation.
    pub(super) first: Option<String>,
    /// Whether the container has its own network stack, and may join networks.
    pub(super) joinable: bool,
    /// Whether the network stack is another container's, which then has all settings of the stack.
    shared: bool,
}

impl Network {
    pub(super) fn from_spec(spec: &ContainerSpec<'_>) -> Result<Self, EngineError> {
        let plain = |mode: &str, joinable| Network {
            mode: mode.to_owned(),
            name: mode.to_owned(),
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
                    name: format!("service:{service}"),
                    shared: true,
                    ..plain(&format!("container:{container}"), false)
                }
            }
        })
    }

    pub(super) fn at_creation(&self, config: &ServiceConfig) -> Option<NetworkingConfig> {
        let first = self.first.as_ref()?;
        let attachment = config.networks.get(first).cloned().unwrap_or_default();
        Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(first.clone(), endpoint(&attachment))])),
        })
    }

    pub(super) fn joins(
        &self,
        config: &ServiceConfig,
        left_out: &mut OmittedFields,
    ) -> BTreeMap<String, NetworkAttachment> {
        let mut joins = config.networks.clone();
        if let Some(first) = &self.first {
            joins.remove(first);
        }
        if !self.joinable && !joins.is_empty() {
            left_out.beside_network_mode("networks", &self.name);
            joins.clear();
        }
        joins
    }

    /// Returns `value`, unless it is set and concerns a network stack that belongs to another
    /// container.
    pub(super) fn own_stack<T>(
        &self,
        field: &str,
        value: Option<T>,
        left_out: &mut OmittedFields,
    ) -> Option<T> {
        if self.shared && value.is_some() {
            left_out.beside_network_mode(field, &self.name);
            return None;
        }
        value
    }

    pub(super) fn ports<'a>(&self, config: &'a ServiceConfig) -> &'a [PortMapping] {
        if self.joinable { &config.ports } else { &[] }
    }

    pub(super) fn own_ports<'a>(
        &self,
        config: &'a ServiceConfig,
        left_out: &mut OmittedFields,
    ) -> &'a [PortMapping] {
        if !self.joinable && !config.ports.is_empty() {
            left_out.beside_network_mode("ports", &self.name);
        }
        self.ports(config)
    }
}

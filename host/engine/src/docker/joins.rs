//! The networks, in addition to the first, that a container must join before it starts.
//!
//! The engine accepts one network when a container is created; the others are joined by separate
//! requests. A supervisor that is killed in between leaves a container that looks complete. So the
//! networks to join are recorded in a label of the container, and checked again before each start.

use std::collections::BTreeMap;

use bollard::models::{
    ContainerSummary, EndpointIpamConfig, EndpointSettings, NetworkConnectRequest,
};
use model::NetworkAttachment;

use super::Docker;
use super::connect::refusal;
use crate::EngineError;

/// The label's name, below the branding's namespace.
pub(super) const LABEL: &str = "joins";

pub(super) fn to_label(joins: &BTreeMap<String, NetworkAttachment>) -> String {
    serde_json::to_value(joins).unwrap_or_default().to_string()
}

/// Returns the engine's settings for one network that a container joins.
pub(super) fn endpoint(attachment: &NetworkAttachment) -> EndpointSettings {
    let set = |texts: &Vec<String>| (!texts.is_empty()).then(|| texts.clone());
    let has_address = attachment.ipv4_address.is_some()
        || attachment.ipv6_address.is_some()
        || !attachment.link_local_ips.is_empty();
    EndpointSettings {
        aliases: set(&attachment.aliases),
        ipam_config: has_address.then(|| EndpointIpamConfig {
            ipv4_address: attachment.ipv4_address.clone(),
            ipv6_address: attachment.ipv6_address.clone(),
            link_local_ips: set(&attachment.link_local_ips),
        }),
        ..Default::default()
    }
}

impl Docker {
    /// Joins the container to those networks in its label that it has not joined yet.
    pub(super) async fn join_missing(
        &self,
        container: &ContainerSummary,
    ) -> Result<(), EngineError> {
        let Some(id) = &container.id else {
            return Ok(());
        };
        let label = self.ownership.branding.label(LABEL);
        let Some(text) = container.labels.as_ref().and_then(|all| all.get(&label)) else {
            return Ok(());
        };
        let mut joins: BTreeMap<String, NetworkAttachment> =
            serde_json::from_str(text).map_err(|error| {
                EngineError::failed(format!("read the label `{label}` of `{id}`"), error)
            })?;
        if let Some(settings) = &container.network_settings
            && let Some(joined) = &settings.networks
        {
            joins.retain(|name, _| !joined.contains_key(name));
        }
        self.join(id, &joins).await
    }

    pub(super) async fn join(
        &self,
        container: &str,
        joins: &BTreeMap<String, NetworkAttachment>,
    ) -> Result<(), EngineError> {
        let api = self.api().await?;
        for (network, attachment) in joins {
            let request = NetworkConnectRequest {
                container: container.to_owned(),
                endpoint_config: Some(endpoint(attachment)),
            };
            let name = super::path_part("network's name", network)?;
            let Err(error) = api.connect_network(name, request).await else {
                continue;
            };
            match refusal(&error) {
                Some((404, _)) => {
                    return Err(EngineError::not_found(format!("the network `{network}`")));
                }
                // Two requests at once: the other one was first.
                Some((403, message)) if message.contains("already exists in network") => {}
                _ => {
                    let action = format!("join `{container}` to the network `{network}`");
                    return Err(self.failed(action, error));
                }
            }
        }
        Ok(())
    }
}

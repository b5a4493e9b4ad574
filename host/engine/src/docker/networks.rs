//! Networks. Their names are not unique in the engine, so every step works on the list of our
//! networks.

use async_trait::async_trait;
use bollard::models::{Ipam, IpamConfig, NetworkCreateRequest};
use bollard::query_parameters::ListNetworksOptions;
use http::Method;
use model::{CONFIG_DIGEST_LABEL, EngineKind, IpamPool, Network};

use super::connect::refusal;
use super::{Docker, Filters, path_part};
use crate::{EngineError, NetworkSpec, Networks};

#[async_trait]
impl Networks for Docker {
    async fn networks(&self) -> Result<Vec<Network>, EngineError> {
        let networks = self.find_networks(self.ours()).await?.into_iter();
        Ok(networks
            .filter(|network| self.ownership.covers(&network.labels))
            .collect())
    }

    async fn create_network(&self, spec: &NetworkSpec<'_>) -> Result<(), EngineError> {
        let name = path_part("network's name", spec.name)?;
        let digest = self.ownership.branding.label(CONFIG_DIGEST_LABEL);
        let config_digest = spec.config.labels.get(&digest);
        let existing = self.by_name(name, Filters::new()).await?;
        if !existing.is_empty() {
            let is_it = |network: &Network| {
                self.ownership.covers(&network.labels)
                    && network.labels.get(&digest) == config_digest
            };
            return if existing.iter().all(is_it) {
                Ok(())
            } else {
                Err(name_taken(name))
            };
        }
        let version = self.connection.client().await?.version;
        let action = || format!("create the network `{name}`");
        let mut body = serde_json::to_value(request(spec))
            .map_err(|error| EngineError::failed(action(), error))?;
        // Engines since API 1.44 do so by default.
        body["CheckDuplicate"] = true.into();
        let path = "/networks/create";
        let created = self
            .connection
            .send(version, Method::POST, path, Some(&body));
        created
            .await
            .map(drop)
            .map_err(|error| match refusal(&error) {
                Some((409, _)) => name_taken(name),
                Some((400, message)) => EngineError::Invalid(format!(
                    "the network `{name}` cannot be created: {}",
                    message.trim()
                )),
                _ => self.failed(action(), error),
            })
    }

    async fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        let api = self.api().await?;
        let networks = self.by_name(name, self.ours()).await?.into_iter();
        for network in networks.filter(|network| self.ownership.covers(&network.labels)) {
            let id = path_part("network's id", &network.id)?;
            let Err(error) = api.remove_network(id).await else {
                continue;
            };
            match refusal(&error) {
                Some((404, _)) => {}
                Some((403 | 409, message)) if message.contains("active endpoints") => {
                    return Err(EngineError::in_use(format!("the network `{name}`")));
                }
                _ => {
                    let action = format!("remove the network `{name}`");
                    return Err(self.failed(action, error));
                }
            }
        }
        Ok(())
    }
}

impl Docker {
    /// Returns the networks, without those that have no id or no name.
    async fn find_networks(&self, filters: Filters) -> Result<Vec<Network>, EngineError> {
        let options = ListNetworksOptions {
            filters: Some(filters),
        };
        let answer = self.api().await?.list_networks(Some(options)).await;
        let networks = answer.map_err(|error| self.failed("list the networks", error))?;
        Ok(networks
            .into_iter()
            .filter_map(network_from_docker)
            .collect())
    }

    /// Returns the networks of `filters` with exactly this name; the engine's own filter also
    /// matches parts of names.
    async fn by_name(&self, name: &str, mut filters: Filters) -> Result<Vec<Network>, EngineError> {
        filters.insert("name".into(), vec![name.to_owned()]);
        let mut networks = self.find_networks(filters).await?;
        networks.retain(|network| network.name == name);
        Ok(networks)
    }
}

fn request(spec: &NetworkSpec<'_>) -> NetworkCreateRequest {
    let config = spec.config;
    let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    NetworkCreateRequest {
        name: spec.name.to_owned(),
        driver: text(&config.driver),
        internal: Some(config.internal),
        config_only: config.config_only.then_some(true),
        enable_ipv6: Some(config.enable_ipv6),
        options: Some(config.driver_opts.clone().into_iter().collect()),
        labels: Some(config.labels.clone().into_iter().collect()),
        ipam: Some(Ipam {
            driver: text(&config.ipam_driver),
            config: Some(config.ipam.iter().map(pool).collect()),
            options: Some(config.ipam_options.clone().into_iter().collect()),
        }),
        ..Default::default()
    }
}

fn pool(pool: &IpamPool) -> IpamConfig {
    let aux = pool.aux_addresses.clone();
    IpamConfig {
        subnet: pool.subnet.clone(),
        gateway: pool.gateway.clone(),
        ip_range: pool.ip_range.clone(),
        auxiliary_addresses: (!aux.is_empty()).then(|| aux.into_iter().collect()),
    }
}

fn network_from_docker(network: bollard::models::Network) -> Option<Network> {
    Some(Network {
        engine: EngineKind::Docker,
        id: network.id?,
        name: network.name?,
        labels: network.labels.unwrap_or_default().into_iter().collect(),
    })
}

fn name_taken(name: &str) -> EngineError {
    EngineError::Conflict {
        what: format!("a network named `{name}`"),
        hint: format!(
            "it has another owner or configuration; if nothing needs it, remove it with `docker network rm {name}`"
        ),
    }
}

//! What containers, volumes and networks were made from, for an app that is to come back as it was while
//! its target has moved on. Written before each is made; forgotten when nothing of it is left.

use std::collections::{BTreeMap, BTreeSet};

use model::{DesiredNetwork, DesiredService, DesiredVolume, ServiceKey};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::Definition;

/// By subject and digest.
#[derive(Debug, Default)]
pub(crate) struct Definitions(BTreeMap<(String, String), Value>);

/// The definition of a service.
pub(crate) fn of_service(service: &DesiredService) -> serde_json::Result<Definition> {
    definition(service_subject(&service.key), &service.digest, service)
}

/// The definition of a volume.
pub(crate) fn of_volume(volume: &DesiredVolume) -> serde_json::Result<Definition> {
    definition(volume_subject(&volume.engine_name), &volume.digest, volume)
}

/// The definition of a network.
pub(crate) fn of_network(network: &DesiredNetwork) -> serde_json::Result<Definition> {
    let subject = network_subject(&network.engine_name);
    definition(subject, &network.digest, network)
}

fn definition(
    subject: String,
    digest: &str,
    value: &impl Serialize,
) -> serde_json::Result<Definition> {
    Ok(Definition {
        subject,
        digest: digest.to_owned(),
        value: serde_json::to_value(value)?,
    })
}

pub(crate) fn service_subject(key: &ServiceKey) -> String {
    format!("service {key}")
}

pub(crate) fn volume_subject(name: &str) -> String {
    format!("volume {name}")
}

pub(crate) fn network_subject(name: &str) -> String {
    format!("network {name}")
}

impl Definitions {
    pub(crate) fn put(&mut self, definition: Definition) {
        let Definition {
            subject,
            digest,
            value,
        } = definition;
        self.0.insert((subject, digest), value);
    }

    /// One that was made from this; `None` where it is not known, or cannot be read any more.
    pub(crate) fn get<T: DeserializeOwned>(&self, subject: String, digest: &str) -> Option<T> {
        let value = self.0.get(&(subject, digest.to_owned()))?;
        T::deserialize(value).ok()
    }

    /// Takes out all that is not in `needed`.
    pub(crate) fn take_others(
        &mut self,
        needed: &BTreeSet<(String, String)>,
    ) -> Vec<(String, String)> {
        let keys = self.0.keys().filter(|key| !needed.contains(*key));
        let gone: Vec<_> = keys.cloned().collect();
        for key in &gone {
            self.0.remove(key);
        }
        gone
    }
}

impl FromIterator<Definition> for Definitions {
    fn from_iter<I: IntoIterator<Item = Definition>>(all: I) -> Self {
        let mut definitions = Definitions::default();
        for definition in all {
            definitions.put(definition);
        }
        definitions
    }
}

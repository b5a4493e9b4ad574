//! The definitions from which containers, volumes and networks were created, for an app that must be restored to its
//! previous state after its target has changed. Each is written before the object is created, and forgotten when
//! nothing of it is left.

use std::collections::{BTreeMap, BTreeSet};

use model::{DesiredService, ServiceKey};
use plan::{ComponentKind, DesiredComponent};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::Definition;

/// By subject and digest.
#[derive(Debug, Default)]
pub(crate) struct Definitions(BTreeMap<(String, String), Value>);

/// Returns the definition of a service.
pub(crate) fn define_service(service: &DesiredService) -> serde_json::Result<Definition> {
    definition(service_subject(&service.key), &service.digest, service)
}

/// Returns the definition of a volume or network.
pub(crate) fn define_component(component: &DesiredComponent) -> serde_json::Result<Definition> {
    let subject = component_subject(component.kind(), component.engine_name());
    match component {
        DesiredComponent::Volume(volume) => definition(subject, &volume.digest, volume),
        DesiredComponent::Network(network) => definition(subject, &network.digest, network),
    }
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

pub(crate) fn component_subject(kind: ComponentKind, name: &str) -> String {
    format!("{kind} {name}")
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

    /// Returns the definition with this digest; `None` if it is unknown or can no longer be read.
    pub(crate) fn get<T: DeserializeOwned>(&self, subject: String, digest: &str) -> Option<T> {
        let value = self.0.get(&(subject, digest.to_owned()))?;
        T::deserialize(value).ok()
    }

    /// Removes and returns all definitions that are not in `needed`.
    pub(crate) fn take_others(
        &mut self,
        needed: &BTreeSet<(String, String)>,
    ) -> Vec<(String, String)> {
        let keys = self.0.keys().filter(|key| !needed.contains(*key));
        let unused: Vec<_> = keys.cloned().collect();
        for key in &unused {
            self.0.remove(key);
        }
        unused
    }
}

impl FromIterator<Definition> for Definitions {
    fn from_iter<I: IntoIterator<Item = Definition>>(all: I) -> Self {
        let mut definitions = Definitions::default();
        all.into_iter().for_each(|it| definitions.put(it));
        definitions
    }
}

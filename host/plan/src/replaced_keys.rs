//! Services that have replaced their key to the API, while their container still has the one before.

use std::collections::{BTreeMap, BTreeSet};

use model::{CurrentService, ServiceKey};

/// Digests of configurations that differ from the target's in the service's key alone. A container that was made from
/// one of them stays until the next update (docs/spec/device.md#keys-regenerate).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplacedKeys(BTreeMap<ServiceKey, BTreeSet<String>>);

impl ReplacedKeys {
    /// Records the digest that a service's configuration had with the previous key. Of those that were recorded
    /// earlier the ones `in_use` stay: a service that replaces its key over and over costs no memory.
    pub fn note(&mut self, service: ServiceKey, digest: String, in_use: &BTreeSet<String>) {
        let digests = self.0.entry(service).or_default();
        digests.retain(|noted| in_use.contains(noted));
        digests.insert(digest);
    }

    /// Whether a container was made with a key that its service has replaced.
    #[must_use]
    pub fn concern(&self, container: &CurrentService) -> bool {
        let digest = container.digest.as_deref();
        digest.is_some_and(|digest| self.contain(&container.key, digest))
    }

    /// Whether a service's configuration with this digest has a key that was replaced.
    #[must_use]
    pub fn contain(&self, service: &ServiceKey, digest: &str) -> bool {
        let digests = self.0.get(service);
        digests.is_some_and(|digests| digests.contains(digest))
    }

    /// Removes all records: an update gives every service its current key.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

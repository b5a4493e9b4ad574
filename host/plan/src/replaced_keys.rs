//! Services that have replaced their API key while their container still has the previous one.

use std::collections::{BTreeMap, BTreeSet};

use model::{CurrentService, ServiceKey};

/// Digests of configurations that differ from the target's only in the service's API key. A container that was created
/// from one of them stays until the next update (docs/spec/device.md#keys-regenerate).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplacedKeys {
    digests: BTreeMap<ServiceKey, BTreeSet<String>>,
    /// Whether that update has begun.
    are_due: bool,
}

impl ReplacedKeys {
    /// Records the digest that a service's configuration had with the previous key. Of the earlier digests, only those
    /// `in_use` are kept, so a service that replaces its key again and again costs no memory.
    pub fn note(&mut self, service: ServiceKey, digest: String, in_use: &BTreeSet<String>) {
        let digests = self.digests.entry(service).or_default();
        digests.retain(|noted| in_use.contains(noted));
        digests.insert(digest);
    }

    /// Returns whether a container was created with a key that its service has replaced since.
    #[must_use]
    pub fn concerns(&self, container: &CurrentService) -> bool {
        let digest = container.digest.as_deref();
        digest.is_some_and(|digest| self.contain(&container.key, digest))
    }

    /// Returns whether a service's configuration with this digest has a key that was replaced.
    #[must_use]
    pub fn contain(&self, service: &ServiceKey, digest: &str) -> bool {
        let digests = self.digests.get(service);
        digests.is_some_and(|digests| digests.contains(digest))
    }

    /// Returns whether containers with a replaced key must be recreated.
    pub(crate) fn are_due(&self) -> bool {
        self.are_due
    }

    /// Begins the next update, but keeps the records, so that they are the reason for its steps.
    pub(crate) fn begin_update(&mut self) {
        self.are_due = true;
    }

    /// Removes all records: an update gives every service its current key.
    pub fn clear(&mut self) {
        *self = ReplacedKeys::default();
    }
}

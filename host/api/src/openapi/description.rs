//! The description as `GET /v3/openapi.json` sends it.

use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use device_types::PluginRoutes;
use serde_json::Value;

use crate::cached_json::CachedJson;

/// A function that returns the document for an API level and the routes of plugins.
type Describe = fn(&str, Vec<PluginRoutes>) -> Value;

/// The description, serialized once for each set of plugins. The set is identified by its hash: the plugins' own
/// descriptions are large, and need not stay in memory.
pub(crate) struct Description {
    describe: Describe,
    json: CachedJson<u64>,
    hasher: RandomState,
}

impl Description {
    /// Creates the description that `describe` returns. It is an argument, because it reads all routes, and this type is
    /// part of the state of their handlers.
    pub(crate) fn new(describe: Describe) -> Self {
        Description {
            describe,
            json: CachedJson::default(),
            hasher: RandomState::default(),
        }
    }

    /// Returns the document with these plugins, serialized.
    pub(crate) fn document(&self, level: &str, plugins: Vec<PluginRoutes>) -> Bytes {
        let version = self.hasher.hash_one(&plugins);
        self.json.get(version, |_| {
            (self.describe)(level, plugins).to_string().into()
        })
    }
}

//! The newest version of each plugin that was loaded because of a signature. Anyone with an old signed file could
//! otherwise bring back its faults: a signature alone therefore does not take a device back to an older version, even
//! after a restart. A digest in the policy does.

use std::collections::BTreeMap;
use std::sync::Arc;

use plugin_manifest::Manifest;
use semver::Version;
use tokio_util::task::TaskTracker;

use crate::config::{PluginData, ValueChange};

/// The key under which a version is stored.
const KEY: &str = "newest-version";

/// The versions by plugin: they are in the store of plugins, at a place that no plugin can reach.
pub(crate) struct NewestVersions {
    data: Arc<dyn PluginData>,
    versions: BTreeMap<String, Version>,
    writes: TaskTracker,
}

impl NewestVersions {
    /// Creates an empty record, whose writes to `data` are tracked with `writes`.
    pub(crate) fn new(data: Arc<dyn PluginData>, writes: TaskTracker) -> NewestVersions {
        NewestVersions {
            data,
            versions: BTreeMap::new(),
            writes,
        }
    }

    /// Adds the result of [`stored_version`] for a plugin.
    pub(crate) fn learn(&mut self, plugin: &str, stored: Option<Version>) {
        if let Some(stored) = stored
            && self.is_newer(plugin, &stored)
        {
            self.versions.insert(plugin.to_owned(), stored);
        }
    }

    /// Returns the newest version of a plugin that was loaded because of a signature.
    pub(crate) fn version(&self, plugin: &str) -> Option<&Version> {
        self.versions.get(plugin)
    }

    /// Records a version that was loaded because of a signature. Must be called in a tokio runtime, and does not wait.
    pub(crate) fn loaded(&mut self, manifest: &Manifest) {
        if !self.is_newer(&manifest.name, &manifest.version) {
            return;
        }
        let (name, version) = (manifest.name.clone(), manifest.version.clone());
        self.versions.insert(name.clone(), version.clone());
        let data = Arc::clone(&self.data);
        self.writes.spawn_blocking(move || {
            let version = version.to_string();
            let change = ValueChange::set(version.as_bytes());
            if let Err(error) = data.change(&owner(&name), KEY, &change) {
                tracing::warn!(
                    plugin = name,
                    "failed to store that version {version} of the plugin `{name}` was accepted; after a restart an older version could be loaded: {error}"
                );
            }
        });
    }

    fn is_newer(&self, plugin: &str, version: &Version) -> bool {
        let newest = self.versions.get(plugin);
        newest.is_none_or(|newest| version.cmp_precedence(newest).is_gt())
    }
}

/// Returns the stored version of a plugin. May wait for the disk.
///
/// # Errors
/// If the store cannot be read, in words.
pub(crate) fn stored_version(
    data: &dyn PluginData,
    plugin: &str,
) -> Result<Option<Version>, String> {
    let value = data
        .get(&owner(plugin), KEY)
        .map_err(|error| format!("it is not known whether a newer version ran before: {error}"))?;
    let text = value.and_then(|value| String::from_utf8(value).ok());
    Ok(text.and_then(|text| Version::parse(&text).ok()))
}

/// Returns the owner of the data: no manifest can claim such a name.
fn owner(plugin: &str) -> String {
    format!("{plugin} (host)")
}

#[cfg(test)]
mod tests {
    use crate::config::DataError;

    use super::*;

    /// Stores one value; `None` if it is broken.
    #[derive(Default)]
    struct OneValue(std::sync::Mutex<Option<Vec<u8>>>);

    impl PluginData for OneValue {
        fn get(&self, plugin: &str, _: &str) -> Result<Option<Vec<u8>>, DataError> {
            match plugin {
                "broken (host)" => Err(DataError::Other("the store failed".to_owned())),
                _ => Ok(self.0.lock().unwrap().clone()),
            }
        }

        fn change(&self, _: &str, _: &str, change: &ValueChange<'_>) -> Result<bool, DataError> {
            *self.0.lock().unwrap() = change.value.map(<[u8]>::to_owned);
            Ok(true)
        }

        fn delete(&self, _: &str, _: &str) -> Result<(), DataError> {
            Ok(())
        }

        fn keys(&self, _: &str, _: &str) -> Result<Vec<String>, DataError> {
            Ok(Vec::new())
        }
    }

    fn version(version: &str) -> Manifest {
        Manifest::parse(&format!(
            "name = \"a\"\nversion = \"{version}\"\ninterface = \"1.0.0\"\nprovides = [\"identify\"]"
        ))
        .unwrap()
    }

    #[tokio::test]
    async fn the_newest_version_is_the_one_of_the_highest_precedence() {
        let mut newest = NewestVersions::new(Arc::new(OneValue::default()), TaskTracker::new());
        assert_eq!(newest.version("a"), None);
        for (loaded, expected) in [
            ("0.1.0", "0.1.0"),
            ("1.2.0", "1.2.0"),
            ("1.1.9", "1.2.0"),
            ("1.2.0-rc1", "1.2.0"),
            ("1.10.0", "1.10.0"),
        ] {
            newest.loaded(&version(loaded));
            let newest = newest.version("a").map(Version::to_string);
            assert_eq!(newest.as_deref(), Some(expected), "{loaded}");
        }
    }

    #[test]
    fn an_unreadable_record_does_not_count_as_a_first_version() {
        let data = OneValue(std::sync::Mutex::new(Some(b"1.2.0".to_vec())));
        assert_eq!(stored_version(&data, "a"), Ok(Some(Version::new(1, 2, 0))));
        assert!(
            stored_version(&data, "broken")
                .unwrap_err()
                .contains("is not known")
        );
        let data = OneValue(std::sync::Mutex::new(Some(b"\xff".to_vec())));
        assert_eq!(stored_version(&data, "a"), Ok(None));
    }
}

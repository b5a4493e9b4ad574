//! The capability `store`: the supervisor's own store, in the test's temporary folder.

use std::fmt::Display;

use plugins::{DataError, PluginData};
use store::{PluginDataError, Store};

pub(crate) struct Data(pub(crate) Store);

impl PluginData for Data {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, DataError> {
        self.0.plugin_get(plugin, key).map_err(refused)
    }

    fn set(&self, plugin: &str, key: &str, value: &[u8]) -> Result<(), DataError> {
        self.0.plugin_set(plugin, key, value).map_err(refused)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<(), DataError> {
        self.0.plugin_delete(plugin, key).map_err(failed)
    }

    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, DataError> {
        self.0.plugin_keys(plugin, prefix).map_err(failed)
    }
}

fn refused(error: PluginDataError) -> DataError {
    match error {
        PluginDataError::TooLarge(text) => DataError::TooLarge(text),
        other => failed(other),
    }
}

fn failed(error: impl Display) -> DataError {
    DataError::Other(error.to_string())
}

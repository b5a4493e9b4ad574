//! The journal's storage, which an image of the operating system chooses by a key of `config.json`.

use model::error_chain;
use serde_json::Value;

use super::HostSettings;

/// The key of `config.json` from which an image of the operating system reads whether its journal is persistent.
const PERSISTENT_LOGGING: &str = "persistentLogging";

impl HostSettings {
    /// Returns whether the host keeps its journal.
    pub(super) async fn persistent_logging(&self) -> Result<bool, String> {
        let config = self.config_json.clone();
        let read = tokio::task::spawn_blocking(move || config.get(PERSISTENT_LOGGING)).await;
        let value = read.map_err(|error| error.to_string())?;
        let value = value.map_err(|error| error_chain(&error))?;
        Ok(value.is_some_and(|value| model::truthy(&value)))
    }

    /// Changes whether the host keeps its journal, from its next boot on.
    pub(super) async fn set_persistent_logging(&self, is_persistent: bool) -> Result<(), String> {
        if self.persistent_logging().await? == is_persistent {
            return Ok(());
        }
        self.require_reboot().await?;
        let config = self.config_json.clone();
        let update = move || {
            config
                .update(|map| map.insert(PERSISTENT_LOGGING.to_owned(), Value::from(is_persistent)))
        };
        let written = tokio::task::spawn_blocking(update).await;
        let written = written.map_err(|error| error.to_string())?;
        written.map_err(|error| error_chain(&error))?;
        Ok(())
    }
}

//! Plugins as a supervisor would load them, if none is running: they are compiled and linked, but none is called.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use plugins::{DataError, HostServices, Identity, Plugins, SourceFile, ValueChange};
use serde_json::Value;

use crate::configuration::Configuration;
use crate::facts::Board;
use crate::host::Host;
use crate::{parts, walls};

/// The plugins that a supervisor would load.
pub(crate) struct OfflinePlugins {
    /// The problem with the policy.
    pub(crate) policy_error: Option<String>,
    /// As in `GET /v3/plugins`.
    pub(crate) plugins: Vec<Value>,
}

/// Loads the plugins as `supervisor run` would. The code that it compiles is discarded, since the state folder may not
/// exist or may not be writable for us.
///
/// # Errors
/// If plugins cannot be loaded at all.
pub(crate) fn load(configuration: &Configuration) -> Result<OfflinePlugins> {
    let scratch = scratch()?;
    let rule = walls::rule(configuration);
    let cache = walls::cache(configuration, scratch.path(), &rule)?;
    let data = StoredValues::new(&configuration.state_dir);
    let mut configuration = configuration.clone();
    configuration.state_dir = scratch.path().to_owned();
    let board = Board::read(&configuration.device_type, &configuration.host_root);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let plugin_runtime = parts::plugin_runtime(&configuration, rule);
        let host = Host::new(&configuration);
        let config = parts::plugins_config(
            &configuration,
            cache,
            plugin_runtime.clone(),
            HostServices {
                os: host.os,
                journal: host.journal,
                data: Arc::new(data),
                device: Arc::new(StoppedDevice(board)),
                locks: Arc::new(plugins::UnavailableService),
                host_name: Arc::new(plugins::UnavailableService),
                http: Arc::new(plugins::UnavailableService),
                api: Arc::new(plugins::UnavailableService),
                gpio: Arc::new(plugins::UnavailableService),
                i2c: Arc::new(plugins::UnavailableService),
                cloud: Arc::new(plugins::NoCloud),
            },
        );
        let plugins = Plugins::start(config)?;
        plugins.wait_until_loaded().await;
        let reports = plugins.report();
        let reports: Result<Vec<Value>, _> = reports.iter().map(serde_json::to_value).collect();
        let loaded = OfflinePlugins {
            policy_error: plugins.policy_error(),
            plugins: reports?,
        };
        plugins.shutdown().await;
        plugin_runtime.stop().await;
        Ok(loaded)
    })
}

/// Loads the plugin in `source` and no other, with this text as the policy. Returns why a supervisor would refuse it;
/// `None` if it would not.
///
/// # Errors
/// If plugins cannot be loaded at all.
pub(crate) fn refusal(
    configuration: &Configuration,
    source: &SourceFile,
    policy: &str,
) -> Result<Option<String>> {
    let scratch = scratch()?;
    let folder = scratch.path().join("plugins");
    let mut configuration = configuration.clone();
    configuration.policy = scratch.path().join("policy.toml");
    fs::create_dir(&folder)
        .and_then(|()| source.copy_into(&folder))
        .and_then(|()| fs::write(&configuration.policy, policy))
        .with_context(|| format!("failed to write into `{}`", scratch.path().display()))?;
    configuration.plugin_dirs = vec![folder];
    let loaded = load(&configuration)?;
    let refused = loaded.plugins.first().and_then(|plugin| {
        let reason = plugin["refused"].as_str()?;
        Some(reason.to_owned())
    });
    Ok(loaded.policy_error.or(refused))
}

fn scratch() -> Result<tempfile::TempDir> {
    tempfile::tempdir().context("failed to make a temporary folder")
}

/// The board of a device that does not run: enough to determine which plugins are for it.
struct StoppedDevice(Board);

impl plugins::Device for StoppedDevice {
    fn identity(&self) -> Identity {
        Identity {
            uuid: "0".repeat(32),
            name: crate::device::UNNAMED.to_owned(),
            device_type: self.0.device_type.clone(),
            arch: self.0.arch.clone(),
        }
    }

    fn state(&self) -> Value {
        Value::Null
    }
}

/// The stored values of plugins that are not called: they are read, and do not change.
pub(crate) struct StoredValues {
    state_dir: PathBuf,
}

impl StoredValues {
    /// Creates the values in the store of this state folder, which another process may be using.
    pub(crate) fn new(state_dir: &Path) -> StoredValues {
        StoredValues {
            state_dir: state_dir.to_owned(),
        }
    }
}

impl plugins::PluginData for StoredValues {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, DataError> {
        store::read_plugin_value(&self.state_dir, plugin, key)
            .map_err(|error| DataError::Other(model::error_chain(&error)))
    }

    fn change(&self, _: &str, _: &str, _: &ValueChange<'_>) -> Result<bool, DataError> {
        Err(DataError::Other("the supervisor is not running".into()))
    }

    fn delete(&self, _: &str, _: &str) -> Result<(), DataError> {
        Err(DataError::Other("the supervisor is not running".into()))
    }

    fn keys(&self, _: &str, _: &str) -> Result<Vec<String>, DataError> {
        Ok(Vec::new())
    }
}

//! The boot configuration (`wit/boot-config.wit`) and the operating system (`wit/os-update.wit`) of a board.

use serde::{Deserialize, Serialize};

/// A setting of a boot configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BootSetting {
    /// Its key: the name of a variable of the target state without the cloud's prefix, such as `HOST_CONFIG_gpu_mem`.
    pub name: String,
    /// Its text.
    pub value: String,
}

impl From<(&str, &str)> for BootSetting {
    /// Creates a setting from its key and its text.
    fn from((name, value): (&str, &str)) -> BootSetting {
        BootSetting {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }
}

/// The difference between a boot configuration and the requested settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BootComparison {
    /// The settings that differ, by name.
    #[serde(with = "crate::bounded_list")]
    pub changes: Vec<String>,
    /// Settings that cannot be written, and why. While there are any, nothing is written.
    #[serde(with = "crate::bounded_list")]
    pub refused: Vec<(String, String)>,
    /// Settings that have no meaning on this board.
    #[serde(with = "crate::bounded_list")]
    pub foreign: Vec<String>,
    /// The changes take effect with the next boot.
    pub needs_reboot: bool,
}

/// A function of `wit/os-update.wit`. As text, it has the name that the function has there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the functions of `wit/os-update.wit`, by their names"
)]
pub enum OsCall {
    Status,
    Stage { source: String, version: String },
    Activate,
    Commit,
    RollBack,
}

/// The status of an operating system with two places to boot from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsStatus {
    /// The running version.
    pub running: String,
    /// The version that is completely installed in the other place.
    pub staged: Option<String>,
    /// Whether the running version stays.
    pub committed: bool,
    /// The progress of a running installation, in percent.
    pub installing: Option<u8>,
    /// The reason why the last installation failed.
    pub failure: Option<String>,
}

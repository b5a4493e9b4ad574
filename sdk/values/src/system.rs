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

//! The boot configuration of boards whose firmware reads `config.txt`: the stock provider of `boot-config`.
//!
//! A variable `HOST_CONFIG_KEY` of the target is the setting `KEY=VALUE`, for every board of the kind: lines
//! below a filter such as `[pi4]` belong only to their author. [`config_txt`] describes the whole file, and
//! [`settings`] the allowed values.

mod compare;
mod config_txt;
mod settings;

use std::path::Path;

use supervisor_sdk::boot_config::{Comparison, Provider, Setting};
use supervisor_sdk::{folder, log, plugin};

use crate::compare::compare;
use crate::config_txt::ConfigTxt;

plugin! {
    capabilities: { files => "keeps the settings of the firmware in config.txt of the boot partition" }
    boot_config => Firmware,
    boards: [
        "raspberry*", "rpi*", "fincm3", "rt-rpi-300", "243390-rpi3", "nebra-hnt", "npe-x500-m3", "revpi-*",
    ]
    // One at a time: two would write to the same file.
    limits: { concurrency: 1, wall_ms: 30000 }
}

/// The folder of the boot partition, as set by the policy.
const FOLDER: &str = "/boot";
const FILE: &str = "config.txt";
/// The file before its last change.
const BACKUP: &str = "config.txt.before";

struct Firmware;

impl Provider for Firmware {
    async fn get() -> Result<Vec<Setting>, String> {
        let file = ConfigTxt::parse(&read()?);
        let settings = file.settings().into_iter();
        Ok(settings
            .map(|(key, values)| settings::to_variable(&key, &values))
            .collect())
    }

    async fn compare(target: Vec<Setting>) -> Result<Comparison, String> {
        Ok(compare(&read()?, target).0)
    }

    async fn set(target: Vec<Setting>) -> Result<Comparison, String> {
        let before = read()?;
        let (comparison, after) = compare(&before, target);
        if comparison.refused.is_empty() && !comparison.changes.is_empty() {
            let folder = Path::new(FOLDER);
            folder::write(folder, BACKUP, &before)?;
            folder::write(folder, FILE, &after)?;
            log::info(format_args!(
                "`{FILE}` was changed: {}",
                comparison.changes.join(", ")
            ));
        }
        Ok(comparison)
    }
}

/// Reads the file. Without one, a board has the firmware's own settings.
fn read() -> Result<Vec<u8>, String> {
    Ok(folder::read(Path::new(FOLDER), FILE)?.unwrap_or_default())
}

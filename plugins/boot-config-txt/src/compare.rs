//! Compares the file with its target.

use std::collections::{BTreeMap, BTreeSet};

use supervisor_sdk::boot_config::{Comparison, Refusal, Setting};

use crate::config_txt::ConfigTxt;
use crate::settings::{self, PREFIX};

/// Compares the file with the target; returns also what the changed file would contain.
pub(crate) fn compare(file: &[u8], target: Vec<Setting>) -> (Comparison, Vec<u8>) {
    let mut comparison = Comparison::default();
    let mut settings_by_key = BTreeMap::new();
    for setting in target {
        let Some(key) = setting.name.strip_prefix(PREFIX) else {
            comparison.foreign.push(setting.name);
            continue;
        };
        match settings::values(key, &setting.value) {
            Ok(values) => {
                settings_by_key.insert(key.to_owned(), values);
            }
            Err(why) => comparison.refused.push(Refusal::new(&setting.name, why)),
        }
    }
    let file = ConfigTxt::parse(file);
    let next = file.with(&settings_by_key);
    let (before, after) = (file.settings(), ConfigTxt::parse(&next).settings());
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        if before.get(key) == after.get(key) {
            continue;
        }
        let name = format!("{PREFIX}{key}");
        if settings::is_forbidden(key) {
            let why = format!("`{key}` decides what the device boots, and cannot be changed");
            comparison.refused.push(Refusal::new(&name, why));
        }
        comparison.changes.push(name);
    }
    // The firmware reads the file once, before anything else runs.
    comparison.needs_reboot = !comparison.changes.is_empty();
    (comparison, next)
}

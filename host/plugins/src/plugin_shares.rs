//! What all plugins share, and the share of each.

use std::collections::HashMap;

use os::{Journal, JournalShare};
use parking_lot::Mutex;

use crate::blocking::BlockingShare;
use crate::log_lines::{LogShare, PluginLogs};
use crate::plugin_fields::FieldBudget;

/// What all plugins share.
pub(crate) struct PluginShares {
    logs: PluginLogs,
    journal: Journal,
    pub(crate) fields: FieldBudget,
    /// By the names of plugins. They stay: a plugin that is removed may still have work in progress when it comes back.
    by_name: Mutex<HashMap<String, PluginShare>>,
}

/// What one plugin may use of it, over all its versions: while a version is replaced, calls of both use the same share.
/// Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct PluginShare {
    /// The lines that it may write to the log, those that it may cause there, and the place for its last ones.
    pub(crate) log: LogShare,
    /// Its jobs that may wait for the disk or for hardware.
    pub(crate) jobs: BlockingShare,
    /// Its readers of the host's journal.
    pub(crate) journal: JournalShare,
}

impl PluginShares {
    pub(crate) fn new(logs: PluginLogs, journal: Journal) -> PluginShares {
        PluginShares {
            logs,
            journal,
            fields: FieldBudget::default(),
            by_name: Mutex::default(),
        }
    }

    /// Returns the share of the plugin with this name.
    pub(crate) fn of(&self, plugin: &str) -> PluginShare {
        let mut by_name = self.by_name.lock();
        if let Some(share) = by_name.get(plugin) {
            return share.clone();
        }
        let share = PluginShare {
            log: self.logs.share(),
            jobs: BlockingShare::default(),
            journal: self.journal.share(),
        };
        by_name.insert(plugin.to_owned(), share.clone());
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_versions_of_a_plugin_use_one_share() {
        let journal = Journal::new("journalctl", "/");
        let shares = PluginShares::new(PluginLogs::default(), journal);
        let [replaced, new, other] = ["acme", "acme", "other"].map(|name| shares.of(name));
        assert!(new.jobs.is_shared_with(&replaced.jobs));
        assert!(!other.jobs.is_shared_with(&replaced.jobs));
        while replaced.log.lines.take("acme") {}
        assert!(!new.log.lines.take("acme"));
        assert!(other.log.lines.take("other"));
    }
}

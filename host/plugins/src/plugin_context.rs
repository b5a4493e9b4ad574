//! The host's data for one version of a plugin.

use std::borrow::Cow;
use std::sync::Arc;

use plugin_manifest::{Manifest, Pattern};
use plugin_protocol::{Blueprint, FolderView, Limits};

use crate::config::HostServices;
use crate::hardware::Hardware;
use crate::pins::Pin;
use crate::plugin_fields::PluginFields;
use crate::plugin_metrics::PluginMetrics;
use crate::plugin_shares::PluginShare;
use crate::policy::Grants;

/// The data that all instances of one version of a plugin share.
pub(crate) struct PluginContext {
    /// The plugin's name.
    pub(crate) name: Arc<str>,
    /// Its own configuration as JSON.
    pub(crate) config: String,
    /// Its grants from the policy.
    pub(crate) grants: Grants,
    /// Whether the device is in developer mode: callers then get the messages for the plugin's author.
    pub(crate) is_developers: bool,
    /// What it may use of what all plugins share.
    pub(crate) share: PluginShare,
    pub(crate) services: Arc<HostServices>,
    /// Its metrics for `GET /metrics`.
    pub(crate) metrics: PluginMetrics,
    /// Its fields in the device's report to its cloud.
    pub(crate) fields: PluginFields,
    pub(crate) hardware: Hardware,
}

impl PluginContext {
    /// Returns the blueprint of its instances, with the limits of each call.
    pub(crate) fn blueprint(&self, manifest: &Manifest, limits: &Limits) -> Blueprint {
        let folders = self.grants.files.iter();
        Blueprint {
            name: self.name.to_string(),
            config: self.config.clone(),
            grants: self.grants.grants.clone(),
            limits: limits.clone(),
            base_path: manifest.base_path.as_ref().map(Pattern::to_string),
            folders: folders
                .map(|folder| FolderView {
                    host: folder.host.clone(),
                    guest: folder.guest.clone(),
                    write: folder.write,
                    // A folder to be created exists by now, or could not be created.
                    optional: folder.optional || folder.create,
                })
                .collect(),
        }
    }

    /// Returns whether the host may log a line about something that the plugin makes it do, or that its callers make it
    /// do, as often as they call it.
    pub(crate) fn may_log(&self) -> bool {
        self.share.log.host_lines.take(&self.name)
    }

    /// Returns the owner of the stored data that the plugin reads and writes: a pinned file's data is not accessible to
    /// an unpinned one.
    pub(crate) fn data_owner(&self) -> Cow<'_, str> {
        if self.grants.pin == Pin::None {
            // No manifest can claim such a name.
            Cow::Owned(format!("{} (unpinned)", self.name))
        } else {
            Cow::Borrowed(&self.name)
        }
    }
}

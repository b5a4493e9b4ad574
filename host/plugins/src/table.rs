//! Which plugin serves what, and the state of each file.

mod entry;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device_types::{PluginField, PluginReport, PluginRoutes, PluginState, PluginStats};
use http::Method;
use plugin_manifest::{Action, EventKind};

use crate::gpio_grants::GpioGrant;
use crate::loaded::LoadedPlugin;
use crate::route_match::{RouteLookup, RouteMatch};
use crate::routes::{Lookup, Routes};

pub(crate) use entry::{Entry, FileStanding, UnservedContent};

use report::{name, report};

/// Which plugin serves what.
pub(crate) struct Table {
    pub(crate) routes: Routes<Arc<LoadedPlugin>>,
    /// Which plugin provides which action.
    pub(crate) providers: BTreeMap<Action, Arc<LoadedPlugin>>,
    /// By file.
    pub(crate) entries: BTreeMap<PathBuf, Entry>,
    pub(crate) policy: PolicyStanding,
    /// Plugins of the layout that cannot be loaded for reasons other than the policy, in sentences.
    pub(crate) stock_problems: Vec<String>,
    /// The routes of plugins that are being loaded, with their names.
    pub(crate) expected_routes: Routes<Arc<str>>,
    /// The actions that those plugins provide.
    pub(crate) expected_actions: BTreeSet<Action>,
    /// Whether there are files whose contents are not known yet.
    pub(crate) is_unread: bool,
}

/// Whether the current policy files are in force.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) enum PolicyStanding {
    #[default]
    Valid,
    /// They are invalid, and the previously read ones stay in force.
    OlderInForce { error: String },
    /// They have been invalid since the start: no plugin has what it needs.
    Missing { error: String },
}

impl PolicyStanding {
    /// Returns what is wrong with the files, and what is in force instead.
    pub(crate) fn error(&self) -> Option<String> {
        match self {
            PolicyStanding::Valid => None,
            PolicyStanding::OlderInForce { error } => {
                Some(format!("{error}; the previous policy stays in force"))
            }
            PolicyStanding::Missing { error } => Some(format!("{error}; no policy is in force")),
        }
    }
}

impl Table {
    pub(crate) fn empty() -> Table {
        Table {
            routes: Routes::new(),
            providers: BTreeMap::new(),
            entries: BTreeMap::new(),
            policy: PolicyStanding::Valid,
            stock_problems: Vec::new(),
            expected_routes: Routes::new(),
            expected_actions: BTreeSet::new(),
            is_unread: false,
        }
    }

    /// Creates the table of a device that is starting.
    pub(crate) fn unread() -> Table {
        Table {
            is_unread: true,
            ..Table::empty()
        }
    }

    /// Finds the plugin that answers `method` on `path`, or may once it is loaded.
    pub(crate) fn find(&self, method: &Method, path: &str) -> RouteLookup {
        let served = self.routes.find(method, path);
        let expected = match (&served, self.expected_routes.find(method, path)) {
            (Lookup::Route { .. }, _) => None,
            (_, Lookup::Route { plugin, .. }) => Some(Some(plugin.to_string())),
            // Its other methods are expected; which plugin they belong to does not matter.
            (Lookup::None, Lookup::MethodNotAllowed(_)) => Some(None),
            _ => self.is_unread.then_some(None),
        };
        if let Some(plugin) = expected {
            return RouteLookup::Loading { plugin };
        }
        match served {
            Lookup::Route {
                plugin,
                route,
                params,
            } => RouteLookup::Route(RouteMatch {
                plugin: Arc::clone(plugin),
                route,
                params,
            }),
            Lookup::MethodNotAllowed(methods) => RouteLookup::MethodNotAllowed { methods },
            Lookup::None => RouteLookup::None,
        }
    }

    /// Returns the plugins that serve.
    pub(crate) fn serving(&self) -> impl Iterator<Item = &Arc<LoadedPlugin>> {
        self.entries
            .values()
            .filter_map(|entry| entry.serving.as_ref())
    }

    /// Returns the GPIO lines that the policy grants to the serving plugins, each with the plugin's name.
    pub(crate) fn gpio_lines(&self) -> impl Iterator<Item = (Arc<str>, GpioGrant)> {
        self.serving().flat_map(|plugin| {
            let context = &plugin.context;
            let lines = context.grants.gpio.iter().cloned();
            lines.map(|line| (Arc::clone(&context.name), line))
        })
    }

    /// Returns whether a plugin of this name serves, even in an older version.
    pub(crate) fn serves(&self, name: &str) -> bool {
        self.serving().any(|plugin| plugin.manifest.name == name)
    }

    /// Returns whether something is being loaded.
    pub(crate) fn is_loading(&self) -> bool {
        let others = self
            .entries
            .values()
            .filter_map(|entry| entry.other.as_ref());
        let mut standings = others.map(|other| &other.standing);
        self.is_unread || standings.any(|standing| *standing == FileStanding::Loading)
    }

    /// Returns whether it is known which plugin provides `action`, if any.
    pub(crate) fn has_settled(&self, action: Action) -> bool {
        !self.is_unread && !self.expected_actions.contains(&action)
    }

    /// Returns the names of the gates for updates that are being loaded, and of which no earlier version serves.
    pub(crate) fn loading_update_gates(&self) -> impl Iterator<Item = &str> {
        let entries = self.entries.values();
        let others = entries
            .filter(|entry| entry.serving.is_none())
            .filter_map(|entry| entry.other.as_ref())
            .filter(|other| other.standing == FileStanding::Loading);
        let manifests = others.filter_map(|other| other.manifest.as_ref());
        manifests
            .filter(|manifest| manifest.events.contains(&EventKind::UpdateGate))
            .map(|manifest| manifest.name.as_str())
    }

    /// Returns whether all gates for updates are loaded, and no file that has not been read may be one.
    pub(crate) fn has_all_update_gates(&self) -> bool {
        !self.is_unread && self.loading_update_gates().next().is_none()
    }

    /// Returns the names of all plugins: that of each file's serving plugin, or the file's own name if no manifest can
    /// be read.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let names = self.entries.iter().map(|(file, entry)| name(file, entry));
        names.collect()
    }

    /// Returns whether there is a file of which it is not yet known whether it is a plugin, and which.
    pub(crate) fn has_unknown_files(&self) -> bool {
        let others = self
            .entries
            .values()
            .filter_map(|entry| entry.other.as_ref());
        let mut others = others
            .filter(|other| other.standing == FileStanding::Loading && other.manifest.is_none());
        self.is_unread || others.next().is_some()
    }

    /// Returns the files that claim to be this plugin, by their serving version or their current content, each with the
    /// version.
    pub(crate) fn files_of(&self, name: &str) -> Vec<(&PathBuf, String)> {
        let files = self.entries.iter().filter_map(|(file, entry)| {
            let mut manifests = entry.manifests();
            let own = manifests.find(|manifest| manifest.name == name)?;
            Some((file, own.version.to_string()))
        });
        files.collect()
    }

    /// Returns what has become of the content with this digest in `file`, and why it is refused; `None` while that is
    /// undecided.
    pub(crate) fn outcome(
        &self,
        file: &Path,
        digest: &str,
    ) -> Option<(PluginState, Option<String>)> {
        let entry = self.entries.get(file)?;
        match &entry.other {
            Some(other) if other.digest == digest && other.standing != FileStanding::Loading => {
                let refused = other.refused().map(str::to_owned);
                Some((entry.state(), refused))
            }
            None => {
                let serving = entry.serving.as_ref()?;
                (serving.digest == digest).then_some((PluginState::Running, None))
            }
            Some(_) => None,
        }
    }

    /// Returns each plugin, sorted by name.
    pub(crate) fn report(&self) -> Vec<PluginReport> {
        let mut reports: Vec<_> = self
            .entries
            .iter()
            .map(|(file, entry)| report(file, entry))
            .collect();
        reports.sort_by(|one, other| (&one.name, &one.file).cmp(&(&other.name, &other.file)));
        reports
    }

    /// Returns the routes of the plugins that serve or are being loaded, sorted by the plugins' names.
    pub(crate) fn described_routes(&self) -> Vec<PluginRoutes> {
        let manifests = self.entries.values().filter_map(|entry| match entry {
            Entry {
                serving: Some(plugin),
                ..
            } => Some(&plugin.manifest),
            Entry {
                other: Some(other), ..
            } if other.standing == FileStanding::Loading => other.manifest.as_ref(),
            _ => None,
        });
        let mut described: Vec<_> = manifests
            .map(|manifest| {
                let routes = manifest.routes.iter();
                PluginRoutes {
                    plugin: manifest.name.clone(),
                    routes: routes
                        .map(|route| (route.method.clone(), route.pattern.to_string()))
                        .collect(),
                    description: manifest
                        .openapi
                        .as_deref()
                        .and_then(|text| serde_json::from_str(text).ok()),
                }
            })
            .collect();
        described.sort_by(|one, other| one.plugin.cmp(&other.plugin));
        described
    }

    /// Returns what prevents the device from using its plugins: no policy, or stock plugins that cannot be loaded.
    pub(crate) fn health_problems(&self) -> Vec<String> {
        let policy = match &self.policy {
            PolicyStanding::Missing { .. } => self.policy.error(),
            PolicyStanding::Valid | PolicyStanding::OlderInForce { .. } => None,
        };
        let stock = self.stock_problems.iter().cloned();
        policy.into_iter().chain(stock).collect()
    }

    /// Returns the statistics of each plugin that serves, sorted by name.
    pub(crate) fn stats(&self) -> Vec<PluginStats> {
        let stats = self.serving().map(|plugin| {
            let (calls, faults, _) = plugin.counters.read();
            PluginStats {
                name: plugin.manifest.name.clone(),
                calls,
                faults,
                time: plugin.counters.time(),
                metrics: plugin.context.metrics.all(),
            }
        });
        let mut stats: Vec<_> = stats.collect();
        stats.sort_by(|one, other| one.name.cmp(&other.name));
        stats
    }

    /// Returns the fields that plugins add to the device's report, by plugin; those that add none are left out.
    pub(crate) fn fields(&self) -> BTreeMap<String, Vec<PluginField>> {
        let fields = self.serving().map(|plugin| {
            let name = plugin.manifest.name.clone();
            (name, plugin.context.fields.all())
        });
        fields.filter(|(_, fields)| !fields.is_empty()).collect()
    }

    /// Returns what needs a person's attention.
    pub(crate) fn problems(&self) -> Vec<String> {
        let refused = self.report().into_iter().filter_map(|plugin| {
            let refused = plugin.refused?;
            let serving = match plugin.state {
                PluginState::Running => ", so its previous version stays in use",
                _ => "",
            };
            Some(format!(
                "plugin `{}` (`{}`) does not load{serving}: {refused}",
                plugin.name, plugin.file
            ))
        });
        self.policy.error().into_iter().chain(refused).collect()
    }
}

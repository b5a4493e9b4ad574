//! Putting the table together: which plugins serve together, and what prevents the others from serving.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plugin_protocol::text::{LONGEST, one_line};

use crate::loaded::LoadedPlugin;
use crate::pins::Pin;
use crate::routes::{ReservedRoutes, overlap};
use crate::table::{Entry, FileStanding, PolicyStanding, Table, UnservedContent};
use plugin_manifest::{Action, Manifest};

/// A table under construction.
pub(crate) struct Assembly<'a> {
    before: &'a Table,
    reserved: &'a ReservedRoutes,
    serving: BTreeMap<PathBuf, Arc<LoadedPlugin>>,
    others: BTreeMap<PathBuf, UnservedContent>,
    waiting: Vec<(PathBuf, Arc<LoadedPlugin>)>,
    expected: Vec<ExpectedPlugin>,
}

/// A plugin that is being loaded, and of which no earlier version serves. Its claims count already, so that the order
/// of loading does not matter.
pub(crate) struct ExpectedPlugin {
    pub(crate) file: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) digest: String,
    pub(crate) is_boards_own: bool,
}

/// A plugin's claims to things that exist only once.
#[derive(Clone, Copy)]
pub(crate) struct PluginClaims<'a> {
    pub(crate) manifest: &'a Manifest,
    /// Whether the policy names this board for the plugin.
    pub(crate) is_boards_own: bool,
}

impl<'a> Assembly<'a> {
    /// Creates the assembly of the table that follows `before`, with the host's own routes.
    pub(crate) fn new(before: &'a Table, reserved: &'a ReservedRoutes) -> Assembly<'a> {
        Assembly {
            before,
            reserved,
            serving: BTreeMap::new(),
            others: BTreeMap::new(),
            waiting: Vec::new(),
            expected: Vec::new(),
        }
    }

    /// Keeps the version that served before, unless the one offered from the same file fits in.
    pub(crate) fn keep(&mut self, file: &Path, plugin: Arc<LoadedPlugin>) {
        self.serving.insert(file.to_owned(), plugin);
    }

    /// Offers the plugin: it serves if it fits in among the others.
    pub(crate) fn offer(&mut self, file: PathBuf, plugin: Arc<LoadedPlugin>) {
        self.waiting.push((file, plugin));
    }

    /// Notes a plugin that will be offered later.
    pub(crate) fn expect(&mut self, plugin: ExpectedPlugin) {
        self.expected.push(plugin);
    }

    /// Notes that the file's current content does not serve.
    pub(crate) fn set_aside(&mut self, file: PathBuf, other: UnservedContent) {
        self.others.insert(file, other);
    }

    /// Builds the table. `is_unread` if there are files whose contents are not known yet.
    pub(crate) fn table(mut self, policy: PolicyStanding, is_unread: bool) -> Table {
        self.let_in();
        let mut table = Table {
            policy,
            is_unread,
            ..Table::empty()
        };
        for plugin in std::mem::take(&mut self.expected) {
            self.set_aside_for_now(&mut table, plugin.file, &plugin.manifest, plugin.digest);
        }
        for (file, plugin) in std::mem::take(&mut self.waiting) {
            match self.fits(&file, &plugin) {
                Ok(()) => {
                    let digest = plugin.digest.clone();
                    self.set_aside_for_now(&mut table, file, &plugin.manifest, digest);
                }
                Err(reason) => {
                    let other = UnservedContent {
                        manifest: Some(plugin.manifest.clone()),
                        digest: plugin.digest.clone(),
                        standing: FileStanding::refused(reason),
                    };
                    self.others.insert(file, other);
                }
            }
        }
        for (file, plugin) in self.serving {
            table.routes.add(&plugin, &plugin.manifest.routes);
            let provided = plugin.manifest.provides.iter();
            for action in provided.filter(|action| action.has_one_provider()) {
                // A board's own provider takes precedence over a general one.
                let general = table
                    .providers
                    .get(action)
                    .is_none_or(|other| !other.is_boards_own);
                if general {
                    table.providers.insert(*action, Arc::clone(&plugin));
                }
            }
            let entry = Entry {
                other: self.others.remove(&file),
                serving: Some(plugin),
            };
            table.entries.insert(file, entry);
        }
        for (file, other) in self.others {
            table.entries.insert(
                file,
                Entry {
                    serving: None,
                    other: Some(other),
                },
            );
        }
        let before = &self.before.entries;
        for (file, entry) in &table.entries {
            log_change(file, before.get(file), entry);
        }
        let is_gone = |file: &&PathBuf| !table.entries.contains_key(*file);
        for file in before.keys().filter(is_gone) {
            let file = file.display();
            tracing::info!(%file, "plugin `{file}` is gone");
        }
        table
    }

    /// Notes in the table the claims of a plugin that does not serve yet.
    fn set_aside_for_now(
        &mut self,
        table: &mut Table,
        file: PathBuf,
        manifest: &Manifest,
        digest: String,
    ) {
        let name = Arc::from(manifest.name.as_str());
        table.expected_routes.add(&name, &manifest.routes);
        table.expected_actions.extend(&manifest.provides);
        let other = UnservedContent {
            manifest: Some(manifest.clone()),
            digest,
            standing: FileStanding::Loading,
        };
        self.others.insert(file, other);
    }

    /// Lets the waiting plugins serve if they fit in; keeps those that do not, or not yet.
    fn let_in(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        // Plugins that served before come first, then new versions of these, and new plugins last. A plugin that waits
        // for something that another gives up comes after it.
        waiting.sort_by_key(|(file, plugin)| self.rank(file, plugin));
        loop {
            let count = waiting.len();
            waiting.retain(|(file, plugin)| {
                let fits = self.fits(file, plugin).is_ok() && !self.has_to_wait(file, plugin);
                if fits {
                    self.serving.insert(file.clone(), Arc::clone(plugin));
                }
                !fits
            });
            if waiting.len() == count {
                break;
            }
        }
        self.waiting = waiting;
    }

    fn rank(&self, file: &Path, plugin: &LoadedPlugin) -> u8 {
        let entry = self.before.entries.get(file);
        match entry.and_then(|entry| entry.serving.as_ref()) {
            Some(before) if before.digest == plugin.digest => 0,
            Some(_) => 1,
            None => NEW,
        }
    }

    /// Returns whether `plugin` from `file`, which is new, must wait for one that is being loaded: one with the same
    /// claims whose file comes first, or one that will provide an action that this plugin requests.
    fn has_to_wait(&self, file: &Path, plugin: &LoadedPlugin) -> bool {
        let has_others_do = |action: &Action| {
            let capability = action.capability();
            capability.is_some_and(|capability| plugin.manifest.asks_for(capability))
        };
        self.rank(file, plugin) == NEW
            && self.expected.iter().any(|expected| {
                let goes_before =
                    *expected.file < *file && conflict(plugin.claims(), expected.claims()).is_err();
                goes_before || expected.manifest.provides.iter().any(has_others_do)
            })
    }

    /// Checks that `plugin` from `file` claims nothing that another plugin has, other than an older version from the
    /// same file.
    fn fits(&self, file: &Path, plugin: &LoadedPlugin) -> Result<(), String> {
        self.reserved.check(&plugin.manifest.routes)?;
        let mut others = self.serving.iter().filter(|(other, _)| *other != file);
        others.try_for_each(|(_, other)| conflict(plugin.claims(), other.claims()))
    }
}

/// The [`Assembly::rank`] of a plugin of which no earlier version served.
const NEW: u8 = 2;

impl LoadedPlugin {
    fn claims(&self) -> PluginClaims<'_> {
        PluginClaims {
            manifest: &self.manifest,
            is_boards_own: self.is_boards_own,
        }
    }
}

impl ExpectedPlugin {
    fn claims(&self) -> PluginClaims<'_> {
        PluginClaims {
            manifest: &self.manifest,
            is_boards_own: self.is_boards_own,
        }
    }
}

/// Returns an error that says why two plugins cannot serve together.
pub(crate) fn conflict(plugin: PluginClaims<'_>, other: PluginClaims<'_>) -> Result<(), String> {
    let Manifest {
        name,
        routes,
        provides,
        ..
    } = other.manifest;
    let manifest = plugin.manifest;
    overlap(&manifest.routes, name, routes)?;
    let mut both = manifest.provides.iter();
    let Some(action) = both.find(|action| action.has_one_provider() && provides.contains(action))
    else {
        return Ok(());
    };
    if plugin.is_boards_own != other.is_boards_own {
        return Ok(());
    }
    let mut reason = format!("`{action}` is also provided by the plugin `{name}`");
    if !plugin.is_boards_own {
        let own = &manifest.name;
        reason.push_str(&format!(
            "; `boards` in [plugins.{own}] of the policy names the boards on which this one takes precedence"
        ));
    }
    Err(reason)
}

/// Logs what has become of a file, if that has changed.
fn log_change(file: &Path, before: Option<&Entry>, now: &Entry) {
    let version = |entry: &Entry| entry.serving.as_ref().map(Arc::as_ptr);
    let other = |entry: &Entry| {
        let other = entry.other.as_ref();
        other.map(|other| (other.digest.clone(), other.standing.clone()))
    };
    let file = one_line(&file.display().to_string(), LONGEST);
    if let Some(plugin) = &now.serving
        && before.and_then(version) != Some(Arc::as_ptr(plugin))
    {
        let Manifest { name, version, .. } = &plugin.manifest;
        if plugin.context.grants.pin == Pin::None {
            tracing::warn!(
                plugin = name,
                file,
                "developer mode: plugin `{name}` {version} is loaded from `{file}`, which nobody has pinned to that name"
            );
        } else {
            tracing::info!(
                plugin = name,
                file,
                "plugin `{name}` {version} is loaded from `{file}`"
            );
        }
    }
    if let Some(now_other) = &now.other
        && before.and_then(other) != other(now)
    {
        match &now_other.standing {
            FileStanding::Refused(reason) if now.serving.is_some() => {
                tracing::error!(
                    file,
                    "plugin `{file}` does not load, so its previous version stays in use: {}",
                    one_line(reason, LONGEST)
                );
            }
            FileStanding::Refused(reason) => {
                tracing::error!(
                    file,
                    "plugin `{file}` does not load: {}",
                    one_line(reason, LONGEST)
                );
            }
            FileStanding::OtherBoard => tracing::info!(file, "plugin `{file}` is for other boards"),
            FileStanding::Loading => tracing::debug!(file, "plugin `{file}` is being loaded"),
        }
    }
}

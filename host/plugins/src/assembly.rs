//! Putting the table together: who serves beside whom, and what keeps the others from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::loaded::Loaded;
use crate::manifest::Manifest;
use crate::routes::{Reserved, overlap};
use crate::table::{Entry, Other, Table, log_change};

/// A table in the making.
pub(crate) struct Assembly<'a> {
    before: &'a Table,
    reserved: &'a Reserved,
    serving: BTreeMap<PathBuf, Arc<Loaded>>,
    others: BTreeMap<PathBuf, Other>,
    waiting: Vec<(PathBuf, Arc<Loaded>)>,
}

impl<'a> Assembly<'a> {
    /// One that is to follow `before`, with the host's own routes.
    pub(crate) fn new(before: &'a Table, reserved: &'a Reserved) -> Assembly<'a> {
        Assembly {
            before,
            reserved,
            serving: BTreeMap::new(),
            others: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    /// Has the version that served before serve on, unless the one that is offered from the same file fits in.
    pub(crate) fn keep(&mut self, file: &Path, plugin: Arc<Loaded>) {
        self.serving.insert(file.to_owned(), plugin);
    }

    /// Has the plugin serve if it fits in among the others.
    pub(crate) fn offer(&mut self, file: PathBuf, plugin: Arc<Loaded>) {
        self.waiting.push((file, plugin));
    }

    /// Has the file as it is now not serve.
    pub(crate) fn set_aside(&mut self, file: PathBuf, other: Other) {
        self.others.insert(file, other);
    }

    /// The table.
    pub(crate) fn table(mut self, policy_problem: Option<String>) -> Table {
        self.let_in();
        let mut table = Table {
            policy_problem,
            ..Table::empty()
        };
        for (file, plugin) in self.serving {
            table.routes.add(&plugin, &plugin.manifest.routes);
            for action in &plugin.manifest.provides {
                // A board's own provider goes before a general one.
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
        for file in before
            .keys()
            .filter(|file| !table.entries.contains_key(*file))
        {
            tracing::info!("plugin `{}` is gone", file.display());
        }
        table
    }

    /// Has those that wait serve where they fit in, and sets the others aside.
    fn let_in(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        // What served before comes first, then the next version of what did, and what is new last. One that waits for
        // what another gives up comes after it.
        waiting.sort_by_key(|(file, plugin)| {
            let entry = self.before.entries.get(file);
            match entry.and_then(|entry| entry.serving.as_ref()) {
                Some(before) if before.digest == plugin.digest => 0,
                Some(_) => 1,
                None => 2,
            }
        });
        loop {
            let count = waiting.len();
            waiting.retain(|(file, plugin)| {
                let fits = self.fits(file, plugin).is_ok();
                if fits {
                    self.serving.insert(file.clone(), Arc::clone(plugin));
                }
                !fits
            });
            if waiting.len() == count {
                break;
            }
        }
        for (file, plugin) in waiting {
            let other = Other {
                manifest: Some(plugin.manifest.clone()),
                digest: plugin.digest.clone(),
                refused: self.fits(&file, &plugin).err(),
            };
            self.others.insert(file, other);
        }
    }

    /// Whether `plugin` from `file` has nothing that one of the others has, but for an older version
    /// from the same file.
    fn fits(&self, file: &Path, plugin: &Loaded) -> Result<(), String> {
        let manifest = &plugin.manifest;
        self.reserved
            .check(&manifest.routes)
            .map_err(|error| error.to_string())?;
        let others = self.serving.iter().filter(|(other, _)| *other != file);
        for (_, other) in others {
            let Manifest {
                name,
                routes,
                provides,
                ..
            } = &other.manifest;
            overlap(&manifest.routes, name, routes).map_err(|error| error.to_string())?;
            let mut both = manifest.provides.iter();
            if let Some(action) = both.find(|action| provides.contains(action))
                && plugin.is_boards_own == other.is_boards_own
            {
                let action = action.name();
                let mut reason = format!("`{action}` is also provided by the plugin `{name}`");
                if !plugin.is_boards_own {
                    let own = &manifest.name;
                    reason.push_str(&format!(
                        "; `boards` in [plugins.{own}] of the policy names the boards on which this one goes before"
                    ));
                }
                return Err(reason);
            }
        }
        Ok(())
    }
}

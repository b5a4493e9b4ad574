//! From files to the table that requests are looked up in.
//!
//! A lap looks at all plugin folders and the policy, loads what has changed beside what serves, and
//! puts together a new table. It is swapped in at once: a request sees the old one or the new one. A
//! version that does not load, or that wants what another plugin has, leaves the old one serving.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};

use crate::loaded::{Counters, Loaded, Workshop};
use crate::policy::Policy;
use crate::routes::{Reserved, overlap};
use crate::settled_file::{PluginFile, Stamp, read};
use crate::table::{Entry, Other, Table, log_change};

/// How many files are loaded at a time.
const AT_ONCE: usize = 4;

/// Loads plugins, lap by lap.
pub(crate) struct Loader {
    pub(crate) workshop: Arc<Workshop>,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) reserved: Reserved,
    counters: HashMap<String, Arc<Counters>>,
    policy: Policy,
    policy_problem: Option<String>,
    /// The files as they were at the last lap.
    seen: BTreeMap<PathBuf, Stamp>,
}

/// What a lap found for one file.
enum Found {
    /// As at the last lap.
    Same,
    New(Arc<Loaded>),
    Other(Box<Other>),
}

impl Loader {
    pub(crate) fn new(
        workshop: Arc<Workshop>,
        folders: Vec<PathBuf>,
        reserved: Reserved,
    ) -> Loader {
        Loader {
            workshop,
            folders,
            reserved,
            counters: HashMap::new(),
            policy: Policy::default(),
            policy_problem: None,
            seen: BTreeMap::new(),
        }
    }

    /// One lap: the table that is to follow `before`.
    pub(crate) async fn lap(&mut self, before: &Table) -> Table {
        let another_policy = self.read_policy();
        let files = self.files();
        let mut last = std::mem::take(&mut self.seen);
        if another_policy {
            // What is linked follows from the policy: all are linked again.
            last.clear();
        }
        let looks: Vec<_> = files
            .into_iter()
            .map(|file| {
                let last = last.remove(&file);
                self.look(file, last, before)
            })
            .collect();
        // Each holds a whole file in memory.
        let looks = stream::iter(looks)
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        let mut seen = BTreeMap::new();
        let mut found = BTreeMap::new();
        for (file, now, what) in looks {
            seen.extend(now.map(|now| (file.clone(), now)));
            found.insert(file, what);
        }
        self.seen = seen;
        for what in found.values() {
            if let Found::New(plugin) = what {
                self.counters
                    .insert(plugin.manifest.name.clone(), Arc::clone(&plugin.counters));
            }
        }
        self.assemble(found, before, another_policy)
    }

    /// Reads the policy again; whether it differs from before.
    fn read_policy(&mut self) -> bool {
        match Policy::read(&self.workshop.policy_path) {
            Ok(policy) => {
                self.policy_problem = None;
                let changed = policy != self.policy;
                self.policy = policy;
                changed
            }
            // What was granted stays granted: a slip of the pen takes no plugin down.
            Err(error) => {
                let problem = chain(&error);
                if self.policy_problem.as_ref() != Some(&problem) {
                    tracing::error!("{problem}; the policy before stays in force");
                }
                self.policy_problem = Some(problem);
                false
            }
        }
    }

    /// The files of all folders, those of the first folder first.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for folder in &self.folders {
            let Ok(entries) = fs::read_dir(folder) else {
                continue;
            };
            let mut names: Vec<_> = entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| {
                    path.extension()
                        .is_some_and(|extension| extension == "wasm")
                })
                .filter(|path| {
                    !path
                        .file_name()
                        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
                })
                .collect();
            names.sort();
            files.extend(names);
        }
        files
    }

    /// Looks at one file, and loads it if it has changed.
    async fn look(
        &self,
        file: PathBuf,
        last: Option<Stamp>,
        before: &Table,
    ) -> (PathBuf, Option<Stamp>, Found) {
        if last.is_some() && last == Stamp::of(&file).ok() {
            return (file, last, Found::Same);
        }
        // Nobody is writing yet when the device starts, and someone is waiting.
        let settle = !before.entries.is_empty();
        match read(file.clone(), settle).await {
            Ok(read) => {
                let stamp = read.stamp.clone();
                let found = self.load(&file, read).await;
                (file, Some(stamp), found)
            }
            Err(reason) => {
                let (manifest, digest) = (None, String::new());
                let other = Other {
                    manifest,
                    digest,
                    refused: Some(reason),
                };
                (file, None, Found::Other(Box::new(other)))
            }
        }
    }

    async fn load(&self, file: &Path, read: PluginFile) -> Found {
        let PluginFile {
            wasm,
            digest,
            manifest,
            ..
        } = read;
        let refused = |manifest, reason: String| {
            let digest = digest.clone();
            Found::Other(Box::new(Other {
                manifest,
                digest,
                refused: Some(reason),
            }))
        };
        let manifest = match manifest {
            Ok(manifest) => manifest,
            Err(error) => return refused(None, chain(&error)),
        };
        if !manifest.is_for(&self.workshop.device.identity().device_type) {
            return Found::Other(Box::new(Other {
                manifest: Some(manifest),
                digest,
                refused: None,
            }));
        }
        let counters = self
            .counters
            .get(&manifest.name)
            .cloned()
            .unwrap_or_default();
        let known = manifest.clone();
        match self
            .workshop
            .load(
                file,
                digest.clone(),
                &wasm,
                manifest,
                &self.policy,
                counters,
            )
            .await
        {
            Ok(loaded) => Found::New(Arc::new(loaded)),
            Err(error) => refused(Some(known), chain(&error)),
        }
    }

    /// Puts the table together: those who serve stay as they are until the version that follows them
    /// fits in among the others.
    fn assemble(
        &self,
        found: BTreeMap<PathBuf, Found>,
        before: &Table,
        another_policy: bool,
    ) -> Table {
        let mut serving: BTreeMap<PathBuf, Arc<Loaded>> = BTreeMap::new();
        let mut others: BTreeMap<PathBuf, Other> = BTreeMap::new();
        let mut waiting: Vec<(PathBuf, Arc<Loaded>)> = Vec::new();
        for (file, found) in found {
            let last = before.entries.get(&file).cloned().unwrap_or_default();
            // With another policy an old version has links that may no longer be granted.
            let mut keeps = !another_policy;
            match found {
                Found::Same => others.extend(last.other.map(|other| (file.clone(), other))),
                Found::New(plugin) => waiting.push((file.clone(), plugin)),
                Found::Other(other) => {
                    // One that is for other boards from now on is not for this.
                    keeps &= other.refused.is_some();
                    others.insert(file.clone(), *other);
                }
            }
            serving.extend(last.serving.filter(|_| keeps).map(|plugin| (file, plugin)));
        }
        // Those who served come first. One that waits for what another gives up comes after it.
        waiting.sort_by_key(|(file, _)| {
            before
                .entries
                .get(file)
                .is_none_or(|entry| entry.serving.is_none())
        });
        loop {
            let count = waiting.len();
            waiting.retain(|(file, plugin)| {
                let fits = self.fits(file, plugin, &serving).is_ok();
                if fits {
                    serving.insert(file.clone(), Arc::clone(plugin));
                }
                !fits
            });
            if waiting.len() == count {
                break;
            }
        }
        for (file, plugin) in waiting {
            let refused = self.fits(&file, &plugin, &serving).err();
            let (manifest, digest) = (Some(plugin.manifest.clone()), plugin.digest.clone());
            others.insert(
                file,
                Other {
                    manifest,
                    digest,
                    refused,
                },
            );
        }
        self.table(serving, others, before)
    }

    fn table(
        &self,
        serving: BTreeMap<PathBuf, Arc<Loaded>>,
        mut others: BTreeMap<PathBuf, Other>,
        before: &Table,
    ) -> Table {
        let mut table = Table {
            policy_problem: self.policy_problem.clone(),
            ..Table::empty()
        };
        for (file, plugin) in serving {
            table.routes.add(&plugin, &plugin.manifest.routes);
            for action in &plugin.manifest.provides {
                // A board's own provider goes before a general one.
                let general = table
                    .providers
                    .get(action)
                    .is_none_or(|other| !other.manifest.is_for_some_boards());
                if general {
                    table.providers.insert(*action, Arc::clone(&plugin));
                }
            }
            let entry = Entry {
                other: others.remove(&file),
                serving: Some(plugin),
            };
            table.entries.insert(file, entry);
        }
        for (file, other) in others {
            table.entries.insert(
                file,
                Entry {
                    serving: None,
                    other: Some(other),
                },
            );
        }
        for (file, entry) in &table.entries {
            log_change(file, before.entries.get(file), entry);
        }
        for file in before
            .entries
            .keys()
            .filter(|file| !table.entries.contains_key(*file))
        {
            tracing::info!("plugin `{}` is gone", file.display());
        }
        table
    }

    /// Whether `plugin` from `file` has nothing that one of the others has, but for an older version
    /// from the same file.
    fn fits(
        &self,
        file: &Path,
        plugin: &Loaded,
        serving: &BTreeMap<PathBuf, Arc<Loaded>>,
    ) -> Result<(), String> {
        let manifest = &plugin.manifest;
        self.reserved
            .check(&manifest.routes)
            .map_err(|error| error.to_string())?;
        let others = serving.iter().filter(|(other, _)| *other != file);
        for other in others.map(|(_, plugin)| &plugin.manifest) {
            let name = &other.name;
            if manifest.name == *name {
                return Err(format!("another file has a plugin `{name}` already"));
            }
            overlap(&manifest.routes, name, &other.routes).map_err(|error| error.to_string())?;
            let alike = manifest.is_for_some_boards() == other.is_for_some_boards();
            let mut both = manifest.provides.iter();
            if let Some(action) = both.find(|action| other.provides.contains(action))
                && alike
            {
                let action = action.name();
                return Err(format!(
                    "`{action}` is also provided by the plugin `{name}`"
                ));
            }
        }
        Ok(())
    }
}

/// An error with its causes, in one line but for what a cause spreads over more.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(cause.to_string().trim_end());
        source = cause.source();
    }
    text
}

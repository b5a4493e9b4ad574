//! From files to the table that requests are looked up in.
//!
//! A lap reads the policy and what the files of all plugin folders say of themselves, decides by that alone
//! which of them may be loaded, loads what has changed beside what serves, and puts together a new table. It
//! is swapped in at once: a request sees the old one or the new one. A version that does not load, or that
//! wants what another plugin has, leaves the old one serving, as long as the policy pins that.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};

use crate::assembly::Assembly;
use crate::claims::Claims;
use crate::failure::chain;
use crate::grants;
use crate::loaded::{Counters, Loaded, Workshop};
use crate::manifest::Manifest;
use crate::policy::{Grants, Policy};
use crate::routes::Reserved;
use crate::settled_file::{FileHead, Stamp, read_head, read_wasm};
use crate::table::{Other, Table};

/// How many files are read or loaded at a time.
const AT_ONCE: usize = 4;

/// Loads plugins, lap by lap.
pub(crate) struct Loader {
    pub(crate) workshop: Arc<Workshop>,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) reserved: Reserved,
    counters: HashMap<String, Arc<Counters>>,
    policy: Policy,
    policy_problem: Option<String>,
    /// The files of all folders, as they were last read.
    files: BTreeMap<PathBuf, FileRecord>,
}

/// A file as it was last read, and what came of it.
struct FileRecord {
    /// None where it has to be read again.
    stamp: Option<Stamp>,
    head: Result<FileHead, String>,
    /// Its content, loaded; also where another plugin keeps it from serving.
    loaded: Option<Arc<Loaded>>,
    /// Why its content does not load, with the grants that it was tried with.
    failure: Option<(Grants, String)>,
}

/// What a file gets, by what it says of itself.
enum Verdict {
    /// It may be loaded.
    Load(Box<Grants>),
    /// It is for other boards than this.
    OtherBoard,
    Refused(String),
}

type Verdicts = BTreeMap<PathBuf, Verdict>;

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
            files: BTreeMap::new(),
        }
    }

    /// One lap: the table that is to follow `before`.
    pub(crate) async fn lap(&mut self, before: &Table) -> Table {
        self.read_policy();
        self.read_files(before).await;
        let claims = self.claims(before);
        let verdicts = self.judge(&claims);
        self.load(&verdicts).await;
        self.assemble(verdicts, &claims, before)
    }

    /// Reads the policy again.
    fn read_policy(&mut self) {
        match Policy::read(&self.workshop.policy_files) {
            Ok(policy) => {
                self.policy_problem = None;
                self.policy = policy;
            }
            // What was granted stays granted: a slip of the pen takes no plugin down.
            Err(error) => {
                let problem = chain(&error);
                if self.policy_problem.as_ref() != Some(&problem) {
                    tracing::error!("{problem}; the policy before stays in force");
                }
                self.policy_problem = Some(problem);
            }
        }
    }

    /// Reads what has changed in the folders since the last lap.
    async fn read_files(&mut self, before: &Table) {
        // Nobody is writing yet when the device starts, and someone is waiting.
        let settle = !before.entries.is_empty();
        let mut last = std::mem::take(&mut self.files);
        let mut changed = Vec::new();
        for file in self.paths() {
            match last.remove(&file) {
                Some(record) if record.stamp.is_some() && record.stamp == Stamp::of(&file).ok() => {
                    self.files.insert(file, record);
                }
                _ => changed.push(file),
            }
        }
        let reads: Vec<_> = changed
            .into_iter()
            .map(|file| async move {
                let read = read_head(file.clone(), settle).await;
                (file, read)
            })
            .collect();
        // Each holds a whole file in memory while it is read.
        let reads: Vec<_> = stream::iter(reads).buffered(AT_ONCE).collect().await;
        for (file, read) in reads {
            let (stamp, head) = match read {
                Ok((stamp, head)) => (Some(stamp), Ok(head)),
                Err(reason) => (None, Err(reason)),
            };
            let record = FileRecord {
                stamp,
                head,
                loaded: None,
                failure: None,
            };
            self.files.insert(file, record);
        }
    }

    /// The files of all folders, those of the first folder first.
    fn paths(&self) -> Vec<PathBuf> {
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

    /// Which file claims which name: by what it says now, and by what serves from it still.
    fn claims(&self, before: &Table) -> Claims {
        let mut claims = Claims::default();
        for (file, record) in &self.files {
            if let Ok(FileHead {
                manifest: Ok(manifest),
                ..
            }) = &record.head
            {
                claims.add(&manifest.name, file);
            }
            let serving = before
                .entries
                .get(file)
                .and_then(|entry| entry.serving.as_ref());
            if let Some(plugin) = serving {
                claims.add(&plugin.manifest.name, file);
            }
        }
        claims
    }

    /// Decides what each file gets. Nothing is compiled for that.
    fn judge(&self, claims: &Claims) -> Verdicts {
        let verdict = |record: &FileRecord| -> Verdict {
            let manifest = match &record.head {
                Ok(head) => head.manifest.as_ref().map(|manifest| (head, manifest)),
                Err(reason) => Err(reason),
            };
            let (head, manifest) = match manifest {
                Ok(both) => both,
                Err(reason) => return Verdict::Refused(reason.clone()),
            };
            if let Some(doubled) = claims.doubled(&manifest.name) {
                return Verdict::Refused(doubled);
            }
            let board = self.workshop.device.identity().device_type;
            if !manifest.is_for(&board) {
                return Verdict::OtherBoard;
            }
            match self.granted(manifest, &head.digest) {
                Ok(grants) => Verdict::Load(Box::new(grants)),
                Err(reason) => Verdict::Refused(reason),
            }
        };
        let files = self.files.iter();
        files
            .map(|(file, record)| (file.clone(), verdict(record)))
            .collect()
    }

    /// What the policy gives the file of this digest, where that is all that its manifest claims.
    fn granted(&self, manifest: &Manifest, digest: &str) -> Result<Grants, String> {
        let Workshop {
            host_root,
            policy_files,
            ..
        } = &*self.workshop;
        let grants = self
            .policy
            .of(&manifest.name, digest, host_root)
            .map_err(|error| error.to_string())?;
        grants::check_routes_and_actions(manifest, &grants, &policy_files.owner)
            .map_err(|error| error.to_string())?;
        Ok(grants)
    }

    /// Loads what may be loaded and is not, or was with other grants.
    async fn load(&mut self, verdicts: &Verdicts) {
        let loads: Vec<_> = self
            .files
            .iter()
            .filter_map(|(file, record)| match verdicts.get(file) {
                Some(Verdict::Load(grants)) if record.is_to_be_loaded(grants) => {
                    Some(self.load_one(file, record, grants))
                }
                _ => None,
            })
            .collect();
        // Each holds a whole file in memory.
        let loads: Vec<_> = stream::iter(loads).buffered(AT_ONCE).collect().await;
        for (file, grants, outcome) in loads {
            let Some(record) = self.files.get_mut(&file) else {
                continue;
            };
            match outcome {
                Ok(plugin) => {
                    self.counters
                        .insert(plugin.manifest.name.clone(), Arc::clone(&plugin.counters));
                    record.loaded = Some(Arc::new(plugin));
                    record.failure = None;
                }
                Err(reason) => {
                    record.loaded = None;
                    record.failure = Some((grants, reason));
                }
            }
        }
    }

    async fn load_one(
        &self,
        file: &Path,
        record: &FileRecord,
        grants: &Grants,
    ) -> (PathBuf, Grants, Result<Loaded, String>) {
        let outcome = async {
            let head = record.head.as_ref().map_err(Clone::clone)?;
            let manifest = head.manifest.clone()?;
            let workshop = &self.workshop;
            let component = match &record.loaded {
                Some(plugin) => plugin.pre.component().clone(),
                None => {
                    let wasm = read_wasm(file.to_owned(), head.digest.clone()).await?;
                    let compiled = workshop.compile(file, &head.digest, &wasm).await;
                    compiled.map_err(|error| chain(&error))?
                }
            };
            let counters = self.counters_of(&manifest.name);
            let digest = head.digest.clone();
            workshop
                .link(&component, digest, manifest, grants.clone(), counters)
                .map_err(|error| chain(&error))
        };
        let outcome = outcome.await;
        (file.to_owned(), grants.clone(), outcome)
    }

    fn counters_of(&self, name: &str) -> Arc<Counters> {
        self.counters.get(name).cloned().unwrap_or_default()
    }

    /// The version before of a file, where the policy as it is now gives it what it needs.
    fn still_granted(&self, plugin: &Arc<Loaded>, claims: &Claims) -> Option<Arc<Loaded>> {
        if claims.doubled(&plugin.manifest.name).is_some() {
            return None;
        }
        let grants = self.granted(&plugin.manifest, &plugin.digest).ok()?;
        if grants == plugin.around.grants {
            return Some(Arc::clone(plugin));
        }
        let linked = self.workshop.link(
            plugin.pre.component(),
            plugin.digest.clone(),
            plugin.manifest.clone(),
            grants,
            Arc::clone(&plugin.counters),
        );
        linked.ok().map(Arc::new)
    }

    /// Puts the table together: those who serve stay as they are until the version that follows them
    /// fits in among the others.
    fn assemble(&self, verdicts: Verdicts, claims: &Claims, before: &Table) -> Table {
        let mut assembly = Assembly::new(before, &self.reserved);
        for (file, verdict) in verdicts {
            let Some(record) = self.files.get(&file) else {
                continue;
            };
            let entry = before.entries.get(&file);
            let last = entry.and_then(|entry| entry.serving.as_ref());
            // One that is for other boards from now on is not for this.
            let last = last.filter(|_| !matches!(verdict, Verdict::OtherBoard));
            // The same content with other grants takes its own place.
            let loaded = record.loaded.as_ref();
            let last = last.filter(|last| loaded.is_none_or(|now| now.digest != last.digest));
            let last = last.and_then(|last| self.still_granted(last, claims));
            if let Some(last) = last {
                assembly.keep(&file, last);
            }
            match verdict {
                Verdict::Load(_) => match (&record.loaded, &record.failure) {
                    (Some(plugin), _) => assembly.offer(file, Arc::clone(plugin)),
                    (None, Some((_, reason))) => {
                        assembly.set_aside(file, record.other(Some(reason.clone())));
                    }
                    (None, None) => {}
                },
                Verdict::OtherBoard => assembly.set_aside(file, record.other(None)),
                Verdict::Refused(reason) => assembly.set_aside(file, record.other(Some(reason))),
            }
        }
        assembly.table(self.policy_problem.clone())
    }
}

impl FileRecord {
    fn is_to_be_loaded(&self, grants: &Grants) -> bool {
        let is_loaded = |plugin: &Arc<Loaded>| plugin.around.grants == *grants;
        let has_failed = |(tried, _): &(Grants, String)| tried == grants;
        !self.loaded.as_ref().is_some_and(is_loaded)
            && !self.failure.as_ref().is_some_and(has_failed)
    }

    /// What the report says of it where it is not what serves.
    fn other(&self, refused: Option<String>) -> Other {
        let head = self.head.as_ref().ok();
        Other {
            manifest: head.and_then(|head| head.manifest.clone().ok()),
            digest: head.map(|head| head.digest.clone()).unwrap_or_default(),
            refused,
        }
    }
}

//! From files to the table that requests are looked up in.
//!
//! The policy is read, and the folders are listed, whenever one of them may have changed; that takes effect
//! at once. What files say of themselves is read by tasks of their own, and so is what has to be compiled,
//! so that nothing waits for a slow file. Who is loaded is decided by what the files say of themselves, before
//! anything is compiled. With each piece of news a new table is put together and swapped in: a request
//! sees the old one or the new one. A version that does not load, or that wants what another plugin has, leaves
//! the old one serving, as long as the policy gives that what it has.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minisign_verify::PublicKey;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wasmtime::component::Component;

use crate::assembly::Assembly;
use crate::claims::Claims;
use crate::failure::chain;
use crate::file_record::{Failure, FileRecord, Task};
use crate::grants;
use crate::loaded::{Counters, Loaded, Workshop};
use crate::manifest::Manifest;
use crate::newest::NewestVersions;
use crate::pins::Pin;
use crate::policy::{Grants, Policy};
use crate::routes::Reserved;
use crate::settled_file::{FileHead, Stamp, plugin_files, read_head, read_wasm};
use crate::signature::Signatures;
use crate::table::Table;

/// How many files are read at a time, and how many are compiled: each is in memory as a whole.
const AT_ONCE: usize = 4;

/// Loads plugins.
pub(crate) struct Loader {
    workshop: Arc<Workshop>,
    folders: Vec<PathBuf>,
    reserved: Reserved,
    counters: HashMap<String, Arc<Counters>>,
    policy: Policy,
    policy_problem: Option<String>,
    /// The public keys that the policy names.
    keys: Arc<[PublicKey]>,
    newest: NewestVersions,
    files: BTreeMap<PathBuf, FileRecord>,
    tasks: JoinSet<TaskOutput>,
    /// Turns to read, and turns to compile: those who read do not wait for those who compile.
    readers: Arc<Semaphore>,
    compilers: Arc<Semaphore>,
    /// Whether files may be being written while they are read.
    settle: bool,
}

/// What came of a task.
enum TaskOutput {
    Read {
        file: PathBuf,
        read: Box<Result<(Stamp, FileHead), String>>,
    },
    Compiled {
        file: PathBuf,
        digest: String,
        component: Result<Component, String>,
    },
}

/// What a file gets, by what it says of itself.
enum Verdict {
    /// It is being read.
    Unknown,
    /// It may be loaded.
    Load(Box<Grants>),
    /// It is for other boards than this.
    OtherBoard,
    Refused(String),
}

impl Loader {
    /// One that has looked at nothing yet.
    pub(crate) fn new(
        workshop: Arc<Workshop>,
        folders: Vec<PathBuf>,
        reserved: Reserved,
    ) -> Loader {
        let policy = Policy::empty(workshop.policy_files.clone());
        let newest = NewestVersions::new(Arc::clone(&workshop.data));
        Loader {
            workshop,
            folders,
            reserved,
            counters: HashMap::new(),
            policy,
            policy_problem: None,
            keys: Arc::default(),
            newest,
            files: BTreeMap::new(),
            tasks: JoinSet::new(),
            readers: Arc::new(Semaphore::new(AT_ONCE)),
            compilers: Arc::new(Semaphore::new(AT_ONCE)),
            // Nobody is writing yet when the device starts, and someone is waiting.
            settle: false,
        }
    }

    /// From now on, takes a file for whole only once nobody changes it any more.
    pub(crate) fn expect_writers(&mut self) {
        self.settle = true;
    }

    /// Reads the policy, and notes which files are there; those that have changed begin to be read.
    pub(crate) fn look(&mut self) {
        self.read_policy();
        let mut last = std::mem::take(&mut self.files);
        let anybodys = self.workshop.allow_unpinned;
        for (file, place) in plugin_files(&self.folders) {
            let mut record = last.remove(&file).unwrap_or_default();
            record.place = place.filter(|_| !anybodys);
            if record.reading.is_some() {
                record.read_again = true;
            } else if record.stamp.is_none()
                || record.stamp != Stamp::of(&file).ok()
                || record.is_signed_by_others_than(&self.keys)
            {
                self.begin_to_read(&file, &mut record);
            }
            self.files.insert(file, record);
        }
        // What is dropped here is gone, and the tasks that were at it end.
    }

    /// Whether something is being read or compiled.
    pub(crate) fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Waits until something was read or compiled, and takes note of it. Dropping the future loses nothing.
    pub(crate) async fn progress(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok(TaskOutput::Read { file, read })) => {
                let Some(mut record) = self.files.remove(&file) else {
                    return;
                };
                record.reading = None;
                if let Ok((_, head)) = &*read
                    && let Ok(manifest) = &head.manifest
                {
                    self.newest.learn(&manifest.name, head.newest.clone());
                }
                record.read(*read);
                if std::mem::take(&mut record.read_again) {
                    self.begin_to_read(&file, &mut record);
                }
                self.files.insert(file, record);
            }
            Some(Ok(TaskOutput::Compiled {
                file,
                digest,
                component,
            })) => {
                let record = self.files.get_mut(&file);
                let Some(record) = record.filter(|record| record.digest() == Some(digest.as_str()))
                else {
                    return;
                };
                record.compiling = None;
                match component {
                    Ok(component) => record.component = Some(component),
                    Err(reason) => record.failure = Some(Failure::Compile(reason)),
                }
            }
            // The file is gone or another one.
            Some(Err(error)) if error.is_cancelled() => {}
            Some(Err(error)) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
            None => {}
        }
    }

    /// Has what may be loaded loaded, by all that is known now. What has to be compiled begins to be.
    pub(crate) fn advance(&mut self, before: &Table) {
        let claims = self.claims(before);
        self.load_what_may_be(&claims);
    }

    /// The table that is to follow `before`, by all that is known now. What has to be compiled for the next one
    /// begins to be.
    pub(crate) fn table(&mut self, before: &Table) -> Table {
        let claims = self.claims(before);
        let verdicts = self.load_what_may_be(&claims);
        self.assemble(verdicts, &claims, before)
    }

    fn load_what_may_be(&mut self, claims: &Claims) -> Vec<(PathBuf, Verdict)> {
        let verdicts: Vec<_> = self
            .files
            .iter()
            .map(|(file, record)| (file.clone(), self.judge(record, claims)))
            .collect();
        for (file, verdict) in &verdicts {
            if let Verdict::Load(grants) = verdict {
                self.load(file, grants);
            }
        }
        verdicts
    }

    /// Reads the policy again.
    fn read_policy(&mut self) {
        match Policy::read(&self.workshop.policy_files, self.workshop.allow_unpinned) {
            Ok(policy) => {
                self.policy_problem = None;
                self.keys = policy.keys().public_keys().cloned().collect();
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

    fn begin_to_read(&mut self, file: &Path, record: &mut FileRecord) {
        let (file, turns, settle) = (file.to_owned(), Arc::clone(&self.readers), self.settle);
        let (keys, data) = (Arc::clone(&self.keys), Arc::clone(&self.workshop.data));
        let task = self.tasks.spawn(async move {
            let _turn = turns.acquire_owned().await;
            let read = Box::new(read_head(file.clone(), keys, data, settle).await);
            TaskOutput::Read { file, read }
        });
        record.reading = Some(Task(task));
    }

    /// Which file claims which name: by what it says now, and by what serves from it still.
    fn claims(&self, before: &Table) -> Claims {
        let mut claims = Claims::default();
        for (file, record) in &self.files {
            if let Some(Ok(FileHead {
                manifest: Ok(manifest),
                ..
            })) = &record.head
            {
                claims.add(&manifest.name, file);
            }
            let entry = before.entries.get(file);
            if let Some(plugin) = entry.and_then(|entry| entry.serving.as_ref()) {
                claims.add(&plugin.manifest.name, file);
            }
        }
        claims
    }

    /// Decides what a file gets. Nothing is compiled for that.
    fn judge(&self, record: &FileRecord, claims: &Claims) -> Verdict {
        if let Some(reason) = &record.place {
            return Verdict::Refused(reason.clone());
        }
        let head = match &record.head {
            None => return Verdict::Unknown,
            Some(Err(reason)) => return Verdict::Refused(reason.clone()),
            Some(Ok(head)) => head,
        };
        let manifest = match &head.manifest {
            Ok(manifest) => manifest,
            Err(reason) => return Verdict::Refused(reason.clone()),
        };
        if let Some(doubled) = claims.doubled(&manifest.name) {
            return Verdict::Refused(doubled);
        }
        if !manifest.is_for(&self.workshop.device.identity().device_type) {
            return Verdict::OtherBoard;
        }
        match self.granted(manifest, &head.digest, &head.signatures) {
            Ok(grants) if matches!(grants.pin, Pin::Key(_)) => {
                match self.newest.check(manifest, &head.digest) {
                    Ok(()) => Verdict::Load(Box::new(grants)),
                    Err(downgrade) => Verdict::Refused(downgrade.to_string()),
                }
            }
            Ok(grants) => Verdict::Load(Box::new(grants)),
            Err(reason) => Verdict::Refused(reason),
        }
    }

    /// What the policy gives the file of this digest, signed like this, where that is all that its manifest claims.
    fn granted(
        &self,
        manifest: &Manifest,
        digest: &str,
        signatures: &Signatures,
    ) -> Result<Grants, String> {
        let Workshop {
            host_root,
            policy_files,
            allow_unpinned,
            ..
        } = &*self.workshop;
        let grants = match self
            .policy
            .of(&manifest.name, digest, signatures, host_root)
        {
            Err(_) if *allow_unpinned => self.policy.without_pin(&manifest.name, host_root),
            pinned => pinned.map_err(|error| error.to_string())?,
        };
        grants::check_routes_and_actions(manifest, &grants, &policy_files.owner)
            .map_err(|error| error.to_string())?;
        Ok(grants)
    }

    /// Has a file loaded that may be: linked at once where its native code is there, else compiled first.
    fn load(&mut self, file: &Path, grants: &Grants) {
        let Some(record) = self.files.get_mut(file) else {
            return;
        };
        if record.loaded_with(grants).is_some() || record.failed_with(grants).is_some() {
            return;
        }
        let Some(Ok(FileHead {
            digest,
            manifest: Ok(manifest),
            signatures,
            ..
        })) = &record.head
        else {
            return;
        };
        if let Some(component) = &record.component {
            let counters = self.counters.entry(manifest.name.clone()).or_default();
            let linked = self.workshop.link(
                component,
                digest.clone(),
                signatures.clone(),
                manifest.clone(),
                grants.clone(),
                Arc::clone(counters),
            );
            match linked {
                Ok(plugin) => {
                    if let Pin::Key(_) = grants.pin {
                        self.newest.loaded(manifest);
                    }
                    record.loaded = Some(Arc::new(plugin));
                    record.failure = None;
                }
                Err(error) => {
                    record.loaded = None;
                    record.failure = Some(Failure::Link(Box::new(grants.clone()), chain(&error)));
                }
            }
        } else if record.compiling.is_none() {
            let (workshop, turns) = (Arc::clone(&self.workshop), Arc::clone(&self.compilers));
            let (file, digest) = (file.to_owned(), digest.clone());
            let task = self.tasks.spawn(async move {
                let _turn = turns.acquire_owned().await;
                let component = compile(&workshop, &file, &digest).await;
                TaskOutput::Compiled {
                    file,
                    digest,
                    component,
                }
            });
            record.compiling = Some(Task(task));
        }
    }

    /// The version before of a file, where the policy as it is now gives it what it needs.
    fn still_granted(&self, plugin: &Arc<Loaded>, claims: &Claims) -> Option<Arc<Loaded>> {
        if claims.doubled(&plugin.manifest.name).is_some() {
            return None;
        }
        let signatures = &plugin.signatures;
        let granted = self.granted(&plugin.manifest, &plugin.digest, signatures);
        let grants = granted.ok()?;
        if grants == plugin.around.grants {
            return Some(Arc::clone(plugin));
        }
        let linked = self.workshop.link(
            plugin.pre.component(),
            plugin.digest.clone(),
            signatures.clone(),
            plugin.manifest.clone(),
            grants,
            Arc::clone(&plugin.counters),
        );
        linked.ok().map(Arc::new)
    }

    /// Puts the table together: those who serve stay as they are until the version that follows them
    /// fits in among the others.
    fn assemble(
        &self,
        verdicts: Vec<(PathBuf, Verdict)>,
        claims: &Claims,
        before: &Table,
    ) -> Table {
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
            let was = || entry.and_then(|entry| entry.other.clone());
            let other = match verdict {
                Verdict::Load(grants) => match record.loaded_with(&grants) {
                    Some(plugin) => {
                        assembly.offer(file, Arc::clone(plugin));
                        continue;
                    }
                    None => match record.failed_with(&grants) {
                        Some(reason) => Some(record.other(Some(reason.to_owned()))),
                        // It is being compiled.
                        None => was(),
                    },
                },
                Verdict::Unknown => was(),
                Verdict::OtherBoard => Some(record.other(None)),
                Verdict::Refused(reason) => Some(record.other(Some(reason))),
            };
            if let Some(other) = other {
                assembly.set_aside(file, other);
            }
        }
        assembly.table(self.policy_problem.clone())
    }
}

/// The native code of the file of this digest.
async fn compile(workshop: &Workshop, file: &Path, digest: &str) -> Result<Component, String> {
    let wasm = read_wasm(file.to_owned(), digest.to_owned()).await?;
    let compiled = workshop.compile(file, digest, &wasm).await;
    compiled.map_err(|error| chain(&error))
}

//! From files to the table in which requests are looked up.
//!
//! The policy is read, and the folders are listed, whenever one of them may have changed; that takes effect at once.
//! Files are read, and compiled if necessary, in separate tasks, so that nothing waits for a slow file. Which plugins
//! are loaded is decided from the files' manifests, before anything is compiled. Code that was compiled before is
//! loaded first, and no file waits for another. After each change, a new table is assembled and swapped in: a request
//! sees either the old one or the new one. If a version cannot be loaded, or claims what another plugin has, the old
//! one stays in use, as long as the policy grants what that one has.

mod native_code;
mod policy_state;
mod stand_in;
mod verdict;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plugin_protocol::GuestCode;
use plugin_protocol::text::cut;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::assembly::{Assembly, ExpectedPlugin};
use crate::bounds::MOST_FILES;
use crate::claims::Claims;
use crate::file_record::{FileRecord, LoadFailure, NativeCode, Task};
use crate::kept::KeptVersions;
use crate::load_context::LoadContext;
use crate::loaded::Counters;
use crate::newest::NewestVersions;
use crate::routes::ReservedRoutes;
use crate::settled_file::{FileHead, PluginFolders, Stamp, plugin_files, read_head};
use crate::table::{FileStanding, Table};
use policy_state::PolicyState;
use verdict::Verdict;

/// How long a file may be missing and still count as the same plugin's: `install` and others remove a file before they
/// write the next version under its name.
const REPLACED: Duration = Duration::from_millis(500);
/// How many files are read at a time: each is completely in memory.
const READ_AT_ONCE: usize = 4;

/// Loads plugins.
pub(crate) struct Loader {
    load_context: Arc<LoadContext>,
    folders: PluginFolders,
    reserved: ReservedRoutes,
    counters: HashMap<String, Arc<Counters>>,
    policy: PolicyState,
    newest: NewestVersions,
    kept: KeptVersions,
    files: BTreeMap<PathBuf, FileRecord>,
    /// How many files are ignored because there are too many.
    left_out: usize,
    tasks: JoinSet<TaskOutput>,
    readers: Arc<Semaphore>,
    /// Whether the device is starting: files are not being written then, and the order in which they are loaded must
    /// not matter.
    starts: bool,
}

/// The result of a task.
enum TaskOutput {
    Read {
        file: PathBuf,
        read: Box<Result<(Stamp, FileHead), String>>,
    },
    /// The native code of the file with this digest; `None` if it has to be compiled.
    Code {
        file: PathBuf,
        digest: String,
        code: Result<Option<Arc<dyn GuestCode>>, String>,
    },
}

impl Loader {
    /// Creates a loader that has not read anything yet.
    pub(crate) fn new(
        load_context: Arc<LoadContext>,
        kept: KeptVersions,
        folders: PluginFolders,
        reserved: ReservedRoutes,
    ) -> Loader {
        let policy = PolicyState::new(&load_context.policy_files);
        let newest = NewestVersions::new(Arc::clone(&load_context.services.data), kept.writes());
        Loader {
            load_context,
            folders,
            reserved,
            counters: HashMap::new(),
            policy,
            newest,
            kept,
            files: BTreeMap::new(),
            left_out: 0,
            tasks: JoinSet::new(),
            readers: Arc::new(Semaphore::new(READ_AT_ONCE)),
            starts: true,
        }
    }

    /// From now on, treats a file as complete only once it has stopped changing.
    pub(crate) fn expect_writers(&mut self) {
        self.starts = false;
    }

    /// Returns whether the device is starting: what is loaded now was there before.
    pub(crate) fn starts(&self) -> bool {
        self.starts
    }

    /// Returns whether the device is starting, and there are files whose contents are not known yet.
    fn reads_first(&self) -> bool {
        self.starts && self.files.values().any(FileRecord::is_to_be_read)
    }

    /// Reads the policy, and lists the existing files; starts to read those that have changed, once they are completely
    /// written.
    pub(crate) fn look(&mut self) {
        self.policy.read(&self.load_context);
        let mut last = std::mem::take(&mut self.files);
        let anybodys = self.load_context.allow_unpinned;
        let is_known = |file: &Path| last.get(file).and_then(FileRecord::manifest).is_some();
        let listing = plugin_files(&self.folders.paths, is_known);
        if listing.left_out != self.left_out {
            self.left_out = listing.left_out;
            tracing::warn!(
                "{} files in the plugin folders are ignored: at most {MOST_FILES} are read",
                listing.left_out
            );
        }
        for (file, place) in listing.files {
            let mut record = last.remove(&file).unwrap_or_default();
            record.place = place.filter(|_| !anybodys);
            record.pending_until = self.folders.pending_writes.deadline(&file);
            record.missing_until = None;
            if record.pending_until.is_some() {
                // It is checked again when it is closed, or at the deadline.
            } else if record.place.is_some() {
                // It is refused whatever it contains: whoever else can write there neither occupies a reader nor claims
                // the name of a plugin.
            } else if record.reading.is_some() {
                record.read_again = true;
            } else if record.stamp.is_none()
                || record.stamp != Stamp::read(&file).ok()
                || record.is_signed_by_others_than(&self.policy.keys)
            {
                self.begin_to_read(&file, &mut record);
            }
            self.files.insert(file, record);
        }
        self.keep_for_a_moment(&mut last);
        let files = &self.files;
        self.kept.forget_removed(|file| files.contains_key(file));
        self.keep_stand_ins(last);
        // Records dropped here are gone, and their tasks end.
    }

    /// Keeps the records of missing files for as long as these may be about to be replaced.
    fn keep_for_a_moment(&mut self, last: &mut BTreeMap<PathBuf, FileRecord>) {
        let now = Instant::now();
        let are_gone = last.extract_if(.., |_, record| record.stands_in_for.is_none());
        for (file, mut record) in are_gone {
            let deadline = *record.missing_until.get_or_insert(now + REPLACED);
            if deadline > now {
                record.pending_until = Some(deadline);
                self.files.insert(file, record);
            }
        }
    }

    /// Returns whether something is being read or compiled.
    pub(crate) fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Returns when to check again because a file was neither changed nor closed by its writer.
    pub(crate) fn deadline_of_writers(&self) -> Option<Instant> {
        let deadlines = self.files.values();
        let deadlines = deadlines.filter_map(|record| record.pending_until);
        deadlines.min()
    }

    /// Waits until something was read or compiled, and records it. Dropping the future loses nothing.
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
            Some(Ok(TaskOutput::Code { file, digest, code })) => {
                // If the file has a different content by now, that one is handled separately.
                let record = self.files.get_mut(&file);
                if let Some(record) = record.filter(|record| record.digest() == Some(&digest)) {
                    match code {
                        Ok(Some(code)) => record.code = NativeCode::Ready(code),
                        Ok(None) => record.code = NativeCode::Missing,
                        Err(reason) => {
                            record.code = NativeCode::Missing;
                            record.failure = Some(LoadFailure::Compile(reason));
                        }
                    }
                }
            }
            // The file is gone or was replaced.
            Some(Err(error)) if error.is_cancelled() => {}
            Some(Err(error)) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
            None => {}
        }
    }

    /// Builds the table that follows `before`, from everything that is known now. Starts to compile what the next table
    /// needs.
    pub(crate) fn table(&mut self, before: &Table) -> Table {
        let pending_writes = &self.folders.pending_writes;
        for (file, record) in &mut self.files {
            // A file that has been closed by now is checked next.
            record.pending_until = pending_writes.deadline(file).or(record.pending_until);
        }
        let claims = self.claims(before);
        let files = self.files.iter();
        let verdicts: Vec<_> = files
            .map(|(file, record)| (file.clone(), self.judge(record, &claims)))
            .collect();
        for (file, verdict) in &verdicts {
            if let Verdict::Load(grants) = verdict {
                self.load(file, grants);
            }
        }
        self.begin_to_compile(&verdicts);
        self.look_for_stand_ins(&verdicts, before);
        let stock_refusals = self.stock_refusals(&verdicts);
        let mut table = self.assemble(verdicts, &claims, before);
        table.stock_problems = stock_refusals
            .into_iter()
            .filter(|(name, _)| !table.serves(name))
            .map(|(name, reason)| format!("the stock plugin `{name}` does not load: {reason}"))
            .collect();
        self.keep_what_serves(&table);
        table
    }

    /// Returns the stock plugins that are refused because of their files, with the reason. What the policy does not
    /// grant is its owner's decision.
    fn stock_refusals(&self, verdicts: &[(PathBuf, Verdict)]) -> Vec<(String, String)> {
        let refused = verdicts.iter().filter_map(|(file, verdict)| {
            let record = self.files.get(file)?;
            if record.stands_in_for.is_some() {
                return None;
            }
            let reason = match (verdict, &record.failure) {
                (Verdict::Unknown, _) => return None,
                (Verdict::Refused(reason), _) | (_, Some(LoadFailure::Compile(reason))) => reason,
                _ => return None,
            };
            let name = record.name(file);
            let is_stock = self.policy.in_force.is_stock(&name);
            is_stock.then(|| (name, cut(reason.clone())))
        });
        refused.collect()
    }

    fn begin_to_read(&mut self, file: &Path, record: &mut FileRecord) {
        let (file, turns, settle) = (file.to_owned(), Arc::clone(&self.readers), !self.starts);
        let (keys, data) = (
            Arc::clone(&self.policy.keys),
            Arc::clone(&self.load_context.services.data),
        );
        let task = self.tasks.spawn(async move {
            let read = Box::new(read_head(file.clone(), keys, data, turns, settle).await);
            TaskOutput::Read { file, read }
        });
        record.reading = Some(Task(task));
    }

    /// Assembles the table: serving plugins stay until the versions that replace them fit in among the others.
    fn assemble(
        &self,
        verdicts: Vec<(PathBuf, Verdict)>,
        claims: &Claims,
        before: &Table,
    ) -> Table {
        let reads_first = self.reads_first();
        let mut assembly = Assembly::new(before, &self.reserved);
        for (file, verdict) in verdicts {
            let Some(record) = self.files.get(&file) else {
                continue;
            };
            if record.stands_in_for.is_some() {
                continue;
            }
            let entry = before.entries.get(&file);
            let last = entry.and_then(|entry| entry.serving.as_ref());
            let last = last.or_else(|| self.stand_in(&file, claims));
            // A file that is now for other boards is not for this one.
            let last = last.filter(|_| !matches!(verdict, Verdict::OtherBoard));
            // The same content with other grants replaces itself.
            let loaded = record.loaded.as_ref();
            let last = last.filter(|last| loaded.is_none_or(|now| now.digest != last.digest));
            let last = last.and_then(|last| self.still_granted(last, claims));
            let serves = last.is_some();
            if let Some(last) = last {
                assembly.keep(&file, last);
            }
            match verdict {
                Verdict::Load(grants) => {
                    let loaded = record.loaded_with(&grants).filter(|_| !reads_first);
                    let refused = record.failed_with(&grants);
                    if let Some(plugin) = loaded {
                        assembly.offer(file, Arc::clone(plugin));
                    } else if let Some(reason) = refused {
                        let standing = FileStanding::refused(reason);
                        assembly.set_aside(file, record.other(standing));
                    } else if let (Some(head), Some(manifest), false) =
                        (record.head(), record.manifest(), serves)
                    {
                        assembly.expect(ExpectedPlugin {
                            file,
                            manifest: manifest.clone(),
                            digest: head.digest.clone(),
                            is_boards_own: self.is_boards_own(&grants),
                        });
                    } else {
                        assembly.set_aside(file, record.other(FileStanding::Loading));
                    }
                }
                Verdict::Unknown => assembly.set_aside(file, record.other(FileStanding::Loading)),
                Verdict::OtherBoard => {
                    assembly.set_aside(file, record.other(FileStanding::OtherBoard));
                }
                Verdict::Refused(reason) => {
                    assembly.set_aside(file, record.other(FileStanding::refused(reason)));
                }
            }
        }
        assembly.table(self.policy.standing.clone(), reads_first)
    }
}

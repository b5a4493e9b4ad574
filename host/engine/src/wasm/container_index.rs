//! The records of all containers in memory, so that a change costs only what it touches rather than reading a file of
//! each container.
//!
//! The files remain authoritative. A record is read again after each change by the engine itself, whatever its result,
//! and if a check of the file finds that it has changed. So after a kill between two writes the next start finds
//! everything, and a damaged file affects only its own container.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::ContainerId;
use parking_lot::Mutex;

use super::component_file::FileMark;
use super::folders;
use super::record::{CONTAINER, ContainerRecord};

/// The contents of the containers' folder.
pub(super) struct ContainerIndex {
    folder: PathBuf,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    /// The mark of the folder when its names were read; `None` before that.
    folder: Option<FileMark>,
    /// By the name of the container's folder.
    entries: BTreeMap<String, Entry>,
}

struct Entry {
    /// `None` if there was no file.
    version: Option<FileMark>,
    /// `None` if the file is damaged: that is logged once for each version of it.
    record: Option<Arc<ContainerRecord>>,
}

impl ContainerIndex {
    pub(super) fn new(folder: PathBuf) -> Self {
        ContainerIndex {
            folder,
            contents: Mutex::default(),
        }
    }

    /// Returns all records as they were last read. Containers that were added or removed without this engine are
    /// noticed.
    pub(super) fn records(&self) -> Vec<Arc<ContainerRecord>> {
        let mut contents = self.contents.lock();
        if contents.folder.is_none() || contents.folder != mark_of(&self.folder) {
            self.look_at_folder(&mut contents);
        }
        contents.records()
    }

    /// Returns all current records: each file is checked, and read if it has changed.
    pub(super) fn current_records(&self) -> Vec<Arc<ContainerRecord>> {
        let mut contents = self.contents.lock();
        self.look_at_folder(&mut contents);
        for (name, entry) in &mut contents.entries {
            self.look_at(name, entry);
        }
        contents.records()
    }

    /// Returns the current record of one container.
    pub(super) fn record(&self, id: &ContainerId) -> Option<Arc<ContainerRecord>> {
        let mut contents = self.contents.lock();
        let entry = match contents.entries.get_mut(id.as_str()) {
            Some(entry) => {
                self.look_at(id.as_str(), entry);
                &*entry
            }
            None => {
                let entry = self.read(id.as_str());
                entry.version?;
                contents
                    .entries
                    .entry(id.as_str().to_owned())
                    .or_insert(entry)
            }
        };
        entry.record.clone()
    }

    /// Runs `change`, which creates or removes a container, and updates the index: even after an error the container
    /// may exist already, or be gone.
    pub(super) fn come_or_go<T>(&self, id: &ContainerId, change: impl FnOnce() -> T) -> T {
        // Other added or removed containers are read first, because the folder counts as checked after the change.
        self.records();
        let outcome = change();
        self.reread(id);
        let mut contents = self.contents.lock();
        contents.folder = mark_of(&self.folder);
        outcome
    }

    /// Reads a container's record again, after a write that may have failed halfway.
    pub(super) fn reread(&self, id: &ContainerId) {
        let mut contents = self.contents.lock();
        let entry = self.read(id.as_str());
        if entry.version.is_some() {
            contents.entries.insert(id.as_str().to_owned(), entry);
        } else {
            contents.entries.remove(id.as_str());
        }
    }

    fn look_at_folder(&self, contents: &mut Contents) {
        // Before the names: containers that are added while they are read are noticed the next time.
        let version = mark_of(&self.folder);
        let mut before = std::mem::take(&mut contents.entries);
        contents.entries = folders::names(&self.folder)
            .into_iter()
            .map(|name| {
                let entry = before.remove(&name).unwrap_or_else(|| self.read(&name));
                (name, entry)
            })
            .collect();
        contents.folder = version;
    }

    fn look_at(&self, name: &str, entry: &mut Entry) {
        if entry.version != mark_of(&self.folder.join(name).join(CONTAINER)) {
            *entry = self.read(name);
        }
    }

    fn read(&self, name: &str) -> Entry {
        let folder = self.folder.join(name);
        // Before the record: one that replaces it in between is read the next time.
        let version = mark_of(&folder.join(CONTAINER));
        Entry {
            version,
            record: ContainerRecord::read(&folder).map(Arc::new),
        }
    }
}

impl Contents {
    fn records(&self) -> Vec<Arc<ContainerRecord>> {
        let entries = self.entries.values();
        entries.filter_map(|entry| entry.record.clone()).collect()
    }
}

/// Returns `None` if there is no such file.
fn mark_of(path: &Path) -> Option<FileMark> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some(FileMark::from_metadata(&metadata))
}

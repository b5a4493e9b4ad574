//! The records of all containers in memory, so that a change costs what it touches rather than a file of each container.
//!
//! The files stay what counts. A record that changed on the disk is read again: after each change of the engine's own,
//! whatever came of it, and where a look at the file shows another one. So a kill between two writes loses nothing that
//! the next start does not find, and a file that somebody damages costs its own container alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::ContainerId;
use parking_lot::Mutex;

use super::component_file::FileMark;
use super::folders;
use super::record::{CONTAINER, ContainerRecord};

/// What the containers' folder holds.
pub(super) struct ContainerIndex {
    folder: PathBuf,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    /// The folder when its names were read; `None` before.
    folder: Option<FileMark>,
    /// By the name of the container's folder.
    entries: BTreeMap<String, Entry>,
}

struct Entry {
    /// `None` where there was no file.
    version: Option<FileMark>,
    /// `None` where the file is damaged: that is logged once for each version of it.
    record: Option<Arc<ContainerRecord>>,
}

impl ContainerIndex {
    pub(super) fn new(folder: PathBuf) -> Self {
        ContainerIndex {
            folder,
            contents: Mutex::default(),
        }
    }

    /// All records as they were last read. Containers that came or went without this engine are noticed.
    pub(super) fn records(&self) -> Vec<Arc<ContainerRecord>> {
        let mut contents = self.contents.lock();
        if contents.folder.is_none() || contents.folder != mark_of(&self.folder) {
            self.look_at_folder(&mut contents);
        }
        contents.records()
    }

    /// All records as they are now: each file is looked at, and read where it is another one than before.
    pub(super) fn current_records(&self) -> Vec<Arc<ContainerRecord>> {
        let mut contents = self.contents.lock();
        self.look_at_folder(&mut contents);
        for (name, entry) in &mut contents.entries {
            self.look_at(name, entry);
        }
        contents.records()
    }

    /// The record of one container as it is now.
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

    /// Makes or removes a container, and takes up what came of it: an error may come when it is there, or gone, already.
    pub(super) fn come_or_go<T>(&self, id: &ContainerId, change: impl FnOnce() -> T) -> T {
        // Whatever else came or went is taken up before, since the folder after the change is taken as looked at.
        self.records();
        let outcome = change();
        self.reread(id);
        let mut contents = self.contents.lock();
        contents.folder = mark_of(&self.folder);
        outcome
    }

    /// Reads a container's record again, after a write that may have failed in part.
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
        // Before the names: what comes while they are read is noticed the next time.
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
        // Before the record: one that takes its place meanwhile is read the next time.
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

/// `None` where there is no such file.
fn mark_of(path: &Path) -> Option<FileMark> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some(FileMark::of(&metadata))
}

//! The state that outlives a supervisor.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use store::Store;
use tempfile::TempDir;

use crate::engine::{MemoryEngine, service_of};
use crate::witness::app_of;

/// The uuid of every device: targets of a cloud name it.
pub(super) const UUID: &str = "0123456789abcdef0123456789abcdef";

/// A device between two supervisors.
pub(super) struct Image {
    pub(super) engine: MemoryEngine,
    pub(super) folder: TempDir,
}

/// The parts of a device that are copied while its supervisor runs.
#[derive(Clone)]
pub(super) struct Place {
    engine: MemoryEngine,
    folder: PathBuf,
}

/// The objects that no kill may cost.
#[derive(Debug)]
pub(super) struct Holdings {
    /// Ids, with `APP/SERVICE`.
    pub(super) containers: BTreeMap<String, String>,
    /// Names, with the number of each.
    pub(super) volumes: BTreeMap<String, u64>,
}

impl Image {
    /// Returns a device that has never run.
    pub(super) fn empty() -> Image {
        let folder = folder();
        fs::create_dir_all(folder.path().join("host")).unwrap();
        let mut opened = Store::open(&folder.path().join("state")).unwrap();
        let uuid = UUID.parse().unwrap();
        opened.store.adopt_device_uuid(&uuid).unwrap();
        Image {
            engine: MemoryEngine::new(),
            folder,
        }
    }

    pub(super) fn copy(&self) -> Image {
        self.place().image()
    }

    pub(super) fn place(&self) -> Place {
        Place {
            engine: self.engine.clone(),
            folder: self.folder.path().to_owned(),
        }
    }

    /// Returns the folder of all apps' lock folders.
    pub(super) fn locks(&self) -> PathBuf {
        let host = self.folder.path().join("host");
        host.join("tmp/platform-supervisor/services")
    }

    pub(super) fn holdings(&self) -> Holdings {
        Holdings {
            containers: services_by_id(&self.engine),
            volumes: self.engine.witness(|seen| seen.births.clone()),
        }
    }
}

/// Returns the containers by id, as `APP/SERVICE`.
pub(super) fn services_by_id(engine: &MemoryEngine) -> BTreeMap<String, String> {
    let containers = engine.held_containers().into_iter();
    containers
        .map(|container| {
            let service = format!("{}/{}", app_of(&container), service_of(&container));
            (container.id.to_string(), service)
        })
        .collect()
}

impl Place {
    /// Returns a copy of its current state: the committed state of the store, and every lock file.
    pub(super) fn image(&self) -> Image {
        let engine = self.engine.copy();
        let copy = folder();
        let state = copy.path().join("state");
        fs::create_dir(&state).unwrap();
        let database = Connection::open(self.folder.join("state/store.db")).unwrap();
        let path = state.join("store.db");
        let copying = database.execute("VACUUM INTO ?1", [path.to_str().unwrap()]);
        copying.unwrap();
        copy_file(&self.folder.join("state/identity"), &state.join("identity"));
        copy_folder(&self.folder.join("host"), &copy.path().join("host"));
        Image {
            engine,
            folder: copy,
        }
    }
}

/// Returns a folder in memory if possible: the disk is not what is tested.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// Copies a file, which may disappear meanwhile: a lock can be released at any time.
fn copy_file(from: &Path, to: &Path) {
    match fs::copy(from, to) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        copied => drop(copied.unwrap()),
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target)
        } else {
            copy_file(&entry.path(), &target)
        }
    }
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
}

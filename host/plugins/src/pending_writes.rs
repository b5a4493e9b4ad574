//! Which files of the plugin folders somebody is writing at the moment, by the kernel's events.
//!
//! Half of a file is no plugin, and says nothing about the whole. Its writer closes it, also by ending; so a file that
//! was written and not closed is left alone until then. One that nobody closes, and that does not change either, is
//! taken as it is after [`QUIET`].

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, event::Flag};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::settled_file::MOST_FILES;

/// For how long a file that is not closed is left alone after its last change. Longer than a copy stalls that waits for
/// a slow disk or network.
const QUIET: Duration = Duration::from_secs(10);

/// When each file that is being written was last changed; its clones share them.
#[derive(Clone, Default)]
pub(crate) struct PendingWrites {
    changes: Arc<Mutex<HashMap<PathBuf, Instant>>>,
}

impl PendingWrites {
    /// Takes note of an event about files of the plugin folders.
    pub(crate) fn note(&self, event: &Event) {
        if event.attrs.flag() == Some(Flag::Rescan) {
            // The kernel dropped events, and some files may have been closed by them.
            self.changes.lock().clear();
        }
        let plugins = event.paths.iter().filter(|path| is_plugin(path));
        match event.kind {
            EventKind::Create(_) => plugins
                .filter(|path| has_one_name(path))
                .for_each(|path| self.changed(path)),
            EventKind::Modify(ModifyKind::Data(_)) => plugins.for_each(|path| self.changed(path)),
            // What has another name by now is not what was written under this one.
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Remove(_) => {
                let mut changes = self.changes.lock();
                for path in plugins {
                    changes.remove(path);
                }
            }
            EventKind::Any | EventKind::Access(_) | EventKind::Modify(_) | EventKind::Other => {}
        }
    }

    /// Until when the file is left alone, if its writer neither changes nor closes it; none where nobody is writing it.
    pub(crate) fn deadline(&self, file: &Path) -> Option<Instant> {
        // Events have the absolute path.
        let file = std::path::absolute(file).ok()?;
        let deadline = *self.changes.lock().get(&file)? + QUIET;
        (deadline > Instant::now()).then_some(deadline)
    }

    fn changed(&self, file: &Path) {
        let now = Instant::now();
        let mut changes = self.changes.lock();
        if changes.len() >= MOST_FILES {
            // Names that nobody closes do not fill the memory.
            changes.retain(|_, changed| *changed + QUIET > now);
        }
        changes.insert(file.to_owned(), now);
    }
}

fn is_plugin(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "wasm")
}

/// Whether a file that has appeared was opened to be written. A link appears as well, and its content was written
/// elsewhere: nobody closes it here.
fn has_one_name(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|about| about.is_file() && about.nlink() == 1)
}

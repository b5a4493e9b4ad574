//! Which files in the plugin folders are being written at the moment, according to the kernel's events.
//!
//! Half a file is not a plugin, and says nothing about the whole. Its writer closes it, at the latest by exiting; so a
//! file that was written and not closed is left alone until then. One that is not closed, and does not change either,
//! is used as it is after [`QUIET`].

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

use crate::bounds::MOST_FILES;

/// How long a file that is not closed is left alone after its last change. Longer than a copy can stall on a slow disk
/// or network.
const QUIET: Duration = Duration::from_secs(10);

/// When each file that is being written was last changed; clones share this.
#[derive(Clone, Default)]
pub(crate) struct PendingWrites {
    changes: Arc<Mutex<HashMap<PathBuf, Instant>>>,
}

impl PendingWrites {
    /// Records an event about files in the plugin folders.
    pub(crate) fn note(&self, event: &Event) {
        if event.attrs.flag() == Some(Flag::Rescan) {
            // The kernel dropped events, and some of them may have reported that files were closed.
            self.changes.lock().clear();
        }
        let plugins = event.paths.iter().filter(|path| is_plugin(path));
        match event.kind {
            EventKind::Create(_) => plugins
                .filter(|path| has_one_name(path))
                .for_each(|path| self.changed(path)),
            EventKind::Modify(ModifyKind::Data(_)) => plugins.for_each(|path| self.changed(path)),
            // A file that was renamed is not the one that was written under this name.
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

    /// Returns until when the file is left alone if its writer neither changes nor closes it; `None` if it is not being
    /// written.
    pub(crate) fn deadline(&self, file: &Path) -> Option<Instant> {
        // Events contain the absolute path.
        let file = std::path::absolute(file).ok()?;
        let deadline = *self.changes.lock().get(&file)? + QUIET;
        (deadline > Instant::now()).then_some(deadline)
    }

    fn changed(&self, file: &Path) {
        let now = Instant::now();
        let mut changes = self.changes.lock();
        if changes.len() >= MOST_FILES {
            // Files that are never closed must not fill the memory.
            changes.retain(|_, changed| *changed + QUIET > now);
        }
        changes.insert(file.to_owned(), now);
    }
}

fn is_plugin(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "wasm")
}

/// Returns whether a new file was opened for writing. A link also appears as a new file, but its content was written
/// elsewhere, so it is not closed here.
fn has_one_name(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|about| about.is_file() && about.nlink() == 1)
}

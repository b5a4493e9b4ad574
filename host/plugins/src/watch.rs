//! Detects when plugin folders, the policy or the list of stock plugins may have changed.
//!
//! The kernel reports changes (inotify), so an idle device is not woken. What has changed is determined from the files
//! and not from the event: an event that was lost or came twice does no harm.
//!
//! For a missing folder, the nearest existing folder above it is watched. So a folder that is created, mounted or put
//! in place later works like one that existed from the start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::pending_writes::PendingWrites;
use crate::policy::PolicyFiles;

/// How often in a row a folder may have been replaced when it is checked again.
const ATTEMPTS: usize = 16;

/// Watches the folders until this is dropped.
pub(crate) struct Watch {
    watcher: RecommendedWatcher,
    /// The plugin folders, and those of the policy and of the list of stock plugins; absolute.
    folders: Vec<PathBuf>,
    /// What the kernel watches.
    watched: Vec<PathBuf>,
}

impl Watch {
    /// Notifies `changed` when a file in `folders`, or one of `policy`, was written, moved or removed, or when a folder
    /// appeared or disappeared, after `pending_writes` has recorded it. Then [`Watch::follow`] must be called.
    pub(crate) fn start(
        folders: &[PathBuf],
        policy: &PolicyFiles,
        changed: Arc<Notify>,
        pending_writes: PendingWrites,
    ) -> notify::Result<Watch> {
        let mut all = Vec::new();
        for folder in folders {
            all.push(std::path::absolute(folder)?);
        }
        let mut names = Vec::new();
        for file in [&policy.owner, &policy.stock] {
            let file = std::path::absolute(file)?;
            names.extend(file.file_name().map(ToOwned::to_owned));
            all.extend(file.parent().map(ToOwned::to_owned));
        }
        let ways = all.clone();
        let matters = move |path: &PathBuf| {
            path.extension()
                .is_some_and(|extension| extension == "wasm" || extension == "minisig")
                || names
                    .iter()
                    .any(|name| path.file_name() == Some(name.as_os_str()))
                || ways.iter().any(|folder| folder.starts_with(path))
        };
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let wake = match event {
                Ok(event) => {
                    pending_writes.note(&event);
                    is_change(event.kind)
                        && (event.paths.is_empty() || event.paths.iter().any(&matters))
                }
                // Events may have been lost.
                Err(_) => true,
            };
            if wake {
                changed.notify_one();
            }
        })?;
        let mut watch = Watch {
            watcher,
            folders: all,
            watched: Vec::new(),
        };
        watch.follow()?;
        Ok(watch)
    }

    /// Watches the folders as they are now. Must be called before they are listed.
    ///
    /// # Errors
    /// If the kernel cannot watch more; what was watched before still is.
    pub(crate) fn follow(&mut self) -> notify::Result<()> {
        let mut watched = Vec::new();
        for folder in &self.folders {
            for _ in 0..ATTEMPTS {
                let places = places(folder);
                for place in &places {
                    // Watch it again even if it is watched already: it may be another folder of that name.
                    match self.watcher.watch(place, RecursiveMode::NonRecursive) {
                        Err(error) if !is_gone(&error) => return Err(error),
                        _ => {}
                    }
                }
                // Changes before the kernel watched went unnoticed.
                if places == self::places(folder) {
                    watched.extend(places);
                    break;
                }
            }
        }
        for place in &self.watched {
            if !watched.contains(place) {
                // It is gone, or no longer needed.
                let _ = self.watcher.unwatch(place);
            }
        }
        self.watched = watched;
        Ok(())
    }
}

/// Returns where changes of `folder` are visible: in itself and, if it is a link or does not exist, in the nearest
/// folder above it.
fn places(folder: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if folder.is_dir() {
        places.push(folder.to_owned());
        if !folder.is_symlink() {
            return places;
        }
    }
    let above = folder.ancestors().skip(1).find(|above| above.is_dir());
    places.extend(above.map(ToOwned::to_owned));
    places
}

fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Returns whether a file was closed after writing, renamed or removed. A file that is being written will be closed;
/// [`PendingWrites`] says how long to wait for that.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Remove(_)
        | EventKind::Any
        | EventKind::Other => true,
        EventKind::Modify(notify::event::ModifyKind::Name(_)) => true,
        // Its owner, and who may write it.
        EventKind::Modify(notify::event::ModifyKind::Metadata(_)) => true,
        // A link is complete when it is created, and is never closed.
        EventKind::Create(_) => true,
        EventKind::Access(_) | EventKind::Modify(_) => false,
    }
}

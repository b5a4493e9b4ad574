//! Tells when plugin folders, the policy or the list of stock plugins may have changed.
//!
//! The kernel tells (inotify), so that an idle device is not woken. What has changed is not asked of the
//! event but of the files: an event that was lost or that came twice does no harm.
//!
//! A folder that is not there is waited for at the nearest one above it that is, so that a folder which
//! is made, mounted or put in place later is as good as one that was there from the start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::pending_writes::PendingWrites;
use crate::policy::PolicyFiles;

/// How often in a row a folder may be another one when it is looked at again.
const ATTEMPTS: usize = 16;

/// Watches until it is dropped.
pub(crate) struct Watch {
    watcher: RecommendedWatcher,
    /// The plugin folders, and those of the policy and of the list of stock plugins; absolute.
    folders: Vec<PathBuf>,
    /// What the kernel was asked to watch.
    watched: Vec<PathBuf>,
}

impl Watch {
    /// Notifies `changed` when a file of `folders`, or one of `policy`, was written, moved or removed, or when
    /// a folder came or went, and `pending_writes` has taken note of it; after that [`Watch::follow`] is to be called.
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

    /// Watches the folders as they are now. To be called before they are looked at.
    ///
    /// # Errors
    /// Where the kernel watches nothing more; what was watched before still is.
    pub(crate) fn follow(&mut self) -> notify::Result<()> {
        let mut watched = Vec::new();
        for folder in &self.folders {
            for _ in 0..ATTEMPTS {
                let places = places(folder);
                for place in &places {
                    // One that is watched already is asked for again: it may be another folder of that name.
                    match self.watcher.watch(place, RecursiveMode::NonRecursive) {
                        Err(error) if !is_gone(&error) => return Err(error),
                        _ => {}
                    }
                }
                // What came or went before the kernel watched did so unseen.
                if places == self::places(folder) {
                    watched.extend(places);
                    break;
                }
            }
        }
        for place in &self.watched {
            if !watched.contains(place) {
                // It is gone, or nobody waits at it any more.
                let _ = self.watcher.unwatch(place);
            }
        }
        self.watched = watched;
        Ok(())
    }
}

/// Where changes of `folder` are seen: in itself, and, where it is a link or not there at all, in the
/// nearest folder above it.
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

/// Closed after writing, renamed or removed. A file that is being written will be closed; [`PendingWrites`] says for how
/// long that is waited for.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Remove(_)
        | EventKind::Any
        | EventKind::Other => true,
        EventKind::Modify(notify::event::ModifyKind::Name(_)) => true,
        // Whose it is, and who may write it.
        EventKind::Modify(notify::event::ModifyKind::Metadata(_)) => true,
        // A link is there with its creation, and never closed.
        EventKind::Create(_) => true,
        EventKind::Access(_) | EventKind::Modify(_) => false,
    }
}

//! Tells when plugin folders or the policy may have changed.
//!
//! The kernel tells (inotify), so that an idle device is not woken. What has changed is not asked of the
//! event but of the files: an event that was lost or that came twice does no harm.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

/// Watches until it is dropped.
pub(crate) struct Watch {
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Notifies `changed` when a file of `folders`, or `policy`, was written, moved or removed.
    pub(crate) fn start(
        folders: &[PathBuf],
        policy: &Path,
        changed: Arc<Notify>,
    ) -> notify::Result<Watch> {
        let policy_name = policy.file_name().map(ToOwned::to_owned);
        let matters = move |path: &PathBuf| {
            path.extension()
                .is_some_and(|extension| extension == "wasm")
                || path.file_name() == policy_name.as_deref()
        };
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let wake = match event {
                Ok(event) => {
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
        let of_policy = policy
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        for folder in folders.iter().map(PathBuf::as_path).chain([of_policy]) {
            // A folder that is not there holds no plugins; it is looked at again at the next start.
            if folder.is_dir() {
                watcher.watch(folder, RecursiveMode::NonRecursive)?;
            }
        }
        Ok(Watch { _watcher: watcher })
    }
}

/// Closed after writing, renamed or removed. A file that is being written will be closed.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Remove(_)
        | EventKind::Any
        | EventKind::Other => true,
        EventKind::Modify(notify::event::ModifyKind::Name(_)) => true,
        // A link is there with its creation, and never closed.
        EventKind::Create(_) => true,
        EventKind::Access(_) | EventKind::Modify(_) => false,
    }
}

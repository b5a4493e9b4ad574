//! Reports when a file of the project is saved.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Folders in which builds write.
const BUILT: &[&str] = &[
    "target",
    "build",
    "node_modules",
    "__pycache__",
    ".git",
    ".venv",
];
/// How long the folder has to be quiet: editors write several files at once.
const QUIET: Duration = Duration::from_millis(100);

/// Watches a project's folder.
pub(crate) struct Watcher {
    changes: UnboundedReceiver<()>,
    /// Stops watching when it is dropped.
    _watcher: RecommendedWatcher,
}

impl Watcher {
    /// Watches the folder and everything below it.
    ///
    /// # Errors
    /// The system cannot watch it.
    pub(crate) fn new(folder: &Path) -> Result<Watcher> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("there is no folder `{}`", folder.display()))?;
        let (sender, changes) = unbounded_channel();
        let root = folder.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let is_change = event.is_ok_and(|event| {
                is_written(event.kind) && event.paths.iter().any(|path| is_source(&root, path))
            });
            if is_change {
                // If the receiver is gone, the command is ending.
                let _ = sender.send(());
            }
        })
        .context("cannot watch files")?;
        watcher
            .watch(&folder, RecursiveMode::Recursive)
            .with_context(|| format!("cannot watch `{}`", folder.display()))?;
        Ok(Watcher {
            changes,
            _watcher: watcher,
        })
    }

    /// Waits until something has been saved, and nothing else for a moment.
    ///
    /// # Errors
    /// Nothing is being watched any more.
    pub(crate) async fn changed(&mut self) -> Result<()> {
        self.changes
            .recv()
            .await
            .context("files are no longer watched")?;
        while let Ok(Some(())) = tokio::time::timeout(QUIET, self.changes.recv()).await {}
        Ok(())
    }
}

/// Returns whether an event changes a file's content or name. Reading a file also causes an event.
fn is_written(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Create(_)
            | EventKind::Remove(_)
            | EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Name(_))
            | EventKind::Access(AccessKind::Close(AccessMode::Write))
    )
}

/// Returns whether a file is one that an author writes.
fn is_source(root: &Path, path: &Path) -> bool {
    let Ok(path) = path.strip_prefix(root) else {
        return false;
    };
    let is_built = |part: Component| BUILT.iter().any(|built| part.as_os_str() == *built);
    let name: PathBuf = path.file_name().unwrap_or_default().into();
    let is_written_by_editors = name.to_string_lossy().starts_with('.')
        || name.to_string_lossy().ends_with('~')
        || name.extension() == Some(OsStr::new("swp"));
    let is_component = path.to_string_lossy().contains(".wasm");
    let is_lock = name == OsStr::new("Cargo.lock");
    !path.components().any(is_built) && !is_written_by_editors && !is_component && !is_lock
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_files_of_a_build_do_not_count_as_changes() {
        let root = Path::new("/home/ada/hello");
        for (path, expected) in [
            ("src/lib.rs", true),
            ("plugin.toml", true),
            ("device.toml", true),
            ("target/wasm32-wasip2/wasm/hello.wasm", false),
            ("hello.wasm", false),
            ("hello.wasm.new", false),
            ("src/.lib.rs.swp", false),
            ("src/lib.rs~", false),
            ("Cargo.lock", false),
        ] {
            assert_eq!(is_source(root, &root.join(path)), expected, "{path}");
        }
        assert!(!is_source(root, Path::new("/home/ada/other/lib.rs")));
    }
}

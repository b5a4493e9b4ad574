//! The files with which a new container reports that it has taken over (docs/spec/device.md#hand-over). They are in the
//! folder of the locks, which both containers see.

use std::io;

use model::{AppId, ServiceName};
use rustix::fs::AtFlags;

use super::Locks;

impl Locks {
    /// Removes the files with which a new container reports that it has taken over (docs/spec/device.md#hand-over), so
    /// that a file from an earlier time does not count for this hand-over. They are in the folder of the locks, which
    /// both containers see. A folder of that name stays, and counts as an immediate report. Blocks.
    pub(crate) fn forget_handover(&self, app: AppId, service: &ServiceName) {
        let failed = |name: &str, error: io::Error| {
            let path = self.folder(app, service).join(name);
            tracing::warn!(%error, path = %path.display(), "failed to remove `{}`", path.display());
        };
        let folder = match self.tree.service(app, service) {
            Ok(Some(folder)) => folder,
            Ok(None) => return,
            Err(error) => return failed("", error),
        };
        for name in &self.handed_over {
            match rustix::fs::unlinkat(&*folder, name, AtFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => failed(name, error.into()),
            }
        }
    }

    /// Returns whether a new container has reported that it has taken over. Any kind of file counts, as with locks.
    /// Blocks.
    pub(crate) fn is_handed_over(&self, app: AppId, service: &ServiceName) -> bool {
        let Ok(Some(folder)) = self.tree.service(app, service) else {
            return false;
        };
        let mut names = self.handed_over.iter();
        names.any(|name| rustix::fs::statat(&*folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }
}

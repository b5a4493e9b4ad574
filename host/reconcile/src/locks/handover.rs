//! The files by which a new container says that it has taken over (docs/spec/device.md#hand-over). They are in the
//! folder of the locks, which both containers see.

use std::io;

use model::{AppId, ServiceName};
use rustix::fs::AtFlags;

use super::Locks;

impl Locks {
    /// Removes the files by which a new container says that it has taken over (docs/spec/device.md#hand-over), so
    /// that one from an earlier time says nothing of this one. They are in the folder of the locks, which both
    /// containers see. A folder by that name stays, and says at once that it has been handed over. Blocks.
    pub(crate) fn forget_handover(&self, app: AppId, service: &ServiceName) {
        let failed = |name: &str, error: io::Error| {
            let path = self.folder(app, service).join(name);
            tracing::warn!(%error, "failed to remove `{}`", path.display());
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

    /// Whether a new container has said that it has taken over. A file counts whatever it is, as a lock does. Blocks.
    pub(crate) fn is_handed_over(&self, app: AppId, service: &ServiceName) -> bool {
        let Ok(Some(folder)) = self.tree.service(app, service) else {
            return false;
        };
        let mut names = self.handed_over.iter();
        names.any(|name| rustix::fs::statat(&*folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }
}

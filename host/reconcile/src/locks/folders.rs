//! The contents of the folder of all locks. A folder that cannot be read may hold a lock, so it counts as a failure and
//! not as empty.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use model::{AppId, ServiceName};
use rustix::fs::FileType;
use secure_fs::SecureDir;

use super::{LockError, Locks};

impl Locks {
    /// Returns the services that have a folder, by app, for each of `apps` or for all. A link to a folder does not
    /// count, nor does a name that no app or service can have.
    ///
    /// # Errors
    /// Returns [`LockError::Failed`] if a folder cannot be read.
    pub(super) fn services_on_disk(
        &self,
        apps: Option<&BTreeSet<AppId>>,
    ) -> Result<Vec<(AppId, BTreeSet<ServiceName>)>, LockError> {
        let apps = match apps {
            Some(apps) => apps.clone(),
            None => self.apps_on_disk()?,
        };
        let found = apps.into_iter().map(|app| {
            let services = self.services_of_app_on_disk(app)?;
            Ok((app, services))
        });
        found.collect()
    }

    /// Returns the apps that have a folder.
    pub(super) fn apps_on_disk(&self) -> Result<BTreeSet<AppId>, LockError> {
        let found = self.tree.services().and_then(entries);
        let found = found.map_err(unreadable(self.tree.services_path()))?;
        let apps = found.into_iter().filter_map(|(name, kind)| {
            let app = AppId(name.parse().ok()?);
            (app.to_string() == name && kind != FileType::Symlink).then_some(app)
        });
        Ok(apps.collect())
    }

    /// Returns the services of one app that have a folder, whether desired or not (docs/spec/device.md#locks-who).
    ///
    /// # Errors
    /// Returns [`LockError::Failed`] if the folder of the app cannot be read.
    pub(super) fn services_of_app_on_disk(
        &self,
        app: AppId,
    ) -> Result<BTreeSet<ServiceName>, LockError> {
        let found = self.tree.app(app).and_then(entries);
        let found = found.map_err(unreadable(self.tree.app_path(app)))?;
        let folders = found
            .into_iter()
            .filter(|(_, kind)| *kind == FileType::Directory);
        Ok(folders.filter_map(|(name, _)| name.parse().ok()).collect())
    }
}

fn entries(folder: Option<SecureDir>) -> io::Result<Vec<(String, FileType)>> {
    match folder {
        Some(folder) => secure_fs::read_dir_names(&folder),
        None => Ok(Vec::new()),
    }
}

pub(super) fn unreadable(path: PathBuf) -> impl FnOnce(io::Error) -> LockError {
    move |source| LockError::Failed { path, source }
}

//! What is in the folder of all locks. A folder that cannot be read may hold a lock, so it is a failure
//! and not an empty one.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::{AppId, ServiceName};

use super::{LockError, Locks};

impl Locks {
    /// The services that have a folder, by app, of each of `apps` or of all. A link to a folder is none,
    /// and so is what has a name that no app or service can have.
    ///
    /// # Errors
    /// [`LockError::Failed`] where a folder cannot be read.
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

    /// The apps that have a folder.
    pub(super) fn apps_on_disk(&self) -> Result<BTreeSet<AppId>, LockError> {
        let entries = entries(&self.services).map_err(unreadable(&self.services))?;
        let apps = entries.iter().filter_map(|entry| {
            let name = entry.file_name()?.to_str()?;
            let app = AppId(name.parse().ok()?);
            let is_link = fs::symlink_metadata(entry).is_ok_and(|about| about.is_symlink());
            (app.to_string() == name && !is_link).then_some(app)
        });
        Ok(apps.collect())
    }

    /// The services of one app that have a folder, wanted or not (device behaviour 3.4).
    ///
    /// # Errors
    /// [`LockError::Failed`] where the folder of the app cannot be read.
    pub(super) fn services_of_app_on_disk(
        &self,
        app: AppId,
    ) -> Result<BTreeSet<ServiceName>, LockError> {
        let folder = self.services.join(app.to_string());
        let folders = folders(&folder).map_err(unreadable(&folder))?;
        let names = folders
            .iter()
            .filter_map(|folder| folder.file_name()?.to_str()?.parse().ok());
        Ok(names.collect())
    }
}

/// The real folders in `folder`, none where it is missing; a link to a folder is none.
pub(super) fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = entries(folder)?;
    found.retain(|path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir()));
    Ok(found)
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> LockError {
    move |source| LockError::Failed {
        path: path.to_owned(),
        source,
    }
}

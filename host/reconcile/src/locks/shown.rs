//! The holders of all locks, as the lock folders show them.

use std::path::{Path, PathBuf};

use model::{AppId, LockHolder, ServiceName, UpdateLock, error_chain};

use super::file::LockFileKind;
use super::leases::Lease;
use super::{LockError, Locks, MAX_SWEPT};

impl Locks {
    /// Returns all locks that are currently held, by app and service, and the folders that cannot
    /// be read. Blocks.
    ///
    /// # Errors
    /// Returns [`LockError::Failed`] if the folder of all apps cannot be read.
    pub(crate) fn list(&self) -> Result<Vec<UpdateLock>, LockError> {
        // No lock may be listed between the write to the store and the change in its folder.
        let table = self.leases.lock();
        let mut locks = Vec::new();
        for app in self.apps_on_disk()? {
            let services = match self.services_of_app_on_disk(app) {
                Ok(services) => services,
                Err(error) => {
                    let path = self.tree.app_path(app);
                    locks.push(self.unreadable(app, None, &path, error_chain(&error)));
                    continue;
                }
            };
            for service in services {
                let lease = table.get(&(app, service.clone()));
                self.list_service(app, &service, lease, &mut locks);
            }
            if locks.len() > MAX_SWEPT {
                break;
            }
        }
        Ok(locks)
    }

    fn list_service(
        &self,
        app: AppId,
        service: &ServiceName,
        lease: Option<&Lease>,
        locks: &mut Vec<UpdateLock>,
    ) {
        let folder = match self.tree.service(app, service) {
            Ok(Some(folder)) => folder,
            Ok(None) => return,
            Err(error) => {
                let path = self.folder(app, service);
                locks.push(self.unreadable(app, Some(service), &path, error.to_string()));
                return;
            }
        };
        for file in self.lock_files(&folder) {
            let path = file.path();
            let holder = match file.kind(lease.map(Lease::token)) {
                Ok(LockFileKind::Nothing) => continue,
                Ok(LockFileKind::Supervisor) => LockHolder::Supervisor,
                Ok(LockFileKind::Leased) => match lease {
                    Some(lease) => LockHolder::Api(lease.shown()),
                    None => continue,
                },
                Ok(LockFileKind::Other(kind)) => LockHolder::File(kind),
                Err(error) => {
                    let why = error.to_string();
                    locks.push(self.unreadable(app, Some(service), &path, why));
                    continue;
                }
            };
            let since_ms = match (&holder, lease) {
                (LockHolder::Api(_), Some(lease)) => Some(lease.taken_at()),
                _ => file.since(),
            };
            locks.push(UpdateLock {
                app,
                service: Some(service.clone()),
                path: self.on_host(&path),
                holder,
                since_ms,
            });
        }
    }

    fn unreadable(
        &self,
        app: AppId,
        service: Option<&ServiceName>,
        path: &Path,
        why: String,
    ) -> UpdateLock {
        UpdateLock {
            app,
            service: service.cloned(),
            path: self.on_host(path),
            holder: LockHolder::Unreadable(why),
            since_ms: None,
        }
    }

    /// Returns a path below the host's root as the host itself sees it.
    pub(super) fn on_host(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.host_root) {
            Ok(below) => Path::new("/").join(below),
            Err(_) => path.to_owned(),
        }
    }
}

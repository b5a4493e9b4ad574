//! The supervisor's folder in `/tmp`, of which each service sees a part. Everybody may create files next to it, so it
//! is opened and checked once, and everything below it is reached through its descriptor: the folders of apps belong
//! only to the supervisor, the folder of a service also to that service.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{AppId, ServiceName};
use parking_lot::Mutex;
use secure_fs::{Access, SecureDir};

/// The mode of the folder of a service: any user in the service can put a lock into it, and remove only their own.
const SERVICE_MODE: u32 = 0o1777;
/// The folder of all locks, within the supervisor's.
const SERVICES: &str = "services";
/// The folder in which locks are written before they get their name; no service sees it.
const DRAFTS: &str = "lock-drafts";

/// The folder, opened at its first use.
#[derive(Debug)]
pub(super) struct LockTree {
    path: PathBuf,
    opened: Mutex<Option<SecureDir>>,
}

/// The folder of one service, open.
#[derive(Debug)]
pub(super) struct ServiceFolder {
    fd: OwnedFd,
    path: PathBuf,
}

impl LockTree {
    pub(super) fn new(path: PathBuf) -> Self {
        LockTree {
            path,
            opened: Mutex::default(),
        }
    }

    pub(super) fn services_path(&self) -> PathBuf {
        self.path.join(SERVICES)
    }

    pub(super) fn app_path(&self, app: AppId) -> PathBuf {
        self.services_path().join(app.to_string())
    }

    pub(super) fn service_path(&self, app: AppId, service: &ServiceName) -> PathBuf {
        self.app_path(app).join(service.as_str())
    }

    /// Returns the folder itself, created if it is missing. Parts of it are mounted into services by path, so if it is
    /// no longer at its path, it is opened again.
    fn top(&self) -> io::Result<SecureDir> {
        let mut opened = self.opened.lock();
        if let Some(top) = opened.as_ref().filter(|top| top.is_in_place()) {
            return Ok(top.clone());
        }
        let top = SecureDir::open_or_replace(&self.path, Access::Readable)?;
        *opened = Some(top.clone());
        Ok(top)
    }

    /// Returns the folder itself, if it exists; a folder that others created is moved away, and does not count.
    fn existing_top(&self) -> io::Result<Option<SecureDir>> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(_) => self.top().map(Some),
        }
    }

    /// Returns the folder of all locks, if it exists.
    pub(super) fn services(&self) -> io::Result<Option<SecureDir>> {
        match self.existing_top()? {
            Some(top) => Ok(top.existing_dir(SERVICES, Access::Readable)?),
            None => Ok(None),
        }
    }

    /// Returns the folder of one app, if it exists.
    pub(super) fn app(&self, app: AppId) -> io::Result<Option<SecureDir>> {
        match self.services()? {
            Some(services) => Ok(services.existing_dir(&app.to_string(), Access::Readable)?),
            None => Ok(None),
        }
    }

    /// Returns the folder of one service, if it exists.
    pub(super) fn service(
        &self,
        app: AppId,
        service: &ServiceName,
    ) -> io::Result<Option<Arc<ServiceFolder>>> {
        let Some(folder) = self.app(app)? else {
            return Ok(None);
        };
        match folder.shared_dir(service.as_str(), None) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => Ok(Some(self.opened_service(app, service, opened?))),
        }
    }

    /// Returns the folder of one service, created if it is missing, so that any user in the service can put a lock into
    /// it.
    pub(super) fn make_service(
        &self,
        app: AppId,
        service: &ServiceName,
    ) -> io::Result<Arc<ServiceFolder>> {
        let services = self.top()?.dir(SERVICES, Access::Readable)?;
        let folder = services.dir(&app.to_string(), Access::Readable)?;
        let opened = folder.shared_dir(service.as_str(), Some(SERVICE_MODE))?;
        Ok(self.opened_service(app, service, opened))
    }

    fn opened_service(&self, app: AppId, service: &ServiceName, fd: OwnedFd) -> Arc<ServiceFolder> {
        Arc::new(ServiceFolder {
            fd,
            path: self.service_path(app, service),
        })
    }

    /// Returns the folder in which locks are written, created if it is missing.
    pub(super) fn drafts(&self) -> io::Result<SecureDir> {
        Ok(self.top()?.dir(DRAFTS, Access::Private)?)
    }

    /// Removes the drafts of locks that a killed supervisor left.
    pub(super) fn clear_drafts(&self) {
        let drafts = match self.existing_top() {
            Ok(Some(top)) => top.existing_dir(DRAFTS, Access::Private),
            Ok(None) => return,
            Err(error) => {
                tracing::error!("failed to read the update locks: {error}");
                return;
            }
        };
        let Ok(Some(drafts)) = drafts else { return };
        for (name, _) in secure_fs::read_dir_names(&drafts).unwrap_or_default() {
            let _ = drafts.remove(&name);
        }
    }
}

impl ServiceFolder {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for ServiceFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

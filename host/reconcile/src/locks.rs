//! Update locks: files with which an app keeps its services from being disturbed (docs/spec/device.md#locks).
//!
//! A service is locked by its user if anything exists at its lock path: a file, even an empty one, a folder, a symbolic
//! link. The loop takes the locks of a whole app, or none, before the first step that disturbs one of its services.
//! Every such step requires the guard ([`UpdateLocks`]), so a forgotten lock does not compile.
//!
//! ```text
//! <host root>/tmp/platform-supervisor/services/<appId>/<service>/updates.lock
//! ```
//!
//! A lock is ours because of its content, a random id of this device, and not because of its owner: a service keeps its
//! own lock whatever user it runs as. The content is written before the file gets its name, so a kill at any moment
//! leaves no lock that looks like a user's. The folder of a service is writable by that service, so nothing in it is
//! trusted or followed. Everybody can write to `/tmp`, so the folders above are trusted only if they belong to this
//! supervisor ([`secure_fs`]).

mod all;
mod boot;
mod file;
mod folders;
mod handover;
mod leases;
mod shown;
mod tree;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{AppId, Branding, ServiceName};
use parking_lot::Mutex;
use store::Store;
use tokio::sync::Notify;

pub use all::AllLocks;
pub(crate) use all::LockSubjects;
use file::LockFile;
use folders::unreadable;
use leases::Leases;
use tree::{LockTree, ServiceFolder};
pub(crate) use watch::until_removed;

/// The maximum number of lock folders searched for locks of a killed supervisor.
const MAX_SWEPT: usize = 100_000;

/// Whether a user's lock is respected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockPolicy {
    /// A lock of a user is an error.
    Respect,
    /// A user's lock is removed for good and replaced by ours (docs/spec/device.md#locks-force).
    Override,
}

impl LockPolicy {
    pub(crate) fn forced(is_forced: bool) -> Self {
        if is_forced {
            LockPolicy::Override
        } else {
            LockPolicy::Respect
        }
    }
}

/// Which locks are taken in addition to those of the named services (docs/spec/device.md#locks-who).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockScope {
    /// None.
    Named,
    /// Those of all services that have a lock folder, even if they are neither current nor desired.
    WholeFolder,
}

/// Why the locks of an app were not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A user holds one.
    #[error("Lockfile exists for {{ appId: {app}, service: {service} }}")]
    Locked {
        /// The app whose locks were requested.
        app: AppId,
        /// The service that is locked.
        service: ServiceName,
        /// The lock file that a user created.
        path: PathBuf,
    },
    /// Another operation of this supervisor holds them.
    #[error("Locks for app {app} are being held by another supervisor operation")]
    Busy {
        /// The app whose locks were requested.
        app: AppId,
    },
    /// Another operation of this supervisor holds the locks of all apps, even if there are none.
    #[error("The locks of all apps are being held by another supervisor operation")]
    AllBusy,
    /// It is unknown whether the lock is held, so it counts as held, and no override helps.
    #[error("the update lock `{}` can be neither read nor taken", path.display())]
    Failed {
        /// The file or folder that caused the failure.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// All update locks of one device. Cheap to clone; its methods access the disk and must run on blocking threads.
#[derive(Debug, Clone)]
pub struct Locks {
    host_root: PathBuf,
    tree: Arc<LockTree>,
    marker: String,
    names: Vec<String>,
    /// The names of the files with which a new container reports that it has taken over.
    handed_over: Vec<String>,
    held: Arc<HeldLocks>,
    /// Locks that services took over the API.
    leases: Arc<Leases>,
    /// Serializes operations on all apps, which hold no file if there is no app.
    one_at_a_time: Arc<tokio::sync::Mutex<()>>,
}

/// The locks that this process holds.
#[derive(Debug, Default)]
struct HeldLocks {
    services: Mutex<BTreeSet<(AppId, ServiceName)>>,
    /// Notified when a lock is released.
    released: Notify,
}

/// Proof that the update locks of services of one app are held; dropping it releases them.
#[derive(Debug)]
#[must_use = "the locks are released as soon as this is dropped"]
pub struct UpdateLocks {
    app: AppId,
    held: BTreeMap<ServiceName, Vec<LockFile>>,
    registry: Arc<HeldLocks>,
}

impl Locks {
    /// Returns the locks below `host_root`. `marker` distinguishes this device's locks from all others; it must be the
    /// same after a restart. `store` keeps the locks that services take over the API.
    #[must_use]
    pub fn new(host_root: &Path, branding: &Branding, marker: &str, store: Store) -> Self {
        let folder = host_root.join(branding.host_folder());
        let mut names = vec!["updates.lock".to_owned()];
        let mut handed_over = vec!["handover-complete".to_owned()];
        for alias in &branding.aliases {
            let alias = alias.trim_end_matches('_').to_ascii_lowercase();
            names.push(format!("{alias}-updates.lock"));
            handed_over.push(format!("{alias}-kill-me"));
        }
        Locks {
            host_root: host_root.to_owned(),
            tree: Arc::new(LockTree::new(folder)),
            marker: marker.to_owned(),
            names,
            handed_over,
            held: Arc::default(),
            leases: Arc::new(Leases::new(store, boot::id(host_root))),
            one_at_a_time: Arc::default(),
        }
    }

    /// Runs `work` on a thread that may block; returns `None` if the supervisor is stopping or `work` panicked.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Locks) -> T + Send + 'static,
    ) -> Option<T> {
        let locks = self.clone();
        tokio::task::spawn_blocking(move || work(&locks)).await.ok()
    }

    /// Returns the folder of one service, which is mounted into it.
    #[must_use]
    pub fn folder(&self, app: AppId, service: &ServiceName) -> PathBuf {
        self.tree.service_path(app, service)
    }

    /// Creates the folder of a service if necessary, so that any user in the service can put a lock into it.
    ///
    /// # Errors
    /// If it cannot be created, is not a folder, or is in a folder that others can write to.
    pub fn prepare(&self, app: AppId, service: &ServiceName) -> io::Result<()> {
        self.tree.make_service(app, service).map(drop)
    }

    /// Like [`Self::take`], but depending on `scope` also for all services that have a lock folder, and without
    /// services whose lock is in `held`. Returns `None` if none are left.
    ///
    /// # Errors
    /// Like [`Self::take`].
    pub(crate) fn take_missing(
        &self,
        app: AppId,
        mut services: BTreeSet<ServiceName>,
        scope: LockScope,
        held: &[Arc<UpdateLocks>],
        policy: LockPolicy,
    ) -> Result<Option<UpdateLocks>, LockError> {
        if scope == LockScope::WholeFolder {
            services.append(&mut self.services_of_app_on_disk(app)?);
        }
        services.retain(|service| !held.iter().any(|guard| guard.covers(service)));
        if services.is_empty() {
            Ok(None)
        } else {
            self.take(app, &services, policy).map(Some)
        }
    }

    /// Takes the locks of all `services` of `app`, or none of them.
    ///
    /// # Errors
    /// Returns [`LockError::Locked`] if a user holds one, [`LockError::Busy`] if this process does.
    pub fn take(
        &self,
        app: AppId,
        services: &BTreeSet<ServiceName>,
        policy: LockPolicy,
    ) -> Result<UpdateLocks, LockError> {
        let mut guard = self.reserve(app, services)?;
        let mut leases = self.leases.lock();
        for service in services {
            let folder = self.tree.make_service(app, service);
            let folder = folder.map_err(unreadable(self.folder(app, service)))?;
            for file in self.lock_files(&folder) {
                if policy == LockPolicy::Override && !file.is_ours() {
                    file.clear();
                }
                let is_ours = file.take(&self.tree).map_err(unreadable(file.path()))?;
                if !is_ours {
                    return Err(LockError::Locked {
                        app,
                        service: service.clone(),
                        path: file.path(),
                    });
                }
                guard.held.entry(service.clone()).or_default().push(file);
            }
            // The holder over the API has released it by removing the file, or was overridden.
            self.leases.forget(&mut leases, app, service);
        }
        Ok(guard)
    }

    /// Returns the number of services whose locks this process holds.
    pub(crate) fn held(&self) -> usize {
        self.held.services.lock().len()
    }

    /// Returns those `services` of `app` whose locks users hold, once per lock file. The result is a snapshot: taking
    /// the locks is the only way to be sure.
    pub(crate) fn locked_by_users(
        &self,
        app: AppId,
        services: &BTreeSet<ServiceName>,
    ) -> Vec<ServiceName> {
        let mut locked = Vec::new();
        for service in services {
            let Ok(Some(folder)) = self.tree.service(app, service) else {
                continue;
            };
            for file in self.lock_files(&folder) {
                if file.look().is_ok() && !file.is_ours() {
                    locked.push(service.clone());
                }
            }
        }
        locked
    }

    /// Returns the possible locks in the folder of a service, with this device's marker.
    fn lock_files(&self, folder: &Arc<ServiceFolder>) -> Vec<LockFile> {
        let names = self.names.iter();
        names
            .map(|name| LockFile::new(folder, name, &self.marker))
            .collect()
    }

    /// Registers that this process is about to hold the locks: otherwise a second operation would mistake the files of
    /// the first for leftovers.
    fn reserve(
        &self,
        app: AppId,
        services: &BTreeSet<ServiceName>,
    ) -> Result<UpdateLocks, LockError> {
        let mut registry = self.held.services.lock();
        let keys = || services.iter().map(|service| (app, service.clone()));
        if keys().any(|key| registry.contains(&key)) {
            return Err(LockError::Busy { app });
        }
        registry.extend(keys());
        let reserved = services.iter().map(|service| (service.clone(), Vec::new()));
        Ok(UpdateLocks {
            app,
            held: reserved.collect(),
            registry: Arc::clone(&self.held),
        })
    }

    /// Removes every lock that a killed supervisor of this device left. Called at the start, before any is taken.
    pub fn sweep(&self) {
        self.tree.clear_drafts();
        let apps = self.apps_on_disk().unwrap_or_default().into_iter();
        let services = apps.flat_map(|app| {
            // A folder that cannot be read keeps its locks, and its app stays unchanged.
            let services = self.services_of_app_on_disk(app).unwrap_or_default();
            services.into_iter().map(move |service| (app, service))
        });
        for (app, service) in services.take(MAX_SWEPT) {
            if let Ok(Some(folder)) = self.tree.service(app, &service) {
                self.lock_files(&folder).iter().for_each(LockFile::release);
            }
        }
    }
}

impl UpdateLocks {
    /// Returns the app of these locks.
    #[must_use]
    pub fn app(&self) -> AppId {
        self.app
    }

    /// Returns whether the lock of `service` is among them.
    #[must_use]
    pub fn covers(&self, service: &ServiceName) -> bool {
        self.held.contains_key(service)
    }
}

impl Drop for UpdateLocks {
    fn drop(&mut self) {
        for file in self.held.values().flatten() {
            file.release();
        }
        let mut registry = self.registry.services.lock();
        for service in self.held.keys() {
            registry.remove(&(self.app, service.clone()));
        }
        drop(registry);
        self.registry.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests;

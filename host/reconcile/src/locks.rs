//! Update locks: files by which an app keeps its services from being disturbed (docs/spec/device.md#locks).
//!
//! A service is locked by its user when anything exists at its lock path: a file, even an empty one, a
//! folder, a symbolic link. The loop takes the locks of a whole app, or none, before the first step
//! that disturbs one of its services; every such step asks for the guard ([`UpdateLocks`]), so a
//! forgotten lock does not compile.
//!
//! ```text
//! <host root>/tmp/platform-supervisor/services/<appId>/<service>/updates.lock
//! ```
//!
//! What marks a lock as ours is its content, a random id of this device, and not who owns the file: a
//! service that runs as any user keeps its own lock. The content is written before the file gets its
//! name, so a kill at any moment leaves no lock that looks like a user's. The folder of a service is
//! writable by that service, so nothing in it is trusted or followed. Everybody can write into `/tmp`, so the
//! folders above are trusted only where they are this supervisor's own ([`secure_fs`]).

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

/// Lock folders that are looked at when what a killed supervisor left is cleared.
const MAX_SWEPT: usize = 100_000;

/// Whether a user's lock is respected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockPolicy {
    /// A lock of a user is an error.
    Respect,
    /// A user's lock is removed for good, and ours put in its place (docs/spec/device.md#locks-force).
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

/// Whose locks are taken beside those of the services that are named (docs/spec/device.md#locks-who).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockScope {
    /// Nobody's.
    Named,
    /// Those of all that have a lock folder, also of services that are neither current nor wanted.
    WholeFolder,
}

/// Why the locks of an app were not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A user holds one.
    #[error("Lockfile exists for {{ appId: {app}, service: {service} }}")]
    Locked {
        /// The app whose locks were wanted.
        app: AppId,
        /// The service that is locked.
        service: ServiceName,
        /// The lock file that a user put there.
        path: PathBuf,
    },
    /// Another operation of this supervisor holds them.
    #[error("Locks for app {app} are being held by another supervisor operation")]
    Busy {
        /// The app whose locks were wanted.
        app: AppId,
    },
    /// Another operation of this supervisor holds those of all apps, of which there may be none.
    #[error("The locks of all apps are being held by another supervisor operation")]
    AllBusy,
    /// Nobody knows whether it is held, so it counts as held, and no override helps.
    #[error("the update lock `{}` can be neither read nor taken", path.display())]
    Failed {
        /// The file or folder that it failed on.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// All update locks of one device. Cheap to clone; its methods touch the disk and are for blocking
/// threads.
#[derive(Debug, Clone)]
pub struct Locks {
    host_root: PathBuf,
    tree: Arc<LockTree>,
    marker: String,
    names: Vec<String>,
    /// Files by which a new container says that it has taken over.
    handed_over: Vec<String>,
    held: Arc<HeldLocks>,
    /// What services took over the API.
    leases: Arc<Leases>,
    /// Operations on all apps, which hold no file where there is no app.
    one_at_a_time: Arc<tokio::sync::Mutex<()>>,
}

/// What this process holds.
#[derive(Debug, Default)]
struct HeldLocks {
    services: Mutex<BTreeSet<(AppId, ServiceName)>>,
    /// Told when something is given back.
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
    /// The locks below `host_root`. `marker` tells this device's locks from all others; it must be
    /// the same after a restart. `store` keeps what services take over the API.
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

    /// Runs `work` on a thread that may block; `None` where the supervisor is stopping, or `work` panicked.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Locks) -> T + Send + 'static,
    ) -> Option<T> {
        let locks = self.clone();
        tokio::task::spawn_blocking(move || work(&locks)).await.ok()
    }

    /// The folder of one service, that is mounted into it.
    #[must_use]
    pub fn folder(&self, app: AppId, service: &ServiceName) -> PathBuf {
        self.tree.service_path(app, service)
    }

    /// Makes sure that the folder of a service is there and that any user in the service can put a
    /// lock into it.
    ///
    /// # Errors
    /// Where it cannot be made, is no folder, or stands in one that others can write into.
    pub fn prepare(&self, app: AppId, service: &ServiceName) -> io::Result<()> {
        self.tree.make_service(app, service).map(drop)
    }

    /// As [`Self::take`], for the services that have a lock folder as well, wanted or not, but those of
    /// which a lock is held in `held`. `None` where that is all of them.
    ///
    /// # Errors
    /// As [`Self::take`].
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
    /// [`LockError::Locked`] where a user holds one, [`LockError::Busy`] where this process does.
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
            // Whoever held it over the API gave it back as a file, or was overridden.
            self.leases.forget(&mut leases, app, service);
        }
        Ok(guard)
    }

    /// How many services' locks this process holds.
    pub(crate) fn held(&self) -> usize {
        self.held.services.lock().len()
    }

    /// Of `services` of `app` those whose locks users hold, once for each lock file. An answer of the moment: taking the
    /// locks is the only way to be sure.
    pub(crate) fn of_users(
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

    /// The locks that can stand in the folder of a service, with this device's marker.
    fn lock_files(&self, folder: &Arc<ServiceFolder>) -> Vec<LockFile> {
        let names = self.names.iter();
        names
            .map(|name| LockFile::new(folder, name, &self.marker))
            .collect()
    }

    /// Notes that this process is about to hold the locks: without that, a second operation would
    /// take the files of the first for left-overs.
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

    /// Removes every lock that a killed supervisor of this device left. For the start, before any is
    /// taken.
    pub fn sweep(&self) {
        self.tree.clear_drafts();
        let apps = self.apps_on_disk().unwrap_or_default().into_iter();
        let services = apps.flat_map(|app| {
            // A folder that cannot be read keeps its locks, and its app as it is.
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
    /// Whose locks these are.
    #[must_use]
    pub fn app(&self) -> AppId {
        self.app
    }

    /// Whether the lock of `service` is among them.
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

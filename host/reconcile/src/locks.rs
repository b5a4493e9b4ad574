//! Update locks: files by which an app keeps its services from being disturbed (device behaviour 3).
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
//! writable by that service, so nothing in it is trusted or followed.

mod all;
mod boot;
mod file;
mod folders;
mod leases;
mod shown;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{AppId, Branding, ServiceName};
use store::Store;
use tokio::sync::Notify;

pub use all::AllLocks;
pub(crate) use all::Locking;
use file::LockPath;
use folders::folders;
use leases::Leases;
pub(crate) use watch::until_removed;

/// Lock folders that are looked at when what a killed supervisor left is cleared.
const MAX_SWEPT: usize = 100_000;

/// Whether a user's lock is respected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockPolicy {
    /// A lock of a user is an error.
    Respect,
    /// A user's lock is removed for good, and ours put in its place (device behaviour 3.3).
    Override,
}

/// Whose locks are taken beside those of the services that are named (device behaviour 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
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
    services: PathBuf,
    /// Where locks are written before they get their name: a folder that no service sees.
    drafts: PathBuf,
    marker: String,
    names: Vec<String>,
    /// Files by which a new container says that it has taken over.
    handed_over: Vec<String>,
    held: Arc<Held>,
    /// What services took over the API.
    leases: Arc<Leases>,
    /// Operations on all apps, which hold no file where there is no app.
    one_at_a_time: Arc<tokio::sync::Mutex<()>>,
}

/// What this process holds.
#[derive(Debug, Default)]
struct Held {
    services: Mutex<BTreeSet<(AppId, ServiceName)>>,
    /// Told when something is given back.
    released: Notify,
}

/// Proof that the update locks of services of one app are held; dropping it releases them.
#[derive(Debug)]
#[must_use = "the locks are released as soon as this is dropped"]
pub struct UpdateLocks {
    app: AppId,
    held: BTreeMap<ServiceName, Vec<LockPath>>,
    registry: Arc<Held>,
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
            services: folder.join("services"),
            drafts: folder.join("lock-drafts"),
            marker: marker.to_owned(),
            names,
            handed_over,
            held: Arc::default(),
            leases: Arc::new(Leases::new(store, boot::id(host_root))),
            one_at_a_time: Arc::default(),
        }
    }

    /// The folder of one service, that is mounted into it.
    #[must_use]
    pub fn folder(&self, app: AppId, service: &ServiceName) -> PathBuf {
        self.services.join(app.to_string()).join(service.as_str())
    }

    /// The files of which a new container makes one when it has taken over (device behaviour 5.5). They
    /// are in the folder of the locks, which both containers see.
    pub(crate) fn handover_files(&self, app: AppId, service: &ServiceName) -> Vec<PathBuf> {
        let folder = self.folder(app, service);
        let names = self.handed_over.iter();
        names.map(|name| folder.join(name)).collect()
    }

    /// Makes sure that the folder of a service is there and that any user in the service can put a
    /// lock into it.
    ///
    /// # Errors
    /// Where it cannot be made, or is no folder.
    pub fn prepare(&self, app: AppId, service: &ServiceName) -> io::Result<()> {
        let folder = self.folder(app, service);
        fs::create_dir_all(&folder)?;
        // Not followed: the mode of whatever a link names is none of our business.
        if !fs::symlink_metadata(&folder)?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777))
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
        reach: Reach,
        held: &[Arc<UpdateLocks>],
        policy: LockPolicy,
    ) -> Result<Option<UpdateLocks>, LockError> {
        if reach == Reach::WholeFolder {
            services.append(&mut self.services_of_app_on_disk(app)?);
        }
        services.retain(|service| !held.iter().any(|guard| guard.covers(service)));
        match services.is_empty() {
            true => Ok(None),
            false => self.take(app, &services, policy).map(Some),
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
            let folder = self.folder(app, service);
            let failed = |source| LockError::Failed {
                path: folder.clone(),
                source,
            };
            self.prepare(app, service).map_err(failed)?;
            for name in &self.names {
                let path = LockPath::new(folder.join(name), self.marker.clone());
                if policy == LockPolicy::Override && !path.is_ours() {
                    path.clear();
                }
                let taken = path
                    .take(&self.drafts)
                    .map_err(|source| LockError::Failed {
                        path: path.path().to_owned(),
                        source,
                    })?;
                if !taken {
                    return Err(LockError::Locked {
                        app,
                        service: service.clone(),
                        path: path.path().to_owned(),
                    });
                }
                guard.held.entry(service.clone()).or_default().push(path);
            }
            // Whoever held it over the API gave it back as a file, or was overridden.
            self.leases.forget(&mut leases, app, service);
        }
        Ok(guard)
    }

    /// How many services' locks this process holds.
    pub(crate) fn held(&self) -> usize {
        lock(&self.held.services).len()
    }

    /// The locks that users hold on `services` of `app`. An answer of the moment, for whoever asks: taking
    /// them is the only way to be sure.
    pub(crate) fn of_users(
        &self,
        app: AppId,
        services: &BTreeSet<ServiceName>,
    ) -> Vec<(ServiceName, PathBuf)> {
        let mut held = Vec::new();
        for service in services {
            let folder = self.folder(app, service);
            for name in &self.names {
                let path = LockPath::new(folder.join(name), self.marker.clone());
                if fs::symlink_metadata(path.path()).is_ok() && !path.is_ours() {
                    held.push((service.clone(), path.path().to_owned()));
                }
            }
        }
        held
    }

    /// Notes that this process is about to hold the locks: without that, a second operation would
    /// take the files of the first for left-overs.
    fn reserve(
        &self,
        app: AppId,
        services: &BTreeSet<ServiceName>,
    ) -> Result<UpdateLocks, LockError> {
        let mut registry = lock(&self.held.services);
        let mut wanted = services.iter().map(|service| (app, service.clone()));
        if wanted.any(|service| registry.contains(&service)) {
            return Err(LockError::Busy { app });
        }
        registry.extend(services.iter().map(|service| (app, service.clone())));
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
        let _ = fs::remove_dir_all(&self.drafts);
        let below = |folder: PathBuf| folders(&folder).unwrap_or_default();
        let services = below(self.services.clone()).into_iter().flat_map(below);
        for folder in services.take(MAX_SWEPT) {
            for name in &self.names {
                LockPath::new(folder.join(name), self.marker.clone()).release();
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
        for path in self.held.values().flatten() {
            path.release();
        }
        let mut registry = lock(&self.registry.services);
        for service in self.held.keys() {
            registry.remove(&(self.app, service.clone()));
        }
        drop(registry);
        self.registry.released.notify_waiters();
    }
}

/// A set behind this lock is whole between any two statements, so a panic elsewhere leaves it usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

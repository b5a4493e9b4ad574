//! Locks that services take over the API, with a reason and for a limited time. Each is a real file in the lock folder,
//! so the rules of update locks apply to it as they do to a user's. The store holds the data that the file cannot, and
//! restores the lock after a reboot if that was requested.
//!
//! The record is stored before the file is created, and the file is removed before the record is: a kill in between
//! leaves no file that nobody would ever remove. Removing the file by hand releases the lock.

mod recall;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use model::{
    ApiLock, AppId, LockHolder, LockRefusal, LockRequest, ServiceName, UpdateLock, error_chain,
};
use parking_lot::{Mutex, MutexGuard};
use store::{LockRecord, Store};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::file::{LockFile, LockFileKind};
use super::tree::ServiceFolder;
use super::{Locks, boot};
use crate::clock::now_ms;

/// All of them. Every operation that takes, releases or overrides one holds this lock until it is done.
#[derive(Debug)]
pub(super) struct Leases {
    store: Store,
    boot: String,
    table: Mutex<LeaseTable>,
    /// Notified when a lock was taken, renewed or released.
    changed: Notify,
}

pub(super) type LeaseTable = BTreeMap<(AppId, ServiceName), Lease>;

/// One lock.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    record: LockRecord,
    until: Instant,
}

impl Leases {
    pub(super) fn new(store: Store, boot: String) -> Self {
        Leases {
            store,
            boot,
            table: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LeaseTable> {
        self.table.lock()
    }

    /// Forgets the lock of a service after its file was removed.
    pub(super) fn forget(&self, table: &mut LeaseTable, app: AppId, service: &ServiceName) {
        if table.remove(&(app, service.clone())).is_none() {
            return;
        }
        // A record that stays in the store is forgotten at the next start, since its file is gone.
        self.forget_record(app, service);
        self.changed.notify_one();
    }

    fn forget_record(&self, app: AppId, service: &ServiceName) {
        if let Err(error) = self.store.forget_lock(app, service) {
            tracing::warn!(
                %app, %service,
                "failed to delete the record of the update lock of `{service}`: {}",
                error_chain(&error)
            );
        }
    }
}

impl Lease {
    pub(super) fn token(&self) -> &str {
        &self.record.token
    }

    pub(super) fn taken_at(&self) -> i64 {
        self.record.taken_at
    }

    pub(super) fn shown(&self) -> ApiLock {
        let left = self.until.saturating_duration_since(Instant::now());
        let left = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
        ApiLock {
            reason: self.record.reason.clone(),
            ttl: milliseconds(self.record.ttl),
            expires_ms: now_ms().saturating_add(left),
            survives_reboot: self.record.survives_reboot,
        }
    }
}

impl Locks {
    /// Takes the lock on behalf of a service, or renews the lock that it already holds. Blocks.
    ///
    /// # Errors
    /// Returns [`LockRefusal`]; a lock that was held before is still held.
    pub(crate) fn lease(&self, request: &LockRequest) -> Result<UpdateLock, LockRefusal> {
        let (app, service) = (request.app, &request.service);
        let mut table = self.leases.lock();
        let folder = self.tree.make_service(app, service);
        let folder = folder.map_err(failed(self.folder(app, service)))?;
        let key = (app, service.clone());
        let file = self.lease_path(app, service);
        let earlier = table.get(&key).filter(|lease| self.stands(lease)).cloned();
        self.refuse_others(app, service, earlier.as_ref())?;

        let ttl = i64::try_from(request.ttl.as_millis()).unwrap_or(i64::MAX);
        let now = now_ms();
        let mut record = LockRecord {
            app,
            service: service.clone(),
            token: match &earlier {
                Some(earlier) => earlier.record.token.clone(),
                None => secure_fs::random_hex().map_err(failed(file.clone()))?,
            },
            reason: request.reason.clone(),
            ttl,
            taken_at: earlier.as_ref().map_or(now, Lease::taken_at),
            expires_at: now.saturating_add(ttl),
            boot: self.leases.boot.clone(),
            expires_in_boot: boot::uptime_ms().saturating_add(ttl),
            survives_reboot: request.survives_reboot,
            is_placed: earlier.is_some(),
        };
        self.store_lock(&record)?;
        if earlier.is_none() {
            let lock = self.lock_with(&folder, &record.token);
            let placed = lock.take(&self.tree).map_err(failed(file.clone()));
            record.is_placed = true;
            let placed = match placed {
                Ok(true) => self.store_lock(&record),
                // It was free a moment ago.
                Ok(false) => self.refuse_others(app, service, None),
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = placed {
                lock.release();
                table.insert(key.clone(), Lease::new(record, request.ttl));
                self.leases.forget(&mut table, app, service);
                return Err(refusal);
            }
        }
        let lease = Lease::new(record, request.ttl);
        let update_lock = UpdateLock {
            app,
            service: Some(service.clone()),
            path: self.on_host(&file),
            since_ms: Some(lease.taken_at()),
            holder: LockHolder::Api(lease.shown()),
        };
        table.insert(key, lease);
        self.leases.changed.notify_one();
        Ok(update_lock)
    }

    /// Releases a lock taken with [`Self::lease`]. Blocks.
    ///
    /// # Errors
    /// [`LockRefusal`].
    pub(crate) fn give_back(&self, app: AppId, service: &ServiceName) -> Result<(), LockRefusal> {
        let mut table = self.leases.lock();
        let lease = table.get(&(app, service.clone())).cloned();
        if let Some(lease) = lease {
            let stood = self.stands(&lease);
            self.release(&lease);
            self.leases.forget(&mut table, app, service);
            if stood {
                return Ok(());
            }
        }
        self.refuse_others(app, service, None)?;
        Err(LockRefusal::NotHeld(format!(
            "service `{service}` of app {app} holds no update lock"
        )))
    }

    /// Removes expired locks and forgets those whose file was removed; returns the files of the others and the next
    /// expiry. Blocks.
    fn tidy_leases(&self) -> (Vec<PathBuf>, Option<Instant>) {
        let mut table = self.leases.lock();
        let now = Instant::now();
        let leases: Vec<Lease> = table.values().cloned().collect();
        let mut files = Vec::new();
        let mut ends = Vec::new();
        for lease in leases {
            let (app, service) = (lease.record.app, &lease.record.service);
            if lease.until > now && self.stands(&lease) {
                files.push(self.lease_path(app, service));
                ends.push(lease.until);
                continue;
            }
            self.release(&lease);
            self.leases.forget(&mut table, app, service);
        }
        (files, ends.into_iter().min())
    }

    /// Ends locks when they expire or when somebody removes their file. Never returns.
    pub(crate) async fn keep_leases(self) {
        loop {
            let changed = self.leases.changed.notified();
            let locks = self.clone();
            let tidied = tokio::task::spawn_blocking(move || locks.tidy_leases()).await;
            let (files, next) = tidied.unwrap_or_default();
            let mut removed: FuturesUnordered<_> = files
                .into_iter()
                .map(|file| async move {
                    if super::until_removed(&file).await.is_err() {
                        // It still ends when it expires.
                        std::future::pending::<()>().await;
                    }
                })
                .collect();
            let over_at = next.unwrap_or_else(Instant::now);
            tokio::select! {
                () = changed => {}
                Some(()) = removed.next() => {}
                () = tokio::time::sleep_until(over_at), if next.is_some() => {}
            }
        }
    }

    /// Refuses if anything but the lock `own` exists in the folder of a service.
    fn refuse_others(
        &self,
        app: AppId,
        service: &ServiceName,
        own: Option<&Lease>,
    ) -> Result<(), LockRefusal> {
        let own = own.map(Lease::token);
        let folder = self.tree.service(app, service);
        let Some(folder) = folder.map_err(failed(self.folder(app, service)))? else {
            return Ok(());
        };
        for file in self.lock_files(&folder) {
            let path = file.path();
            match file.kind(own) {
                Ok(LockFileKind::Nothing | LockFileKind::Leased) => {}
                Ok(LockFileKind::Supervisor) => {
                    return Err(LockRefusal::HeldBySupervisor(format!(
                        "Locks for app {app} are being held by another supervisor operation"
                    )));
                }
                Ok(LockFileKind::Other(_)) => {
                    return Err(LockRefusal::HeldByFile(format!(
                        "`{}` was not made over the API: remove it where it was made, then ask again",
                        self.on_host(&path).display()
                    )));
                }
                Err(error) => return Err(failed(path)(error)),
            }
        }
        Ok(())
    }

    fn store_lock(&self, record: &LockRecord) -> Result<(), LockRefusal> {
        let stored = self.leases.store.put_lock(record);
        stored.map_err(|error| LockRefusal::Failed(error_chain(&error)))
    }

    /// Returns whether the file of a lock still exists.
    fn stands(&self, lease: &Lease) -> bool {
        self.lease_file(lease).is_some_and(|file| file.is_ours())
    }

    /// Removes the file of a lock, if it exists.
    fn release(&self, lease: &Lease) {
        if let Some(file) = self.lease_file(lease) {
            file.release();
        }
    }

    /// Returns the file of a lock; `None` if its folder is gone or cannot be trusted.
    fn lease_file(&self, lease: &Lease) -> Option<LockFile> {
        let record = &lease.record;
        let folder = self.tree.service(record.app, &record.service).ok()??;
        Some(self.lock_with(&folder, &record.token))
    }

    /// Returns the lock with this token in the folder of its service.
    fn lock_with(&self, folder: &Arc<ServiceFolder>, token: &str) -> LockFile {
        LockFile::new(folder, &self.names[0], token)
    }

    fn lease_path(&self, app: AppId, service: &ServiceName) -> PathBuf {
        self.folder(app, service).join(&self.names[0])
    }
}

impl Lease {
    fn new(record: LockRecord, left: Duration) -> Self {
        Lease {
            record,
            until: Instant::now() + left,
        }
    }
}

fn milliseconds(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or_default())
}

fn failed(path: PathBuf) -> impl FnOnce(std::io::Error) -> LockRefusal {
    move |error| {
        LockRefusal::Failed(format!(
            "failed to take the update lock `{}`: {error}",
            path.display()
        ))
    }
}

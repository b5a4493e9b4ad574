//! Update locks as callers see them, and as they take them over the API (docs/spec/device.md#locks).

use std::path::PathBuf;
use std::time::Duration;

use crate::{AppId, ServiceName};

/// The longest time for which a lock is taken over the API: 7 days. Whoever needs it longer renews it, so
/// that a service that is gone for good keeps its app from updates for no longer than that.
pub const MAX_LOCK_TTL: Duration = Duration::from_secs(7 * 24 * 3600);

/// The longest reason of a lock, in bytes.
pub const MAX_LOCK_REASON: usize = 256;

/// One update lock that is held now, or a lock folder that cannot be looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateLock {
    /// The app that is locked, by the number that its lock folder has.
    pub app: AppId,
    /// Missing where the folder of the whole app cannot be read.
    pub service: Option<ServiceName>,
    /// The lock file, on the host.
    pub path: PathBuf,
    /// Who holds it, as far as its path tells.
    pub holder: LockHolder,
    /// Milliseconds since the epoch; missing where the file system does not say.
    pub since_ms: Option<i64>,
}

/// Who holds an update lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockHolder {
    /// The supervisor, while it changes services of the app.
    Supervisor,
    /// A service, or a person on the host, by whatever it put at the path.
    File(LockKind),
    /// A service that asked for it over the API.
    Api(ApiLock),
    /// Nobody knows, and so it counts as held; with what the operating system said.
    Unreadable(String),
}

/// What stands at the path of a lock. Anything locks (docs/spec/device.md#locks-files).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// A regular file, empty or not.
    File,
    /// A folder, empty or not.
    Folder,
    /// Not followed: one that leads nowhere locks as well.
    Link,
    /// A pipe, a socket, a device.
    Other,
}

/// A lock that was taken over the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiLock {
    /// Why it is held, in the service's words: at most [`MAX_LOCK_REASON`] bytes.
    pub reason: String,
    /// For how long it was taken, or last renewed.
    pub ttl: Duration,
    /// Milliseconds since the epoch.
    pub expires_ms: i64,
    /// It is put back after a reboot, which removes all others.
    pub survives_reboot: bool,
}

/// A service's wish to hold its lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRequest {
    /// The app of the service that asks.
    pub app: AppId,
    /// The service that asks, and whose lock it is.
    pub service: ServiceName,
    /// At most [`MAX_LOCK_REASON`] bytes.
    pub reason: String,
    /// At most [`MAX_LOCK_TTL`].
    pub ttl: Duration,
    /// It is to be put back after a reboot, which removes all others.
    pub survives_reboot: bool,
}

/// Why a lock was not taken or given back over the API; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockRefusal {
    /// Something stands in the lock folder that was not put there over the API.
    #[error("{0}")]
    HeldByFile(String),
    /// The supervisor is changing the app right now.
    #[error("{0}")]
    HeldBySupervisor(String),
    /// There is nothing to give back.
    #[error("{0}")]
    NotHeld(String),
    /// The lock cannot be written or stored; one sentence that says why.
    #[error("{0}")]
    Failed(String),
}

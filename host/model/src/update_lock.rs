//! Update locks as callers see them, and as they request them over the API
//! (docs/spec/device.md#locks).

use std::path::PathBuf;
use std::time::Duration;

use crate::{AppId, ServiceName};

/// The longest time for which a lock is taken over the API: 7 days. A service that needs it longer must renew it, so a
/// service that is gone for good keeps its app from updates for at most that long.
pub const MAX_LOCK_TTL: Duration = Duration::from_secs(7 * 24 * 3600);

/// The longest reason of a lock, in bytes.
pub const MAX_LOCK_REASON: usize = 256;

/// An update lock that is held now, or a lock folder that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateLock {
    /// The locked app, according to the number in the name of its lock folder.
    pub app: AppId,
    /// The locked service; absent if the folder of the whole app cannot be read.
    pub service: Option<ServiceName>,
    /// The lock file, on the host.
    pub path: PathBuf,
    /// Who holds the lock, as far as its path shows.
    pub holder: LockHolder,
    /// When it was taken, in milliseconds since the epoch; absent if the file system does not
    /// record it.
    pub since_ms: Option<i64>,
}

/// Who holds an update lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockHolder {
    /// The supervisor, while it changes services of the app.
    Supervisor,
    /// A service, or a person on the host, that created something at the path.
    File(LockKind),
    /// A service that took the lock over the API.
    Api(ApiLock),
    /// Unknown, so it counts as held; with the operating system's error.
    Unreadable(String),
}

/// The kind of file at the path of a lock. Anything locks (docs/spec/device.md#locks-files).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// A regular file, empty or not.
    File,
    /// A folder, empty or not.
    Folder,
    /// A symbolic link, which is not followed: a dangling one locks as well.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

/// A lock that was taken over the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiLock {
    /// Why the lock is held, in the service's words: at most [`MAX_LOCK_REASON`] bytes.
    pub reason: String,
    /// The time for which it was taken or last renewed.
    pub ttl: Duration,
    /// When it expires, in milliseconds since the epoch.
    pub expires_ms: i64,
    /// Whether it is restored after a reboot, which removes all other locks.
    pub survives_reboot: bool,
}

/// A service's request to take its lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRequest {
    /// The app of the requesting service.
    pub app: AppId,
    /// The service that takes its lock.
    pub service: ServiceName,
    /// Why the lock is held: at most [`MAX_LOCK_REASON`] bytes.
    pub reason: String,
    /// How long to hold the lock: at most [`MAX_LOCK_TTL`].
    pub ttl: Duration,
    /// Whether to restore it after a reboot, which removes all other locks.
    pub survives_reboot: bool,
}

/// The reason why a lock was not taken or released over the API; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockRefusal {
    /// The lock folder contains something that was not created over the API.
    #[error("{0}")]
    HeldByFile(String),
    /// The supervisor is changing the app right now.
    #[error("{0}")]
    HeldBySupervisor(String),
    /// There is no lock to release.
    #[error("{0}")]
    NotHeld(String),
    /// The lock cannot be written or stored; one sentence with the reason.
    #[error("{0}")]
    Failed(String),
}

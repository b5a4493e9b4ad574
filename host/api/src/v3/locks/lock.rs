//! An update lock in the API's form.

use device_types::Moment;
use model::{LockHolder, LockKind, UpdateLock};
use schemars::JsonSchema;
use serde::Serialize;

/// One update lock.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lock {
    app_id: u64,
    /// Absent if the folder of the whole app cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    holder: Holder,
    /// The lock file, on the host.
    path: String,
    /// The kind of file at the path; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<LockFileKind>,
    /// Since when the lock is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    since: Option<Moment>,
    /// The reason that was given when the lock was taken over the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// When the lock expires. Only locks that were taken over the API expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    expires: Option<Moment>,
    /// The seconds for which it was taken or last renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
    /// Whether a reboot leaves it held.
    #[serde(skip_serializing_if = "Option::is_none")]
    survives_reboot: Option<bool>,
    /// Why the holder is unknown. The lock counts as held.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Who holds a lock.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Holder {
    /// The supervisor, while it changes services of the app.
    Supervisor,
    /// A service, or a person on the host, that created a file or something else at the path.
    File,
    /// A service that took it over this API.
    Api,
    /// Unknown; the lock counts as held.
    Unreadable,
}

/// The kind of file at the path of a lock.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Kind")]
enum LockFileKind {
    File,
    Directory,
    Symlink,
    /// A pipe, a socket or a device.
    Other,
}

impl Lock {
    pub(super) fn from_update_lock(lock: UpdateLock) -> Self {
        let of_supervisor = Lock {
            app_id: lock.app.0,
            service: lock.service.map(|service| service.to_string()),
            holder: Holder::Supervisor,
            path: lock.path.to_string_lossy().into_owned(),
            kind: Some(LockFileKind::File),
            since: lock.since_ms.map(Moment),
            reason: None,
            expires: None,
            ttl: None,
            survives_reboot: None,
            error: None,
        };
        match lock.holder {
            LockHolder::Supervisor => of_supervisor,
            LockHolder::File(kind) => Lock {
                holder: Holder::File,
                kind: Some(match kind {
                    LockKind::File => LockFileKind::File,
                    LockKind::Folder => LockFileKind::Directory,
                    LockKind::Link => LockFileKind::Symlink,
                    LockKind::Other => LockFileKind::Other,
                }),
                ..of_supervisor
            },
            LockHolder::Api(lock) => Lock {
                holder: Holder::Api,
                reason: Some(lock.reason),
                expires: Some(Moment(lock.expires_ms)),
                ttl: Some(lock.ttl.as_secs()),
                survives_reboot: Some(lock.survives_reboot),
                ..of_supervisor
            },
            LockHolder::Unreadable(why) => Lock {
                holder: Holder::Unreadable,
                kind: None,
                error: Some(why),
                ..of_supervisor
            },
        }
    }
}

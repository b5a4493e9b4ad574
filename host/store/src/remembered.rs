//! The device's identity, outside the database: a small file that is read if an empty database has to be created. All
//! objects in engines carry the device's uuid, and a device that forgot it would not recognize its own services.

use std::path::Path;

use model::DeviceUuid;
use secure_fs::{Access, SecureDir, SecureFile};
use serde_json::{Value, json};

/// The file's name within the state folder.
const NAME: &str = "identity";
/// The longest file that is read, in bytes.
const LONGEST: u64 = 4096;

/// The uuid of a device, and its former ones, the latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceUuids {
    pub(crate) uuid: DeviceUuid,
    pub(crate) former: Vec<DeviceUuid>,
}

/// Returns the file in this state folder.
pub(crate) fn file(folder: &Path) -> Option<SecureFile> {
    let folder = SecureDir::existing(folder, Access::Private)
        .ok()
        .flatten()?;
    Some(folder.file(NAME))
}

/// Returns the contents of the file; `None` if it is missing or damaged.
pub(crate) fn read(file: &SecureFile) -> Option<DeviceUuids> {
    let found = match file.read(LONGEST) {
        Ok(found) => found?,
        Err(error) => {
            tracing::warn!(
                %error,
                path = %file.path().display(),
                "failed to read `{}`",
                file.path().display()
            );
            return None;
        }
    };
    let uuids = parse(&found);
    if uuids.is_none() {
        tracing::warn!(
            path = %file.path().display(),
            "`{}` is damaged; writing it again",
            file.path().display()
        );
    }
    uuids
}

fn parse(bytes: &[u8]) -> Option<DeviceUuids> {
    let found: Value = serde_json::from_slice(bytes).ok()?;
    let former = found["former"].as_array()?.iter();
    Some(DeviceUuids {
        uuid: found["uuid"].as_str()?.parse().ok()?,
        former: former
            .map(|uuid| uuid.as_str()?.parse().ok())
            .collect::<Option<_>>()?,
    })
}

/// Writes the file if its contents differ. A failure is tolerated: the database contains everything.
pub(crate) fn write(file: &SecureFile, uuids: &DeviceUuids) {
    if matches!(file.read(LONGEST), Ok(Some(found)) if parse(&found).as_ref() == Some(uuids)) {
        return;
    }
    let former: Vec<&str> = uuids.former.iter().map(DeviceUuid::as_str).collect();
    let text = json!({ "uuid": uuids.uuid.as_str(), "former": former }).to_string();
    if let Err(error) = file.replace(text.as_bytes()) {
        tracing::warn!(
            %error,
            path = %file.path().display(),
            "failed to write `{}`",
            file.path().display()
        );
    }
}

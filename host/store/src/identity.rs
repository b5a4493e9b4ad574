//! The device's identity in the database: its uuid, and its keys.

use model::DeviceUuid;
use rusqlite::Connection;

use crate::error::StoreError;
use crate::key_table::{Keys, random_hex};
use crate::remembered::DeviceUuids;
use crate::rows::{begin, parse_name};
use crate::single_values::{set_setting, setting};

const DEVICE_UUID: &str = "device_uuid";
const FORMER_UUIDS: &str = "former_device_uuids";
/// How many former uuids are remembered.
const MOST_FORMER: usize = 8;

/// The properties that a device has from its first start.
pub(crate) struct Identity {
    pub(crate) uuid: DeviceUuid,
    /// Whether the uuid was created just now: nobody has known the device by it.
    pub(crate) is_new: bool,
    pub(crate) keys: Keys,
}

impl Identity {
    /// Reads the identity, and creates missing parts.
    ///
    /// An empty new database belongs to the device `known`, if there was one.
    pub(crate) fn load(
        connection: &mut Connection,
        known: Option<&DeviceUuids>,
    ) -> Result<Identity, StoreError> {
        begin(connection, "begin the device's identity", |work| {
            let mut is_new = false;
            let text = match setting(work, DEVICE_UUID)? {
                Some(text) => text,
                None => {
                    is_new = known.is_none();
                    let fresh = match known {
                        Some(known) => {
                            set_setting(work, FORMER_UUIDS, &joined(&known.former))?;
                            known.uuid.as_str().to_owned()
                        }
                        None => random_hex()?,
                    };
                    set_setting(work, DEVICE_UUID, &fresh)?;
                    fresh
                }
            };
            Ok(Identity {
                uuid: parse_name("the device's uuid", &text)?,
                is_new,
                keys: Keys::load(work)?,
            })
        })
    }
}

/// Replaces the uuid `before` with another one, and remembers it.
pub(crate) fn change_uuid(
    work: &Connection,
    before: &DeviceUuid,
    uuid: &DeviceUuid,
) -> Result<(), StoreError> {
    let mut former = former_uuids(work)?;
    former.retain(|other| other != uuid && other != before);
    former.insert(0, before.clone());
    former.truncate(MOST_FORMER);
    set_setting(work, FORMER_UUIDS, &joined(&former))?;
    set_setting(work, DEVICE_UUID, uuid.as_str())
}

fn joined(uuids: &[DeviceUuid]) -> String {
    let uuids: Vec<&str> = uuids.iter().map(DeviceUuid::as_str).collect();
    uuids.join(" ")
}

/// Returns former uuids of the device, the latest first.
pub(crate) fn former_uuids(connection: &Connection) -> Result<Vec<DeviceUuid>, StoreError> {
    let text = setting(connection, FORMER_UUIDS)?.unwrap_or_default();
    let uuids = text.split_ascii_whitespace();
    uuids
        .map(|uuid| parse_name("a uuid that the device had", uuid))
        .collect()
}

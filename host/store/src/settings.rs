//! Single values as JSON: the snapshot that local mode restores, how far logs were read, and which signed releases were
//! accepted.

use std::collections::BTreeMap;

use model::ContainerId;
use serde_json::{Value, json};

use crate::error::StoreError;
use crate::rows::parse_json;
use crate::single_values::{set_setting, setting};
use crate::store::Store;

const SNAPSHOT: &str = "local_mode_snapshot";
const LOG_POSITIONS: &str = "log_positions";
const SIGNED_TARGETS: &str = "signed_targets";

/// How far a reader has read the output of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// The time of its last line, in milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// The number of lines with that time that it has read.
    pub lines: u32,
}

impl Store {
    fn set_json(
        &self,
        action: &'static str,
        name: &'static str,
        value: &Value,
    ) -> Result<(), StoreError> {
        let text = value.to_string();
        self.write(action, |work| Ok(set_setting(work, name, &text)?))
    }

    fn json(&self, what: &'static str, name: &'static str) -> Result<Option<Value>, StoreError> {
        let text = setting(&self.connection(), name)?;
        text.map(|text| parse_json(what, &text)).transpose()
    }

    /// Stores how far the cloud's reader has read the output of containers, replacing the previous positions.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if that cannot be written.
    pub fn set_log_positions(
        &self,
        positions: &BTreeMap<ContainerId, LogPosition>,
    ) -> Result<(), StoreError> {
        let entries = positions
            .iter()
            .map(|(container, at)| (container.to_string(), json!([at.timestamp_ms, at.lines])));
        let entries = Value::Object(entries.collect());
        self.set_json("write how far logs were read", LOG_POSITIONS, &entries)
    }

    /// Returns the positions that were stored last; unreadable entries are left out.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] if they cannot be read.
    pub fn log_positions(&self) -> Result<BTreeMap<ContainerId, LogPosition>, StoreError> {
        let entries = self.json("how far logs were read", LOG_POSITIONS)?;
        let entries = entries.as_ref().and_then(Value::as_object);
        let positions = entries.into_iter().flatten().filter_map(|(container, at)| {
            let position = LogPosition {
                timestamp_ms: at[0].as_i64()?,
                lines: at[1].as_u64()?.try_into().ok()?,
            };
            Some((container.parse().ok()?, position))
        });
        Ok(positions.collect())
    }

    /// Stores which signed releases the device has accepted, replacing the previous value.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if that cannot be written.
    pub fn set_signed_targets(&self, accepted: &Value) -> Result<(), StoreError> {
        let action = "write which signed releases were accepted";
        self.set_json(action, SIGNED_TARGETS, accepted)
    }

    /// Returns which signed releases the device has accepted; `None` before the first.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] if it cannot be read.
    pub fn signed_targets(&self) -> Result<Option<Value>, StoreError> {
        self.json("which signed releases were accepted", SIGNED_TARGETS)
    }

    /// Stores the state at the time when local mode was entered.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if it cannot be written.
    pub fn set_snapshot(&self, snapshot: &Value) -> Result<(), StoreError> {
        self.set_json("write the snapshot of local mode", SNAPSHOT, snapshot)
    }

    /// Returns the state at the time when local mode was entered; `None` while it is off.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] if it cannot be read.
    pub fn snapshot(&self) -> Result<Option<Value>, StoreError> {
        self.json("the snapshot of local mode", SNAPSHOT)
    }

    /// Removes the snapshot; it is not an error if there is none.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if that cannot be written.
    pub fn clear_snapshot(&self) -> Result<(), StoreError> {
        self.execute(
            "delete the snapshot of local mode",
            "DELETE FROM setting WHERE name = ?1",
            [SNAPSHOT],
        )
    }
}

//! The configuration variables in force, and the snapshot that local mode goes back to.

use std::collections::BTreeMap;

use model::ContainerId;
use serde_json::{Value, json};

use crate::store::{set_setting, setting};
use crate::targets::parse;
use crate::{Store, StoreError};

const SNAPSHOT: &str = "local_mode_snapshot";
const LOG_POSITIONS: &str = "log_positions";
const SIGNED_TARGETS: &str = "signed_targets";

/// How far a reader has come in the output of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// The time of its last line, in milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Lines of that time that it has.
    pub lines: u32,
}

impl Store {
    /// Puts these variables in the place of all there were.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where they cannot be written; the old ones stay then.
    pub fn set_config(&self, config: &BTreeMap<String, String>) -> Result<(), StoreError> {
        const ACTION: &str = "write the configuration";
        self.write(ACTION, |work| {
            work.execute("DELETE FROM config", [])
                .map_err(StoreError::failed(ACTION))?;
            let mut insert = work
                .prepare("INSERT INTO config (key, value) VALUES (?1, ?2)")
                .map_err(StoreError::failed(ACTION))?;
            for (key, value) in config {
                insert
                    .execute([key, value])
                    .map_err(StoreError::failed(ACTION))?;
            }
            Ok(())
        })
    }

    /// The variables that were set last; empty before the first time.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where they cannot be read.
    pub fn config(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let failed = || StoreError::failed("read the configuration");
        let connection = self.connection();
        let mut statement = connection
            .prepare("SELECT key, value FROM config")
            .map_err(failed())?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(failed())?;
        rows.collect::<rusqlite::Result<_>>().map_err(failed())
    }

    /// Keeps how far the cloud's reader has come in containers' output, in the place of what was kept before.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where that cannot be written.
    pub fn set_log_positions(
        &self,
        positions: &BTreeMap<ContainerId, LogPosition>,
    ) -> Result<(), StoreError> {
        let entries = positions
            .iter()
            .map(|(container, at)| (container.to_string(), json!([at.timestamp_ms, at.lines])));
        let text = Value::Object(entries.collect()).to_string();
        self.write("write how far logs were read", |work| {
            set_setting(work, LOG_POSITIONS, &text)
        })
    }

    /// What was kept last; entries that cannot be read are left out.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] where it cannot be read.
    pub fn log_positions(&self) -> Result<BTreeMap<ContainerId, LogPosition>, StoreError> {
        let Some(text) = setting(&self.connection(), LOG_POSITIONS)? else {
            return Ok(BTreeMap::new());
        };
        let kept: Value = parse("how far logs were read", &text)?;
        let entries = kept.as_object().into_iter().flatten();
        Ok(entries
            .filter_map(|(container, at)| {
                let position = LogPosition {
                    timestamp_ms: at[0].as_i64()?,
                    lines: at[1].as_u64()?.try_into().ok()?,
                };
                Some((container.parse().ok()?, position))
            })
            .collect())
    }

    /// Keeps which signed releases the device has accepted, in the place of what was kept before.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where that cannot be written.
    pub fn set_signed_targets(&self, accepted: &Value) -> Result<(), StoreError> {
        self.write("write which signed releases were accepted", |work| {
            set_setting(work, SIGNED_TARGETS, &accepted.to_string())
        })
    }

    /// Which signed releases the device has accepted; missing before the first.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] where it cannot be read.
    pub fn signed_targets(&self) -> Result<Option<Value>, StoreError> {
        setting(&self.connection(), SIGNED_TARGETS)?
            .map(|text| parse("which signed releases were accepted", &text))
            .transpose()
    }

    /// Keeps what was there when local mode was entered.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where it cannot be written.
    pub fn set_snapshot(&self, snapshot: &Value) -> Result<(), StoreError> {
        self.write("write the snapshot of local mode", |work| {
            set_setting(work, SNAPSHOT, &snapshot.to_string())
        })
    }

    /// What was there when local mode was entered; missing while it is off.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] where it cannot be read.
    pub fn snapshot(&self) -> Result<Option<Value>, StoreError> {
        setting(&self.connection(), SNAPSHOT)?
            .map(|text| parse("the snapshot of local mode", &text))
            .transpose()
    }

    /// Forgets the snapshot; none is no error.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where that cannot be written.
    pub fn clear_snapshot(&self) -> Result<(), StoreError> {
        const ACTION: &str = "delete the snapshot of local mode";
        self.write(ACTION, |work| {
            work.execute("DELETE FROM setting WHERE name = ?1", [SNAPSHOT])
                .map(drop)
                .map_err(StoreError::failed(ACTION))
        })
    }
}

//! Target states as received, and the completely running release of each app.

use std::collections::BTreeMap;

use model::{AppUuid, Commit};
use rusqlite::OptionalExtension;
use serde_json::Value;

use crate::error::StoreError;
use crate::rows::{name_at, parse_json};
use crate::store::Store;

/// The source of a target state; each source has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum TargetSource {
    /// `POST /v2/local/target-state`.
    Local,
    /// The cloud's answer to the poll of the target state.
    Cloud,
}

impl Store {
    /// Replaces the source's last target state. It is stored unchanged, including the order of its
    /// keys.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if it cannot be written.
    pub fn set_target(&self, source: TargetSource, state: &Value) -> Result<(), StoreError> {
        self.execute(
            "write the target state",
            "INSERT INTO target (source, state) VALUES (?1, ?2)
             ON CONFLICT (source) DO UPDATE SET state = excluded.state",
            [<&str>::from(source), &state.to_string()],
        )
    }

    /// Returns the last target state of a source.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it is no longer JSON, [`StoreError::Failed`] if it cannot be
    /// read.
    pub fn target(&self, source: TargetSource) -> Result<Option<Value>, StoreError> {
        let text: Option<String> = self
            .connection()
            .query_row(
                "SELECT state FROM target WHERE source = ?1",
                [<&str>::from(source)],
                |row| row.get(0),
            )
            .optional()
            .map_err(StoreError::failed("read the target state"))?;
        text.map(|text| parse_json("the target state", &text))
            .transpose()
    }

    /// Removes the target state of a source; it is not an error if there is none.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if that cannot be written.
    pub fn clear_target(&self, source: TargetSource) -> Result<(), StoreError> {
        self.execute(
            "delete the target state",
            "DELETE FROM target WHERE source = ?1",
            [<&str>::from(source)],
        )
    }

    /// Records that a release of an app runs completely.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if it cannot be written.
    pub fn set_commit(&self, app: &AppUuid, commit: &Commit) -> Result<(), StoreError> {
        self.execute(
            "write the running release",
            "INSERT INTO running_release (app, release) VALUES (?1, ?2)
             ON CONFLICT (app) DO UPDATE SET release = excluded.release",
            [app.as_str(), commit.as_str()],
        )
    }

    /// Returns the release of each app that runs, or last ran, completely.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] if they cannot be read.
    pub fn commits(&self) -> Result<BTreeMap<AppUuid, Commit>, StoreError> {
        let query = "SELECT app, release FROM running_release";
        self.rows("read the running releases", query, |row| {
            let app = name_at(row, 0, "an app's uuid")?;
            Ok((app, name_at(row, 1, "a commit")?))
        })
    }

    /// Removes the release of an app that is gone; it is not an error if there is none.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if that cannot be written.
    pub fn forget_commit(&self, app: &AppUuid) -> Result<(), StoreError> {
        self.execute(
            "delete the running release",
            "DELETE FROM running_release WHERE app = ?1",
            [app.as_str()],
        )
    }
}

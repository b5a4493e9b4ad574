//! Target states as they came, and the release of each app that runs whole.

use std::collections::BTreeMap;

use model::{AppUuid, Commit};
use rusqlite::OptionalExtension;
use serde_json::Value;

use crate::{Store, StoreError};

/// Where a target state came from; each source has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TargetSource {
    /// `POST /v2/local/target-state`.
    Local,
    /// The cloud's answer to the poll of the target state.
    Cloud,
}

impl TargetSource {
    fn as_str(self) -> &'static str {
        match self {
            TargetSource::Local => "local",
            TargetSource::Cloud => "cloud",
        }
    }
}

impl Store {
    /// Puts a target state in the place of the source's last one. It is kept as it is, with the order
    /// of its keys.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where it cannot be written.
    pub fn set_target(&self, source: TargetSource, state: &Value) -> Result<(), StoreError> {
        const ACTION: &str = "write the target state";
        self.write(ACTION, |work| {
            work.execute(
                "INSERT INTO target (source, state) VALUES (?1, ?2)
                 ON CONFLICT (source) DO UPDATE SET state = excluded.state",
                [source.as_str(), &state.to_string()],
            )
            .map(drop)
            .map_err(StoreError::failed(ACTION))
        })
    }

    /// The last target state of a source.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where it is no longer JSON, [`StoreError::Failed`] where it cannot be
    /// read.
    pub fn target(&self, source: TargetSource) -> Result<Option<Value>, StoreError> {
        let text: Option<String> = self
            .connection()
            .query_row(
                "SELECT state FROM target WHERE source = ?1",
                [source.as_str()],
                |row| row.get(0),
            )
            .optional()
            .map_err(StoreError::failed("read the target state"))?;
        text.map(|text| parse("the target state", &text))
            .transpose()
    }

    /// Forgets the target state of a source; none is no error.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where that cannot be written.
    pub fn clear_target(&self, source: TargetSource) -> Result<(), StoreError> {
        const ACTION: &str = "delete the target state";
        self.write(ACTION, |work| {
            work.execute("DELETE FROM target WHERE source = ?1", [source.as_str()])
                .map(drop)
                .map_err(StoreError::failed(ACTION))
        })
    }

    /// Notes that a release of an app runs whole.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where it cannot be written.
    pub fn set_commit(&self, app: &AppUuid, commit: &Commit) -> Result<(), StoreError> {
        const ACTION: &str = "write the running release";
        self.write(ACTION, |work| {
            work.execute(
                "INSERT INTO running_release (app, release) VALUES (?1, ?2)
                 ON CONFLICT (app) DO UPDATE SET release = excluded.release",
                [app.as_str(), commit.as_str()],
            )
            .map(drop)
            .map_err(StoreError::failed(ACTION))
        })
    }

    /// The release of each app that runs, or last ran, whole.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] where they cannot be read.
    pub fn commits(&self) -> Result<BTreeMap<AppUuid, Commit>, StoreError> {
        let failed = || StoreError::failed("read the running releases");
        let connection = self.connection();
        let mut statement = connection
            .prepare("SELECT app, release FROM running_release")
            .map_err(failed())?;
        let rows = statement
            .query_map([], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })
            .map_err(failed())?;
        let mut commits = BTreeMap::new();
        for row in rows {
            let (app, commit) = row.map_err(failed())?;
            commits.insert(named("an app's uuid", &app)?, named("a commit", &commit)?);
        }
        Ok(commits)
    }

    /// Forgets the release of an app that is gone; none is no error.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where that cannot be written.
    pub fn forget_commit(&self, app: &AppUuid) -> Result<(), StoreError> {
        const ACTION: &str = "delete the running release";
        self.write(ACTION, |work| {
            work.execute("DELETE FROM running_release WHERE app = ?1", [app.as_str()])
                .map(drop)
                .map_err(StoreError::failed(ACTION))
        })
    }
}

/// JSON that was stored.
pub(crate) fn parse(what: &'static str, text: &str) -> Result<Value, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged {
        what,
        // What is wrong, and not the text: a target state has secrets in it.
        value: error.to_string(),
    })
}

/// A name that was stored.
pub(crate) fn named<T: std::str::FromStr>(what: &'static str, text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| StoreError::Damaged {
        what,
        value: text.to_owned(),
    })
}

//! Fresh databases of both kinds.

use anyhow::{Result, anyhow};
use data::testing::{POSTGRES, drop_postgres, fresh_postgres};

/// A kind of database.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Sqlite,
    /// On the server with this address.
    Postgres(String),
}

/// A database that is removed after the measurement.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) name: &'static str,
    folder: Option<tempfile::TempDir>,
}

impl Kind {
    /// Returns the available kinds.
    pub(crate) fn all() -> Vec<Kind> {
        let mut kinds = vec![Kind::Sqlite];
        match std::env::var(POSTGRES) {
            Ok(server) => kinds.push(Kind::Postgres(server)),
            Err(_) => eprintln!("PostgreSQL is left out, because {POSTGRES} is not set"),
        }
        kinds
    }

    pub(crate) async fn fresh(&self) -> Result<Place> {
        match self {
            Kind::Sqlite => {
                let folder = tempfile::tempdir()?;
                let path = folder.path().join("bench.sqlite");
                let path = path.to_str().ok_or_else(|| anyhow!("no path in text"))?;
                Ok(Place {
                    url: format!("sqlite:{path}"),
                    name: "SQLite",
                    folder: Some(folder),
                })
            }
            Kind::Postgres(server) => Ok(Place {
                url: fresh_postgres(server).await,
                name: "PostgreSQL",
                folder: None,
            }),
        }
    }
}

impl Place {
    /// Removes the database.
    pub(crate) async fn end(self) {
        if self.folder.is_none() {
            drop_postgres(&self.url).await;
        }
    }
}

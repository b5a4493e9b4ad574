//! The connection pools of one database.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::error::DataError;
use crate::options::{MIGRATION, Options, Pool, PoolOptions};
use crate::session::{Session, SessionPool};
use crate::sqlite::{Reader, Readers};
use crate::writer::SqliteWriter;

/// How long a connection may have been idle before it is tested ahead of its use.
const TRUSTED_FOR: Duration = Duration::from_secs(10);

/// The connections of one database, of either kind.
#[derive(Clone)]
pub(crate) enum Pools {
    Sqlite {
        readers: PoolValues<Arc<Readers>>,
        writer: SqliteWriter,
    },
    Postgres {
        pools: PoolValues<SessionPool>,
        losses: Losses,
    },
}

/// When a connection to the server was last lost. Connections that were idle then were probably lost as well: they are
/// tested ahead of their use, so that the restart of a server fails one statement in all and not one per connection.
#[derive(Debug, Clone)]
pub(crate) struct Losses {
    begin: Instant,
    /// Milliseconds after `begin`, plus one; 0 for never.
    last: Arc<AtomicU64>,
}

impl Losses {
    fn new() -> Self {
        Losses {
            begin: Instant::now(),
            last: Arc::default(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    pub(crate) fn note<T>(&self, result: Result<T, DataError>) -> Result<T, DataError> {
        if let Err(DataError::Lost(_) | DataError::Silent(_)) = result {
            self.last.fetch_max(self.now(), Ordering::Relaxed);
        }
        result
    }

    /// Returns whether a connection was lost since the last use of one that has been idle for this long.
    fn since(&self, idle_for: Duration) -> bool {
        let idle_for = u64::try_from(idle_for.as_millis()).unwrap_or(u64::MAX);
        let last = self.last.load(Ordering::Relaxed);
        // Both times are rounded down, which may lose a millisecond.
        last > 0 && self.now().saturating_sub(idle_for) <= last + 1
    }
}

/// One value for each pool.
#[derive(Clone)]
pub(crate) struct PoolValues<T> {
    devices: T,
    people: T,
    guests: T,
}

impl<T> PoolValues<T> {
    fn new(options: &Options, make: impl Fn(PoolOptions) -> T) -> Self {
        PoolValues {
            devices: make(options.devices),
            people: make(options.people),
            guests: make(options.guests),
        }
    }

    pub(crate) fn get(&self, pool: Pool) -> &T {
        match pool {
            Pool::Devices => &self.devices,
            Pool::People => &self.people,
            Pool::Guests => &self.guests,
        }
    }

    pub(crate) fn all(&self) -> [&T; 3] {
        [&self.devices, &self.people, &self.guests]
    }
}

/// A connection for one statement.
pub(crate) enum Lease {
    Sqlite(Reader),
    Postgres(Session, Losses),
}

impl Lease {
    pub(crate) fn connection(&mut self) -> Result<Connection<'_>, DataError> {
        match self {
            Lease::Sqlite(reader) => Ok(Connection::Sqlite(reader.connection()?)),
            Lease::Postgres(session, _) => session.connection(),
        }
    }

    /// Records that its statement ended, successfully or not.
    pub(crate) fn done<T>(self, result: Result<T, DataError>) -> Result<T, DataError> {
        match self {
            Lease::Sqlite(reader) => reader.done(result),
            Lease::Postgres(mut session, losses) => losses.note(session.done(result)),
        }
    }
}

impl Pools {
    /// Opens the pools of `sqlite:PATH`, whose file is created if it is missing, or of `postgres://…`.
    ///
    /// # Errors
    /// [`DataError::Address`], [`DataError::Open`].
    pub(crate) async fn open(url: &str, options: &Options) -> Result<Self, DataError> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            Pools::sqlite(url, path.strip_prefix("//").unwrap_or(path), options).await
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Pools::postgres(url, options).await
        } else {
            Err(DataError::Address {
                url: without_password(url),
                reason: "it starts with neither `sqlite:` nor `postgres://`",
            })
        }
    }

    /// Records the result of a statement.
    pub(crate) fn noted<T>(&self, result: Result<T, DataError>) -> Result<T, DataError> {
        match self {
            Pools::Sqlite { .. } => result,
            Pools::Postgres { losses, .. } => losses.note(result),
        }
    }

    /// Returns a connection for one statement that reads, or in PostgreSQL for any.
    ///
    /// # Errors
    /// [`DataError::Busy`] if no connection became free in time.
    pub(crate) async fn lease(&self, pool: Pool) -> Result<Lease, DataError> {
        Ok(match self {
            Pools::Sqlite { readers, .. } => {
                Lease::Sqlite(readers.get(pool).reader().boxed().await?)
            }
            Pools::Postgres { pools, losses } => {
                let session = losses.note(pools.get(pool).session().boxed().await)?;
                Lease::Postgres(session, losses.clone())
            }
        })
    }

    async fn sqlite(url: &str, path: &str, options: &Options) -> Result<Self, DataError> {
        if path.is_empty() || path == ":memory:" {
            return Err(DataError::Address {
                url: url.to_owned(),
                reason: "several connections share the database, so it must be a file",
            });
        }
        let connect = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A confirmed change must survive a loss of power; with the weaker `NORMAL` the last transactions would be
            // lost, and devices would receive contradictory states.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(options.devices.wait)
            .pragma("journal_size_limit", "67108864")
            .statement_cache_capacity(options.prepared);
        let open = |source| DataError::Open {
            url: url.to_owned(),
            source,
        };
        keep_private(path).map_err(|error| open(sqlx::Error::Io(error)))?;
        // The writer comes first: it creates the file. Updating the tables has no short time limit. A new file can
        // release free pages (`shrink`); an existing one stays unchanged.
        let shrinking = connect.clone().auto_vacuum(SqliteAutoVacuum::Incremental);
        let writer = SqliteWriter::open(shrinking, options.devices.wait, MIGRATION)
            .await
            .map_err(open)?;
        let connect = connect.pragma("query_only", "ON");
        let readers = PoolValues::new(options, |pool| Readers::new(connect.clone(), pool));
        Ok(Pools::Sqlite { readers, writer })
    }

    async fn postgres(url: &str, options: &Options) -> Result<Self, DataError> {
        let open = |source| DataError::Open {
            url: without_password(url),
            source,
        };
        let connect = PgConnectOptions::from_str(url)
            .map_err(open)?
            .application_name("fleet-cloud")
            .statement_cache_capacity(options.prepared)
            // PostgreSQL considers statements with access rules expensive enough for JIT compilation, which takes
            // seconds for a query of milliseconds.
            .options([("jit", "off")]);
        let losses = Losses::new();
        let pools = PoolValues::new(options, |options| {
            let pool = Self::postgres_pool(&connect, options, losses.clone());
            SessionPool::new(pool, options.statement_timeout)
        });
        pools.devices.try_out().await.map_err(open)?;
        Ok(Pools::Postgres { pools, losses })
    }

    fn postgres_pool(connect: &PgConnectOptions, options: PoolOptions, losses: Losses) -> PgPool {
        let timeout = options.statement_timeout.as_millis().to_string();
        let connect = connect.clone().options([("statement_timeout", timeout)]);
        let pool: PgPoolOptions = sqlx::pool::PoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(options.wait)
            // A round trip before each statement would cost more than most statements.
            .test_before_acquire(false)
            .before_acquire(move |connection: &mut PgConnection, meta| {
                let doubted = meta.idle_for > TRUSTED_FOR || losses.since(meta.idle_for);
                Box::pin(async move {
                    if doubted {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            });
        pool.connect_lazy_with(connect)
    }
}

/// Prevents other users of the machine from reading the database: the file, which is created if it is missing, and
/// SQLite's auxiliary files, which get its permissions.
fn keep_private(path: &str) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    for path in [
        path.to_owned(),
        format!("{path}-wal"),
        format!("{path}-shm"),
    ] {
        let Ok(about) = std::fs::metadata(&path) else {
            continue;
        };
        if !about.is_file() || about.permissions().mode() & 0o077 == 0 {
            continue;
        }
        let private = std::fs::Permissions::from_mode(0o600);
        match std::fs::set_permissions(&path, private) {
            Ok(()) => tracing::info!(
                %path,
                "a file of the database could be read by others on this machine; now only its owner can"
            ),
            Err(error) => tracing::warn!(
                %path,
                %error,
                "a file of the database can be read by others on this machine; `chmod 600` it"
            ),
        }
    }
    Ok(())
}

/// Returns an address without its password, for display.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((user, place)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{place}")
        }
        None => url.to_owned(),
    }
}

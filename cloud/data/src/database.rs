//! The pools of one database.

use std::pin::Pin;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, ready};
use std::time::Duration;

use futures::Stream;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::effect::Effect;
use crate::error::DataError;
use crate::row::Row;
use crate::session::SessionPool;
use crate::sqlite::Readers;
use crate::statement::{BuiltStatement, Statement};
use crate::transaction::{Backend, Transaction};
use crate::writer::SqliteWriter;

/// How long a connection may have been idle before it is tried out ahead of its use.
const TRUSTED_FOR: Duration = Duration::from_secs(10);

/// Rows that a stream is ahead of its reader by.
const AHEAD: usize = 64;

/// How long each statement may take that brings the tables up to date.
pub(crate) const MIGRATION: Duration = Duration::from_secs(3600);

/// Whose statements they are. Each has connections of its own: a person's long list or a guest's odd question keeps no
/// device from its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pool {
    /// Polls and reports of devices, credentials, and what the cloud does by itself.
    Devices,
    /// The data API and the dashboard, for whoever has a credential.
    People,
    /// The data API without one.
    Guests,
}

/// What the statements of one pool may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// Connections at most. In SQLite those that read; there is one more that writes, for all.
    pub connections: u32,
    /// How long a request waits for a connection.
    pub wait: Duration,
    /// How long a statement may take.
    pub statement_timeout: Duration,
}

/// How a database is used.
#[derive(Debug, Clone)]
pub struct Options {
    /// Of [`Pool::Devices`].
    pub devices: PoolOptions,
    /// Of [`Pool::People`].
    pub people: PoolOptions,
    /// Of [`Pool::Guests`].
    pub guests: PoolOptions,
    /// How long a statement may take while it keeps all others from writing: SQLite has one writer.
    pub write_timeout: Duration,
    /// How long rows may be streamed, however fast the database has them: whoever reads them slowly holds a connection.
    pub stream_timeout: Duration,
    /// How many statements of a connection stay prepared.
    pub prepared: usize,
}

impl Options {
    /// All pools with so many connections.
    #[must_use]
    pub fn with_connections(mut self, connections: u32) -> Self {
        for pool in [&mut self.devices, &mut self.people, &mut self.guests] {
            pool.connections = connections;
        }
        self
    }

    /// All statements with so much time.
    #[must_use]
    pub fn with_statement_timeout(mut self, timeout: Duration) -> Self {
        for pool in [&mut self.devices, &mut self.people, &mut self.guests] {
            pool.statement_timeout = timeout;
        }
        self.write_timeout = timeout;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        let pool = |connections, wait, statement_timeout| PoolOptions {
            connections,
            wait: Duration::from_secs(wait),
            statement_timeout: Duration::from_secs(statement_timeout),
        };
        Options {
            devices: pool(8, 30, 10),
            // A list of a hundred thousand devices takes as long as its reader does.
            people: pool(8, 30, 20),
            guests: pool(2, 5, 2),
            write_timeout: Duration::from_secs(10),
            stream_timeout: Duration::from_secs(60),
            prepared: 400,
        }
    }
}

/// Who is told of the effects of transactions.
type Listener = Box<dyn Fn(&[Effect]) + Send + Sync>;

/// One database. Clones are the same one.
#[derive(Clone)]
pub struct Database {
    pools: Pools,
    /// Whose statements these are.
    pool: Pool,
    listener: Arc<OnceLock<Listener>>,
    /// As [`Options::stream_timeout`].
    stream_timeout: Duration,
    /// How often this program wrote anything.
    written: Arc<watch::Sender<u64>>,
}

#[derive(Clone)]
enum Pools {
    Sqlite {
        readers: PerPool<Arc<Readers>>,
        writer: SqliteWriter,
    },
    Postgres {
        pools: PerPool<SessionPool>,
        losses: Losses,
    },
}

/// When a connection to the server was lost last. What was idle then was probably lost as well: it is tried out
/// ahead of its use, so that a server that was restarted costs one statement its answer and not one a connection.
#[derive(Debug, Clone)]
struct Losses {
    begin: Instant,
    /// Milliseconds after that, and one; 0 for never.
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

    fn note<T>(&self, result: Result<T, DataError>) -> Result<T, DataError> {
        if let Err(DataError::Lost(_) | DataError::Silent(_)) = result {
            self.last.fetch_max(self.now(), Ordering::Relaxed);
        }
        result
    }

    /// Whether one was lost since a connection was used that has been idle for so long.
    fn since(&self, idle_for: Duration) -> bool {
        let idle_for = u64::try_from(idle_for.as_millis()).unwrap_or(u64::MAX);
        let last = self.last.load(Ordering::Relaxed);
        // A millisecond is lost where both are cut.
        last > 0 && self.now().saturating_sub(idle_for) <= last + 1
    }
}

/// What there is of each pool.
#[derive(Clone)]
struct PerPool<T> {
    devices: T,
    people: T,
    guests: T,
}

impl<T> PerPool<T> {
    fn of(&self, pool: Pool) -> &T {
        match pool {
            Pool::Devices => &self.devices,
            Pool::People => &self.people,
            Pool::Guests => &self.guests,
        }
    }

    fn all(&self) -> [&T; 3] {
        [&self.devices, &self.people, &self.guests]
    }
}

/// Statements that read, by any connection that is free.
macro_rules! reads {
    ($($name:ident() $call:ident -> $answer:ty;)*) => {
        $(async fn $name(&self, built: BuiltStatement) -> Result<$answer, DataError> {
            match &self.pools {
                Pools::Sqlite { readers, .. } => {
                    let mut reader = readers.of(self.pool).reader().await?;
                    let result = Connection::Sqlite(reader.connection()?).$call(built).await;
                    reader.done(result)
                }
                Pools::Postgres { pools, losses } => {
                    let mut session = losses.note(pools.of(self.pool).session().await)?;
                    let result = session.connection()?.$call(built).await;
                    losses.note(session.done(result))
                }
            }
        })*
    };
}

impl Database {
    /// Opens `sqlite:PATH` (made where it is missing) or `postgres://…`, and brings its tables to what this
    /// program needs.
    ///
    /// # Errors
    /// [`DataError::Address`], [`DataError::Open`]; [`DataError::Schema`] where it holds something that
    /// cannot be brought there.
    pub async fn open(url: &str, options: &Options) -> Result<Self, DataError> {
        let pools = if let Some(path) = url.strip_prefix("sqlite:") {
            Pools::sqlite(url, path.strip_prefix("//").unwrap_or(path), options).await?
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Pools::postgres(url, options).await?
        } else {
            return Err(DataError::Address {
                url: without_password(url),
                reason: "it starts with neither `sqlite:` nor `postgres://`",
            });
        };
        let database = Database {
            pools,
            pool: Pool::Devices,
            listener: Arc::default(),
            stream_timeout: options.stream_timeout,
            written: Arc::default(),
        };
        crate::schema::migrate(&database, resources::v7()).await?;
        if let Pools::Sqlite { writer, .. } = &database.pools {
            writer.hold_to(options.write_timeout);
        }
        Ok(database)
    }

    /// The same database, by the connections of a pool.
    #[must_use]
    pub fn by(&self, pool: Pool) -> Self {
        Database {
            pool,
            ..self.clone()
        }
    }

    /// Which of the databases it is.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self.pools {
            Pools::Sqlite { .. } => Dialect::Sqlite,
            Pools::Postgres { .. } => Dialect::Postgres,
        }
    }

    /// Has `listener` told of the effects of each transaction that this program commits, right after.
    /// It must not block. The first listener stays.
    pub fn listen(&self, listener: impl Fn(&[Effect]) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// Changes whenever this program has written anything, effects or none: for whoever shows what is there
    /// and looks again. What other programs write to the same database is not told.
    #[must_use]
    pub fn written(&self) -> watch::Receiver<u64> {
        self.written.subscribe()
    }

    /// The result of a statement in a transaction.
    pub(crate) fn noted<T>(&self, result: Result<T, DataError>) -> Result<T, DataError> {
        match &self.pools {
            Pools::Sqlite { .. } => result,
            Pools::Postgres { losses, .. } => losses.note(result),
        }
    }

    pub(crate) fn tell(&self, effects: &[Effect]) {
        self.written
            .send_modify(|times| *times = times.wrapping_add(1));
        if let (false, Some(listener)) = (effects.is_empty(), self.listener.get()) {
            listener(effects);
        }
    }

    /// The first value of each row, as text.
    ///
    /// # Errors
    /// Why the statement failed.
    pub async fn texts(
        &self,
        statement: &impl Statement,
    ) -> Result<Vec<Option<String>>, DataError> {
        let built = statement.built(self.dialect());
        match self.read_texts(built.clone()).await {
            // A server that was restarted: a new connection will do.
            Err(DataError::Lost(_)) => self.read_texts(built).await,
            result => result,
        }
    }

    /// The first value of each row, as text, while few of them are in memory. Whoever has not read them to the end in time
    /// ([`Options::stream_timeout`]) gets [`DataError::Unread`] in place of the rest.
    pub fn stream(
        &self,
        statement: &impl Statement,
    ) -> impl Stream<Item = Result<Option<String>, DataError>> + Send + Unpin + 'static {
        let built = statement.built(self.dialect());
        let (sender, mut receiver) = mpsc::channel(AHEAD);
        let database = self.clone();
        let mut reading = AbortOnDropHandle::new(tokio::spawn(async move {
            let until = Instant::now() + database.stream_timeout;
            let (begun, unread) = (AtomicBool::new(false), AtomicBool::new(false));
            let take = |text| {
                let (sender, unread) = (&sender, &unread);
                begun.store(true, Ordering::Relaxed);
                async move {
                    let sent = timeout_at(until, sender.send(Ok(text))).await;
                    unread.store(sent.is_err(), Ordering::Relaxed);
                    matches!(sent, Ok(Ok(())))
                }
            };
            match database.read_each(built.clone(), take).await {
                // A server that was restarted, before anything was told.
                Err(DataError::Lost(_)) if !begun.load(Ordering::Relaxed) => {
                    database.read_each(built, take).await?;
                }
                result => result?,
            }
            if unread.load(Ordering::Relaxed) {
                Err(DataError::Unread)
            } else {
                Ok(())
            }
        }));
        let mut ended = false;
        futures::stream::poll_fn(move |context| {
            if let Some(row) = ready!(receiver.poll_recv(context)) {
                return Poll::Ready(Some(row));
            }
            if ended {
                return Poll::Ready(None);
            }
            // What comes after the last row is never taken for the end if it is not.
            let result = ready!(Pin::new(&mut reading).poll(context));
            ended = true;
            let lost = |_| DataError::Lost(sqlx::Error::WorkerCrashed);
            Poll::Ready(result.map_err(lost).flatten().err().map(Err))
        })
    }

    /// All rows.
    ///
    /// # Errors
    /// Why the statement failed.
    pub async fn rows(&self, statement: &impl Statement) -> Result<Vec<Row>, DataError> {
        let built = statement.built(self.dialect());
        match self.read_rows(built.clone()).await {
            Err(DataError::Lost(_)) => self.read_rows(built).await,
            result => result,
        }
    }

    /// The first row.
    ///
    /// # Errors
    /// Why the statement failed.
    pub async fn row(&self, statement: &impl Statement) -> Result<Option<Row>, DataError> {
        let built = statement.built(self.dialect());
        match self.read_row(built.clone()).await {
            Err(DataError::Lost(_)) => self.read_row(built).await,
            result => result,
        }
    }

    reads! {
        read_texts() texts -> Vec<Option<String>>;
        read_rows() rows -> Vec<Row>;
        read_row() row -> Option<Row>;
    }

    async fn read_each<F, T>(&self, built: BuiltStatement, take: F) -> Result<(), DataError>
    where
        F: Fn(Option<String>) -> T,
        T: Future<Output = bool>,
    {
        match &self.pools {
            Pools::Sqlite { readers, .. } => {
                let mut reader = readers.of(self.pool).reader().await?;
                let result = Connection::Sqlite(reader.connection()?)
                    .each_text(built, take)
                    .await;
                reader.done(result)
            }
            Pools::Postgres { pools, losses } => {
                let mut session = losses.note(pools.of(self.pool).session().await)?;
                let result = session.connection()?.each_text(built, take).await;
                losses.note(session.done(result))
            }
        }
    }

    /// One statement that is a transaction of its own; how many rows it changed.
    ///
    /// # Errors
    /// Why the statement failed.
    pub async fn execute(&self, statement: &impl Statement) -> Result<u64, DataError> {
        let built = statement.built(self.dialect());
        let rows = match &self.pools {
            Pools::Sqlite { writer, .. } => {
                let mut turn = writer.turn().await?;
                let rows = Connection::Sqlite(turn.connection()?)
                    .execute(built)
                    .await?;
                // Whoever drops this future half-way does not stop what others wait for.
                let committed = tokio::spawn(turn.commit()).await;
                let lost = |_| DataError::Lost(sqlx::Error::WorkerCrashed);
                committed.map_err(lost).flatten().map(|()| rows)
            }
            Pools::Postgres { pools, losses } => {
                let mut session = losses.note(pools.of(self.pool).session().await)?;
                let result = session.connection()?.execute(built).await;
                losses.note(session.done(result))
            }
        };
        self.tell(&[]);
        rows
    }

    /// Begins a transaction. In SQLite it is the only one that writes until it ends; it may be committed together
    /// with those that waited for it.
    ///
    /// # Errors
    /// [`DataError::Busy`] where no connection became free in time.
    pub async fn begin(&self) -> Result<Transaction, DataError> {
        let inner = match &self.pools {
            Pools::Sqlite { writer, .. } => Backend::Sqlite(writer.turn().await?),
            Pools::Postgres { pools, losses } => {
                let pool = pools.of(self.pool);
                let begin = async || losses.note(pool.begin().await);
                // Nothing was done yet: another connection will do.
                Backend::Postgres(match begin().await {
                    Err(DataError::Lost(_)) => begin().await?,
                    begun => begun?,
                })
            }
        };
        Ok(Transaction::new(inner, self.clone()))
    }

    /// Makes the file of SQLite smaller by a few of its free pages, while nobody else wants to write; whether there is
    /// more to give back. PostgreSQL cares for its files itself, and so nothing is done there.
    ///
    /// # Errors
    /// Where the file cannot be made smaller.
    pub async fn shrink(&self) -> Result<bool, DataError> {
        match &self.pools {
            Pools::Sqlite { writer, .. } => writer.shrink().await,
            Pools::Postgres { .. } => Ok(false),
        }
    }

    /// Closes all connections, once what is under way is done.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite {
                readers, writer, ..
            } => {
                for readers in readers.all() {
                    readers.close().await;
                }
                writer.close().await;
            }
            Pools::Postgres { pools, .. } => {
                for pool in pools.all() {
                    pool.close().await;
                }
            }
        }
    }
}

impl Pools {
    async fn sqlite(url: &str, path: &str, options: &Options) -> Result<Self, DataError> {
        if path.is_empty() || path == ":memory:" {
            return Err(DataError::Address {
                url: url.to_owned(),
                reason: "several connections share the database, so it has to be a file",
            });
        }
        let connect = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What was answered with success is there after a loss of power as well; the weaker `NORMAL`
            // loses the last transactions then, and devices would be told one thing before and another after.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(options.devices.wait)
            .pragma("journal_size_limit", "67108864")
            .statement_cache_capacity(options.prepared);
        let open = |source| DataError::Open {
            url: url.to_owned(),
            source,
        };
        keep_private(path).map_err(|error| open(sqlx::Error::Io(error)))?;
        // The writer comes first: it makes the file. Bringing the tables up to date takes as long as it takes.
        // A new file gives back what is freed (`shrink`); one that is there stays as it is.
        let shrinking = connect.clone().auto_vacuum(SqliteAutoVacuum::Incremental);
        let writer = SqliteWriter::open(shrinking, options.devices.wait, MIGRATION)
            .await
            .map_err(open)?;
        let connect = connect.pragma("query_only", "ON");
        let readers = |pool: PoolOptions| Readers::new(connect.clone(), pool);
        let readers = PerPool {
            devices: readers(options.devices),
            people: readers(options.people),
            guests: readers(options.guests),
        };
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
            // Statements with the rules of access in them look dear enough to PostgreSQL to be compiled first, which
            // takes seconds for what is read in milliseconds.
            .options([("jit", "off")]);
        // The first one tries the address out.
        let losses = Losses::new();
        let pool = |options| Self::postgres_pool(&connect, options, losses.clone());
        let sessions =
            |options: PoolOptions| SessionPool::new(pool(options), options.statement_timeout);
        let devices = pool(options.devices);
        devices.acquire().await.map_err(open)?;
        let pools = PerPool {
            devices: SessionPool::new(devices, options.devices.statement_timeout),
            people: sessions(options.people),
            guests: sessions(options.guests),
        };
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

/// Sees to it that nobody else on the machine reads the database: not the file, which is made where it is missing, and
/// not what SQLite keeps beside it, which gets the permissions of the file.
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
                "{path} could be read by others on this machine; now it is the owner's alone"
            ),
            Err(error) => tracing::warn!(
                %error,
                "{path} can be read by others on this machine; `chmod 600` it"
            ),
        }
    }
    Ok(())
}

/// An address as it may be shown.
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

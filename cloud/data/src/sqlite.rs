//! The connections of SQLite: several that read, each with the deadline of its current statement.
//!
//! SQLite has no such limit of its own, but asks now and then whether to continue. A general pool would have to send a
//! new deadline to the connection's thread for every statement, which costs more than most of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::limits::Limit;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::DataError;
use crate::letter_case;
use crate::options::PoolOptions;

/// Instructions between two deadline checks: some hundred microseconds.
const STEPS: i32 = 20_000;

/// The maximum size in bytes of a row, and of a value that is read or computed. SQLite builds the text of each row of a
/// response, and without a bound a request of 400 bytes can have it build one of half a gigabyte.
const MAX_VALUE: i32 = 16 << 20;

/// When the statement of a connection must be done.
#[derive(Debug)]
pub(crate) struct Deadline {
    begin: Instant,
    /// Milliseconds after `begin`.
    at: AtomicU64,
}

impl Default for Deadline {
    fn default() -> Self {
        Deadline {
            begin: Instant::now(),
            at: AtomicU64::new(u64::MAX),
        }
    }
}

impl Deadline {
    /// Gives the next statement this much time.
    pub(crate) fn begin(&self, timeout: Duration) {
        let at = self.begin.elapsed() + timeout;
        let at = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        self.at.store(at, Ordering::Relaxed);
    }

    /// Stops the statement, since nobody waits for it any more.
    pub(crate) fn expire(&self) {
        self.at.store(0, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.begin.elapsed().as_millis() > u128::from(self.at.load(Ordering::Relaxed))
    }
}

/// Makes a connection check its deadline.
pub(crate) async fn hold_to(
    connection: &mut SqliteConnection,
    deadline: Arc<Deadline>,
) -> Result<(), sqlx::Error> {
    let mut handle = connection.lock_handle().await?;
    handle.set_progress_handler(STEPS, move || !deadline.is_over());
    Ok(())
}

/// Returns the number that a pragma yields.
pub(crate) async fn number(
    connection: &mut SqliteConnection,
    pragma: &'static str,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(pragma).fetch_one(connection).await
}

/// Opens a connection, and adds the functions that statements call.
pub(crate) async fn connect(
    options: &SqliteConnectOptions,
) -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = options.connect().await?;
    with_handle(&mut connection, letter_case::add_to).await?;
    Ok(connection)
}

/// Makes statements of a connection fail if a value is longer than [`MAX_VALUE`].
fn bound_values(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    Ok(())
}

/// Changes a connection in a way that sqlx does not support.
#[expect(
    unsafe_code,
    reason = "sqlx hands out the connection's handle, and rusqlite takes handles of others by an unsafe function alone"
)]
async fn with_handle(
    connection: &mut SqliteConnection,
    change: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<()>,
) -> Result<(), sqlx::Error> {
    let mut handle = connection.lock_handle().await?;
    // SAFETY: the handle is that of an open connection. `handle` holds the lock under which its own thread uses it
    // until the end of this function, so nothing else uses it in that time and it is not closed; `borrowed` ends before
    // that, and does not close what it does not own.
    let borrowed = unsafe { rusqlite::Connection::from_handle(handle.as_raw_handle().as_ptr()) };
    let changed = borrowed.and_then(|borrowed| change(&borrowed));
    changed.map_err(|error| sqlx::Error::Configuration(error.into()))
}

/// The reading connections.
pub(crate) struct Readers {
    options: SqliteConnectOptions,
    /// How long a request waits for a connection.
    wait: Duration,
    /// How long a statement may take.
    timeout: Duration,
    permits: Arc<Semaphore>,
    free: Mutex<Vec<IdleConnection>>,
}

struct IdleConnection {
    connection: SqliteConnection,
    deadline: Arc<Deadline>,
}

/// A connection for one statement.
pub(crate) struct Reader {
    /// `None` once it has been returned.
    idle: Option<IdleConnection>,
    /// Held until the connection is returned.
    permit: Option<OwnedSemaphorePermit>,
    readers: Arc<Readers>,
    /// Whether a statement was begun and has not ended.
    busy: bool,
}

impl Readers {
    pub(crate) fn new(options: SqliteConnectOptions, pool: PoolOptions) -> Arc<Self> {
        let connections = usize::try_from(pool.connections).unwrap_or(1).max(1);
        Arc::new(Readers {
            options,
            wait: pool.wait,
            timeout: pool.statement_timeout,
            permits: Arc::new(Semaphore::new(connections)),
            free: Mutex::default(),
        })
    }

    /// Returns a connection for one statement, whose time starts now.
    pub(crate) async fn reader(self: &Arc<Self>) -> Result<Reader, DataError> {
        let permit = tokio::time::timeout(self.wait, self.permits.clone().acquire_owned())
            .await
            .map_err(|_| DataError::Busy(sqlx::Error::PoolTimedOut))?
            .map_err(|_| DataError::Lost(sqlx::Error::PoolClosed))?;
        let free = self.free.lock().pop();
        let idle = match free {
            Some(idle) => idle,
            None => self.connect().await?,
        };
        idle.deadline.begin(self.timeout);
        Ok(Reader {
            idle: Some(idle),
            permit: Some(permit),
            readers: self.clone(),
            busy: true,
        })
    }

    async fn connect(&self) -> Result<IdleConnection, DataError> {
        let mut connection = connect(&self.options).await?;
        with_handle(&mut connection, bound_values).await?;
        let deadline = Arc::new(Deadline::default());
        hold_to(&mut connection, deadline.clone()).await?;
        Ok(IdleConnection {
            connection,
            deadline,
        })
    }

    /// Prevents further reads, after the current ones have ended.
    pub(crate) async fn close(&self) {
        self.permits.close();
        let free = std::mem::take(&mut *self.free.lock());
        for idle in free {
            let _ = idle.connection.close().await;
        }
    }

    fn put_back(&self, idle: IdleConnection) {
        if !self.permits.is_closed() {
            self.free.lock().push(idle);
        }
    }
}

impl Reader {
    /// Returns the connection.
    pub(crate) fn connection(&mut self) -> Result<&mut SqliteConnection, DataError> {
        match &mut self.idle {
            Some(idle) => Ok(&mut idle.connection),
            None => Err(DataError::Lost(sqlx::Error::PoolClosed)),
        }
    }

    /// Records that its statement ended, successfully or not.
    pub(crate) fn done<T>(mut self, result: Result<T, DataError>) -> Result<T, DataError> {
        self.busy = false;
        if matches!(result, Err(DataError::Lost(_))) {
            self.idle = None;
        }
        result
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Some(mut idle) = self.idle.take() else {
            return;
        };
        if !self.busy {
            self.readers.put_back(idle);
            return;
        }
        // The caller is gone: the statement is stopped, and then the connection is free.
        idle.deadline.expire();
        let (readers, permit) = (self.readers.clone(), self.permit.take());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if idle.connection.ping().await.is_ok() {
                    readers.put_back(idle);
                }
                drop(permit);
            });
        }
    }
}

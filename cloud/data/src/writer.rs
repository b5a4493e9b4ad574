//! SQLite's only writing connection, and the order of its users.
//!
//! SQLite allows one write at a time, and each commit waits for the disk. So transactions that wait for their turn
//! while another one writes are committed together with it: the first transaction of such a group opens it, each
//! further one is a savepoint in it, and one commit ends it. Success is reported only after that commit, and until then
//! the changes are invisible to others; the changes of a failed transaction are undone individually. Turns are fair,
//! and the task that commits waits for its turn like the others: so a group is as long as the queue was when its first
//! transaction ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use crate::error::DataError;
use crate::sqlite::{self, Deadline};
use group::{Group, GroupOutcome};
use state::WriterState;

mod group;
mod shrink;
mod state;
#[cfg(test)]
mod tests;

/// SQLite's `auto_vacuum` mode in which a file releases free pages step by step.
const INCREMENTAL: i64 = 2;

/// Access to the writing connection. Clones share it.
#[derive(Clone)]
pub(crate) struct SqliteWriter {
    shared: Arc<SharedWriter>,
}

struct SharedWriter {
    options: SqliteConnectOptions,
    /// Whether the file releases free pages step by step, as files created by this program do. Constant while it is
    /// open.
    gives_back: bool,
    /// Whether pages were released but the file is not truncated yet.
    is_to_be_cut: AtomicBool,
    /// How long a caller waits for a turn.
    wait: Duration,
    /// How long a statement may take, in milliseconds.
    timeout: AtomicU64,
    deadline: Arc<Deadline>,
    /// This lock is fair, while SQLite itself would only retry.
    state: Arc<Mutex<WriterState>>,
    waiting: AtomicUsize,
}

impl SqliteWriter {
    /// Opens the connection, which creates the file if it is missing.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) async fn open(
        options: SqliteConnectOptions,
        wait: Duration,
        timeout: Duration,
    ) -> Result<Self, sqlx::Error> {
        let mut shared = SharedWriter {
            options,
            gives_back: false,
            is_to_be_cut: AtomicBool::default(),
            wait,
            timeout: AtomicU64::default(),
            deadline: Arc::default(),
            state: Arc::default(),
            waiting: AtomicUsize::new(0),
        };
        shared.hold_to(timeout);
        let mut connection = shared.connect().await?;
        let auto_vacuum = sqlite::number(&mut connection, "PRAGMA auto_vacuum").await?;
        shared.gives_back = auto_vacuum == INCREMENTAL;
        shared.state.lock().await.connection = Some(connection);
        Ok(SqliteWriter {
            shared: Arc::new(shared),
        })
    }

    /// Sets how long a statement may take from now on.
    pub(crate) fn hold_to(&self, timeout: Duration) {
        self.shared.hold_to(timeout);
    }

    /// Waits for a turn, and begins a transaction.
    ///
    /// # Errors
    /// [`DataError::Busy`] if the turn did not come in time.
    pub(crate) async fn turn(&self) -> Result<WriterTurn, DataError> {
        let shared = self.shared.clone();
        let state = {
            let _waits = Waits::new(&shared.waiting);
            tokio::time::timeout(shared.wait, shared.state.clone().lock_owned())
                .await
                .map_err(|_| DataError::Busy(sqlx::Error::PoolTimedOut))?
        };
        WriterTurn::begun(shared, state).await
    }

    /// Commits the open group and prevents further writes.
    pub(crate) async fn close(&self) {
        let shared = self.shared.clone();
        let closing = tokio::spawn(async move {
            let mut state = shared.state.clone().lock_owned().await;
            state.settle().await;
            state.commit().await;
            state.closed = true;
            if let Some(connection) = state.connection.take() {
                let _ = connection.close().await;
            }
        });
        let _ = closing.await;
    }
}

impl SharedWriter {
    fn hold_to(&self, timeout: Duration) {
        let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.timeout.store(timeout, Ordering::Relaxed);
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout.load(Ordering::Relaxed))
    }

    async fn connect(&self) -> Result<SqliteConnection, sqlx::Error> {
        let mut connection = sqlite::connect(&self.options).await?;
        sqlite::hold_to(&mut connection, self.deadline.clone()).await?;
        Ok(connection)
    }
}

/// Counts a waiting caller until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waits(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A transaction on the writing connection. Dropping it undoes the changes.
pub(crate) struct WriterTurn {
    state: OwnedMutexGuard<WriterState>,
    shared: Arc<SharedWriter>,
    ended: bool,
}

impl WriterTurn {
    async fn begun(
        shared: Arc<SharedWriter>,
        state: OwnedMutexGuard<WriterState>,
    ) -> Result<Self, DataError> {
        let mut turn = WriterTurn {
            state,
            shared,
            ended: true,
        };
        turn.begin().await?;
        Ok(turn)
    }

    async fn begin(&mut self) -> Result<(), DataError> {
        if self.state.closed {
            return Err(DataError::Lost(sqlx::Error::PoolClosed));
        }
        self.state.settle().await;
        if self.state.connection.is_none() {
            self.state.connection = Some(self.shared.connect().await?);
        }
        self.shared.deadline.begin(self.shared.timeout());
        // From here on it is undone unless it is ended.
        self.state.unfinished = true;
        self.ended = false;
        if self.state.group.is_some() {
            return self.state.run("SAVEPOINT turn").await;
        }
        self.state.run("BEGIN IMMEDIATE").await?;
        self.state.group = Some(Group {
            members: 0,
            ending: false,
            outcome: watch::Sender::new(GroupOutcome::Open),
        });
        Ok(())
    }

    /// Returns the connection for a statement, whose time starts now.
    ///
    /// # Errors
    /// If the connection broke.
    pub(crate) fn connection(&mut self) -> Result<&mut SqliteConnection, DataError> {
        self.shared.deadline.begin(self.shared.timeout());
        self.state.connection()
    }

    /// Returns once the changes are on the disk. It must not be dropped half-way: the outcome would be unknown.
    ///
    /// # Errors
    /// [`DataError::Contended`] if another transaction of the group failed so badly that the database undid all of
    /// them; nothing is changed then, and it may be repeated.
    pub(crate) async fn commit(mut self) -> Result<(), DataError> {
        self.shared.deadline.begin(self.shared.timeout());
        let state = &mut *self.state;
        if state.members() > 0 {
            state.run("RELEASE turn").await?;
        }
        let Some(group) = &mut state.group else {
            return Err(DataError::crashed());
        };
        group.members += 1;
        let mut outcome = group.outcome.subscribe();
        let ends_now = !group.ending && self.shared.waiting.load(Ordering::Relaxed) == 0;
        let hands_over = !ends_now && !std::mem::replace(&mut group.ending, true);
        state.unfinished = false;
        self.ended = true;
        if ends_now {
            self.state.commit().await;
        }
        let shared = self.shared.clone();
        drop(self);
        if hands_over {
            tokio::spawn(async move {
                let mut state = shared.state.clone().lock_owned().await;
                state.settle().await;
                shared.deadline.begin(shared.timeout());
                state.commit().await;
            });
        }
        let is_decided = |outcome: &GroupOutcome| !matches!(outcome, GroupOutcome::Open);
        let outcome = match outcome.wait_for(is_decided).await {
            Ok(outcome) => outcome.clone(),
            Err(_) => GroupOutcome::Open,
        };
        outcome.result()
    }

    /// Like [`WriterTurn::commit`], but dropping it half-way does not affect other transactions.
    pub(crate) async fn commit_detached(self) -> Result<(), DataError> {
        let committed = tokio::spawn(self.commit()).await;
        committed.map_err(|_| DataError::crashed()).flatten()
    }

    /// Undoes the transaction immediately.
    pub(crate) async fn rollback(mut self) {
        self.shared.deadline.begin(self.shared.timeout());
        self.state.settle().await;
        self.ended = true;
    }
}

impl Drop for WriterTurn {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // Nobody waits for the current statement. Interrupting it would also undo completed transactions of its group,
        // so it continues if there are any.
        if self.state.members() == 0 {
            self.shared.deadline.expire();
        }
        // The next turn undoes it; if there is none, this task does.
        let shared = self.shared.clone();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { shared.state.lock().await.settle().await });
        }
    }
}

//! The one connection of SQLite that writes, and whose turn it is.
//!
//! SQLite lets one write at a time, and each commit waits for the disk. So whoever waits for a turn while another
//! writes is committed together with that one: the first transaction of such a group opens it, each further one is
//! a savepoint in it, and one commit ends it. Nobody is told of success before that commit, and nobody else sees
//! any of it before; what one of them did wrong is undone alone. Turns are fair, and the task that commits waits
//! for its turn as the others do: so a group is as long as the line was when its first transaction ended.

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

/// What SQLite calls it where a file gives free pages back step by step.
const INCREMENTAL: i64 = 2;

/// Turns at the connection that writes. Clones are the same one.
#[derive(Clone)]
pub(crate) struct SqliteWriter {
    shared: Arc<WriterInner>,
}

struct WriterInner {
    options: SqliteConnectOptions,
    /// Whether the file gives free pages back step by step, as those that we make do. It stays so while it is open.
    gives_back: bool,
    /// Pages were given back, and the file is not cut yet.
    is_to_be_cut: AtomicBool,
    /// How long one waits for a turn.
    wait: Duration,
    /// How long a statement may take, in milliseconds.
    timeout: AtomicU64,
    deadline: Arc<Deadline>,
    /// Waiting here is fair, while SQLite's own way is to try again and again.
    state: Arc<Mutex<WriterState>>,
    waiting: AtomicUsize,
}

impl SqliteWriter {
    /// Opens the connection, which makes the file where it is missing.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(crate) async fn open(
        options: SqliteConnectOptions,
        wait: Duration,
        timeout: Duration,
    ) -> Result<Self, sqlx::Error> {
        let mut shared = WriterInner {
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

    /// How long a statement may take from now on.
    pub(crate) fn hold_to(&self, timeout: Duration) {
        self.shared.hold_to(timeout);
    }

    /// Waits for a turn, and begins a transaction.
    ///
    /// # Errors
    /// [`DataError::Busy`] where the turn did not come in time.
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

    /// Commits what is to be committed and lets nobody write any more.
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

impl WriterInner {
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

/// Somebody waits for a turn, or no longer.
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

/// A transaction at the connection that writes. Dropped, it did not happen.
pub(crate) struct WriterTurn {
    state: OwnedMutexGuard<WriterState>,
    shared: Arc<WriterInner>,
    ended: bool,
}

impl WriterTurn {
    async fn begun(
        shared: Arc<WriterInner>,
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
        // From here on it is undone where nobody ends it.
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

    /// For a statement, whose time begins.
    ///
    /// # Errors
    /// Where the connection broke.
    pub(crate) fn connection(&mut self) -> Result<&mut SqliteConnection, DataError> {
        self.shared.deadline.begin(self.shared.timeout());
        self.state.connection()
    }

    /// Returns once it is on the disk. Not to be dropped half-way: then nobody knows.
    ///
    /// # Errors
    /// [`DataError::Contended`] where another that would have been committed with it failed so badly that the
    /// database undid all of them; nothing is changed then, and it may be tried again.
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

    /// As [`WriterTurn::commit`]; whoever drops this half-way does not stop what others wait for.
    pub(crate) async fn commit_detached(self) -> Result<(), DataError> {
        let committed = tokio::spawn(self.commit()).await;
        committed.map_err(|_| DataError::crashed()).flatten()
    }

    /// Undoes it at once.
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
        // Nobody waits for a statement that is under way. Interrupted, it would take along those of its group
        // that ended well, so it is let go on where there are any.
        if self.state.members() == 0 {
            self.shared.deadline.expire();
        }
        // Whoever comes next undoes it; this one does where nobody comes.
        let shared = self.shared.clone();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { shared.state.lock().await.settle().await });
        }
    }
}

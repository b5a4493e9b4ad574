//! A database of either kind.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, ready};
use std::time::Duration;

use futures::{FutureExt as _, Stream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::effect::Effect;
use crate::error::DataError;
use crate::options::{Options, Pool};
use crate::pools::Pools;
use crate::row::Row;
use crate::statement::{BuiltStatement, Statement};

/// The number of rows that a stream reads ahead.
const AHEAD: usize = 64;

/// Receives the effects of transactions.
type Listener = Box<dyn Fn(&[Effect]) + Send + Sync>;

/// A database. Clones share its connections.
#[derive(Clone)]
pub struct Database {
    pub(crate) pools: Pools,
    /// The pool that its statements use.
    pub(crate) pool: Pool,
    listener: Arc<OnceLock<Listener>>,
    /// See [`Options::stream_timeout`].
    stream_timeout: Duration,
    /// Counts the writes of this program.
    written: Arc<watch::Sender<u64>>,
}

/// Statements that read, on any free connection.
macro_rules! reads {
    ($($(#[$about:meta])* $name:ident -> $answer:ty;)*) => {
        $($(#[$about])*
        pub async fn $name(&self, statement: &impl Statement) -> Result<$answer, DataError> {
            let built = statement.built(self.dialect());
            let read = async |built: BuiltStatement| {
                let mut lease = self.pools.lease(self.pool).await?;
                let result = lease.connection()?.$name(built).await;
                lease.done(result)
            };
            match read(built.clone()).await {
                // The server was restarted: a new connection will do.
                Err(DataError::Lost(_)) => read(built).await,
                result => result,
            }
        })*
    };
}

impl Database {
    /// Opens its connections ([`Pools::open`]), without updating the tables.
    pub(crate) async fn connect(url: &str, options: &Options) -> Result<Self, DataError> {
        Ok(Database {
            pools: Pools::open(url, options).await?,
            pool: Pool::Devices,
            listener: Arc::default(),
            stream_timeout: options.stream_timeout,
            written: Arc::default(),
        })
    }

    /// Returns the same database, with the connections of a pool.
    #[must_use]
    pub fn by(&self, pool: Pool) -> Self {
        Database {
            pool,
            ..self.clone()
        }
    }

    /// Returns the kind of database.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self.pools {
            Pools::Sqlite { .. } => Dialect::Sqlite,
            Pools::Postgres { .. } => Dialect::Postgres,
        }
    }

    /// Calls `listener` with the effects of each transaction that this program commits, right after the commit. It must
    /// not block. Only the first listener is kept.
    pub fn listen(&self, listener: impl Fn(&[Effect]) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// Returns a receiver that changes whenever this program has written anything, with or without effects, for views
    /// that then read again. Writes of other programs to the same database are not reported.
    #[must_use]
    pub fn written(&self) -> watch::Receiver<u64> {
        self.written.subscribe()
    }

    pub(crate) fn notify(&self, effects: &[Effect]) {
        self.written
            .send_modify(|times| *times = times.wrapping_add(1));
        if let (false, Some(listener)) = (effects.is_empty(), self.listener.get()) {
            listener(effects);
        }
    }

    reads! {
        /// Returns the first value of each row, as text.
        ///
        /// # Errors
        /// If the statement fails.
        texts -> Vec<Option<String>>;
        /// Returns all rows.
        ///
        /// # Errors
        /// If the statement fails.
        rows -> Vec<Row>;
        /// Returns the first row.
        ///
        /// # Errors
        /// If the statement fails.
        row -> Option<Row>;
    }

    /// Returns the numbers of the first column.
    ///
    /// # Errors
    /// If the statement fails.
    pub async fn ids(&self, statement: &impl Statement) -> Result<Vec<i64>, DataError> {
        let rows = self.rows(statement).await?;
        rows.iter().map(|row| row.id(0)).collect()
    }

    /// Returns the number in the first row's first column, if there is one.
    ///
    /// # Errors
    /// If the statement fails.
    pub async fn id(&self, statement: &impl Statement) -> Result<Option<i64>, DataError> {
        match self.row(statement).await? {
            Some(row) => row.number(0),
            None => Ok(None),
        }
    }

    /// Streams the first value of each row, as text, with few of them in memory. A caller that has not read all rows in
    /// time ([`Options::stream_timeout`]) gets [`DataError::Unread`] in place of the rest.
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
                // The server was restarted before any row was returned.
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
            // After the last row, an error must not look like the end.
            let result = ready!(Pin::new(&mut reading).poll(context));
            ended = true;
            let result = result.map_err(|_| DataError::crashed()).flatten();
            Poll::Ready(result.err().map(Err))
        })
    }

    async fn read_each<F, T>(&self, built: BuiltStatement, take: F) -> Result<(), DataError>
    where
        F: Fn(Option<String>) -> T + Send,
        T: Future<Output = bool> + Send,
    {
        let mut lease = self.pools.lease(self.pool).await?;
        let result = lease.connection()?.each_text(built, take).await;
        lease.done(result)
    }

    /// Executes one statement as its own transaction; returns how many rows it changed.
    ///
    /// # Errors
    /// If the statement fails.
    pub async fn execute(&self, statement: &impl Statement) -> Result<u64, DataError> {
        let built = statement.built(self.dialect());
        let rows = match &self.pools {
            Pools::Sqlite { writer, .. } => {
                let mut turn = writer.turn().boxed().await?;
                let rows = Connection::Sqlite(turn.connection()?)
                    .execute(built)
                    .await?;
                turn.commit_detached().await.map(|()| rows)
            }
            Pools::Postgres { .. } => {
                let mut lease = self.pools.lease(self.pool).await?;
                let result = lease.connection()?.execute(built).await;
                lease.done(result)
            }
        };
        self.notify(&[]);
        rows
    }

    /// Returns a few of the SQLite file's free pages to the file system, unless somebody else wants to write; returns
    /// whether there are more. PostgreSQL manages its files itself, so nothing is done there.
    ///
    /// # Errors
    /// If the file cannot be made smaller.
    pub async fn shrink(&self) -> Result<bool, DataError> {
        match &self.pools {
            Pools::Sqlite { writer, .. } => writer.shrink().await,
            Pools::Postgres { .. } => Ok(false),
        }
    }

    /// Closes all connections, after current statements have ended.
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

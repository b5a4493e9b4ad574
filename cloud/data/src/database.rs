//! One database, whichever it is.

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

/// Rows that a stream is ahead of its reader by.
const AHEAD: usize = 64;

/// Who is told of the effects of transactions.
type Listener = Box<dyn Fn(&[Effect]) + Send + Sync>;

/// One database. Clones are the same one.
#[derive(Clone)]
pub struct Database {
    pub(crate) pools: Pools,
    /// Whose statements these are.
    pub(crate) pool: Pool,
    listener: Arc<OnceLock<Listener>>,
    /// As [`Options::stream_timeout`].
    stream_timeout: Duration,
    /// How often this program wrote anything.
    written: Arc<watch::Sender<u64>>,
}

/// Statements that read, by any connection that is free.
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
                // A server that was restarted: a new connection will do.
                Err(DataError::Lost(_)) => read(built).await,
                result => result,
            }
        })*
    };
}

impl Database {
    /// Opens its connections ([`Pools::open`]); nothing of it is brought up to date.
    pub(crate) async fn connect(url: &str, options: &Options) -> Result<Self, DataError> {
        Ok(Database {
            pools: Pools::open(url, options).await?,
            pool: Pool::Devices,
            listener: Arc::default(),
            stream_timeout: options.stream_timeout,
            written: Arc::default(),
        })
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

    pub(crate) fn tell(&self, effects: &[Effect]) {
        self.written
            .send_modify(|times| *times = times.wrapping_add(1));
        if let (false, Some(listener)) = (effects.is_empty(), self.listener.get()) {
            listener(effects);
        }
    }

    reads! {
        /// The first value of each row, as text.
        ///
        /// # Errors
        /// Why the statement failed.
        texts -> Vec<Option<String>>;
        /// All rows.
        ///
        /// # Errors
        /// Why the statement failed.
        rows -> Vec<Row>;
        /// The first row.
        ///
        /// # Errors
        /// Why the statement failed.
        row -> Option<Row>;
    }

    /// The numbers of the first column.
    ///
    /// # Errors
    /// Why the statement failed.
    pub async fn ids(&self, statement: &impl Statement) -> Result<Vec<i64>, DataError> {
        let rows = self.rows(statement).await?;
        rows.iter().map(|row| row.id(0)).collect()
    }

    /// The number in the first row's first column, unless there is none.
    ///
    /// # Errors
    /// Why the statement failed.
    pub async fn id(&self, statement: &impl Statement) -> Result<Option<i64>, DataError> {
        match self.row(statement).await? {
            Some(row) => row.number(0),
            None => Ok(None),
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

    /// One statement that is a transaction of its own; how many rows it changed.
    ///
    /// # Errors
    /// Why the statement failed.
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
        self.tell(&[]);
        rows
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

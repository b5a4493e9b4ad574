//! The storage of lines: a table of the database or, with several replicas, a stream of the server between them. No
//! other code depends on which it is.

use data::{DataError, Database, Effect};

use super::line::LogLine;
use super::live::LineSubscription;
use super::span::{AppendError, Span};
use super::stream::{Stream, StreamError};
use super::table::LogTable;
use crate::answer::Refusal;
use crate::bus::Bus;
use crate::configuration::NatsSettings;

/// The storage of lines.
pub enum History {
    Table(LogTable),
    Stream(Box<Stream>),
}

/// Why lines cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error(transparent)]
    Database(#[from] DataError),
    #[error(transparent)]
    Stream(#[from] StreamError),
}

impl From<HistoryError> for Refusal {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Database(error) => error.into(),
            HistoryError::Stream(error) => {
                tracing::warn!("log lines cannot be read: {error}");
                Refusal::Unavailable("log lines cannot be read at the moment".to_owned())
            }
        }
    }
}

impl History {
    /// Uses the stream of the server between replicas, or the table if there is none.
    pub fn new(bus: &Bus, settings: &NatsSettings) -> Self {
        match bus.nats() {
            None => History::Table(LogTable::default()),
            Some(nats) => {
                let stream = Stream::new(nats.clone(), bus.clone(), settings.clone());
                History::Stream(Box::new(stream))
            }
        }
    }

    /// Stores lines of a device. When it returns, they are stored, and have been sent to the followers of the device.
    ///
    /// # Errors
    /// [`AppendError`]
    pub async fn keep(
        &self,
        database: &Database,
        device: i64,
        lines: Vec<LogLine>,
    ) -> Result<(), AppendError> {
        if lines.is_empty() {
            return Ok(());
        }
        match self {
            History::Table(table) => table.queue.keep(device, lines).await,
            History::Stream(stream) => stream.keep(database, device, lines).await,
        }
    }

    /// Reads stored lines, the oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn read(
        &self,
        database: &Database,
        span: Span,
    ) -> Result<Vec<LogLine>, HistoryError> {
        if span.count == 0 {
            return Ok(Vec::new());
        }
        match self {
            History::Table(_) => Ok(super::table::read(database, span).await?),
            History::Stream(stream) => Ok(stream.read(span).await?),
        }
    }

    /// Follows the lines of a device from now on.
    ///
    /// # Errors
    /// If they cannot be received.
    pub async fn follow(&self, device: i64) -> Result<LineSubscription, HistoryError> {
        match self {
            History::Table(table) => Ok(table.live.follow(device)),
            History::Stream(stream) => Ok(stream.follow(device).await?),
        }
    }

    /// Handles changes: the lines of deleted devices are deleted.
    pub fn invalidate(&self, effects: &[Effect]) {
        // The database itself deletes their lines from the table.
        let History::Stream(stream) = self else {
            return;
        };
        for effect in effects {
            if let Effect::DevicesGone(gone) = effect {
                stream.invalidate(gone);
            }
        }
    }
}

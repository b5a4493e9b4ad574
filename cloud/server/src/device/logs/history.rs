//! Where lines are kept: a table of the database, or, where there are several replicas, a stream of the server
//! between them. Nothing else knows which.

use std::sync::Arc;

use data::DataError;

use super::line::Line;
use super::live::Followed;
use super::stream::{Stream, StreamError};
use super::table::Table;
use crate::answer::Refusal;
use crate::bus::Nats;
use crate::cloud::Cloud;
use crate::configuration::NatsSettings;

/// Where lines are kept.
pub(crate) enum History {
    Table(Table),
    Stream(Box<Stream>),
}

/// Why lines are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotKept {
    /// Their device is gone.
    Gone,
    /// They are not taken now.
    Unavailable,
}

/// Why lines cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRead {
    #[error(transparent)]
    Database(#[from] DataError),
    #[error(transparent)]
    Stream(#[from] StreamError),
}

impl From<NotRead> for Refusal {
    fn from(error: NotRead) -> Self {
        match error {
            NotRead::Database(error) => error.into(),
            NotRead::Stream(error) => {
                tracing::warn!("log lines cannot be read: {error}");
                Refusal::Unavailable("log lines cannot be read at the moment".to_owned())
            }
        }
    }
}

/// The latest lines of a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) device: i64,
    /// As many at most.
    pub(crate) count: usize,
    /// Since then, in milliseconds since the epoch.
    pub(crate) since: i64,
}

impl History {
    pub(crate) fn new(nats: Option<(&Arc<Nats>, &NatsSettings)>) -> Self {
        match nats {
            None => History::Table(Table::default()),
            Some((nats, settings)) => {
                History::Stream(Box::new(Stream::new(nats.clone(), settings.clone())))
            }
        }
    }

    /// Keeps lines of a device. When it answers, they are kept, and those who follow the device are sent them.
    ///
    /// # Errors
    /// [`NotKept`]
    pub(crate) async fn keep(
        &self,
        cloud: &Cloud,
        device: i64,
        lines: Vec<Line>,
    ) -> Result<(), NotKept> {
        if lines.is_empty() {
            return Ok(());
        }
        match self {
            History::Table(table) => table.queue.keep(device, lines).await,
            History::Stream(stream) => stream.keep(cloud, device, lines).await,
        }
    }

    /// Lines that are kept, the oldest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub(crate) async fn read(&self, cloud: &Cloud, span: Span) -> Result<Vec<Line>, NotRead> {
        if span.count == 0 {
            return Ok(Vec::new());
        }
        match self {
            History::Table(_) => Ok(super::table::read(&cloud.database, span).await?),
            History::Stream(stream) => Ok(stream.read(span).await?),
        }
    }

    /// Lines of a device from now on.
    ///
    /// # Errors
    /// Where they cannot be had.
    pub(crate) async fn follow(&self, device: i64) -> Result<Followed, NotRead> {
        match self {
            History::Table(table) => Ok(table.live.follow(device)),
            History::Stream(stream) => Ok(stream.follow(device).await?),
        }
    }

    /// The table, where that is what keeps them.
    pub(super) fn table(&self) -> Option<&Table> {
        match self {
            History::Table(table) => Some(table),
            History::Stream(_) => None,
        }
    }

    /// The stream, where that is what keeps them.
    pub(super) fn stream(&self) -> Option<&Stream> {
        match self {
            History::Table(_) => None,
            History::Stream(stream) => Some(stream),
        }
    }
}

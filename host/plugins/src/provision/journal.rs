//! The host's journal, as a stream of the journal command's output.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http_body::Frame;
use os::JournalReader;
use parking_lot::Mutex;
use plugin_protocol::{
    Handle, JournalError, JournalOpen, JournalOptions, JournalRead, Piece, Provide,
};

use super::{InstanceCall, Refusal};
use crate::body::BodyError;
use crate::holdings::HeldResource;
use crate::plugin_context::PluginContext;

impl InstanceCall<'_> {
    async fn open_journal(&self, options: JournalOptions) -> Result<Handle, JournalError> {
        let plugin = self.plugin;
        let context = Arc::clone(plugin);
        let report = move |complaint: &str| {
            if context.may_log() {
                let plugin: &str = &context.name;
                tracing::warn!(plugin, "the journal command reported: {complaint}");
            }
        };
        let share = &plugin.share.journal;
        let reader = share.read(&to_host_options(options), report).await;
        let reader = reader.map_err(|error| {
            let message = error.to_string();
            match error {
                os::JournalError::Invalid { .. } => JournalError::Invalid(message),
                os::JournalError::Busy(limit) => JournalError::Busy(format!(
                    "plugins have {limit} of the journal, the maximum for all of them: try again later"
                )),
                os::JournalError::ShareBusy(limit) => JournalError::Busy(format!(
                    "the plugin `{}` has {limit} of the journal, the maximum: try again later",
                    plugin.name
                )),
                os::JournalError::Start { source, .. } => {
                    if plugin.may_log() {
                        tracing::error!(plugin = &*plugin.name, "{message}: {source}");
                    }
                    JournalError::Other(message)
                }
            }
        })?;
        let source = Arc::new(JournalSource::new(reader, Arc::clone(plugin)));
        self.holdings
            .add(HeldResource::Journal(source))
            .map_err(|_| JournalError::Other("too many readers at a time".to_owned()))
    }
}

impl Provide<JournalOpen, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        JournalOpen { options }: JournalOpen,
    ) -> Result<Result<Handle, JournalError>, Refusal> {
        Ok(self.open_journal(options).await)
    }
}

impl Provide<JournalRead, Refusal> for InstanceCall<'_> {
    async fn provide(&self, JournalRead { reader, used }: JournalRead) -> Result<Piece, Refusal> {
        let source = self.holdings.journal(reader)?;
        let piece = poll_fn(|context| source.poll_read(used, context)).await?;
        Ok(match piece {
            JournalPiece::Bytes(bytes) => Piece::Bytes(bytes.to_vec()),
            JournalPiece::End => Piece::End,
            JournalPiece::Broken => Piece::Broken,
        })
    }
}

fn to_host_options(options: JournalOptions) -> os::JournalOptions {
    os::JournalOptions {
        all: options.all,
        follow: options.follow,
        unit: options.unit,
        identifier: options.identifier,
        count: options.count,
        since: options.since,
        until: options.until,
        format: options.format,
    }
}

/// The output of the journal command for its reader: an instance, or once that has returned the stream, the answer.
/// Keeps the latest piece until it is known to be used, so that none is lost on the way.
pub(crate) struct JournalSource(Mutex<Reading>);

struct Reading {
    reader: JournalReader,
    /// The latest piece.
    piece: Bytes,
    /// How many bytes came before it.
    before: u64,
    /// The plugin that reads it.
    plugin: Arc<PluginContext>,
}

enum JournalPiece {
    Bytes(Bytes),
    End,
    Broken,
}

impl JournalSource {
    fn new(reader: JournalReader, plugin: Arc<PluginContext>) -> JournalSource {
        JournalSource(Mutex::new(Reading {
            reader,
            piece: Bytes::new(),
            before: 0,
            plugin,
        }))
    }

    /// Returns what comes after the first `used` bytes.
    fn poll_read(
        &self,
        used: u64,
        context: &mut Context<'_>,
    ) -> Poll<Result<JournalPiece, Refusal>> {
        let mut reading = self.0.lock();
        let length = reading.piece.len();
        let of_piece = used.checked_sub(reading.before);
        let of_piece = of_piece.and_then(|of_piece| usize::try_from(of_piece).ok());
        let of_piece = of_piece.filter(|of_piece| *of_piece <= length);
        let Some(of_piece) = of_piece else {
            return Poll::Ready(Err(Refusal::Position { used }));
        };
        if of_piece < length {
            let mut rest = reading.piece.clone();
            rest.advance(of_piece);
            return Poll::Ready(Ok(JournalPiece::Bytes(rest)));
        }
        (reading.before, reading.piece) = (used, Bytes::new());
        Poll::Ready(Ok(match ready!(reading.reader.poll_piece(context)) {
            Ok(Some(piece)) => {
                reading.piece = piece.clone();
                JournalPiece::Bytes(piece)
            }
            Ok(None) => JournalPiece::End,
            Err(error) => {
                if reading.plugin.may_log() {
                    let plugin: &str = &reading.plugin.name;
                    tracing::warn!(plugin, "reading the journal failed: {error}");
                }
                JournalPiece::Broken
            }
        }))
    }
}

/// The journal as an answer's body, which bypasses the plugin.
pub(crate) struct JournalBody {
    source: Arc<JournalSource>,
    used: u64,
    plugin: Arc<str>,
}

impl JournalBody {
    /// Creates the body from what comes after the `used` bytes that the plugin has read.
    pub(crate) fn new(source: Arc<JournalSource>, used: u64, plugin: Arc<str>) -> JournalBody {
        JournalBody {
            source,
            used,
            plugin,
        }
    }
}

impl http_body::Body for JournalBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(match ready!(self.source.poll_read(self.used, context)) {
            Ok(JournalPiece::Bytes(bytes)) => {
                self.used = self.used.saturating_add(bytes.len() as u64);
                Some(Ok(Frame::data(bytes)))
            }
            Ok(JournalPiece::End) => None,
            Ok(JournalPiece::Broken) | Err(_) => Some(Err(BodyError {
                plugin: self.plugin.to_string(),
            })),
        })
    }
}

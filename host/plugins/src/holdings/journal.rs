//! The host's journal, as a stream of the journal command's output that an instance holds.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http_body::Frame;
use os::JournalReader;
use parking_lot::Mutex;

use crate::body::BodyError;
use crate::plugin_context::PluginContext;
use crate::refusal::Refusal;

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

pub(crate) enum JournalPiece {
    Bytes(Bytes),
    End,
    Broken,
}

impl JournalSource {
    pub(crate) fn new(reader: JournalReader, plugin: Arc<PluginContext>) -> JournalSource {
        JournalSource(Mutex::new(Reading {
            reader,
            piece: Bytes::new(),
            before: 0,
            plugin,
        }))
    }

    /// Returns what comes after the first `used` bytes.
    pub(crate) fn poll_read(
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
}

impl JournalBody {
    /// Creates the body from what comes after the `used` bytes that the plugin has read.
    pub(super) fn new(source: Arc<JournalSource>, used: u64) -> JournalBody {
        JournalBody { source, used }
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
                plugin: self.source.0.lock().plugin.name.to_string(),
            })),
        })
    }
}

//! What a guest answers, at once or while it continues to run.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use plugin_protocol::{AnswerHead, Failure, Outcome};
use tokio::sync::mpsc;

use crate::wasi_http::response_body::ResponseBody;

/// How a guest ended: with its answer, or `None` if the answer is the stream that it began.
pub(crate) type GuestEnd = Result<Option<Outcome>, Failure>;

/// An answer that a guest continues to produce: its head, and the source of the rest.
pub(crate) type StreamedAnswer = (AnswerHead, AnswerPieces);

/// The place where the guest's side puts the head of a stream.
pub(crate) type StreamedAnswerSlot = Arc<Mutex<Option<StreamedAnswer>>>;

/// The source of the body of an answer that a guest continues to produce.
pub(crate) enum AnswerPieces {
    /// A stream of `wit/types.wit`.
    Stream(mpsc::Receiver<Bytes>),
    /// The body of a `wasi:http` response.
    WasiHttp(ResponseBody),
}

impl AnswerPieces {
    pub(crate) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failure>>> {
        match self {
            AnswerPieces::Stream(pieces) => pieces.poll_recv(context).map(|piece| piece.map(Ok)),
            AnswerPieces::WasiHttp(body) => body.poll_piece(context),
        }
    }
}

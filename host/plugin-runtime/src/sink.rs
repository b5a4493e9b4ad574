//! A guest's stream on its way out.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::PollSender;
use wasmtime::StoreContextMut;
use wasmtime::component::{Source, StreamConsumer, StreamResult};

/// The most that is taken from a guest's stream at a time, in bytes.
const PIECE: usize = 64 << 10;
/// How many such pieces can wait for a slow client.
const PIECES: usize = 2;

/// Receives a guest's stream with back-pressure: the guest waits while the client has not read the available pieces,
/// and its stream is closed when the client is gone.
pub(crate) struct Sink {
    pieces: PollSender<Bytes>,
    /// Dropped to signal that the stream has ended.
    _done: oneshot::Sender<()>,
}

/// Creates a sink, its output, and a receiver that resolves when the sink is dropped.
pub(crate) fn sink() -> (Sink, mpsc::Receiver<Bytes>, oneshot::Receiver<()>) {
    let (sender, pieces) = mpsc::channel(PIECES);
    let (done, ended) = oneshot::channel();
    (
        Sink {
            pieces: PollSender::new(sender),
            _done: done,
        },
        pieces,
        ended,
    )
}

impl<D> StreamConsumer<D> for Sink {
    type Item = u8;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        store: StoreContextMut<'_, D>,
        source: Source<'_, u8>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        match self.pieces.poll_reserve(context) {
            Poll::Pending if finish => return Poll::Ready(Ok(StreamResult::Cancelled)),
            polled => {
                if ready!(polled).is_err() {
                    return Poll::Ready(Ok(StreamResult::Dropped));
                }
            }
        }
        let mut direct = source.as_direct(store);
        let offered = direct.remaining();
        let count = offered.len().min(PIECE);
        if count > 0 {
            let piece = Bytes::copy_from_slice(&offered[..count]);
            direct.mark_read(count);
            if self.pieces.send_item(piece).is_err() {
                return Poll::Ready(Ok(StreamResult::Dropped));
            }
        }
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

//! A stream of the host's on its way to a guest. The host can take it back from the guest together with the part that
//! the guest has not read: nothing is buffered on the way.

use std::any::{Any, TypeId};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use wasmtime::StoreContextMut;
use wasmtime::component::{Destination, StreamProducer, StreamResult};

/// The most bytes that a stream offers a guest at a time.
const PIECE: usize = 64 << 10;

/// The source of a stream's bytes.
pub(crate) trait PieceSource: Send + Unpin + 'static {
    /// Returns the next piece, which is not empty, after the `used` bytes that were read; `None` at the end.
    fn poll_piece(
        &mut self,
        used: u64,
        context: &mut Context<'_>,
    ) -> Poll<wasmtime::Result<Option<Bytes>>>;
}

pub(crate) struct HostStream<S> {
    pub(crate) source: S,
    /// Bytes that have arrived and were not read yet.
    pub(crate) ready: Bytes,
    /// How many bytes were read.
    pub(crate) used: u64,
}

impl<S: PieceSource> HostStream<S> {
    pub(crate) fn new(source: S) -> HostStream<S> {
        HostStream {
            source,
            ready: Bytes::new(),
            used: 0,
        }
    }

    /// Waits for bytes in `ready`; returns false at the end.
    pub(crate) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<wasmtime::Result<bool>> {
        if self.ready.is_empty() {
            let piece = ready!(self.source.poll_piece(self.used, context))?;
            self.ready = piece.unwrap_or_default();
        }
        Poll::Ready(Ok(!self.ready.is_empty()))
    }
}

impl<D, S: PieceSource> StreamProducer<D> for HostStream<S> {
    type Item = u8;
    // Stays empty: everything is written directly, so nothing is lost when the host takes the stream back.
    type Buffer = Option<u8>;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'a, D>,
        destination: Destination<'a, u8, Option<u8>>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        if destination.remaining(&mut store) == Some(0) {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        match self.poll_ready(context) {
            Poll::Ready(Ok(true)) => {}
            Poll::Ready(Ok(false)) => return Poll::Ready(Ok(StreamResult::Dropped)),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending if finish => return Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => return Poll::Pending,
        }
        // As much as the guest has room for; the rest is kept.
        let mut direct = destination.as_direct(store, PIECE);
        let room = direct.remaining();
        let count = room.len().min(self.ready.len());
        room[..count].copy_from_slice(&self.ready[..count]);
        self.ready.advance(count);
        self.used = self.used.saturating_add(count as u64);
        direct.mark_written(count);
        Poll::Ready(Ok(StreamResult::Completed))
    }

    fn try_into(me: Pin<Box<Self>>, ty: TypeId) -> Result<Box<dyn Any>, Pin<Box<Self>>> {
        if ty == TypeId::of::<Self>() {
            Ok(Pin::into_inner(me) as Box<dyn Any>)
        } else {
            Err(me)
        }
    }
}

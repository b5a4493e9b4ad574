//! A large body of a request on its way to a guest, and past it where the guest gives it back.

use std::any::{Any, TypeId};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame};
use plugin_protocol::{Failure, RequestStream};
use wasmtime::StoreContextMut;
use wasmtime::component::{Destination, StreamProducer, StreamResult};

/// How much a stream offers a guest at a time, in bytes.
const PIECE: usize = 64 << 10;

/// The bytes of a large body as they come. The host can take it back out of a guest's hands with what
/// the guest has not read: nothing is buffered on the way.
pub(crate) struct RequestPieces {
    /// Has come and was not read yet.
    ready: Bytes,
    /// None once it has ended.
    rest: Option<RequestStream>,
    /// How it broke off, where it did: a guest cannot tell that from a proper end.
    broken: Option<String>,
}

impl RequestPieces {
    pub(crate) fn new(stream: RequestStream) -> RequestPieces {
        RequestPieces {
            ready: Bytes::new(),
            rest: Some(stream),
            broken: None,
        }
    }

    /// Waits for bytes in `ready`; false at the end.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        while self.ready.is_empty() {
            let Some(rest) = &mut self.rest else {
                return Poll::Ready(false);
            };
            match ready!(rest.as_mut().poll_frame(context)) {
                // Trailers mean nothing to a plugin.
                Some(Ok(frame)) => {
                    self.ready = frame.into_data().unwrap_or_default();
                    continue;
                }
                Some(Err(reason)) => self.broken = Some(reason),
                None => {}
            }
            self.rest = None;
        }
        Poll::Ready(true)
    }
}

impl<D> StreamProducer<D> for RequestPieces {
    type Item = u8;
    // Stays empty: all is written directly, so that nothing is lost when the host takes the stream back.
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
            Poll::Ready(true) => {}
            Poll::Ready(false) => return Poll::Ready(Ok(StreamResult::Dropped)),
            Poll::Pending if finish => return Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => return Poll::Pending,
        }
        hand_over(&mut self.ready, destination, store);
        Poll::Ready(Ok(StreamResult::Completed))
    }

    fn try_into(me: Pin<Box<Self>>, ty: TypeId) -> Result<Box<dyn Any>, Pin<Box<Self>>> {
        if ty == TypeId::of::<RequestPieces>() {
            Ok(Pin::into_inner(me) as Box<dyn Any>)
        } else {
            Err(me)
        }
    }
}

/// Gives a guest as much of `ready` as it has room for, and keeps the rest.
pub(crate) fn hand_over<D>(
    ready: &mut Bytes,
    destination: Destination<'_, u8, Option<u8>>,
    store: StoreContextMut<'_, D>,
) {
    let mut direct = destination.as_direct(store, PIECE);
    let room = direct.remaining();
    let count = room.len().min(ready.len());
    room[..count].copy_from_slice(&ready[..count]);
    ready.advance(count);
    direct.mark_written(count);
}

/// As an answer's body: it passes outside the plugin.
impl Body for RequestPieces {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        if ready!(self.poll_ready(context)) {
            let piece = std::mem::take(&mut self.ready);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let broken = self.broken.take();
        Poll::Ready(broken.map(|reason| Err(Failure::BodyIncomplete(reason))))
    }
}

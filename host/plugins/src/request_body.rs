//! A request's body on its way to a guest: whole where it is small, a stream where it is not, and never
//! more than the plugin's limit.

use std::any::{Any, TypeId};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http_body::Frame;
use wasmtime::StoreContextMut;
use wasmtime::component::{Destination, StreamProducer, StreamResult};

use crate::BodyError;
use crate::failure::Failure;

/// What fits in here is given to the guest whole, in bytes.
const WHOLE: usize = 64 << 10;
/// How much a stream offers a guest at a time, in bytes.
const PIECE: usize = 64 << 10;

type Inner = Pin<Box<dyn http_body::Body<Data = Bytes, Error = String> + Send>>;

/// A body as the guest gets it.
pub(crate) enum RequestBody {
    Empty,
    Whole(Vec<u8>),
    Stream(RequestStream),
}

/// The bytes of a large body as they come. The host can take it back out of a guest's hands with what
/// the guest has not read: nothing is buffered on the way.
pub(crate) struct RequestStream {
    /// Has come and was not read yet.
    ready: Bytes,
    /// None once it has ended.
    rest: Option<Inner>,
    /// How many more bytes may come.
    left: usize,
    limit: usize,
    trouble: Arc<Trouble>,
}

/// What went wrong with a stream, for those who do not hold it: a guest cannot tell its early end from
/// a proper one.
#[derive(Default)]
pub(crate) struct Trouble(AtomicU8);

const TOO_LARGE: u8 = 1;
const BROKEN: u8 = 2;

impl Trouble {
    /// The failure that the call ends with, if there is one.
    pub(crate) fn failure(&self, limit: usize) -> Option<Failure> {
        match self.0.load(Relaxed) {
            TOO_LARGE => Some(Failure::BodyTooLarge { limit }),
            BROKEN => Some(Failure::BodyIncomplete("it broke off".to_owned())),
            _ => None,
        }
    }
}

impl RequestBody {
    /// Takes `body`, of which at most `limit` bytes may come.
    pub(crate) async fn read<B>(
        body: B,
        limit: usize,
        trouble: &Arc<Trouble>,
    ) -> Result<RequestBody, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        if body.is_end_stream() {
            return Ok(RequestBody::Empty);
        }
        let size = body.size_hint();
        if size.lower() > limit as u64 {
            return Err(Failure::BodyTooLarge { limit });
        }
        let rest: Inner = Box::pin(http_body_util::BodyExt::map_err(body, |error: B::Error| {
            error.to_string()
        }));
        let mut stream = RequestStream {
            ready: Bytes::new(),
            rest: Some(rest),
            left: limit,
            limit,
            trouble: Arc::clone(trouble),
        };
        if size.lower() > WHOLE as u64 {
            return Ok(RequestBody::Stream(stream));
        }
        // Small, or of unknown size: what comes until it is too much to be small.
        let mut whole = Vec::with_capacity(usize::try_from(size.lower()).unwrap_or(0));
        while poll_fn(|context| stream.poll_ready(context)).await {
            whole.extend_from_slice(&stream.ready);
            stream.ready = Bytes::new();
            if whole.len() > WHOLE {
                stream.ready = Bytes::from(whole);
                return Ok(RequestBody::Stream(stream));
            }
        }
        match trouble.failure(limit) {
            Some(failure) => Err(failure),
            None if whole.is_empty() => Ok(RequestBody::Empty),
            None => Ok(RequestBody::Whole(whole)),
        }
    }
}

impl RequestStream {
    /// Waits for bytes in `ready`; false at the end.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        while self.ready.is_empty() {
            let Some(rest) = &mut self.rest else {
                return Poll::Ready(false);
            };
            let trouble = match ready!(rest.as_mut().poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.len() > self.left => TOO_LARGE,
                    Ok(data) => {
                        self.left -= data.len();
                        self.ready = data;
                        continue;
                    }
                    // Trailers mean nothing to a plugin.
                    Err(_) => continue,
                },
                Some(Err(_)) => BROKEN,
                None => 0,
            };
            if trouble != 0 {
                self.trouble.0.store(trouble, Relaxed);
            }
            self.rest = None;
        }
        Poll::Ready(true)
    }

    /// The stream as an answer's body.
    pub(crate) fn into_body(self, plugin: Arc<str>) -> Spliced {
        Spliced {
            stream: self,
            plugin,
        }
    }
}

impl<D> StreamProducer<D> for RequestStream {
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
        if ty == TypeId::of::<RequestStream>() {
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

/// A request's body that a plugin returned as its answer's: it passes outside the plugin.
pub(crate) struct Spliced {
    stream: RequestStream,
    plugin: Arc<str>,
}

impl http_body::Body for Spliced {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if ready!(self.stream.poll_ready(context)) {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(
                &mut self.stream.ready,
            )))));
        }
        let failure = self.stream.trouble.failure(self.stream.limit);
        Poll::Ready(failure.map(|failure| {
            failure.log(&self.plugin);
            self.stream.trouble.0.store(0, Relaxed);
            Err(BodyError {
                plugin: self.plugin.to_string(),
            })
        }))
    }
}

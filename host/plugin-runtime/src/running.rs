//! A guest at work: the future that runs it until its answer is complete or its stream has ended.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt as _, Full};
use plugin_protocol::text::cut;
use plugin_protocol::{
    AnswerBody, AnswerHead, Failure, GuestAnswer, GuestError, GuestRequest, JournalAnswer, Outcome,
    RequestBody,
};
use wasmtime::AsContextMut;
use wasmtime::component::StreamReader;

use crate::answer::{AnswerPieces, GuestEnd, StreamedAnswerSlot};
use crate::bindings::platform::supervisor::types::{self, Body as GuestBody};
use crate::capabilities::journal::JournalStream;
use crate::failure;
use crate::host_stream::HostStream;
use crate::instance::{Instance, poll_metered};
use crate::meter::Meter;
use crate::plugin::Plugin;
use crate::request_body::{RequestPieces, RequestSource};
use crate::runtime_state::RuntimeState;
use crate::sink::sink;
use crate::wasi_http::incoming;

/// The longest error code that is passed on, in bytes.
const CODE: usize = 64;

/// Returns the instance as well, so that it is thrown away elsewhere.
type Run = Pin<Box<dyn Future<Output = (Instance, GuestEnd)> + Send>>;

/// A guest at work. The guest only runs while this is polled.
pub(crate) struct RunningGuest {
    future: Run,
    begun: StreamedAnswerSlot,
    meter: Arc<Meter>,
    plugin: Arc<Plugin>,
    shared: Arc<RuntimeState>,
}

impl RunningGuest {
    pub(crate) fn new(
        plugin: &Arc<Plugin>,
        shared: &Arc<RuntimeState>,
        instance: Instance,
        request: GuestRequest,
    ) -> RunningGuest {
        let begun = StreamedAnswerSlot::default();
        let meter = Arc::clone(&instance.meter);
        let limit = plugin.limits().body;
        let future = run(instance, request, limit, Arc::clone(&begun));
        RunningGuest {
            future: Box::pin(future),
            begun,
            meter,
            plugin: Arc::clone(plugin),
            shared: Arc::clone(shared),
        }
    }

    /// Runs until the answer is complete or its stream begins.
    pub(crate) async fn until_head(mut self) -> Result<Outcome, Failure> {
        let polled = poll_fn(|context| match self.poll(context) {
            Poll::Ready(end) => Poll::Ready(Some(end)),
            Poll::Pending if self.begun.lock().is_some() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await;
        let streaming = self.begun.lock().take();
        let ended = polled.transpose()?;
        match (streaming, ended) {
            // With `wasi:http`, each answer is a stream, and most of them are as short as this.
            (Some((head, AnswerPieces::WasiHttp(body))), Some(_)) => {
                let limit = self.plugin.limits().body;
                let body = match body.rest()? {
                    rest if rest.len() <= limit => AnswerBody::Whole(rest),
                    rest => AnswerBody::Stream(Box::pin(
                        Full::from(rest).map_err(|never| match never {}),
                    )),
                };
                Ok(Outcome::Answer(GuestAnswer { head, body }))
            }
            // A short stream may have ended by the time that it is first polled.
            (Some((head, pieces)), ended) => {
                self.shared.warm_pool.replace(&self.plugin, None);
                self.meter.reset();
                let running = ended.is_none().then_some(self);
                let stream = GuestStream {
                    running,
                    pieces,
                    failure: None,
                };
                let body = AnswerBody::Stream(Box::pin(stream));
                Ok(Outcome::Answer(GuestAnswer { head, body }))
            }
            (None, Some(Some(outcome))) => Ok(outcome),
            (None, _) => Err(Failure::BadAnswer("its stream did not begin".to_owned())),
        }
    }

    /// Lets the guest run until it waits, is done, or exceeds a limit. Must not be called again once it is ready.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<GuestEnd> {
        let (future, pool) = (self.future.as_mut(), self.plugin.pool());
        match poll_metered(future, pool, &self.meter, context) {
            Poll::Ready((used, end)) => {
                self.shared.warm_pool.replace(&self.plugin, Some(used));
                Poll::Ready(end)
            }
            Poll::Pending if self.meter.exceeded() => Poll::Ready(Err(Failure::Cpu {
                limit: self.plugin.limits().cpu,
            })),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Calls the guest's handler.
async fn run(
    mut instance: Instance,
    request: GuestRequest,
    limit: usize,
    begun: StreamedAnswerSlot,
) -> (Instance, GuestEnd) {
    let exports = &mut instance.exports;
    let handler = match (exports.handler.take(), exports.incoming_handler.take()) {
        (Some(handler), _) => handler,
        (None, Some(handler)) => return incoming::run(instance, handler, request, begun).await,
        (None, None) => {
            let reason = "it does not export `handler`".to_owned();
            return (instance, Err(Failure::NotReady(reason)));
        }
    };
    let GuestRequest { head, body } = request;
    let called = instance
        .store
        .run_concurrent(async |accessor| -> wasmtime::Result<GuestEnd> {
            let body = match body {
                RequestBody::Empty => GuestBody::Empty,
                RequestBody::Whole(bytes) => GuestBody::Bytes(bytes),
                RequestBody::Stream(stream) => {
                    let pieces = HostStream::new(RequestSource::new(stream));
                    GuestBody::Stream(
                        accessor.with(|mut access| StreamReader::new(&mut access, pieces))?,
                    )
                }
            };
            let request = types::Request {
                method: head.method,
                path: head.path,
                route: head.route,
                params: head.params,
                query: head.query,
                headers: head.headers,
                body,
            };
            let response = match handler.call_handle(accessor, request).await? {
                Ok(response) => response,
                Err(error) => return Ok(Ok(Some(Outcome::Error(bounded(error))))),
            };
            let head = match AnswerHead::new(response.status, &response.headers) {
                Ok(head) => head,
                Err(failure) => return Ok(Err(failure)),
            };
            let body = match response.body {
                GuestBody::Empty => AnswerBody::Whole(Vec::new()),
                GuestBody::Bytes(bytes) if bytes.len() > limit => {
                    return Ok(Err(Failure::answer_too_large(bytes.len(), limit)));
                }
                GuestBody::Bytes(bytes) => AnswerBody::Whole(bytes),
                GuestBody::Stream(reader) => {
                    match accessor.with(|mut access| take_back(reader, &mut access)) {
                        Ok(body) => body,
                        Err(reader) => {
                            let (sink, pieces, ended) = sink();
                            accessor.with(|mut access| reader.pipe(&mut access, sink))?;
                            *begun.lock() = Some((head, AnswerPieces::Stream(pieces)));
                            // Resolves when the sink is dropped, whoever drops it.
                            let _ = ended.await;
                            return Ok(Ok(None));
                        }
                    }
                }
            };
            let answer = GuestAnswer { head, body };
            Ok(Ok(Some(Outcome::Answer(answer))))
        })
        .await;
    let end = match called {
        Ok(Ok(end)) => end,
        Ok(Err(error)) | Err(error) => {
            let exceeded = instance.meter.exceeded();
            Err(failure::classify(&error, instance.store.data(), exceeded))
        }
    };
    (instance, end)
}

/// Returns the error, cut to the length that is passed on.
fn bounded(error: types::Error) -> GuestError {
    let mut code = error.code;
    code.truncate(code.floor_char_boundary(CODE));
    GuestError {
        status: error.status,
        code,
        message: cut(error.message),
    }
}

/// Takes back the host's own stream if the guest returned one: the guest can be thrown away.
fn take_back(
    reader: StreamReader<u8>,
    mut store: impl AsContextMut,
) -> Result<AnswerBody, StreamReader<u8>> {
    let request = reader.try_into::<RequestPieces>(&mut store);
    let body = request.map(|pieces| AnswerBody::Stream(Box::pin(pieces)));
    body.or_else(|reader| {
        let journal: JournalStream = reader.try_into(&mut store)?;
        Ok(AnswerBody::Journal(JournalAnswer {
            instance: journal.source.host.instance(),
            reader: journal.source.reader,
            used: journal.used,
            guard: Box::new(journal),
        }))
    })
}

/// A body that a guest produces while it is read.
struct GuestStream {
    /// `None` once the guest is done.
    running: Option<RunningGuest>,
    pieces: AnswerPieces,
    /// Why it ended early: reported after the pieces before it.
    failure: Option<Failure>,
}

impl http_body::Body for GuestStream {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let this = &mut *self;
        if let Some(running) = &mut this.running
            && let Poll::Ready(end) = running.poll(context)
        {
            this.running = None;
            this.failure = end.err();
        }
        match this.pieces.poll_piece(context) {
            Poll::Ready(Some(Err(failure))) => Poll::Ready(Some(Err(failure))),
            Poll::Ready(Some(Ok(piece))) => {
                if let Some(running) = &this.running {
                    // The limit is for the work on one piece, not for a stream of any length.
                    running.meter.reset();
                }
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Poll::Ready(None) if this.failure.is_some() => {
                Poll::Ready(this.failure.take().map(Err))
            }
            // The sink is gone, but the guest may still fail.
            Poll::Ready(None) if this.running.is_some() => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

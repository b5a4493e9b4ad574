//! A guest at work: the future that runs it, until its answer is there or its stream has ended.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use wasmtime::AsContextMut;
use wasmtime::component::StreamReader;

use crate::BodyError;
use crate::answer::{Answer, AnswerBody, Head, sink};
use crate::bindings::platform::supervisor::types::{self, Body as GuestBody};
use crate::call::Calls;
use crate::capabilities::journal::JournalStream;
use crate::failure::Failure;
use crate::instance::{Instance, poll_metered};
use crate::instance_host::InstanceHost;
use crate::loaded::Loaded;
use crate::meter::Meter;
use crate::request_body::{RequestBody, Trouble};

/// How far a call has come: its answer is there, whole, or its head is and the guest may run on.
pub(crate) enum Outcome {
    Answer(Answer),
    Streaming(Stream, Option<Running>),
    /// The plugin's own `error`.
    Error(types::Error),
    /// The stream that [`Outcome::Streaming`] began has ended.
    Streamed,
}

/// An answer that a guest goes on to produce: its head, and what comes after.
pub(crate) type Stream = (Head, mpsc::Receiver<Bytes>);

/// Where the guest's side leaves the head of a stream.
type Begun = Arc<Mutex<Option<Stream>>>;

/// Gives the instance back, so that it is thrown away elsewhere.
type Run = Pin<Box<dyn Future<Output = (Instance, Result<Outcome, Failure>)> + Send>>;

/// A guest at work. Polling it is what makes the guest run.
pub(crate) struct Running {
    future: Run,
    begun: Begun,
    meter: Arc<Meter>,
    trouble: Arc<Trouble>,
    plugin: Arc<Loaded>,
    calls: Calls,
    _permit: OwnedSemaphorePermit,
}

impl Running {
    pub(crate) fn new(
        calls: &Calls,
        plugin: &Arc<Loaded>,
        instance: Instance,
        (request, body, trouble): (types::Request, RequestBody, Arc<Trouble>),
        permit: OwnedSemaphorePermit,
    ) -> Running {
        let begun = Begun::default();
        let meter = Arc::clone(&instance.meter);
        let future = run(
            Arc::clone(plugin),
            instance,
            request,
            body,
            Arc::clone(&begun),
        );
        Running {
            future: Box::pin(future),
            begun,
            meter,
            trouble,
            plugin: Arc::clone(plugin),
            calls: calls.clone(),
            _permit: permit,
        }
    }

    /// Runs until the answer is there or its stream begins.
    pub(crate) async fn until_head(mut self) -> Result<Outcome, Failure> {
        let polled = poll_fn(|context| match self.poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if self.lock().is_some() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await;
        let streaming = self.lock().take();
        match (streaming, polled) {
            (_, Some(Err(failure))) => Err(failure),
            // A short stream may have ended by the time that it is first looked at.
            (Some(stream), ended) => {
                self.calls.spares.replace(&self.plugin, None);
                self.meter.reset();
                let running = ended.is_none().then_some(self);
                Ok(Outcome::Streaming(stream, running))
            }
            (None, Some(outcome)) => outcome,
            (None, None) => Err(Failure::BadAnswer("its stream did not begin".to_owned())),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Stream>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the guest run until it waits, is done, or is over a limit. Once it is ready, not to be called
    /// again.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Outcome, Failure>> {
        let polled = poll_metered(self.future.as_mut(), &self.calls.pool, &self.meter, context);
        let polled = polled.map(|(used, outcome)| {
            self.calls.spares.replace(&self.plugin, Some(used));
            outcome
        });
        if let Some(failure) = self.trouble.failure(self.plugin.limits.body) {
            // What the guest made of a request that was cut short is no answer to it.
            return Poll::Ready(Err(failure));
        }
        match polled {
            Poll::Pending if self.meter.exceeded() => Poll::Ready(Err(Failure::Cpu {
                limit: self.plugin.limits.cpu,
            })),
            polled => polled,
        }
    }
}

/// Calls the guest's handler.
async fn run(
    plugin: Arc<Loaded>,
    mut instance: Instance,
    mut request: types::Request,
    body: RequestBody,
    begun: Begun,
) -> (Instance, Result<Outcome, Failure>) {
    let Some(handler) = instance.exports.handler.take() else {
        return (
            instance,
            Err(Failure::NotReady("it does not export `handler`".to_owned())),
        );
    };
    let limit = plugin.limits.body;
    let called = instance
        .store
        .run_concurrent(
            async |accessor| -> wasmtime::Result<Result<Outcome, Failure>> {
                request.body = match body {
                    RequestBody::Empty => GuestBody::Empty,
                    RequestBody::Whole(bytes) => GuestBody::Bytes(bytes),
                    RequestBody::Stream(stream) => GuestBody::Stream(
                        accessor.with(|mut access| StreamReader::new(&mut access, stream))?,
                    ),
                };
                let response = match handler.call_handle(accessor, request).await? {
                    Ok(response) => response,
                    Err(error) => return Ok(Ok(Outcome::Error(error))),
                };
                let head = match Head::new(response.status, &response.headers) {
                    Ok(head) => head,
                    Err(failure) => return Ok(Err(failure)),
                };
                let body = match response.body {
                    GuestBody::Empty => AnswerBody::Whole(Vec::new()),
                    GuestBody::Bytes(bytes) if bytes.len() > limit => {
                        let what = format!("{} bytes, more than its {limit}", bytes.len());
                        return Ok(Err(Failure::BadAnswer(what)));
                    }
                    GuestBody::Bytes(bytes) => AnswerBody::Whole(bytes),
                    GuestBody::Stream(reader) => {
                        let host = accessor.with(|mut access| access.data_mut().host.clone());
                        match accessor.with(|mut access| take_back(reader, &host, &mut access)) {
                            Ok(body) => body,
                            Err(reader) => {
                                let (sink, pieces, ended) = sink();
                                accessor.with(|mut access| reader.pipe(&mut access, sink))?;
                                *begun.lock().unwrap_or_else(PoisonError::into_inner) =
                                    Some((head, pieces));
                                // Resolves when the sink is dropped, whoever does it.
                                let _ = ended.await;
                                return Ok(Ok(Outcome::Streamed));
                            }
                        }
                    }
                };
                Ok(Ok(Outcome::Answer(Answer { head, body })))
            },
        )
        .await;
    let outcome = match called {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) | Err(error) => {
            let exceeded = instance.meter.exceeded();
            Err(Failure::of(
                &error,
                instance.store.data(),
                &plugin.limits,
                exceeded,
            ))
        }
    };
    (instance, outcome)
}

/// The host's own stream, where it is one that the guest was given: the guest can be thrown away.
fn take_back(
    reader: StreamReader<u8>,
    host: &InstanceHost,
    mut store: impl AsContextMut,
) -> Result<AnswerBody, StreamReader<u8>> {
    reader
        .try_into(&mut store)
        .map(AnswerBody::Spliced)
        .or_else(|reader| {
            let journal: JournalStream = reader.try_into(&mut store)?;
            let body = host.journal_body(journal.reader, journal.used);
            // It is held for as long as the stream is there.
            Ok(body.map_or(AnswerBody::Whole(Vec::new()), AnswerBody::Journal))
        })
}

/// A body that a guest produces as it is read.
pub(crate) struct GuestStream {
    /// None once the guest is done.
    running: Option<Running>,
    pieces: mpsc::Receiver<Bytes>,
    plugin: Arc<Loaded>,
    broken: bool,
}

impl GuestStream {
    /// What comes of `pieces` while `running` runs.
    pub(crate) fn new(
        plugin: Arc<Loaded>,
        running: Option<Running>,
        pieces: mpsc::Receiver<Bytes>,
    ) -> Self {
        GuestStream {
            running,
            pieces,
            plugin,
            broken: false,
        }
    }
}

impl http_body::Body for GuestStream {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if let Some(running) = &mut this.running
            && let Poll::Ready(outcome) = running.poll(context)
        {
            this.running = None;
            if let Err(failure) = outcome {
                this.plugin.failed(&failure);
                this.broken = true;
            }
        }
        match this.pieces.poll_recv(context) {
            Poll::Ready(Some(piece)) => {
                if let Some(running) = &this.running {
                    // The limit is for the work that a piece takes, not for a stream of any length.
                    running.meter.reset();
                }
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Poll::Ready(None) if this.broken => {
                this.broken = false;
                Poll::Ready(Some(Err(BodyError {
                    plugin: this.plugin.manifest.name.clone(),
                })))
            }
            // The sink is gone, and the guest may have something left to fail with.
            Poll::Ready(None) if this.running.is_some() => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

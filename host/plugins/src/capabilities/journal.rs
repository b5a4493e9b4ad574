//! `wit/journal.wit`: the host's journal, as a stream of what its command prints.

use std::any::{Any, TypeId};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use os::{JournalOptions, JournalReader};
use wasmtime::StoreContextMut;
use wasmtime::component::{Accessor, Destination, StreamProducer, StreamReader, StreamResult};

use crate::BodyError;
use crate::bindings::platform::supervisor::journal::{self, JournalError, Options};
use crate::guest::{Guest, ThisGuest};
use crate::request_body::hand_over;

impl journal::Host for &mut Guest {}

impl journal::HostWithStore<Guest> for ThisGuest {
    async fn read(
        accessor: &Accessor<Guest, Self>,
        options: Options,
    ) -> Result<StreamReader<u8>, JournalError> {
        let around = accessor.with(|mut access| Arc::clone(&access.get().around));
        let options = JournalOptions {
            all: options.all,
            follow: options.follow,
            unit: options.unit,
            identifier: options.identifier,
            count: options.count,
            since: options.since,
            until: options.until,
            format: options.format,
        };
        let reader = around.journal.read(&options).await.map_err(|error| {
            let message = error.to_string();
            match error {
                os::JournalError::Invalid { .. } => JournalError::Invalid(message),
                os::JournalError::Busy => JournalError::Busy(message),
                os::JournalError::Start { source, .. } => {
                    tracing::error!(plugin = &*around.name, "{message}: {source}");
                    JournalError::Other(message)
                }
            }
        })?;
        let stream = JournalStream {
            ready: Bytes::new(),
            reader,
            plugin: Arc::clone(&around.name),
        };
        accessor
            .with(|mut access| StreamReader::new(&mut access, stream))
            .map_err(|error| JournalError::Other(format!("{error:#}")))
    }
}

/// What the journal command prints, on its way to a guest or past it. The host can take it back out of a
/// guest's hands with what the guest has not read: nothing is buffered on the way.
pub(crate) struct JournalStream {
    /// Has come and was not read yet.
    ready: Bytes,
    reader: JournalReader,
    /// Who asked for it.
    plugin: Arc<str>,
}

impl JournalStream {
    /// Waits for bytes in `ready`; false at the end, an error where it breaks off.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        if !self.ready.is_empty() {
            return Poll::Ready(Ok(true));
        }
        match ready!(self.reader.poll_piece(context)) {
            Ok(Some(piece)) => {
                self.ready = piece;
                Poll::Ready(Ok(true))
            }
            Ok(None) => Poll::Ready(Ok(false)),
            Err(error) => {
                tracing::warn!(plugin = &*self.plugin, "the journal broke off: {error}");
                Poll::Ready(Err(BodyError {
                    plugin: self.plugin.to_string(),
                }))
            }
        }
    }
}

impl<D> StreamProducer<D> for JournalStream {
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
            Poll::Ready(Ok(true)) => {}
            // A guest cannot tell an early end from a proper one; the log can.
            Poll::Ready(_) => return Poll::Ready(Ok(StreamResult::Dropped)),
            Poll::Pending if finish => return Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => return Poll::Pending,
        }
        hand_over(&mut self.ready, destination, store);
        Poll::Ready(Ok(StreamResult::Completed))
    }

    fn try_into(me: Pin<Box<Self>>, ty: TypeId) -> Result<Box<dyn Any>, Pin<Box<Self>>> {
        if ty == TypeId::of::<JournalStream>() {
            Ok(Pin::into_inner(me) as Box<dyn Any>)
        } else {
            Err(me)
        }
    }
}

/// The stream as an answer's body, which passes outside the plugin.
impl http_body::Body for JournalStream {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(match ready!(self.poll_ready(context)) {
            Ok(true) => Some(Ok(Frame::data(std::mem::take(&mut self.ready)))),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

//! `wit/journal.wit`: the host's journal, as a stream of what its command prints.

use std::any::{Any, TypeId};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use plugin_protocol::{Handle, JournalOpen, JournalOptions, JournalRead, Piece};
use wasmtime::StoreContextMut;
use wasmtime::component::{Accessor, Destination, StreamProducer, StreamReader, StreamResult};

use crate::bindings::platform::supervisor::journal::{self, JournalError, Options};
use crate::guest::{Guest, ThisGuest, host};
use crate::instance_host::InstanceHost;
use crate::request_body::hand_over;

impl journal::Host for &mut Guest {}

impl journal::HostWithStore<Guest> for ThisGuest {
    async fn read(
        accessor: &Accessor<Guest, Self>,
        options: Options,
    ) -> wasmtime::Result<Result<StreamReader<u8>, JournalError>> {
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
        let host = host(accessor);
        let reader = match host.ask(JournalOpen { options }).await? {
            Ok(reader) => reader,
            Err(error) => return Ok(Err(error.into())),
        };
        let stream = JournalStream {
            host,
            reader,
            ready: Bytes::new(),
            used: 0,
            next: None,
        };
        let stream = accessor.with(|mut access| StreamReader::new(&mut access, stream));
        Ok(stream.map_err(|error| JournalError::Other(format!("{error:#}"))))
    }
}

impl From<plugin_protocol::JournalError> for JournalError {
    fn from(error: plugin_protocol::JournalError) -> JournalError {
        match error {
            plugin_protocol::JournalError::Invalid(why) => JournalError::Invalid(why),
            plugin_protocol::JournalError::Busy(why) => JournalError::Busy(why),
            plugin_protocol::JournalError::Other(why) => JournalError::Other(why),
        }
    }
}

/// What the journal command prints, on its way to a guest. The host can take it back out of a guest's hands: it
/// keeps what the guest has not used.
pub(crate) struct JournalStream {
    pub(crate) host: InstanceHost,
    pub(crate) reader: Handle,
    /// Has come and was not read yet.
    ready: Bytes,
    /// How many bytes were read.
    pub(crate) used: u64,
    /// The next piece, where it was asked for.
    next: Option<BoxFuture<'static, wasmtime::Result<Piece>>>,
}

impl JournalStream {
    /// Waits for bytes in `ready`; false at the end.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<wasmtime::Result<bool>> {
        if !self.ready.is_empty() {
            return Poll::Ready(Ok(true));
        }
        let next = self.next.get_or_insert_with(|| {
            let (host, reader, used) = (self.host.clone(), self.reader, self.used);
            Box::pin(async move { host.ask(JournalRead { reader, used }).await })
        });
        let piece = ready!(next.as_mut().poll(context));
        self.next = None;
        Poll::Ready(piece.map(|piece| match piece {
            Piece::Bytes(bytes) => {
                self.ready = Bytes::from(bytes);
                true
            }
            // A guest cannot tell an early end from a proper one; the log can.
            Piece::End | Piece::Broken => false,
        }))
    }
}

impl Drop for JournalStream {
    fn drop(&mut self) {
        // The command ends when nobody reads it.
        self.host.release(self.reader);
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
            Poll::Ready(Ok(false)) => return Poll::Ready(Ok(StreamResult::Dropped)),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending if finish => return Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => return Poll::Pending,
        }
        let before = self.ready.len();
        hand_over(&mut self.ready, destination, store);
        let taken = before - self.ready.len();
        self.used = self.used.saturating_add(taken as u64);
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

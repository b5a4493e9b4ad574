//! `wit/journal.wit`: the host's journal, as a stream of the journal command's output.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use plugin_protocol::{Handle, JournalOpen, JournalOptions, JournalRead, Piece};
use wasmtime::component::StreamReader;

use crate::bindings::platform::supervisor::journal::{self, JournalError, Options};
use crate::guest::{Guest, GuestAccess, GuestData, host};
use crate::host_stream::{HostStream, PieceSource};
use crate::instance_host::{Answer, InstanceHost};

impl journal::Host for &mut Guest {}

impl journal::HostWithStore<Guest> for GuestData {
    async fn read(
        access: &GuestAccess,
        options: Options,
    ) -> Answer<StreamReader<u8>, JournalError> {
        let host = host(access);
        let options = options.into();
        let reader = match host.try_ask(JournalOpen { options }).await? {
            Ok(reader) => reader,
            Err(error) => return Ok(Err(error)),
        };
        let stream = HostStream::new(JournalSource {
            host,
            reader,
            next: None,
        });
        let stream = access.with(|mut access| StreamReader::new(&mut access, stream));
        Ok(stream.map_err(|error| JournalError::Other(format!("{error:#}"))))
    }
}

mirror! {
    one way struct Options, JournalOptions { all, follow, unit, identifier, count, since, until, format }
}
mirror! { one way enum plugin_protocol::JournalError, JournalError { Invalid(why), Busy(why), Other(why) } }

/// The output of the journal command, on its way to a guest.
pub(crate) type JournalStream = HostStream<JournalSource>;

pub(crate) struct JournalSource {
    pub(crate) host: InstanceHost,
    pub(crate) reader: Handle,
    /// The next piece, if it was requested.
    next: Option<BoxFuture<'static, wasmtime::Result<Piece>>>,
}

impl PieceSource for JournalSource {
    fn poll_piece(
        &mut self,
        used: u64,
        context: &mut Context<'_>,
    ) -> Poll<wasmtime::Result<Option<Bytes>>> {
        let next = self.next.get_or_insert_with(|| {
            let (host, reader) = (self.host.clone(), self.reader);
            Box::pin(async move { host.ask(JournalRead { reader, used }).await })
        });
        let piece = ready!(next.as_mut().poll(context));
        self.next = None;
        Poll::Ready(piece.map(|piece| match piece {
            Piece::Bytes(bytes) => Some(Bytes::from(bytes)),
            // A guest cannot distinguish an early end from a proper one; the log shows which it
            // was.
            Piece::End | Piece::Broken => None,
        }))
    }
}

impl Drop for JournalSource {
    fn drop(&mut self) {
        // The command ends when it has no reader.
        self.host.release(self.reader);
    }
}

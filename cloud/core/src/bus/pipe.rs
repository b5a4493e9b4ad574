//! A byte stream between two replicas: numbered messages on a subject for each direction.
//!
//! A bus has no flow control, and drops what is not read in time. The protocol on top must therefore limit the data in
//! transit: HTTP/2 does so by its windows. A missing message breaks the pipe, since a number is missing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_nats::{Client, Message, Subscriber};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::{Stream, StreamExt};
use tokio::io::Join;
use tokio::sync::mpsc;
use tokio_util::io::{CopyToBytes, SinkWriter, StreamReader};
use tokio_util::sync::PollSender;

use futures::sink::{SinkExt, SinkMapErr};

/// Bytes in one message.
const PIECE: usize = 64 << 10;
/// Writes that wait for the connection to the bus.
const WAITING: usize = 4;
/// Bytes of a message's number.
const NUMBER: usize = 8;

type PipeWriter =
    SinkMapErr<PollSender<Bytes>, fn(tokio_util::sync::PollSendError<Bytes>) -> io::Error>;

/// Both directions of a pipe.
pub(super) type Pipe = Join<StreamReader<PipeReader, Bytes>, SinkWriter<CopyToBytes<PipeWriter>>>;

/// Creates a pipe that reads from a subscription and writes to a subject. When it is dropped, the other end reads the
/// end of the stream.
pub(super) fn over(client: Client, read: PipeReader, write: String) -> Pipe {
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(publish(client, write, receiver));
    let closed: fn(_) -> io::Error = |_| io::ErrorKind::BrokenPipe.into();
    let writes = PollSender::new(sender).sink_map_err(closed);
    let writer = SinkWriter::new(CopyToBytes::new(writes));
    tokio::io::join(StreamReader::new(read), writer)
}

/// Publishes written data, and an empty message for the end.
async fn publish(client: Client, subject: String, mut writes: mpsc::Receiver<Bytes>) {
    let mut number: u64 = 0;
    let mut message = |piece: &[u8]| {
        let mut message = BytesMut::with_capacity(NUMBER + piece.len());
        message.put_u64(number);
        message.put_slice(piece);
        number += 1;
        message.freeze()
    };
    while let Some(written) = writes.recv().await {
        for piece in written.chunks(PIECE) {
            if client
                .publish(subject.clone(), message(piece))
                .await
                .is_err()
            {
                return;
            }
        }
    }
    let _ = client.publish(subject, message(&[])).await;
}

/// The reading direction of a pipe.
pub(super) struct PipeReader {
    messages: Subscriber,
    next: u64,
    first: Option<Bytes>,
    ended: bool,
}

impl PipeReader {
    pub(super) fn new(messages: Subscriber) -> Self {
        PipeReader {
            messages,
            next: 0,
            first: None,
            ended: false,
        }
    }

    /// Waits for the first data; returns whether there is any.
    pub(super) async fn begun(&mut self) -> bool {
        match self.next().await {
            Some(Ok(first)) => {
                self.first = Some(first);
                true
            }
            _ => false,
        }
    }

    fn read(&mut self, message: Message) -> Option<io::Result<Bytes>> {
        let mut payload = message.payload;
        if payload.len() < NUMBER || payload.get_u64() != self.next {
            self.ended = true;
            return Some(Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a message between two replicas was lost",
            )));
        }
        self.next += 1;
        self.ended = payload.is_empty();
        (!self.ended).then_some(Ok(payload))
    }
}

impl Stream for PipeReader {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        match self.messages.poll_next_unpin(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(message)) => Poll::Ready(self.read(message)),
        }
    }
}

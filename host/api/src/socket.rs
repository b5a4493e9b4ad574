//! A socket that fails if its client has read nothing for too long.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::bounds::{STREAM_UNREAD_FOR, UNREAD_FOR};

/// The longest answer that is written from one buffer, in bytes: the kernel takes longer to gather a head and a short body
/// than copying takes.
const COPIED: usize = 1 << 10;

/// A client's socket, with limits on unread answers.
pub(crate) struct Socket {
    stream: TcpStream,
    /// Whether the current answer is an endless stream.
    streams: Arc<AtomicBool>,
    /// The remaining time for the client to read, running since the kernel's buffer became full.
    unread: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    /// Wraps a stream. `streams` is set while the answer is an endless stream.
    pub(crate) fn new(stream: TcpStream, streams: Arc<AtomicBool>) -> Self {
        Socket {
            stream,
            streams,
            unread: None,
        }
    }

    fn or_too_late(
        &mut self,
        written: Poll<Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize>> {
        if written.is_ready() {
            self.unread = None;
            return written;
        }
        let streams = self.streams.load(Ordering::Relaxed);
        let unread = self.unread.get_or_insert_with(|| {
            Box::pin(sleep(if streams {
                STREAM_UNREAD_FOR
            } else {
                UNREAD_FOR
            }))
        });
        unread.as_mut().poll(context).map(|()| {
            let why = "the client does not read its answer";
            Err(Error::new(ErrorKind::TimedOut, why))
        })
    }
}

/// Copies several slices into `buffer` if they fit, and returns them as one.
fn join<'a>(slices: &[IoSlice<'_>], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut length = 0;
    for slice in slices {
        let room = buffer.get_mut(length..length + slice.len())?;
        room.copy_from_slice(slice);
        length += slice.len();
    }
    buffer.get(..length)
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.or_too_late(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let mut together = [0; COPIED];
        let stream = Pin::new(&mut self.stream);
        let written = match join(slices, &mut together) {
            Some(bytes) => stream.poll_write(context, bytes),
            None => stream.poll_write_vectored(context, slices),
        };
        self.or_too_late(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_into_one_buffer_is_joined_in_order() {
        for (parts, expected) in [
            (&["head", "", "body"][..], Some("headbody")),
            (&[][..], Some("")),
            (&["12345678", "9"], None),
            (&["123456789"], None),
        ] {
            let slices: Vec<IoSlice<'_>> = parts
                .iter()
                .map(|part| IoSlice::new(part.as_bytes()))
                .collect();
            let mut buffer = [0; 8];
            let joined = join(&slices, &mut buffer);
            assert_eq!(joined, expected.map(str::as_bytes), "{parts:?}");
        }
    }
}

//! A stream between the two processes.
//!
//! Only the reading end is watched. If both were watched, the process would be woken each time the other has read
//! something, which is twice a call for nothing. Here, a writer that finds no room watches for it as long as that
//! lasts.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown,
    socketpair,
};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, ReadBuf};

/// Creates the two ends of a stream: one for this process, and one for another.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let ends = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(ends)
}

/// Splits an end into its two halves. Must be called in a tokio runtime.
pub(crate) fn halves(end: OwnedFd) -> Result<(ReadHalf, WriteHalf)> {
    let socket = Arc::new(watched(end, Interest::READABLE)?);
    let write = WriteHalf {
        socket: Arc::clone(&socket),
        full: None,
    };
    Ok((ReadHalf(socket), write))
}

/// Registers a descriptor that the runtime watches until it is dropped.
fn watched(end: OwnedFd, interest: Interest) -> Result<AsyncFd<OwnedFd>> {
    #[expect(
        unsafe_code,
        reason = "any type could answer another descriptor each time"
    )]
    // SAFETY: an `OwnedFd` is one descriptor, which is not closed before it is dropped.
    let watched = unsafe { AsyncFd::register_with_interest(end, interest) };
    Ok(watched?)
}

/// The half for reading. The stream is closed with both halves.
pub(crate) struct ReadHalf(Arc<AsyncFd<OwnedFd>>);

/// The half for writing.
pub(crate) struct WriteHalf {
    socket: Arc<AsyncFd<OwnedFd>>,
    /// Reports room while there is none.
    full: Option<AsyncFd<OwnedFd>>,
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            let most = room.len();
            match recv(self.0.get_ref(), room, RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    buffer.advance(length);
                    // There is no more, and the next bytes will be reported. The end of the stream stays visible.
                    if length > 0 && length < most {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl WriteHalf {
    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// `WouldBlock` if there is none.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> Result<usize> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            match send(self.socket.get_ref(), bytes, flags) {
                Err(rustix::io::Errno::INTR) => {}
                sent => return Ok(sent?),
            }
        }
    }

    pub(crate) async fn write_all(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.room().await?,
                Err(error) => return Err(error),
            }
        }
        self.full = None;
        Ok(())
    }

    /// Waits until there may be room.
    pub(crate) async fn room(&mut self) -> Result<()> {
        let full = match self.full.take() {
            Some(full) => full,
            // A duplicate of the descriptor, since the runtime watches by descriptor number.
            None => {
                let other = self.socket.get_ref().try_clone()?;
                watched(other, Interest::WRITABLE)?
            }
        };
        let full = self.full.insert(full);
        full.writable().await?.clear_ready();
        Ok(())
    }

    /// Stops watching for room.
    pub(crate) fn has_room(&mut self) {
        self.full = None;
    }

    /// Closes the writing half: the other end reads what was written, and then the end.
    pub(crate) fn finish(self) {
        // If the other end is gone, there is nothing to report.
        let _ = shutdown(self.socket.get_ref(), Shutdown::Write);
    }
}

/// The error for a descriptor that should have arrived from the other process.
pub(crate) fn missing() -> Error {
    Error::new(ErrorKind::InvalidData, "a socket is missing")
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn bytes_come_in_order_past_a_reader_that_is_slower() {
        let (one, other) = pair().unwrap();
        let (_keep, mut write) = halves(one).unwrap();
        let (mut read, _) = halves(other).unwrap();
        let sent: Vec<u8> = (0..4_000_000_u32).map(|number| number as u8).collect();
        let expected = sent.clone();
        let writing = tokio::spawn(async move {
            write.write_all(&sent).await.unwrap();
            write.finish();
        });
        let mut came = Vec::new();
        read.read_to_end(&mut came).await.unwrap();
        assert!(came == expected);
        writing.await.unwrap();
    }

    #[tokio::test]
    async fn the_end_is_seen_even_if_bytes_arrived_at_the_same_time() {
        let (one, other) = pair().unwrap();
        let (keep, mut write) = halves(one).unwrap();
        let (mut read, _) = halves(other).unwrap();
        write.write_all(b"last").await.unwrap();
        drop((keep, write));
        let mut buffer = [0; 100];
        assert_eq!(read.read(&mut buffer).await.unwrap(), 4);
        assert_eq!(read.read(&mut buffer).await.unwrap(), 0);
    }
}

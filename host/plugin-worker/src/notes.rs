//! Notes on a socket for whole messages, which carry descriptors.

use std::io::{Error, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use crate::frames::{decode, invalid};
use crate::wire::{Note, ReceivedNote};

/// The longest note, in bytes.
const NOTE: usize = 64;
/// The most descriptors of one note.
const DESCRIPTORS: usize = 2;

/// One end.
pub(crate) struct Notes(UnixDatagram);

/// Creates two ends: one for this process, and one for another.
pub(crate) fn pair() -> Result<(Notes, OwnedFd)> {
    let (own, other) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok((Notes::new(own)?, other))
}

impl Notes {
    /// Creates one end. Must be called in a tokio runtime.
    pub(crate) fn new(socket: OwnedFd) -> Result<Notes> {
        // Nothing is used that a datagram socket can do and this one cannot.
        let socket = std::os::unix::net::UnixDatagram::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Notes(UnixDatagram::from_std(socket)?))
    }

    pub(crate) async fn send(&self, note: &Note, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let mut buffer = [0; NOTE];
        let bytes = postcard::to_slice(note, &mut buffer);
        let bytes: &[u8] = bytes.map_err(|error| invalid(error.to_string()))?;
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if !descriptors.is_empty()
                && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
            {
                return Err(invalid("too many descriptors for a note".to_owned()));
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            sendmsg(&self.0, &[IoSlice::new(bytes)], &mut ancillary, flags)
                .map(drop)
                .map_err(Error::from)
        };
        self.0.async_io(Interest::WRITABLE, send).await
    }

    /// Returns the next note; `None` if the other end is closed.
    pub(crate) async fn receive(&self) -> Result<Option<ReceivedNote>> {
        let receive = || {
            let mut buffer = [0; NOTE];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            let mut slices = [IoSliceMut::new(&mut buffer)];
            let received = recvmsg(self.0.as_fd(), &mut slices, &mut ancillary, flags)?;
            let mut descriptors = Vec::new();
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    descriptors.extend(rights);
                }
            }
            Ok((buffer, received.bytes, descriptors))
        };
        let (buffer, length, descriptors) = self.0.async_io(Interest::READABLE, receive).await?;
        match buffer.get(..length) {
            None | Some([]) => Ok(None),
            Some(bytes) => Ok(Some((decode(bytes)?, descriptors))),
        }
    }
}

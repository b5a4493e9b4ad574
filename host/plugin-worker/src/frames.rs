//! Messages on a stream: a length, a kind, and that many bytes.

use std::future::poll_fn;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

use plugin_protocol::bounded_list::LIST;

use crate::wire::PIECE;

/// The length and the kind, in bytes.
const HEAD: usize = 5;
/// The least that is read if available: enough for a small message in a single system call.
const READ: usize = 4 << 10;

/// The content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A message.
    Message,
    /// A piece of a body.
    Piece,
    /// A body's end.
    End,
    /// A body ended early; a message says why.
    Broken,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Result<FrameKind> {
        match byte {
            0 => Ok(FrameKind::Message),
            1 => Ok(FrameKind::Piece),
            2 => Ok(FrameKind::End),
            3 => Ok(FrameKind::Broken),
            other => Err(invalid(format!("{other} is not a kind of frame"))),
        }
    }
}

/// One frame: its kind and its content.
#[derive(Debug)]
pub(crate) struct Frame(pub(crate) FrameKind, pub(crate) Bytes);

/// Frames as they arrive, none longer than the given maximum.
pub(crate) struct FrameReader<R> {
    source: R,
    most: usize,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(source: R, most: usize) -> FrameReader<R> {
        FrameReader {
            source,
            most,
            buffer: BytesMut::new(),
        }
    }

    /// Returns whether nothing has arrived after the latest frame.
    pub(crate) fn is_drained(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the next frame; `None` at the end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Frame>>> {
        loop {
            let missing = match self.buffer.split_at_checked(HEAD) {
                None => HEAD,
                Some((head, _)) => {
                    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
                    if length > self.most {
                        let most = self.most;
                        let what = format!("a frame of {length} bytes, more than {most}");
                        return Poll::Ready(Err(invalid(what)));
                    }
                    let kind = FrameKind::from_byte(head[4])?;
                    if self.buffer.len() >= HEAD + length {
                        self.buffer.advance(HEAD);
                        let content = self.buffer.split_to(length).freeze();
                        return Poll::Ready(Ok(Some(Frame(kind, content))));
                    }
                    HEAD + length - self.buffer.len()
                }
            };
            // Memory grows as bytes arrive, not with the announced length.
            self.buffer.reserve(missing.clamp(READ, PIECE));
            let source = Pin::new(&mut self.source);
            match ready!(poll_read_buf(source, context, &mut self.buffer))? {
                0 if self.buffer.is_empty() => return Poll::Ready(Ok(None)),
                0 => return Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
                _ => {}
            }
        }
    }

    /// Like [`Self::poll_next`].
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Returns the next message; `None` at the end.
    pub(crate) async fn message<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        match self.next().await? {
            Some(Frame(FrameKind::Message, content)) => Ok(Some(decode(&content)?)),
            Some(Frame(kind, _)) => Err(invalid(format!("{kind:?} in place of a message"))),
            None => Ok(None),
        }
    }
}

/// Frames that are written together.
#[derive(Debug, Default)]
pub(crate) struct Frames(Vec<u8>);

impl Frames {
    pub(crate) fn message<T: Serialize>(message: &T) -> Result<Frames> {
        Frames::from_message(FrameKind::Message, message)
    }

    /// Creates a frame with the reason why a body ended early.
    pub(crate) fn broken<T: Serialize>(reason: &T) -> Result<Frames> {
        Frames::from_message(FrameKind::Broken, reason)
    }

    /// Adds a body, or a part of one, in pieces.
    pub(crate) fn add_body(&mut self, body: &[u8]) {
        for piece in body.chunks(PIECE) {
            // No longer than PIECE.
            self.add_head(FrameKind::Piece, u32::try_from(piece.len()).unwrap_or(0));
            self.0.extend_from_slice(piece);
        }
    }

    pub(crate) fn add_end(&mut self) {
        self.add_head(FrameKind::End, 0);
    }

    /// Appends other frames.
    pub(crate) fn append(&mut self, others: &Frames) {
        self.0.extend_from_slice(&others.0);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn add_head(&mut self, kind: FrameKind, length: u32) {
        self.0.put_u32_le(length);
        self.0.put_u8(kind as u8);
    }

    fn from_message<T: Serialize>(kind: FrameKind, message: &T) -> Result<Frames> {
        let mut frames = Frames::default();
        frames.add_head(kind, 0);
        let bytes = postcard::to_extend(message, frames.0);
        let mut bytes = bytes.map_err(|error| {
            invalid(match error {
                // Nothing else in a message refuses to be written.
                postcard::Error::SerdeSerCustom => format!("a list of more than {LIST} entries"),
                error => error.to_string(),
            })
        })?;
        let length = u32::try_from(bytes.len() - HEAD);
        let length = length.map_err(|_| invalid("a message over 4 GiB".into()))?;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        Ok(Frames(bytes))
    }
}

/// Decodes the message in these bytes, using all of them.
pub(crate) fn decode<T: DeserializeOwned>(content: &[u8]) -> Result<T> {
    match postcard::take_from_bytes(content) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(invalid(format!("{} bytes after a message", rest.len()))),
        Err(error) => Err(invalid(format!("not a message: {error}"))),
    }
}

pub(crate) fn invalid(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{AnswerKind, Reply};

    async fn read(bytes: &[u8]) -> (Vec<(FrameKind, Vec<u8>)>, Option<ErrorKind>) {
        let mut reader = FrameReader::new(bytes, 100);
        let mut frames = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(frame)) => frames.push((frame.0, frame.1.to_vec())),
                Ok(None) => return (frames, None),
                Err(error) => return (frames, Some(error.kind())),
            }
        }
    }

    #[tokio::test]
    async fn frames_come_as_they_were_written() {
        let mut frames = Frames::message(&("a", 1_u32)).unwrap();
        frames.add_body(b"body");
        frames.add_end();
        let (read, error) = read(frames.bytes()).await;
        assert_eq!(error, None);
        assert_eq!(decode::<(String, u32)>(&read[0].1).unwrap().0, "a");
        assert_eq!(read[1], (FrameKind::Piece, b"body".to_vec()));
        assert_eq!(read[2], (FrameKind::End, Vec::new()));
    }

    #[tokio::test]
    async fn invalid_frames_of_a_hostile_peer_are_refused() {
        for (bytes, expected) in [
            (&[101, 0, 0, 0, 1][..], ErrorKind::InvalidData),
            (&[255, 255, 255, 255, 0], ErrorKind::InvalidData),
            (&[0, 0, 0, 0, 4], ErrorKind::InvalidData),
            (&[2, 0, 0, 0, 1, 7], ErrorKind::UnexpectedEof),
            (&[2, 0], ErrorKind::UnexpectedEof),
        ] {
            assert_eq!(read(bytes).await.1, Some(expected), "{bytes:?}");
        }
        assert!(decode::<String>(&[200, 200, 200, 200, 1]).is_err());
        assert!(decode::<u8>(&[1, 2]).is_err());
    }

    /// Two bytes of a message would take 48 in the memory of the host.
    #[test]
    fn a_reply_with_headers_by_the_hundred_thousand_is_neither_written_nor_read() {
        let reply = |count| Reply::Answer {
            status: 200,
            headers: vec![(String::new(), Vec::new()); count],
            body: AnswerKind::Empty,
        };
        let most = Frames::message(&reply(LIST)).unwrap();
        let read = decode::<Reply>(&most.bytes()[HEAD..]).unwrap();
        assert!(matches!(read, Reply::Answer { headers, .. } if headers.len() == LIST));
        let refused = Frames::message(&reply(LIST + 1)).unwrap_err();
        assert!(refused.to_string().contains("16384"), "{refused}");
        // The variant, the status, the number of headers, half a million of them, and the kind of the body.
        let mut bytes = postcard::to_extend(&(4_u32, 200_u16, 500_000_u32), Vec::new()).unwrap();
        bytes.resize(bytes.len() + 1_000_001, 0);
        assert!(decode::<Reply>(&bytes).is_err());
        // The same bytes are a message if their list is.
        let mut bytes = postcard::to_extend(&(4_u32, 200_u16, 500_u32), Vec::new()).unwrap();
        bytes.resize(bytes.len() + 1001, 0);
        assert!(decode::<Reply>(&bytes).is_ok());
    }
}

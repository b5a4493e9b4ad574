//! Bodies, whole or in pieces.

use std::fmt;

use wit_bindgen::{StreamReader, StreamResult, StreamWriter};

use crate::Error;
use crate::bindings::endpoint::platform::supervisor::types as wit;
use crate::bindings::endpoint::wit_stream;

/// How much of a stream is requested at a time, in bytes: large enough that crossing the sandbox's
/// border costs little compared to copying.
const CHUNK: usize = 64 << 10;

/// The body of a request or a response: nothing, bytes, or a stream of bytes.
///
/// The host chooses which of them a request has; [`Body::chunk`] and [`Body::bytes`] read either.
#[derive(Default)]
pub struct Body(BodyContent);

#[derive(Default)]
enum BodyContent {
    #[default]
    Empty,
    Bytes(Vec<u8>),
    Stream(StreamReader<u8>),
}

impl Body {
    /// Creates an empty body.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a body that a separate task writes.
    pub(crate) fn written_by(write: impl AsyncFnOnce(&mut BodyWriter) + 'static) -> Self {
        let (writer, reader) = wit_stream::new::<u8>();
        wit_bindgen::spawn_local(async move {
            write(&mut BodyWriter(writer)).await;
        });
        Self(BodyContent::Stream(reader))
    }

    /// Creates a body from a stream of the host.
    pub(crate) fn from_stream(stream: StreamReader<u8>) -> Self {
        Self(BodyContent::Stream(stream))
    }

    /// Returns the next piece, never an empty one; `None` at the end.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        match &mut self.0 {
            BodyContent::Empty => None,
            BodyContent::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                self.0 = BodyContent::Empty;
                (!bytes.is_empty()).then_some(bytes)
            }
            BodyContent::Stream(reader) => {
                let (bytes, ended) = loop {
                    let (result, bytes) = reader.read(Vec::with_capacity(CHUNK)).await;
                    let ended = !matches!(result, StreamResult::Complete(_));
                    if ended || !bytes.is_empty() {
                        break (bytes, ended);
                    }
                };
                if ended {
                    self.0 = BodyContent::Empty;
                }
                (!bytes.is_empty()).then_some(bytes)
            }
        }
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// 413 if there are more than `limit` bytes; at most that many are read.
    pub async fn bytes(mut self, limit: usize) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await {
            if chunk.len() > limit.saturating_sub(all.len()) {
                let message = format_args!("the body is longer than {limit} bytes");
                return Err(Error::too_large(message));
            }
            if all.is_empty() {
                all = chunk;
            } else {
                all.extend_from_slice(&chunk);
            }
        }
        Ok(all)
    }

    /// Returns the bytes, if all of them are already here.
    #[must_use]
    pub fn whole(&self) -> Option<&[u8]> {
        match &self.0 {
            BodyContent::Empty => Some(&[]),
            BodyContent::Bytes(bytes) => Some(bytes),
            BodyContent::Stream(_) => None,
        }
    }
}

/// Shows the length, not the content: bodies may hold secrets.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole() {
            Some(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            None => f.write_str("Body(stream)"),
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self(BodyContent::Bytes(bytes))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<wit::Body> for Body {
    fn from(body: wit::Body) -> Self {
        Self(match body {
            wit::Body::Empty => BodyContent::Empty,
            wit::Body::Bytes(bytes) => BodyContent::Bytes(bytes),
            wit::Body::Stream(reader) => BodyContent::Stream(reader),
        })
    }
}

impl From<Body> for wit::Body {
    fn from(body: Body) -> Self {
        match body.0 {
            BodyContent::Empty => Self::Empty,
            BodyContent::Bytes(bytes) => Self::Bytes(bytes),
            BodyContent::Stream(reader) => Self::Stream(reader),
        }
    }
}

/// The writing end of [`crate::Response::stream`].
pub struct BodyWriter(StreamWriter<u8>);

impl BodyWriter {
    /// Writes all of `bytes`, and waits until the caller has taken them.
    ///
    /// # Errors
    /// [`ReaderLeft`] if the caller has disconnected: stop writing then.
    pub async fn write(&mut self, bytes: impl Into<Vec<u8>>) -> Result<(), ReaderLeft> {
        let rest = self.0.write_all(bytes.into()).await;
        if rest.is_empty() {
            Ok(())
        } else {
            Err(ReaderLeft)
        }
    }
}

/// Nobody is reading the body any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderLeft;

impl fmt::Display for ReaderLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the caller has disconnected")
    }
}

impl std::error::Error for ReaderLeft {}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_body_over_its_limit_is_refused_and_one_at_it_is_not() {
        let read = |limit| Body::from("four").bytes(limit).now_or_never().unwrap();
        assert_eq!(read(4).unwrap(), b"four");
        assert_eq!(read(3).unwrap_err().status(), 413);
    }

    #[test]
    fn the_debug_form_does_not_show_the_content() {
        assert_eq!(format!("{:?}", Body::from("secret")), "Body(6 bytes)");
    }
}

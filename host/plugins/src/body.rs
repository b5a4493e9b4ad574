//! The body of an answer: bytes that are there, or a stream that a plugin or the host produces.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// The body of a plugin's answer. Dropping it ends the guest that produces it.
pub struct Body(BodySource);

enum BodySource {
    Whole(Option<Bytes>),
    Stream(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BodyError> + Send>>),
}

/// A stream that broke off. The connection is closed without the end that HTTP would have, so that the
/// client sees that something is missing; why is in the log.
#[derive(Debug, Clone, thiserror::Error)]
#[error("plugin `{plugin}` broke its answer off")]
pub struct BodyError {
    /// The plugin's name.
    pub plugin: String,
}

impl Body {
    /// No body.
    #[must_use]
    pub fn empty() -> Body {
        Body(BodySource::Whole(None))
    }

    pub(crate) fn stream(
        stream: impl http_body::Body<Data = Bytes, Error = BodyError> + Send + 'static,
    ) -> Body {
        Body(BodySource::Stream(Box::pin(stream)))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body(BodySource::Whole(
            Some(Bytes::from(bytes)).filter(|bytes| !bytes.is_empty()),
        ))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            BodySource::Whole(bytes) => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
            BodySource::Stream(stream) => stream.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodySource::Whole(bytes) => bytes.is_none(),
            BodySource::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodySource::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            BodySource::Stream(stream) => stream.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BodySource::Whole(bytes) => {
                write!(f, "Body({} bytes)", bytes.as_ref().map_or(0, Bytes::len))
            }
            BodySource::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

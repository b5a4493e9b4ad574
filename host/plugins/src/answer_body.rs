//! An answer's body, as it arrives from where the plugin runs.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use plugin_protocol::AnswerStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::body::BodyError;
use crate::loaded::LoadedPlugin;
use crate::request_body::RequestFault;

/// A stream from a plugin. The call lasts as long as the stream exists.
pub(crate) struct AnswerPieces {
    /// `None` once it has ended.
    pub(crate) stream: Option<AnswerStream>,
    pub(crate) plugin: Arc<LoadedPlugin>,
    /// What went wrong with the request's body.
    pub(crate) fault: Arc<RequestFault>,
    pub(crate) _permit: OwnedSemaphorePermit,
}

impl http_body::Body for AnswerPieces {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        let polled = stream.as_mut().poll_frame(context);
        // An answer to a request that was cut short is not valid.
        let failure = match self.fault.get() {
            Some(failure) => failure.clone(),
            None => match ready!(polled) {
                Some(Ok(piece)) => return Poll::Ready(Some(Ok(piece))),
                Some(Err(failure)) => failure,
                None => {
                    self.stream = None;
                    return Poll::Ready(None);
                }
            },
        };
        self.stream = None;
        self.plugin.failed(&failure);
        Poll::Ready(Some(Err(BodyError {
            plugin: self.plugin.manifest.name.clone(),
        })))
    }
}

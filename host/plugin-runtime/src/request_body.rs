//! A large body of a request on its way to a guest, and past it if the guest gives it back.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use plugin_protocol::{Failure, RequestStream};

use crate::host_stream::{HostStream, PieceSource};

/// The bytes of a large body as they arrive.
pub(crate) type RequestPieces = HostStream<RequestSource>;

pub(crate) struct RequestSource {
    /// `None` once it has ended.
    rest: Option<RequestStream>,
    /// Why it ended early, if it did: a guest cannot distinguish that from a proper end.
    broken: Option<String>,
}

impl RequestSource {
    pub(crate) fn new(stream: RequestStream) -> RequestSource {
        RequestSource {
            rest: Some(stream),
            broken: None,
        }
    }
}

impl PieceSource for RequestSource {
    fn poll_piece(
        &mut self,
        _: u64,
        context: &mut Context<'_>,
    ) -> Poll<wasmtime::Result<Option<Bytes>>> {
        while let Some(rest) = &mut self.rest {
            match ready!(rest.as_mut().poll_frame(context)) {
                // Trailers mean nothing to a plugin.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) if !piece.is_empty() => return Poll::Ready(Ok(Some(piece))),
                    _ => continue,
                },
                Some(Err(reason)) => self.broken = Some(reason),
                None => {}
            }
            self.rest = None;
        }
        Poll::Ready(Ok(None))
    }
}

/// As an answer's body: it bypasses the plugin.
impl Body for RequestPieces {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        if let Ok(true) = ready!(self.poll_ready(context)) {
            let piece = std::mem::take(&mut self.ready);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let broken = self.source.broken.take();
        Poll::Ready(broken.map(|reason| Err(Failure::BodyIncomplete(reason))))
    }
}

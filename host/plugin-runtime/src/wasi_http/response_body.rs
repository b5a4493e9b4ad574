//! The body of a component's answer.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::Body as _;
use plugin_protocol::Failure;
use wasmtime_wasi_http::p2::body::HyperOutgoingBody;

/// The body that a component writes, while it is being written.
pub(crate) struct ResponseBody(pub(super) HyperOutgoingBody);

impl ResponseBody {
    /// Returns the next piece; `None` at the end. An error is for a body that the component abandoned, or that is
    /// shorter or longer than announced.
    pub(crate) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failure>>> {
        loop {
            match ready!(Pin::new(&mut self.0).poll_frame(context)) {
                // Trailers are not passed on.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) if !piece.is_empty() => return Poll::Ready(Some(Ok(piece))),
                    _ => {}
                },
                Some(Err(_)) => {
                    let what = "it did not finish its body, or the body has another length than it announced";
                    return Poll::Ready(Some(Err(Failure::BadAnswer(what.to_owned()))));
                }
                None => return Poll::Ready(None),
            }
        }
    }

    /// Returns the remaining body of a component that has returned and will write no more: a body that it did not
    /// finish ends here. At most some 64 KiB, since with more the component would have had to wait.
    pub(crate) fn rest(mut self) -> Result<Vec<u8>, Failure> {
        let mut rest = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(piece)) = self.poll_piece(&mut context) {
            rest.extend_from_slice(&piece?);
        }
        Ok(rest)
    }
}

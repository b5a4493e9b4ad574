//! The body of a test's request, which is read to its end no matter how much the plugin reads.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;

/// A request body whose remaining part is read when it is dropped: if the connection ended earlier, the test would fail
/// to send its request, and not receive the answer.
pub(super) struct DrainedBody(pub(super) Body);

impl HttpBody for DrainedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.0)
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        let mut body = std::mem::take(&mut self.0);
        if body.is_end_stream() {
            return;
        }
        // Without a runtime the test has ended.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { while let Some(Ok(_)) = body.frame().await {} });
        }
    }
}

//! The body of an answer that the plugin sends in pieces: its end is reported once, whoever causes it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};

/// How a stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// All of it was sent.
    Complete,
    /// The plugin failed.
    Failed,
    /// The client closed the connection before the end.
    Unread,
}

/// A stream, and what is called at its end.
pub(super) struct AnswerStream<F: FnOnce(StreamEnd)> {
    body: Body,
    /// `None` after the end.
    ended: Option<F>,
}

impl<F: FnOnce(StreamEnd)> AnswerStream<F> {
    pub(super) fn new(body: Body, ended: F) -> AnswerStream<F> {
        AnswerStream {
            body,
            ended: Some(ended),
        }
    }

    fn end(&mut self, end: StreamEnd) {
        if let Some(ended) = self.ended.take() {
            ended(end);
        }
    }
}

impl<F: FnOnce(StreamEnd) + Unpin> HttpBody for AnswerStream<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(_)) => {}
            Some(Err(_)) => self.end(StreamEnd::Failed),
            None => self.end(StreamEnd::Complete),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.body)
    }
}

impl<F: FnOnce(StreamEnd)> Drop for AnswerStream<F> {
    fn drop(&mut self) {
        // A server need not read beyond the last piece if the body says that it was the last.
        let end = if self.body.is_end_stream() {
            StreamEnd::Complete
        } else {
            StreamEnd::Unread
        };
        self.end(end);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use futures::stream;
    use http_body_util::BodyExt as _;
    use parking_lot::Mutex;

    use super::*;

    /// Returns how a stream of these pieces ends if the client reads this many of them, each time that it is reported.
    async fn ends(pieces: Vec<io::Result<Bytes>>, read: usize) -> Vec<StreamEnd> {
        let ends = Arc::<Mutex<Vec<StreamEnd>>>::default();
        let seen = Arc::clone(&ends);
        let body = Body::from_stream(stream::iter(pieces));
        let mut stream = AnswerStream::new(body, move |end| seen.lock().push(end));
        for _ in 0..read {
            let _ = stream.frame().await;
        }
        drop(stream);
        let ends = ends.lock();
        ends.clone()
    }

    #[tokio::test]
    async fn the_end_of_a_stream_is_reported_once() {
        let piece = || Ok(Bytes::from_static(b"1\n"));
        let broken = || Err(io::Error::other("out of paper"));
        assert_eq!(ends(vec![piece()], 2).await, [StreamEnd::Complete]);
        assert_eq!(ends(vec![piece()], 3).await, [StreamEnd::Complete]);
        assert_eq!(ends(vec![piece(), broken()], 2).await, [StreamEnd::Failed]);
        assert_eq!(ends(vec![piece(), piece()], 1).await, [StreamEnd::Unread]);
        assert_eq!(ends(vec![piece()], 0).await, [StreamEnd::Unread]);
    }
}

//! Request bodies that were answered before they were read. Closing a connection with unread data of the client resets
//! it, and the client may lose the answer with the reason; so the rest is read and dropped in the background, up to a
//! limit.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http::header::EXPECT;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::bounds::{REST_FOR, REST_UP_TO};

/// A body from a socket.
pub(crate) struct SocketBody {
    rest: Option<Incoming>,
    /// The client waits for a go-ahead before it sends: until it gets one, no data is on its way.
    awaits_go_ahead: bool,
}

impl SocketBody {
    pub(crate) fn new(body: Incoming, headers: &HeaderMap) -> Self {
        SocketBody {
            rest: Some(body),
            awaits_go_ahead: headers.contains_key(EXPECT),
        }
    }
}

impl Body for SocketBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.awaits_go_ahead = false;
        let Some(body) = &mut self.rest else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(body).poll_frame(context);
        // After the end, or an error, there is nothing left to read.
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.rest = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.rest
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for SocketBody {
    fn drop(&mut self) {
        let Some(rest) = self.rest.take() else { return };
        if !rest.is_end_stream()
            && !self.awaits_go_ahead
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(REST_FOR, read_and_drop(rest)));
        }
    }
}

async fn read_and_drop(mut body: Incoming) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > REST_UP_TO {
            return;
        }
    }
}

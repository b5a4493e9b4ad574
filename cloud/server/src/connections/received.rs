//! The body of a request, which must arrive in time.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use cloud_core::body::BodyError;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep, timeout};

use super::activity::{Activity, RequestUnderWay};

use crate::bounds::{BODY_PROGRESS, LEFT_BODY, LEFT_BODY_TIME, LOG_SILENCE};

/// The state of a request's body, apart from its bytes.
#[derive(Default)]
pub(super) struct BodyState {
    /// Whether it may take any amount of time. Set by the code that answers the request.
    pub(super) long: AtomicBool,
    /// Whether more of the body was left unread than is read to keep the connection for the next request.
    ends_connection: AtomicBool,
}

impl BodyState {
    /// Whether the answer has to announce that it ends the connection.
    pub(super) fn ends_connection(&self) -> bool {
        self.ends_connection.load(Ordering::Relaxed)
    }
}

/// The body of a request; it fails if it does not arrive in time.
///
/// Requests are refused before their bodies are read. If such a body were dropped, hyper would end the connection after
/// an answer that does not announce it: the client would send its next request into a closed socket, and would lose
/// this answer as well if the system resets the connection. So the rest of a body is read and discarded, within limits.
pub(super) struct RequestBody {
    /// None after its end.
    body: Option<Incoming>,
    within: Duration,
    state: Arc<BodyState>,
    activity: Arc<Activity>,
    /// Whether the client sends it only on request.
    on_request: bool,
    /// While waiting: when more must have arrived, and the time that was allowed for it.
    wait: Option<(Pin<Box<Sleep>>, Duration)>,
    came: u64,
}

impl RequestBody {
    pub(super) fn new(
        body: Incoming,
        within: Duration,
        on_request: bool,
        state: Arc<BodyState>,
        activity: Arc<Activity>,
    ) -> Self {
        RequestBody {
            body: Some(body),
            within,
            state,
            activity,
            on_request,
            wait: None,
            came: 0,
        }
    }

    /// Returns how much must arrive, in which time.
    fn pace(&self) -> (u64, Duration) {
        if self.state.long.load(Ordering::Relaxed) {
            (1, LOG_SILENCE)
        } else {
            (BODY_PROGRESS, self.within)
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let (progress, within) = this.pace();
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            if !matches!(frame, Some(Ok(_))) {
                this.body = None;
            }
            if let Some(Ok(frame)) = &frame {
                this.came += frame.data_ref().map_or(0, Bytes::len) as u64;
                let over = this
                    .wait
                    .as_ref()
                    .is_some_and(|(wait, _)| wait.is_elapsed());
                if this.came >= progress || over {
                    this.wait = None;
                    this.came = 0;
                }
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(BodyError::from)));
        }
        // The time limit may have changed since.
        if this.wait.as_ref().is_none_or(|(_, of)| *of != within) {
            this.wait = Some((Box::pin(sleep(within)), within));
        }
        let Some((wait, _)) = &mut this.wait else {
            return Poll::Pending;
        };
        match wait.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                this.body = None;
                this.state.ends_connection.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(BodyError::Slow(within))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let left = self.body.take().filter(|body| !body.is_end_stream());
        let Some(body) = left else {
            return;
        };
        if self.on_request || body.size_hint().lower() > LEFT_BODY {
            self.state.ends_connection.store(true, Ordering::Relaxed);
        }
        // If the client sends the body only on request, it is not awaited.
        if !self.on_request
            && let Ok(runtime) = Handle::try_current()
        {
            let within = self.within.min(LEFT_BODY_TIME);
            runtime.spawn(read_away(body, within, self.activity.request()));
        }
    }
}

/// Reads the rest of a body, within limits, so that the connection can accept another request, or at least deliver the
/// answer before it ends.
async fn read_away(mut body: Incoming, within: Duration, _under_way: RequestUnderWay) {
    let all = async {
        let mut left = LEFT_BODY;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            match left.checked_sub(bytes) {
                Some(fewer) => left = fewer,
                None => return,
            }
        }
    };
    // If it does not arrive in time, the connection ends.
    let _ = timeout(within, all).await;
}

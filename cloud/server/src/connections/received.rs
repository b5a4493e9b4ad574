//! The body of a request, which has to come.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::bounds::{BODY_PROGRESS, LOG_SILENCE};

/// Why a body ends early.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("next to nothing of it came for {} seconds", .0.as_secs())]
    Slow(Duration),
    #[error(transparent)]
    Connection(#[from] hyper::Error),
}

/// Whether a body could not be read because it came too slowly.
pub(crate) fn came_too_slowly(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(BodyError::Slow(_)) = error.downcast_ref() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The body of a request, which fails where it does not come.
pub(super) struct Received {
    body: Incoming,
    within: Duration,
    /// Set by whoever answers the request.
    long: Arc<AtomicBool>,
    /// While it is waited for: until when something has to come, and what came meanwhile.
    wait: Option<(Pin<Box<Sleep>>, Duration)>,
    came: u64,
}

impl Received {
    pub(super) fn new(body: Incoming, within: Duration, long: Arc<AtomicBool>) -> Self {
        Received {
            body,
            within,
            long,
            wait: None,
            came: 0,
        }
    }

    /// How much has to come, in which time.
    fn pace(&self) -> (u64, Duration) {
        match self.long.load(Ordering::Relaxed) {
            true => (1, LOG_SILENCE),
            false => (BODY_PROGRESS, self.within),
        }
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let (progress, within) = this.pace();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
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
        // What was said of the body since may have changed its time.
        if this.wait.as_ref().is_none_or(|(_, of)| *of != within) {
            this.wait = Some((Box::pin(sleep(within)), within));
        }
        let Some((wait, _)) = &mut this.wait else {
            return Poll::Pending;
        };
        match wait.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Some(Err(BodyError::Slow(within)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! Progress on a connection, and what has made none for too long.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::bounds::{ANSWER_PROGRESS, Bounds};

/// Maximum interval between two checks of a connection.
const LOOK: Duration = Duration::from_secs(10);

/// Progress on a connection. Times are recorded as bytes move, and checked now and then, so that no timer has to be set
/// for each of them.
pub(super) struct Activity(Mutex<State>);

struct State {
    /// Requests whose answers are not complete.
    requests: usize,
    /// The time since which there are no requests, or of later output.
    idle: Instant,
    /// When the first byte of the expected head arrived.
    head: Option<Instant>,
    /// Bytes accepted by the system so far.
    written: u64,
    /// Whether the system accepts no more at the moment.
    full: bool,
    /// When it stopped accepting, and the bytes written by then.
    stalled: Option<(Instant, u64)>,
}

impl Activity {
    pub(super) fn new(now: Instant) -> Self {
        Activity(Mutex::new(State {
            requests: 0,
            idle: now,
            head: None,
            written: 0,
            full: false,
            stalled: None,
        }))
    }

    /// Records that bytes arrived.
    pub(super) fn read(&self, now: Instant) {
        let mut state = self.0.lock();
        if state.requests == 0 {
            state.head.get_or_insert(now);
        }
    }

    /// Records that the system accepted this many bytes.
    pub(super) fn wrote(&self, bytes: usize, now: Instant) {
        let mut state = self.0.lock();
        state.written += bytes as u64;
        state.full = false;
        if state.requests == 0 {
            state.idle = now;
        }
    }

    /// Records that the system accepts no more, because the peer does not read.
    pub(super) fn is_full(&self, now: Instant) {
        let mut state = self.0.lock();
        state.full = true;
        let written = state.written;
        state.stalled.get_or_insert((now, written));
    }

    /// Records the start of a request, which ends when the value is dropped.
    pub(super) fn request(self: &Arc<Self>) -> RequestUnderWay {
        let mut state = self.0.lock();
        state.requests += 1;
        state.head = None;
        drop(state);
        RequestUnderWay(self.clone())
    }

    /// Whether no request is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.0.lock().requests == 0
    }

    /// Returns when to check again.
    ///
    /// # Errors
    /// What has made no progress for too long.
    pub(super) fn overdue(&self, bounds: &Bounds, now: Instant) -> Result<Instant, &'static str> {
        let mut state = self.0.lock();
        let mut next = now + LOOK.min(bounds.head).min(bounds.unread);
        if let Some((since, written)) = state.stalled {
            let due = since + bounds.unread;
            if now < due {
                next = next.min(due);
            } else if !state.full {
                state.stalled = None;
            } else if state.written - written < ANSWER_PROGRESS {
                return Err("its answer is not read");
            } else {
                state.stalled = Some((now, state.written));
            }
        }
        if state.requests == 0 && !state.full {
            let due = match state.head {
                Some(since) => since + bounds.head,
                None => state.idle + bounds.idle,
            };
            if now >= due {
                return Err(match state.head {
                    Some(_) => "the head of a request does not arrive",
                    None => "nothing is asked",
                });
            }
            next = next.min(due);
        }
        Ok(next)
    }
}

/// A request whose answer is not complete.
pub(super) struct RequestUnderWay(Arc<Activity>);

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.requests = state.requests.saturating_sub(1);
        state.idle = Instant::now();
    }
}

/// The body of an answer; its request is in progress until the body ends.
pub(super) struct AnswerBody {
    body: Body,
    _request: RequestUnderWay,
}

impl AnswerBody {
    pub(super) fn new(body: Body, request: RequestUnderWay) -> Self {
        AnswerBody {
            body,
            _request: request,
        }
    }
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        connections: 1,
        of_an_address: 1,
        head: Duration::from_secs(30),
        idle: Duration::from_secs(75),
        body: Duration::from_secs(30),
        unread: Duration::from_secs(30),
    };

    fn after(begun: Instant, seconds: u64) -> Instant {
        begun + Duration::from_secs(seconds)
    }

    #[test]
    fn a_connection_without_a_request_ends_after_a_while() {
        let begun = Instant::now();
        let activity = Activity::new(begun);
        assert!(activity.overdue(&BOUNDS, after(begun, 74)).is_ok());
        let why = activity.overdue(&BOUNDS, after(begun, 75));
        assert_eq!(why, Err("nothing is asked"));
    }

    #[test]
    fn a_head_that_comes_a_byte_at_a_time_ends_its_connection() {
        let begun = Instant::now();
        let activity = Activity::new(begun);
        for second in 0..30 {
            activity.read(after(begun, second));
            assert!(activity.overdue(&BOUNDS, after(begun, second)).is_ok());
        }
        let why = activity.overdue(&BOUNDS, after(begun, 30));
        assert_eq!(why, Err("the head of a request does not arrive"));
    }

    #[test]
    fn a_request_may_take_as_long_as_it_takes() {
        let begun = Instant::now();
        let activity = Arc::new(Activity::new(begun));
        activity.read(begun);
        let request = activity.request();
        assert!(activity.overdue(&BOUNDS, after(begun, 10_000)).is_ok());
        assert!(!activity.is_idle());
        drop(request);
        assert!(activity.is_idle());
    }

    #[test]
    fn an_answer_that_is_read_a_byte_at_a_time_ends_its_connection() {
        let begun = Instant::now();
        let activity = Arc::new(Activity::new(begun));
        let _request = activity.request();
        for second in 0..30 {
            activity.wrote(100, after(begun, second));
            activity.is_full(after(begun, second));
            assert!(activity.overdue(&BOUNDS, after(begun, second)).is_ok());
        }
        let why = activity.overdue(&BOUNDS, after(begun, 30));
        assert_eq!(why, Err("its answer is not read"));
    }

    #[test]
    fn an_answer_that_is_read_slowly_goes_on() {
        let begun = Instant::now();
        let activity = Arc::new(Activity::new(begun));
        let _request = activity.request();
        for second in 0..600 {
            activity.wrote(2000, after(begun, second));
            activity.is_full(after(begun, second));
            assert!(activity.overdue(&BOUNDS, after(begun, second)).is_ok());
        }
        // An answer that was read to the end leaves no stall behind.
        activity.wrote(1, after(begun, 601));
        assert!(activity.overdue(&BOUNDS, after(begun, 700)).is_ok());
    }
}

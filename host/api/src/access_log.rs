//! One line per request: method, path, status and time taken. Never the query, which may contain a key.
//!
//! Requests that only read and succeed are logged at `debug`: otherwise a client that polls the state would fill the
//! journal of a device. All others are logged at `info`, up to a number of lines per second. Further lines are only
//! counted, so that nobody can make the journal drop important lines, or wear out flash memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use parking_lot::Mutex;

use crate::bounds::{OTHER_LINES, REFUSED_LINES};

/// The period in which lines are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// The log of one API.
pub(crate) struct AccessLog {
    /// Lines of refused requests, which anybody can send.
    refused: Arc<Lines>,
    others: Arc<Lines>,
    unhealthy: Lines,
}

impl AccessLog {
    pub(crate) fn new() -> Self {
        AccessLog {
            refused: Arc::new(Lines::new(REFUSED_LINES)),
            others: Arc::new(Lines::new(OTHER_LINES)),
            unhealthy: Lines::new(1),
        }
    }

    /// Writes the line of one request, or counts it.
    pub(crate) fn write(&self, method: &Method, path: &str, status: StatusCode, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let number = status.as_u16();
        if matches!(*method, Method::GET | Method::HEAD) && status.is_success() {
            tracing::debug!(target: "access", status = number, micros, "{method} {path}");
            return;
        }
        let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let lines = if is_refused {
            &self.refused
        } else {
            &self.others
        };
        match lines.next(Instant::now()) {
            Line::Written => {
                tracing::info!(target: "access", status = number, micros, "{method} {path}");
            }
            Line::Counted { first: false } => {}
            Line::Counted { first: true } => {
                let lines = lines.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(WINDOW).await;
                    let count = lines.take_counted();
                    if is_refused {
                        tracing::info!(target: "access", count, "refused more requests within the same second because of their keys or origins");
                    } else {
                        tracing::info!(target: "access", count, "answered more requests within the same second");
                    }
                });
            }
        }
    }
}

impl AccessLog {
    /// Returns whether to log now what makes the device unhealthy; limited, because anybody can request it.
    pub(crate) fn wants_problems(&self) -> bool {
        self.unhealthy.next(Instant::now()) == Line::Written
    }
}

/// Returns whether requests that read and succeed are logged at all.
pub(crate) fn wants_reads() -> bool {
    tracing::enabled!(target: "access", tracing::Level::DEBUG)
}

/// The lines of one kind, at most `most` per [`WINDOW`].
struct Lines {
    most: u64,
    window: Mutex<Window>,
}

struct Window {
    begun: Option<Instant>,
    written: u64,
    counted: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Written,
    /// Counted instead of written; if this is the `first`, the caller must log the number later.
    Counted {
        first: bool,
    },
}

impl Lines {
    const fn new(most: u64) -> Self {
        Lines {
            most,
            window: Mutex::new(Window {
                begun: None,
                written: 0,
                counted: 0,
            }),
        }
    }

    /// Decides about a line at the time `now`.
    fn next(&self, now: Instant) -> Line {
        let mut window = self.window.lock();
        let is_over = window
            .begun
            .is_none_or(|begun| now.saturating_duration_since(begun) >= WINDOW);
        if is_over {
            window.begun = Some(now);
            window.written = 0;
        }
        if window.written < self.most {
            window.written += 1;
            return Line::Written;
        }
        window.counted += 1;
        Line::Counted {
            first: window.counted == 1,
        }
    }

    /// Returns the number of lines that were counted since the last call.
    fn take_counted(&self) -> u64 {
        std::mem::take(&mut self.window.lock().counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_so_many_lines_and_a_number_for_the_rest() {
        let lines = Lines::new(2);
        let start = Instant::now();
        let at = |millis| lines.next(start + Duration::from_millis(millis));
        assert_eq!(at(0), Line::Written);
        assert_eq!(at(1), Line::Written);
        assert_eq!(at(2), Line::Counted { first: true });
        assert_eq!(at(999), Line::Counted { first: false });
        // The number of the previous second is logged by the caller that began the count.
        assert_eq!(at(1000), Line::Written);
        assert_eq!(lines.take_counted(), 2);
        assert_eq!(at(1001), Line::Written);
        assert_eq!(at(1002), Line::Counted { first: true });
        assert_eq!(lines.take_counted(), 1);
        assert_eq!(lines.take_counted(), 0);
    }
}

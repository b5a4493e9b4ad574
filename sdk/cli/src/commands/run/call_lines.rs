//! The lines about calls in the terminal: what was called, how it ended and how long it took, and what it used of the
//! plugin's limits, so that an author sees that a plugin comes near them before it exceeds them.

use std::time::Duration;

use http::StatusCode;
use plugin_test_host::protocol::UsedResources;
use plugin_test_host::{ActionEnd, ActionObserver, EndedAction};

use super::answer_stream::StreamEnd;
use crate::output::note_line;

/// Shows the calls for events and actions.
pub(super) struct ActionLines;

impl ActionObserver for ActionLines {
    fn ended(&self, call: &EndedAction) {
        note_line(action_line(call));
    }
}

/// Returns the line about a request with an answer that is complete, or that is a stream: `GET /v3/rails 200 in 1.2 ms
/// (0.3 ms of 1000 ms processor time, 2.1 of 16 MiB)`. A request without a call of the plugin has used nothing. Why the
/// plugin failed comes first.
pub(super) fn request_line(
    request: &str,
    status: StatusCode,
    time: Duration,
    used: Option<&UsedResources>,
    is_stream: bool,
    failure: Option<&str>,
) -> String {
    let status = status.as_u16();
    let so_far = if is_stream { ", so far" } else { "" };
    let used = used.map(in_whole).unwrap_or_default();
    let rest = format!("{status} in {}{so_far}{used}", ms(time));
    match failure {
        Some(failure) => format!("{failure}   {request} -> {rest}"),
        None => format!("{request} {rest}"),
    }
}

/// Returns the line about a stream that has ended, which began `time` ago.
pub(super) fn stream_line(
    request: &str,
    end: StreamEnd,
    time: Duration,
    used: Option<&UsedResources>,
) -> String {
    let end = match end {
        StreamEnd::Complete => "the stream ended",
        StreamEnd::Failed => "the stream failed",
        StreamEnd::Unread => "the client closed the stream",
    };
    let used = used.map(for_a_piece).unwrap_or_default();
    format!("{request}: {end} after {}{used}", ms(time))
}

fn action_line(call: &EndedAction) -> String {
    let end = match call.end {
        ActionEnd::Answered => "answered",
        ActionEnd::Failed => "failed",
        ActionEnd::Cancelled => "was cancelled",
    };
    let used = call.used.as_ref().map(in_whole).unwrap_or_default();
    format!("{} {end} in {}{used}", call.name, ms(call.time))
}

fn in_whole(used: &UsedResources) -> String {
    format!(" ({} processor time, {})", cpu(used), memory(used))
}

/// The limit of a stream's processor time is for the work on one piece.
fn for_a_piece(used: &UsedResources) -> String {
    format!(
        " (at most {} processor time for a piece, {})",
        cpu(used),
        memory(used)
    )
}

fn cpu(used: &UsedResources) -> String {
    format!("{} of {} ms", ms(used.cpu), used.limits.cpu.as_millis())
}

/// Returns the memory and its limit. One that is above zero is not shown as zero.
fn memory(used: &UsedResources) -> String {
    const MIB: usize = 1 << 20;
    let tenths = used.memory.saturating_mul(10).div_ceil(MIB);
    let (whole, tenth) = (tenths / 10, tenths % 10);
    format!("{whole}.{tenth} of {} MiB", used.limits.memory / MIB)
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use plugin_test_host::protocol::Limits;

    use super::*;

    fn used(microseconds: u64, memory: usize) -> UsedResources {
        UsedResources {
            cpu: Duration::from_micros(microseconds),
            memory,
            limits: Limits {
                memory: 16 << 20,
                cpu: Duration::from_secs(1),
                wall: Duration::from_secs(10),
                body: 1 << 20,
                concurrency: 8,
            },
        }
    }

    /// The page that shows such lines.
    const PAGE: &str = include_str!("../../../../../docs/plugin-tool.md");

    #[track_caller]
    fn is_documented(line: &str) {
        let is_shown = PAGE.lines().any(|shown| shown == line);
        assert!(is_shown, "docs/plugin-tool.md does not show `{line}`");
    }

    #[test]
    fn a_request_is_shown_with_what_it_used_and_the_limits() {
        let line = |path: &str, micros, used: Option<UsedResources>, is_stream| {
            let (request, time) = (format!("GET {path}"), Duration::from_micros(micros));
            let status = StatusCode::OK;
            request_line(&request, status, time, used.as_ref(), is_stream, None)
        };
        let used = || Some(used(310, (21 << 20) / 10));
        is_documented(&line("/v3/rails/Ada", 1230, used(), false));
        // Nothing but an answer of `run` itself.
        assert_eq!(
            line("/v3/rails", 1230, None, false),
            "GET /v3/rails 200 in 1.2 ms"
        );
        let used = Some(self::used(310, (12 << 20) / 10));
        is_documented(&line("/v3/rails/countdown", 1100, used, true));
        let (status, time) = (
            StatusCode::INTERNAL_SERVER_ERROR,
            Duration::from_micros(2100),
        );
        let used = self::used(1700, (11 << 20) / 10);
        let panic = Some("panic: no such rail (src/lib.rs:28:5)");
        is_documented(&request_line(
            "GET /v3/rails/12v",
            status,
            time,
            Some(&used),
            false,
            panic,
        ));
    }

    #[test]
    fn a_stream_is_shown_at_its_end_with_the_most_that_a_piece_used() {
        let line = |end| {
            let used = used(310, (12 << 20) / 10);
            let time = Duration::from_micros(3_004_200);
            stream_line("GET /v3/rails/countdown", end, time, Some(&used))
        };
        is_documented(&line(StreamEnd::Complete));
        for (end, expected) in [
            (StreamEnd::Failed, "the stream failed"),
            (StreamEnd::Unread, "the client closed the stream"),
        ] {
            let line = line(end);
            let begin = format!("GET /v3/rails/countdown: {expected} after 3004.2 ms (");
            assert!(line.starts_with(&begin), "{line}");
            assert!(PAGE.contains(&format!("`{expected}`")), "{expected}");
        }
    }

    #[test]
    fn an_event_and_an_action_are_shown_with_their_results() {
        let line = |name: &str, end, micros, used| {
            action_line(&EndedAction {
                name: name.to_owned(),
                end,
                time: Duration::from_micros(micros),
                used,
            })
        };
        let memory = (21 << 20) / 10;
        let answered = Some(used(200, memory));
        is_documented(&line("event schedule", ActionEnd::Answered, 900, answered));
        let failed = Some(used(700, 16 << 20));
        is_documented(&line("action set", ActionEnd::Failed, 2300, failed));
        assert_eq!(
            line(
                "action set",
                ActionEnd::Cancelled,
                7000,
                Some(used(1_000_400, 1))
            ),
            "action set was cancelled in 7.0 ms (1000.4 ms of 1000 ms processor time, 0.1 of 16 MiB)"
        );
        assert_eq!(
            line("action set", ActionEnd::Failed, 7000, None),
            "action set failed in 7.0 ms"
        );
    }

    #[test]
    fn memory_above_zero_is_not_shown_as_zero_nor_all_of_it_as_more() {
        for (bytes, expected) in [
            (0, "0.0 of 16 MiB"),
            (1, "0.1 of 16 MiB"),
            (16 << 20, "16.0 of 16 MiB"),
        ] {
            assert_eq!(memory(&used(0, bytes)), expected);
        }
    }
}

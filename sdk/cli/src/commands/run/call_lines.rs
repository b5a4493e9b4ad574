//! The lines about calls in the terminal: what was called, how it ended and how long it took, and what it used of the
//! plugin's limits, so that an author sees that a plugin comes near them before it exceeds them.

use std::time::Duration;

use http::StatusCode;
use plugin_test_host::protocol::UsedResources;
use plugin_test_host::{ActionEnd, ActionObserver, EndedAction};
use serde_json::{Value, json};

use super::answer_stream::StreamEnd;
use crate::output::Output;

/// Shows the calls for events and actions.
pub(super) struct ActionLines(pub(super) Output);

impl ActionObserver for ActionLines {
    fn ended(&self, call: &EndedAction) {
        self.0.event(action_line(call), &action_document(call));
    }
}

/// A request with an answer that is complete, or that is a stream.
pub(super) struct AnsweredRequest<'a> {
    /// Method and path.
    pub(super) request: &'a str,
    pub(super) status: StatusCode,
    pub(super) time: Duration,
    /// Nothing if the plugin was not called.
    pub(super) used: Option<UsedResources>,
    pub(super) is_stream: bool,
    /// Why the plugin failed.
    pub(super) failure: Option<String>,
}

impl AnsweredRequest<'_> {
    /// Returns the line for people: `GET /v3/rails 200 in 1.2 ms (0.3 ms of 1000 ms processor time, 2.1 of 16 MiB)`. Why
    /// the plugin failed comes first.
    pub(super) fn line(&self) -> String {
        let (request, status) = (self.request, self.status.as_u16());
        let so_far = if self.is_stream { ", so far" } else { "" };
        let used = self.used.as_ref().map(in_whole).unwrap_or_default();
        let rest = format!("{status} in {}{so_far}{used}", ms(self.time));
        match &self.failure {
            Some(failure) => format!("{failure}   {request} -> {rest}"),
            None => format!("{request} {rest}"),
        }
    }

    /// Returns the document for programs.
    pub(super) fn document(&self) -> Value {
        json!({
            "event": "request", "request": self.request, "status": self.status.as_u16(), "ms": tenths(self.time),
            "used": self.used.as_ref().map(used_document), "is_stream": self.is_stream, "failure": self.failure,
        })
    }
}

/// A stream that has ended.
pub(super) struct EndedStream<'a> {
    /// Method and path.
    pub(super) request: &'a str,
    pub(super) end: StreamEnd,
    /// The time since the request.
    pub(super) time: Duration,
    /// Nothing if the plugin was not called.
    pub(super) used: Option<UsedResources>,
}

impl EndedStream<'_> {
    /// Returns the line for people.
    pub(super) fn line(&self) -> String {
        let end = match self.end {
            StreamEnd::Complete => "the stream ended",
            StreamEnd::Failed => "the stream failed",
            StreamEnd::Unread => "the client closed the stream",
        };
        let used = self.used.as_ref().map(for_a_piece).unwrap_or_default();
        format!("{}: {end} after {}{used}", self.request, ms(self.time))
    }

    /// Returns the document for programs.
    pub(super) fn document(&self) -> Value {
        let end = match self.end {
            StreamEnd::Complete => "complete",
            StreamEnd::Failed => "failed",
            StreamEnd::Unread => "unread",
        };
        json!({
            "event": "stream-end", "request": self.request, "end": end, "ms": tenths(self.time),
            "used": self.used.as_ref().map(used_document),
        })
    }
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

fn action_document(call: &EndedAction) -> Value {
    let end = match call.end {
        ActionEnd::Answered => "answered",
        ActionEnd::Failed => "failed",
        ActionEnd::Cancelled => "cancelled",
    };
    json!({
        "event": "call", "call": call.name, "end": end, "ms": tenths(call.time),
        "used": call.used.as_ref().map(used_document),
    })
}

fn used_document(used: &UsedResources) -> Value {
    json!({ "cpu_ms": tenths(used.cpu), "memory_bytes": used.memory })
}

/// Returns milliseconds with one digit after the point, as the lines for people show them.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
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

    /// Returns a request to this path that was answered in so many microseconds.
    fn answered(request: &str, micros: u64, used: Option<UsedResources>) -> AnsweredRequest<'_> {
        AnsweredRequest {
            request,
            status: StatusCode::OK,
            time: Duration::from_micros(micros),
            used,
            is_stream: false,
            failure: None,
        }
    }

    #[test]
    fn a_request_is_shown_with_what_it_used_and_the_limits() {
        let ada = answered("GET /v3/rails/Ada", 1230, Some(used(310, (21 << 20) / 10)));
        is_documented(&ada.line());
        is_documented(&ada.document().to_string());
        // Nothing but an answer of `run` itself.
        let none = answered("GET /v3/rails", 1230, None);
        assert_eq!(none.line(), "GET /v3/rails 200 in 1.2 ms");
        assert_eq!(none.document()["used"], Value::Null);
        let used = |micros, memory| Some(used(micros, memory));
        let mut stream = answered("GET /v3/rails/countdown", 1100, used(310, (12 << 20) / 10));
        stream.is_stream = true;
        is_documented(&stream.line());
        let mut failed = answered("GET /v3/rails/12v", 2100, used(1700, (11 << 20) / 10));
        failed.status = StatusCode::INTERNAL_SERVER_ERROR;
        failed.failure = Some("panic: no such rail (src/lib.rs:28:5)".to_owned());
        is_documented(&failed.line());
        is_documented(&failed.document().to_string());
    }

    #[test]
    fn a_stream_is_shown_at_its_end_with_the_most_that_a_piece_used() {
        let stream = |end| EndedStream {
            request: "GET /v3/rails/countdown",
            end,
            time: Duration::from_micros(3_004_200),
            used: Some(used(310, (12 << 20) / 10)),
        };
        is_documented(&stream(StreamEnd::Complete).line());
        is_documented(&stream(StreamEnd::Complete).document().to_string());
        for (end, expected, word) in [
            (StreamEnd::Failed, "the stream failed", "failed"),
            (StreamEnd::Unread, "the client closed the stream", "unread"),
        ] {
            let line = stream(end).line();
            let begin = format!("GET /v3/rails/countdown: {expected} after 3004.2 ms (");
            assert!(line.starts_with(&begin), "{line}");
            assert!(PAGE.contains(&format!("`{expected}`")), "{expected}");
            assert_eq!(stream(end).document()["end"], word);
        }
    }

    #[test]
    fn an_event_and_an_action_are_shown_with_their_results() {
        let call = |name: &str, end, micros, used| EndedAction {
            name: name.to_owned(),
            end,
            time: Duration::from_micros(micros),
            used,
        };
        let line = |name: &str, end, micros, used| action_line(&call(name, end, micros, used));
        let memory = (21 << 20) / 10;
        let answered = Some(used(200, memory));
        is_documented(&line(
            "event schedule",
            ActionEnd::Answered,
            900,
            answered.clone(),
        ));
        let document = action_document(&call("event schedule", ActionEnd::Answered, 900, answered));
        is_documented(&document.to_string());
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

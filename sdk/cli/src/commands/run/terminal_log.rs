//! The lines of the device's log in the terminal: without the fields and the spans of a device, whose only plugin is the
//! author's, and with a panic in one line.

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};

use plugins::FAILURES_FOR_AUTHORS;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::output::note_line;

/// The target of the lines that the plugin writes.
const LINES_OF_PLUGIN: &str = "plugins::plugin_host";

tokio::task_local! {
    /// Why the request that this task answers has failed.
    static FAILURE: RefCell<Option<String>>;
}

/// Answers a request, and returns why the plugin failed, if it did: that is then not shown in a line of its own.
pub(super) async fn with_failure<T>(answer: impl Future<Output = T>) -> (T, Option<String>) {
    let answer = async {
        let answer = answer.await;
        (answer, FAILURE.with(RefCell::take))
    };
    FAILURE.scope(RefCell::default(), answer).await
}

/// Keeps the reason for the request that this task answers; returns whether there is such a request without one.
fn keep(failure: &str) -> bool {
    let kept = FAILURE.try_with(|kept| {
        let is_first = kept.borrow().is_none();
        if is_first {
            kept.replace(Some(failure.to_owned()));
        }
        is_first
    });
    kept.unwrap_or(false)
}

/// Writes lines of the log to standard error.
pub(super) struct TerminalLog {
    has_colours: bool,
}

impl TerminalLog {
    pub(super) fn new(has_colours: bool) -> TerminalLog {
        TerminalLog { has_colours }
    }

    /// Returns a line with its level.
    fn line(&self, level: Level, text: &str) -> String {
        let colour = match level {
            Level::ERROR => 31,
            Level::WARN => 33,
            Level::INFO => 32,
            Level::DEBUG | Level::TRACE => 34,
        };
        if self.has_colours {
            format!("\u{1b}[{colour}m{level:>5}\u{1b}[0m {text}")
        } else {
            format!("{level:>5} {text}")
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TerminalLog {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut message = MessageText::default();
        event.record(&mut message);
        let text = message.0;
        let (target, level) = (event.metadata().target(), *event.metadata().level());
        if target == FAILURES_FOR_AUTHORS {
            let failure = shown_failure(&text);
            if !keep(&failure) {
                note_line(failure);
            }
            return;
        }
        // Each call has a span.
        if target == LINES_OF_PLUGIN
            && level == Level::WARN
            && let Some(span) = context.event_span(event)
        {
            let mut extensions = span.extensions_mut();
            let mut panic = extensions.remove::<PanicLines>().unwrap_or_default();
            let is_hidden = panic.take(&text);
            extensions.insert(panic);
            if is_hidden {
                return;
            }
        }
        note_line(self.line(level, &text));
    }
}

/// Returns the line about a failure, from the message for the author.
fn shown_failure(message: &str) -> String {
    let rest = message.strip_prefix("plugin `");
    let panic = rest.and_then(|rest| rest.split_once('`')?.1.strip_prefix(" panicked: "));
    panic.map_or_else(|| message.to_owned(), |panic| format!("panic: {panic}"))
}

/// The lines that Rust's hook writes about a panic. The line about the failure contains them.
#[derive(Default)]
struct PanicLines {
    is_message_next: bool,
}

impl PanicLines {
    /// Takes the next line of a call's standard error, and returns whether it is one of these.
    fn take(&mut self, line: &str) -> bool {
        let is_place = line.starts_with("thread '") && line.contains(" panicked at ");
        let is_message = std::mem::replace(&mut self.is_message_next, is_place);
        // It begins with an empty line.
        is_place || is_message || line.is_empty()
    }
}

/// The message of an event.
#[derive(Default)]
struct MessageText(String);

impl Visit for MessageText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_one_line() {
        let hidden = |lines: &[&str]| {
            let mut panic = PanicLines::default();
            lines
                .iter()
                .map(|line| panic.take(line))
                .collect::<Vec<_>>()
        };
        let place = "thread '<unnamed>' (1) panicked at src/lib.rs:28:5:";
        assert_eq!(
            hidden(&["a warning", "", place, "no such rail", "in this house"]),
            [false, true, true, true, false]
        );
        assert_eq!(hidden(&["it panicked at noon", "really"]), [false, false]);
        assert_eq!(
            shown_failure("plugin `rails` panicked: no such rail (src/lib.rs:28:5)"),
            "panic: no such rail (src/lib.rs:28:5)"
        );
        let other = "plugin `rails` failed: it said ` panicked: `";
        assert_eq!(shown_failure(other), other);
    }

    #[test]
    fn only_a_terminal_gets_colours() {
        let line =
            |has_colours| TerminalLog::new(has_colours).line(Level::WARN, "the door is open");
        assert_eq!(line(false), " WARN the door is open");
        assert_eq!(line(true), "\u{1b}[33m WARN\u{1b}[0m the door is open");
    }

    #[tokio::test]
    async fn the_first_failure_of_a_request_is_kept_for_its_line() {
        let request = async {
            assert!(keep("one"));
            assert!(!keep("two"));
            7
        };
        assert_eq!(with_failure(request).await, (7, Some("one".to_owned())));
        assert_eq!(with_failure(async { 7 }).await, (7, None));
        assert!(!keep("a stream has failed"));
    }
}

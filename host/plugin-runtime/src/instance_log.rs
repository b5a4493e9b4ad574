//! What one instance writes into the supervisor's log (`wit/log.wit`), including its standard output and error.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use plugin_protocol::text::{self, one_line};
use plugin_protocol::{LogEntry, LogLevel};
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi_io::poll::Pollable;
use wasmtime_wasi_io::streams::{OutputStream, StreamError};

use crate::instance_host::InstanceHost;

/// The longest line, in bytes (`wit/log.wit`).
const LINE: usize = text::LONGEST;
/// How many lines one call can write (`wit/log.wit`).
const LINES: u32 = 100;

/// The longest error that is kept from an instance's log to be shown with its failure, in bytes.
const LAST_ERROR: usize = 500;

/// The beginning of the line with which Rust's hook ends its account of a panic. A plugin has no environment, so its author
/// cannot follow the advice.
const ADVICE: &str = "note: run with `RUST_BACKTRACE=1`";

/// What one instance has written so far, and how much it may write.
pub(crate) struct LogBudget {
    host: InstanceHost,
    lines: AtomicU32,
    panic: Mutex<PanicText>,
    /// The last line that the instance logged as an error.
    last_error: Mutex<Option<String>>,
}

/// The instance's account of its last panic on standard error, in the format of Rust's own hook: a line with the place,
/// and a line with the message.
#[derive(Default)]
struct PanicText {
    place: Option<String>,
    message: Option<String>,
}

impl PanicText {
    fn take(&mut self, line: &str) {
        if let Some((_, place)) = line.split_once("panicked at ") {
            *self = PanicText {
                place: Some(one_line(place.trim_end_matches(':'), LINE)),
                message: None,
            };
        } else if self.place.is_some() && self.message.is_none() {
            self.message = Some(one_line(line, LINE));
        }
    }

    fn text(&self) -> Option<String> {
        let (place, message) = (self.place.as_ref()?, self.message.as_ref()?);
        Some(one_line(&format!("{message} ({place})"), LINE))
    }
}

impl LogBudget {
    pub(crate) fn new(host: InstanceHost) -> LogBudget {
        LogBudget {
            host,
            lines: AtomicU32::new(0),
            panic: Mutex::default(),
            last_error: Mutex::default(),
        }
    }

    /// Returns the instance's own account of its failure, in one line that continues after its name: a panic in Rust,
    /// or else the last line that it logged as an error, as the SDKs of the other languages log one before they let an
    /// instance fail.
    pub(crate) fn account_of_failure(&self) -> Option<String> {
        if let Some(panic) = self.panic.lock().text() {
            return Some(format!("panicked: {panic}"));
        }
        let last_error = self.last_error.lock();
        last_error.as_ref().map(|error| format!("failed: {error}"))
    }

    /// Writes a line of the instance's standard output or error.
    fn write_output(&self, level: LogLevel, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        if level == LogLevel::Warn {
            if line.starts_with(ADVICE) {
                return;
            }
            self.panic.lock().take(&line);
        }
        self.write(level, &line);
    }

    /// Writes one line, whatever `message` contains.
    pub(crate) fn write(&self, level: LogLevel, message: &str) {
        if level == LogLevel::Error {
            *self.last_error.lock() = Some(one_line(message, LAST_ERROR));
        }
        if self.lines.fetch_add(1, Ordering::Relaxed) < LINES {
            let line = one_line(message, LINE);
            self.host.log(LogEntry::Line(level, line));
        }
    }
}

impl Drop for LogBudget {
    fn drop(&mut self) {
        let lost = self.lines.load(Ordering::Relaxed).saturating_sub(LINES);
        if lost > 0 {
            self.host.log(LogEntry::Lost(lost));
        }
    }
}

/// Standard output or error of an instance: each line becomes a line of the log.
#[derive(Clone)]
pub(crate) struct LogOutput {
    log: Arc<LogBudget>,
    level: LogLevel,
    /// A line that has not ended yet; at most [`LINE`] bytes.
    partial: Arc<Mutex<Vec<u8>>>,
}

impl LogOutput {
    pub(crate) fn new(log: Arc<LogBudget>, level: LogLevel) -> LogOutput {
        LogOutput {
            log,
            level,
            partial: Arc::default(),
        }
    }

    fn take(&self, bytes: &[u8]) {
        let mut partial = self.partial.lock();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = part
                .strip_suffix(b"\n")
                .map_or((part, false), |text| (text, true));
            // Beyond the limit plus one byte, all that matters is that the line is too long.
            let room = (LINE + 1).saturating_sub(partial.len());
            partial.extend_from_slice(&text[..text.len().min(room)]);
            if ended {
                self.log.write_output(self.level, &partial);
                partial.clear();
            }
        }
    }
}

impl Drop for LogOutput {
    fn drop(&mut self) {
        if Arc::strong_count(&self.partial) == 1 {
            let partial = self.partial.lock();
            if !partial.is_empty() {
                self.log.write_output(self.level, &partial);
            }
        }
    }
}

impl IsTerminal for LogOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogOutput {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for LogOutput {
    async fn ready(&mut self) {}
}

impl OutputStream for LogOutput {
    fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        Ok(64 << 10)
    }
}

impl AsyncWrite for LogOutput {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panic_message_of_a_guest_is_logged_as_one_line() {
        let written = |lines: &[&str]| {
            let mut panic = PanicText::default();
            lines.iter().for_each(|line| panic.take(line));
            panic.text()
        };
        let place = "thread '<unnamed>' (1) panicked at src/lib.rs:28:5:";
        for (lines, expected) in [
            (&["a warning"][..], None),
            (&[place], None),
            (
                &["", place, "the board has no such rail", "note: run with"],
                Some("the board has no such rail (src/lib.rs:28:5)"),
            ),
            (&[place, "one", place, "two"], Some("two (src/lib.rs:28:5)")),
            (&[place, "\u{1b}[2J"], Some("\\u{1b}[2J (src/lib.rs:28:5)")),
        ] {
            assert_eq!(written(lines).as_deref(), expected, "{lines:?}");
        }
        let long = "x".repeat(3 * LINE);
        assert!(written(&[place, &long]).unwrap().len() <= LINE + 3);
    }
}

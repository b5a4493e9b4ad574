//! Splits the bytes of a log stream into lines. Pure.
//!
//! The engine writes a timestamp before each line and cuts lines longer than 16 KiB into pieces
//! with a timestamp each. For containers without a terminal, it puts each piece into a frame that
//! names its output.

use jiff::Timestamp;

use crate::LogLine;

/// The longest message of one [`LogLine`], in bytes; longer lines come in pieces.
pub(super) const MAX_LINE: usize = 16 << 10;
/// The engine's timestamps have 30 characters; with a time zone instead of `Z`, 35.
const MAX_TIMESTAMP: usize = 40;
const HEADER: usize = 8;

/// The format of a log stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Of a container with a terminal: plain output.
    Raw,
    /// Of a container without a terminal: frames of standard output and standard error.
    Multiplexed,
}

/// Turns pieces of a stream, cut anywhere, into lines. Holds at most two unfinished lines.
#[derive(Debug)]
pub(super) struct LineSplitter {
    framing: Framing,
    header: Vec<u8>,
    /// The bytes of the current frame that have not arrived yet.
    remaining: usize,
    stderr: bool,
    outputs: [Output; 2],
    /// The timestamp of the last line that was begun.
    pub(super) last: Option<Timestamp>,
}

/// The unfinished line of one output.
#[derive(Debug, Default)]
struct Output {
    prefix: Prefix,
    /// Bytes since the last timestamp.
    since_prefix: usize,
    text: Vec<u8>,
    timestamp: Option<Timestamp>,
    /// Whether a part of this line was passed on already.
    continued: bool,
}

/// The state of reading at a place where a timestamp may be.
#[derive(Debug, Default)]
enum Prefix {
    /// Nothing has been read yet.
    #[default]
    Empty,
    Reading(Vec<u8>),
    Done,
}

impl LineSplitter {
    pub(super) fn new(framing: Framing) -> Self {
        LineSplitter {
            framing,
            header: Vec::new(),
            remaining: 0,
            stderr: false,
            outputs: Default::default(),
            last: None,
        }
    }

    /// Reads the next bytes and hands each line that they complete to `give`.
    pub(super) fn feed(&mut self, mut bytes: &[u8], give: &mut impl FnMut(LogLine)) {
        if self.framing == Framing::Raw {
            self.output(false, bytes, give);
            return;
        }
        while !bytes.is_empty() {
            if self.remaining == 0 {
                let (head, rest) = bytes.split_at(bytes.len().min(HEADER - self.header.len()));
                self.header.extend_from_slice(head);
                bytes = rest;
                if let [kind, _, _, _, length @ ..] = self.header.as_slice()
                    && let Ok(length) = <[u8; 4]>::try_from(length)
                {
                    self.stderr = *kind == 2;
                    self.remaining = u32::from_be_bytes(length) as usize;
                    self.outputs[usize::from(self.stderr)].expect_timestamp();
                    self.header.clear();
                }
                continue;
            }
            let (payload, rest) = bytes.split_at(bytes.len().min(self.remaining));
            self.remaining -= payload.len();
            bytes = rest;
            self.output(self.stderr, payload, give);
        }
    }

    /// Passes the text that has no line end to `give`, at the end of the stream.
    pub(super) fn finish(&mut self, give: &mut impl FnMut(LogLine)) {
        let raw = self.framing == Framing::Raw;
        for (output, stderr) in self.outputs.iter_mut().zip([false, true]) {
            output.end_prefix(&mut self.last);
            if !output.text.is_empty() {
                output.end_line(stderr, raw, give);
            }
        }
    }

    fn output(&mut self, stderr: bool, mut bytes: &[u8], give: &mut impl FnMut(LogLine)) {
        let raw = self.framing == Framing::Raw;
        let output = &mut self.outputs[usize::from(stderr)];
        while !bytes.is_empty() {
            if !matches!(output.prefix, Prefix::Done) {
                bytes = output.read_prefix(bytes, &mut self.last);
                continue;
            }
            // The engine cuts there; the next bytes begin with a timestamp unless the line ends.
            let until_cut = MAX_LINE - output.since_prefix;
            let part = &bytes[..bytes.len().min(until_cut)];
            match part.iter().position(|&byte| byte == b'\n') {
                Some(end) => {
                    output.take(&part[..end], stderr, give);
                    bytes = &bytes[end + 1..];
                    output.end_line(stderr, raw, give);
                }
                None => {
                    output.take(part, stderr, give);
                    bytes = &bytes[part.len()..];
                    if output.since_prefix == MAX_LINE {
                        output.expect_timestamp();
                    }
                }
            }
        }
    }
}

impl Output {
    fn expect_timestamp(&mut self) {
        self.prefix = Prefix::Empty;
        self.since_prefix = 0;
    }

    /// Collects what may be a timestamp; returns the bytes after it.
    fn read_prefix<'a>(&mut self, bytes: &'a [u8], last: &mut Option<Timestamp>) -> &'a [u8] {
        if let Prefix::Empty = self.prefix {
            self.prefix = Prefix::Reading(Vec::with_capacity(MAX_TIMESTAMP));
        }
        let Prefix::Reading(read) = &mut self.prefix else {
            return bytes;
        };
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == b' ' || byte == b'\n' || read.len() == MAX_TIMESTAMP {
                let rest = &bytes[at..];
                let is_timestamp = byte == b' ' && self.end_prefix(last);
                if is_timestamp {
                    return &rest[1..];
                }
                self.end_prefix(last);
                return rest;
            }
            read.push(byte);
        }
        &[]
    }

    /// Decides whether the bytes were a timestamp or text of the line.
    fn end_prefix(&mut self, last: &mut Option<Timestamp>) -> bool {
        let Prefix::Reading(read) = std::mem::replace(&mut self.prefix, Prefix::Done) else {
            return false;
        };
        let parsed = std::str::from_utf8(&read).ok().and_then(|t| t.parse().ok());
        match parsed {
            Some(timestamp) => {
                // A line has the timestamp of its beginning.
                if self.text.is_empty() && !self.continued {
                    self.timestamp = Some(timestamp);
                }
                *last = Some(timestamp);
                true
            }
            None => {
                self.since_prefix += read.len();
                self.text.extend_from_slice(&read);
                false
            }
        }
    }

    fn take(&mut self, bytes: &[u8], stderr: bool, give: &mut impl FnMut(LogLine)) {
        self.since_prefix += bytes.len();
        let mut bytes = bytes;
        while self.text.len() + bytes.len() >= MAX_LINE {
            let (piece, rest) = bytes.split_at(MAX_LINE.saturating_sub(self.text.len()));
            self.text.extend_from_slice(piece);
            bytes = rest;
            self.give_piece(stderr, give);
        }
        self.text.extend_from_slice(bytes);
    }

    /// Passes the text on as a piece, without the last character if that is incomplete.
    fn give_piece(&mut self, stderr: bool, give: &mut impl FnMut(LogLine)) {
        let whole = match std::str::from_utf8(&self.text) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.text.len(),
        };
        let rest = self.text.split_off(whole);
        self.give(stderr, give);
        self.text = rest;
        self.continued = true;
    }

    fn end_line(&mut self, stderr: bool, raw: bool, give: &mut impl FnMut(LogLine)) {
        // A terminal ends lines with both.
        if raw && self.text.last() == Some(&b'\r') {
            self.text.pop();
        }
        // If a line ended exactly at a cut, nothing is left to pass on.
        if !(self.continued && self.text.is_empty()) {
            self.give(stderr, give);
        }
        self.continued = false;
        self.text.clear();
        self.expect_timestamp();
    }

    fn give(&self, stderr: bool, give: &mut impl FnMut(LogLine)) {
        give(LogLine {
            message: String::from_utf8_lossy(&self.text).into_owned(),
            timestamp_ms: self.timestamp.map_or(0, Timestamp::as_millisecond),
            stderr,
        });
    }
}

#[cfg(test)]
mod tests;

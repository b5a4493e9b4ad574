//! The output of a service, in two files that are never longer than [`MAX_FILE`] each.
//!
//! The service's process writes with [`LogFile`]; the engine reads the files as they grow and parses their lines with
//! [`Entry::parse`]. A full file replaces the older one, so a reader that has it open can read it to its end and
//! continue with the next.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file being written, in the container's folder.
pub const LOG: &str = "log";
/// The previous file.
pub const OLDER_LOG: &str = "log.1";
/// The maximum size of each file, in bytes.
pub const MAX_FILE: u64 = 1 << 20;
/// The longest line, in bytes; a longer one is cut into lines of this length.
pub const MAX_LINE: usize = 16 << 10;

/// A flag of open(2), needed because the service may write into the folder.
const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// The stream that a service printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// The stream of the line.
    pub stream: Stream,
    /// The text, without its line end; bytes that are not UTF-8 are replaced.
    pub message: String,
}

impl Entry {
    /// Parses a line of the file, without its line end; `None` if it is damaged.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Entry> {
        let line = String::from_utf8_lossy(line);
        let (time, rest) = line.split_once(' ')?;
        let (stream, message) = rest.split_once(' ')?;
        let stream = match stream {
            "o" => Stream::Output,
            "e" => Stream::Error,
            _ => return None,
        };
        Some(Entry {
            timestamp_ms: time.parse().ok()?,
            stream,
            message: message.to_owned(),
        })
    }
}

/// The writing end of a container's log.
#[derive(Debug)]
pub struct LogFile {
    folder: PathBuf,
    /// `None` after a failure, until the next line tries again.
    file: Option<File>,
    length: u64,
    /// The beginnings of lines that have not ended yet, by their [`Stream`].
    unfinished: [Vec<u8>; 2],
}

impl LogFile {
    /// Continues the log in `folder`.
    #[must_use]
    pub fn open(folder: &Path) -> Self {
        let mut log = LogFile {
            folder: folder.to_owned(),
            file: None,
            length: 0,
            unfinished: Default::default(),
        };
        log.reopen();
        log
    }

    /// Adds output to `stream` and returns how many lines it ended. If the log cannot be written, for example because
    /// the disk is full, lines are lost and nothing blocks.
    pub fn print(&mut self, stream: Stream, bytes: &[u8]) -> usize {
        let mut entries = Vec::new();
        let mut lines = 0;
        let now = now_ms();
        let partial = &mut self.unfinished[stream as usize];
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (mut text, ended) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            while partial.len() + text.len() > MAX_LINE {
                let (fits, rest) = text.split_at(MAX_LINE - partial.len());
                partial.extend_from_slice(fits);
                append(&mut entries, now, stream, partial);
                partial.clear();
                lines += 1;
                text = rest;
            }
            partial.extend_from_slice(text);
            if ended {
                append(&mut entries, now, stream, partial);
                partial.clear();
                lines += 1;
            }
        }
        if partial.is_empty() {
            // The memory of one long line is not kept for ever.
            partial.shrink_to(256);
        }
        self.put(&entries);
        lines
    }

    /// Adds a line of our own about the service.
    pub fn note(&mut self, message: &str) {
        self.end_lines();
        for line in message.lines() {
            self.print(Stream::Error, line.as_bytes());
            self.print(Stream::Error, b"\n");
        }
    }

    /// Ends the lines that the service did not end.
    pub fn end_lines(&mut self) {
        for stream in [Stream::Output, Stream::Error] {
            if !self.unfinished[stream as usize].is_empty() {
                self.print(stream, b"\n");
            }
        }
    }

    fn put(&mut self, entries: &[u8]) {
        if entries.is_empty() {
            return;
        }
        if self.length + entries.len() as u64 > MAX_FILE && self.length > 0 {
            let _ = fs::rename(self.folder.join(LOG), self.folder.join(OLDER_LOG));
            self.file = None;
        }
        if self.file.is_none() {
            self.reopen();
        }
        let written = match &mut self.file {
            Some(file) => file.write_all(entries),
            None => return,
        };
        match written {
            Ok(()) => self.length += entries.len() as u64,
            Err(_) => self.file = None,
        }
    }

    fn reopen(&mut self) {
        let opened = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(NOFOLLOW)
            .open(self.folder.join(LOG))
            .and_then(|file| io::Result::Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((length, file)) => {
                self.length = length;
                self.file = Some(file);
            }
            Err(_) => self.file = None,
        }
    }
}

fn append(entries: &mut Vec<u8>, now: i64, stream: Stream, line: &[u8]) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let stream = match stream {
        Stream::Output => 'o',
        Stream::Error => 'e',
    };
    entries.extend_from_slice(format!("{now} {stream} ").as_bytes());
    entries.extend_from_slice(String::from_utf8_lossy(line).as_bytes());
    entries.push(b'\n');
}

/// Returns the current time in milliseconds since the epoch.
#[must_use]
pub fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(folder: &Path) -> Vec<(Stream, String)> {
        let mut bytes = fs::read(folder.join(OLDER_LOG)).unwrap_or_default();
        bytes.extend(fs::read(folder.join(LOG)).unwrap());
        bytes
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| Entry::parse(line.strip_suffix(b"\n").unwrap()).unwrap())
            .map(|entry| (entry.stream, entry.message))
            .collect()
    }

    #[test]
    fn lines_are_kept_whole_however_they_are_printed() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(folder.path());
        for (stream, text) in [
            (Stream::Output, "one\ntw"),
            (Stream::Error, "war"),
            (Stream::Output, "o\r\n\nthree"),
            (Stream::Error, "ning\n"),
        ] {
            log.print(stream, text.as_bytes());
        }
        log.print(Stream::Error, b"not \xff text\n");
        log.note("it ended");
        let expected = [
            (Stream::Output, "one"),
            (Stream::Output, "two"),
            (Stream::Output, ""),
            (Stream::Error, "warning"),
            (Stream::Error, "not \u{fffd} text"),
            (Stream::Output, "three"),
            (Stream::Error, "it ended"),
        ];
        let expected: Vec<(Stream, String)> = expected
            .iter()
            .map(|(stream, text)| (*stream, (*text).to_owned()))
            .collect();
        assert_eq!(lines(folder.path()), expected);
    }

    #[test]
    fn a_flood_fills_two_files_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(folder.path());
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        for _ in 0..5000 {
            log.print(Stream::Output, &line);
        }
        for name in [LOG, OLDER_LOG] {
            assert!(fs::metadata(folder.path().join(name)).unwrap().len() <= MAX_FILE);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(lines(folder.path()).len() > 1000);
    }

    #[test]
    fn an_endless_line_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(folder.path());
        let ended = log.print(Stream::Output, &vec![b'x'; 2 * MAX_LINE + 1]);
        assert_eq!(ended, 2);
        log.end_lines();
        let lengths: Vec<usize> = lines(folder.path()).iter().map(|(_, l)| l.len()).collect();
        assert_eq!(lengths, [MAX_LINE, MAX_LINE, 1]);
    }

    #[test]
    fn damaged_lines_are_none() {
        for damaged in ["", "1", "1 o", "1 x text", "x o text"] {
            assert_eq!(Entry::parse(damaged.as_bytes()), None, "{damaged:?}");
        }
    }
}

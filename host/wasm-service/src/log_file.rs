//! What a service prints, in two files that are never longer than [`MAX_FILE`] each.
//!
//! The service's process writes with [`LogFile`]; the engine reads the files as they grow and takes
//! their lines apart with [`Entry::parse`]. When the file is full it takes the place of the older one,
//! so that a reader who holds it open can read it to its end and go on with the next.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file that is written to, in the container's folder.
pub const LOG: &str = "log";
/// The one before it.
pub const OLDER_LOG: &str = "log.1";
/// Bytes in each of both files.
pub const MAX_FILE: u64 = 1 << 20;
/// The longest line, in bytes; a longer one is cut into lines of this length.
pub const MAX_LINE: usize = 16 << 10;

/// Of open(2): the folder is the service's to write into.
const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// Which of its two streams a service printed to.
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
    /// Where it was printed.
    pub stream: Stream,
    /// The text, without its line end; bytes that are no UTF-8 are replaced.
    pub message: String,
}

impl Entry {
    /// Takes a line of the file apart, without its line end; `None` for one that is damaged.
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
    /// The beginnings of lines that have no end yet, by their [`Stream`].
    unfinished: [Vec<u8>; 2],
}

impl LogFile {
    /// Goes on with the log in `folder`.
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

    /// Takes what was printed to `stream` and returns how many lines it ended. A log that cannot be
    /// written, because the disk is full for example, loses lines and holds up nobody.
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
            // A service that printed one long line does not hold its memory for ever.
            partial.shrink_to(256);
        }
        self.put(&entries);
        lines
    }

    /// A line of our own, about the service rather than by it.
    pub fn note(&mut self, message: &str) {
        self.end_lines();
        for line in message.lines() {
            self.print(Stream::Error, line.as_bytes());
            self.print(Stream::Error, b"\n");
        }
    }

    /// Ends the lines that the service left without an end.
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

/// Milliseconds since the epoch.
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

//! Reads a container's log as it grows, over rotations and restarts.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use futures::stream::{BoxStream, StreamExt as _, unfold};
use rustix::fs::inotify::WatchFlags;
use wasm_service::log_file::{Entry, LOG, MAX_LINE, OLDER_LOG, Stream};
use wasm_service::record::open_plain;

use super::inotify::Inotify;
use super::record::CONTAINER;
use crate::{EngineError, LogLine, LogsFrom};

/// The number of bytes that are read at a time.
const PIECE: usize = 64 << 10;
/// The longest line of the file, in bytes; a longer one is damaged, and is cut.
const LONGEST: usize = 4 * MAX_LINE;

/// Returns the lines of the log in `folder`, until the folder is gone.
pub(super) fn follow(
    folder: PathBuf,
    from: LogsFrom,
) -> Result<BoxStream<'static, Result<LogLine, EngineError>>, EngineError> {
    let follower = Follower::new(folder, from)
        .map_err(|error| EngineError::failed("follow a container's log", error))?;
    let lines = unfold(Some(follower), |follower| async {
        let mut follower = follower?;
        match follower.next().await {
            Ok(Some(line)) => Some((Ok(line), Some(follower))),
            Ok(None) => None,
            // The stream ends with an error.
            Err(error) => {
                let error = EngineError::failed("follow a container's log", error);
                Some((Err(error), None))
            }
        }
    });
    Ok(lines.boxed())
}

struct Follower {
    folder: PathBuf,
    changes: Inotify,
    file: Option<File>,
    /// The file after it, if that is known already: held open, since the container may be removed
    /// while its log is read.
    next: Option<File>,
    /// The beginning of a line whose end has not been written yet.
    partial: Vec<u8>,
    lines: VecDeque<LogLine>,
    /// Of the lines that existed at the beginning, those older than this are left out.
    since: Option<i64>,
}

impl Follower {
    fn new(folder: PathBuf, from: LogsFrom) -> io::Result<Self> {
        let changes = Inotify::new()?;
        // Before the files are read, so that no change is missed in between.
        let flags = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR;
        changes.watch(&folder, flags)?;
        let older = open(&folder.join(OLDER_LOG))?;
        let newer = open(&folder.join(LOG))?;
        let (file, next) = match older {
            Some(older) => (Some(older), newer),
            None => (newer, None),
        };
        Ok(Follower {
            folder,
            changes,
            file,
            next,
            partial: Vec::new(),
            lines: VecDeque::new(),
            since: match from {
                LogsFrom::Since(since) => Some(since),
                LogsFrom::Start => None,
            },
        })
    }

    /// Returns the next line; `None` when the container is gone.
    async fn next(&mut self) -> io::Result<Option<LogLine>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Some(line));
            }
            // Mostly from the page cache, and only one piece at a time.
            if self.read()? || self.go_on()? {
                continue;
            }
            if !self.folder.join(CONTAINER).exists() {
                return Ok(None);
            }
            // From here on all lines are new, whatever the clock says.
            self.since = None;
            self.changes.changes().await?;
        }
    }

    /// Reads a piece; returns whether there was one.
    fn read(&mut self) -> io::Result<bool> {
        let Some(file) = &mut self.file else {
            return Ok(false);
        };
        let mut piece = vec![0; PIECE];
        let length = file.read(&mut piece)?;
        for part in piece[..length].split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(part);
            let is_whole = part.ends_with(b"\n");
            if is_whole || self.partial.len() > LONGEST {
                let line = self.partial.strip_suffix(b"\n").unwrap_or(&self.partial);
                let line = Entry::parse(line).map(log_line);
                let is_new = |line: &LogLine| self.since.is_none_or(|at| line.timestamp_ms >= at);
                self.lines.extend(line.filter(is_new));
                self.partial.clear();
            }
        }
        Ok(length > 0)
    }

    /// At the end of a file, goes on to the next one, if there is one. The writer finishes a file
    /// before it begins the next, so the file is complete by then.
    fn go_on(&mut self) -> io::Result<bool> {
        if let Some(next) = self.next.take() {
            self.partial.clear();
            self.file = Some(next);
            return Ok(true);
        }
        let Some(newest) = open(&self.folder.join(LOG))? else {
            return Ok(false);
        };
        let Some(file) = &self.file else {
            self.file = Some(newest);
            return Ok(true);
        };
        if is_same(file, &newest)? {
            return Ok(false);
        }
        // Reads what was written between our last read and the change of files.
        if self.read()? {
            return Ok(true);
        }
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let older = open(&self.folder.join(OLDER_LOG))?;
        let next = match older {
            // Two files were begun since then: the older one is first.
            Some(older) if !is_same(file, &older)? && is_newer(&older, file)? => older,
            _ => newest,
        };
        self.partial.clear();
        self.file = Some(next);
        Ok(true)
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    // The service can write to the folder.
    match open_plain(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok(one.dev() == other.dev() && one.ino() == other.ino())
}

fn is_newer(one: &File, other: &File) -> io::Result<bool> {
    Ok(one.metadata()?.modified()? >= other.metadata()?.modified()?)
}

fn log_line(entry: Entry) -> LogLine {
    LogLine {
        message: entry.message,
        timestamp_ms: entry.timestamp_ms,
        stderr: entry.stream == Stream::Error,
    }
}

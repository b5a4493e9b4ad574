//! Lines that wait on the disk for the cloud: compressed segments, of which the oldest is deleted when there is no more
//! room. They survive restarts of the supervisor; a segment that was cut off by a kill is read as far as possible. All
//! functions block. Lines beyond the [`Budget`] are counted and left out.

mod budget;

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use budget::Budget;

/// The maximum size of a segment before packing, in bytes.
const SEGMENT: u64 = 256 << 10;
/// The file with the number of lost lines.
const LOST: &str = "lost";
/// Suffixes of the names of segments: `<number>-<lines>.gz`, and `<number>.open` for the one being written.
const CLOSED: &str = ".gz";
const OPEN: &str = ".open";

/// The waiting lines.
pub(super) struct Spool {
    folder: PathBuf,
    /// The maximum size of all segments, in bytes.
    limit: u64,
    closed: VecDeque<Segment>,
    open: Option<SpoolWriter>,
    next: u64,
    lost: u64,
    budget: Budget,
}

struct Segment {
    number: u64,
    lines: u64,
    bytes: u64,
}

struct SpoolWriter {
    number: u64,
    encoder: GzEncoder<File>,
    lines: u64,
    plain: u64,
}

impl Spool {
    /// Opens the segments in `folder`, which is created if it does not exist; keeps at most `limit` bytes.
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<Spool> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let mut spool = Spool {
            folder: folder.to_owned(),
            limit,
            closed: VecDeque::new(),
            open: None,
            next: 0,
            lost: 0,
            budget: Budget::whole(),
        };
        let lost = fs::read_to_string(folder.join(LOST)).ok();
        spool.lost = lost.and_then(|lost| lost.trim().parse().ok()).unwrap_or(0);
        let mut cut_off = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(number) = name.strip_suffix(OPEN).and_then(|name| name.parse().ok()) {
                cut_off.push(number);
            } else if let Some((number, lines)) = parts(&name) {
                spool.closed.push_back(Segment {
                    number,
                    lines,
                    bytes: entry.metadata()?.len(),
                });
            }
        }
        let segments = spool.closed.make_contiguous();
        segments.sort_by_key(|segment| segment.number);
        let numbers = segments.iter().map(|segment| segment.number);
        let last = numbers.chain(cut_off.iter().copied()).max();
        spool.next = last.map_or(0, |last| last + 1);
        for number in cut_off {
            spool.mend(number)?;
        }
        spool.make_room()?;
        Ok(spool)
    }

    /// Returns how many lines are lost and not reported yet.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Counts lost lines as reported.
    pub(super) fn count_reported(&mut self, lines: u64) {
        self.lost = self.lost.saturating_sub(lines);
        self.keep_lost();
    }

    /// Counts lines that were lost before they got here.
    pub(super) fn lose(&mut self, lines: u64) {
        if lines > 0 {
            self.lost = self.lost.saturating_add(lines);
            self.keep_lost();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.open.is_none()
    }

    /// Adds lines, each with its end. Lines that cannot be stored count as lost.
    pub(super) fn append(&mut self, lines: &[Vec<u8>]) {
        let mut lost = 0;
        for line in lines {
            if !self.budget.takes(line.len()) {
                lost += 1;
            } else if let Err(error) = self.write(line) {
                tracing::warn!(%error, "failed to store a log line for the cloud");
                lost += 1;
                // The segment is read as far as possible.
                self.close_after_failure();
            }
        }
        if let Some(open) = &mut self.open
            && let Err(error) = open.encoder.flush()
        {
            tracing::warn!(%error, "failed to store log lines for the cloud");
            self.close_after_failure();
        }
        self.lose(lost);
        if let Err(error) = self.make_room() {
            tracing::warn!(%error, "failed to make room for log lines that wait for the cloud");
        }
    }

    /// Returns the oldest lines, packed, with the number for [`Spool::forget`].
    pub(super) fn oldest(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        if self.closed.is_empty() {
            self.close()?;
        }
        while let Some(segment) = self.closed.front() {
            match fs::read(self.path_of(segment)) {
                Ok(packed) => return Ok(Some((segment.number, packed))),
                Err(error) => {
                    tracing::warn!(%error, "log lines that waited for the cloud cannot be read");
                    self.drop_oldest();
                }
            }
        }
        Ok(None)
    }

    /// Deletes a segment that the cloud has accepted, or will never accept: then its lines count as lost.
    pub(super) fn forget(&mut self, number: u64, accepted: bool) {
        let Some(segment) = self.closed.pop_front_if(|oldest| oldest.number == number) else {
            return;
        };
        self.remove(&segment);
        if !accepted {
            self.lose(segment.lines);
        }
    }

    /// Deletes all segments.
    pub(super) fn clear(&mut self) {
        if self.close().is_err() {
            self.close_after_failure();
        }
        while let Some(segment) = self.closed.pop_front() {
            self.remove(&segment);
        }
        self.count_reported(self.lost);
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let number = self.next;
                self.next += 1;
                let file = File::create(self.folder.join(format!("{number:016}{OPEN}")))?;
                self.open.insert(SpoolWriter {
                    number,
                    encoder: GzEncoder::new(file, Compression::default()),
                    lines: 0,
                    plain: 0,
                })
            }
        };
        open.encoder.write_all(line)?;
        open.lines += 1;
        open.plain += line.len() as u64;
        if open.plain >= SEGMENT {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let file = open.encoder.finish()?;
        let segment = Segment {
            number: open.number,
            lines: open.lines,
            bytes: file.metadata()?.len(),
        };
        let from = self.folder.join(format!("{:016}{OPEN}", segment.number));
        fs::rename(from, self.path_of(&segment))?;
        self.closed.push_back(segment);
        Ok(())
    }

    fn close_after_failure(&mut self) {
        let Some(open) = self.open.take() else { return };
        let (number, lines) = (open.number, open.lines);
        drop(open);
        match self.mend(number) {
            Ok(left) => self.lose(lines.saturating_sub(left)),
            Err(error) => {
                tracing::warn!(%error, "log lines that waited for the cloud are lost");
                self.lose(lines);
            }
        }
    }

    /// Turns a segment that was cut off into a complete one; returns its number of lines.
    fn mend(&mut self, number: u64) -> io::Result<u64> {
        let path = self.folder.join(format!("{number:016}{OPEN}"));
        let mut plain = Vec::new();
        let mut lines = 0;
        // Room for the longest possible last line, and a bit more.
        let decoder = GzDecoder::new(BufReader::new(File::open(&path)?)).take(2 * SEGMENT);
        let mut decoder = BufReader::new(decoder);
        loop {
            let before = plain.len();
            match decoder.read_until(b'\n', &mut plain) {
                Ok(1..) if plain.ends_with(b"\n") => lines += 1,
                _ => {
                    plain.truncate(before);
                    break;
                }
            }
        }
        if lines > 0 {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&plain)?;
            let packed = encoder.finish()?;
            let segment = Segment {
                number,
                lines,
                bytes: packed.len() as u64,
            };
            let beside = path.with_extension("new");
            fs::write(&beside, packed)?;
            fs::rename(beside, self.path_of(&segment))?;
            let place = self.closed.partition_point(|other| other.number < number);
            self.closed.insert(place, segment);
        }
        fs::remove_file(path)?;
        Ok(lines)
    }

    fn make_room(&mut self) -> io::Result<()> {
        let mut bytes: u64 = self.closed.iter().map(|segment| segment.bytes).sum();
        if let Some(open) = &self.open {
            bytes += open.encoder.get_ref().metadata()?.len();
        }
        while bytes > self.limit {
            let Some(oldest) = self.closed.front() else {
                return Ok(());
            };
            bytes = bytes.saturating_sub(oldest.bytes);
            self.drop_oldest();
        }
        Ok(())
    }

    fn drop_oldest(&mut self) {
        if let Some(segment) = self.closed.pop_front() {
            self.remove(&segment);
            self.lose(segment.lines);
        }
    }

    fn remove(&self, segment: &Segment) {
        if let Err(error) = fs::remove_file(self.path_of(segment)) {
            tracing::warn!(%error, "failed to remove log lines that waited for the cloud");
        }
    }

    fn path_of(&self, segment: &Segment) -> PathBuf {
        let name = format!("{:016}-{}{CLOSED}", segment.number, segment.lines);
        self.folder.join(name)
    }

    fn keep_lost(&self) {
        let beside = self.folder.join("lost.new");
        let written = fs::write(&beside, self.lost.to_string());
        let written = written.and_then(|()| fs::rename(&beside, self.folder.join(LOST)));
        if let Err(error) = written {
            tracing::warn!(%error, "failed to store how many log lines were lost");
        }
    }
}

/// Returns the number and the lines in the name of a closed segment.
fn parts(name: &str) -> Option<(u64, u64)> {
    let (number, lines) = name.strip_suffix(CLOSED)?.split_once('-')?;
    Some((number.parse().ok()?, lines.parse().ok()?))
}

#[cfg(test)]
mod tests;

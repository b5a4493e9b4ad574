//! The contents of a disk after its power was cut.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The number of bytes that a disk writes completely or not at all.
const SECTOR: usize = 512;

/// An operation on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Op {
    /// The file's name.
    pub(super) file: String,
    pub(super) change: Change,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// A new file is opened.
    Make,
    /// An existing file is opened.
    Open,
    Write {
        at: usize,
        bytes: Vec<u8>,
    },
    Truncate(usize),
    /// All previous operations on the file have reached the disk.
    Sync,
    Delete,
}

/// The contents of files, by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// What happens to data that has not reached the disk when the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// None of it is there.
    Lost,
    /// All of it is there, as if only the process was killed.
    Written,
    /// All of it except the second half of the last write.
    Torn,
    /// Each sector is decided separately, according to the number, and in any order.
    Scattered(u64),
}

/// Returns the contents of a disk after the `ops`, if it contained `before`.
pub(super) fn after(before: &Files, ops: &[Op], fate: Fate) -> Files {
    let mut disk: BTreeMap<&str, PendingFile> = BTreeMap::new();
    for (name, bytes) in before {
        disk.insert(name, PendingFile::synced(bytes));
    }
    for op in ops {
        match &op.change {
            Change::Open if disk.contains_key(op.file.as_str()) => {}
            Change::Open => open_unknown(&mut disk, &op.file),
            Change::Sync => disk.entry(&op.file).or_default().sync(),
            change => disk.entry(&op.file).or_default().pending.push(change),
        }
    }
    let mut writes = ops.iter().rev();
    let last = writes.find(|op| matches!(op.change, Change::Write { .. }));
    let left = disk.into_iter().filter_map(|(name, file)| {
        let has_last_write = last.is_some_and(|op| op.file == name);
        Some((name.to_owned(), file.left(fate, has_last_write)?))
    });
    left.collect()
}

/// Opens a file that SQLite finds and has not created: the store creates its new database as an empty file, and renames
/// it once it is complete and closed, after which it syncs the folder.
fn open_unknown<'a>(disk: &mut BTreeMap<&'a str, PendingFile<'a>>, name: &'a str) {
    let new = format!("{name}.new");
    let file = disk.remove(new.as_str());
    disk.insert(name, file.unwrap_or_else(|| PendingFile::synced(&[])));
}

#[derive(Default)]
struct PendingFile<'a> {
    /// The data that has reached the disk; `None` if the file itself has not.
    synced: Option<Vec<u8>>,
    pending: Vec<&'a Change>,
}

impl PendingFile<'_> {
    fn synced(bytes: &[u8]) -> Self {
        PendingFile {
            synced: Some(bytes.to_vec()),
            pending: Vec::new(),
        }
    }

    fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            apply(&mut self.synced, change);
        }
    }

    /// Returns the remaining contents; `None` if the file itself is not there.
    fn left(mut self, fate: Fate, has_last_write: bool) -> Option<Vec<u8>> {
        match fate {
            Fate::Lost => {}
            Fate::Written => self.sync(),
            Fate::Torn => {
                let torn = match self.pending.last().copied() {
                    Some(Change::Write { at, bytes }) if has_last_write => Some((*at, bytes)),
                    _ => None,
                };
                if torn.is_some() {
                    self.pending.pop();
                }
                self.sync();
                if let Some((at, bytes)) = torn {
                    let half = &bytes[..bytes.len() / 2];
                    write(self.synced.get_or_insert_default(), at, half);
                }
            }
            Fate::Scattered(seed) => self.scatter(seed),
        }
        self.synced
    }

    fn scatter(&mut self, mut seed: u64) {
        let mut flip = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seed >> 63 == 0
        };
        for change in std::mem::take(&mut self.pending) {
            let Change::Write { at, bytes } = change else {
                // A file system keeps the order of these operations.
                if !flip() {
                    return;
                }
                apply(&mut self.synced, change);
                continue;
            };
            let mut start = 0;
            while start < bytes.len() {
                // Sectors begin where the disk has them, not at the start of the write.
                let to_next = SECTOR - (at + start) % SECTOR;
                let end = bytes.len().min(start + to_next);
                // A missing file has no contents.
                if flip()
                    && let Some(file) = &mut self.synced
                {
                    write(file, at + start, &bytes[start..end]);
                }
                start = end;
            }
        }
    }
}

fn apply(file: &mut Option<Vec<u8>>, change: &Change) {
    match change {
        Change::Make => *file = Some(Vec::new()),
        Change::Delete => *file = None,
        Change::Write { at, bytes } => write(file.get_or_insert_default(), *at, bytes),
        Change::Truncate(length) => file.get_or_insert_default().resize(*length, 0),
        Change::Open | Change::Sync => {}
    }
}

/// A gap before it reads as zeros.
fn write(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[at..end].copy_from_slice(bytes);
}

/// Writes files into an empty folder.
pub(super) fn put(files: &Files, folder: &Path) {
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
    }
}

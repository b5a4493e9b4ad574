//! Failed compilations, stored next to the compiled files: a component on which the compiler works for minutes is not
//! compiled again at every start.
//!
//! A record is a file with the conditions of the failure, how long the record counts, and the reason.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::{CompileError, Limits};

/// The end of a record's name.
const SUFFIX: &str = ".failed";
/// How long a failure counts for which only the component is responsible.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// The same if the board may be partly responsible: a lack of time or memory.
const KEPT_WHERE_CHANCE: Duration = Duration::from_secs(3600);
/// The longest record, in bytes.
const LONGEST: usize = 8 << 10;

/// The conditions of a failure: under others, compiling is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conditions(String);

impl Conditions {
    /// Combines the present state of the compiler, the limits, what the component's owner has done to make it tried
    /// again, and whether the compiler must be confined.
    pub(crate) fn new(
        compiler: &Path,
        limits: &Limits,
        edition: &str,
        requires_confinement: bool,
    ) -> Conditions {
        let mut hasher = DefaultHasher::new();
        if let Ok(meta) = fs::metadata(compiler) {
            (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()).hash(&mut hasher);
        }
        let Limits {
            wasm,
            output,
            memory,
            cpu,
            idle,
            wall,
            at_once: _,
            folder: _,
        } = limits;
        (wasm, output, memory, cpu, idle, wall, edition).hash(&mut hasher);
        requires_confinement.hash(&mut hasher);
        Conditions(format!("{:016x}", hasher.finish()))
    }
}

/// An earlier failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PastFailure {
    pub(crate) reason: String,
    pub(crate) again_in: Duration,
}

/// Returns how long `error` counts; `None` if it does not depend on the component.
pub(crate) fn kept_for(error: &CompileError) -> Option<Duration> {
    // SIGKILL: the kernel ran out of memory, and killed what it can do without.
    const KILL: i32 = 9;
    match error {
        CompileError::Killed { signal: KILL, .. }
        | CompileError::TimedOut { .. }
        | CompileError::Stuck { .. } => Some(KEPT_WHERE_CHANCE),
        CompileError::Killed { .. }
        | CompileError::Refused { .. }
        | CompileError::OutputTooLarge { .. } => Some(KEPT),
        _ => None,
    }
}

/// Records that compiling under `stem` failed. If the record cannot be written, compiling is tried again.
pub(crate) fn note(folder: &Path, stem: &str, conditions: &Conditions, error: &CompileError) {
    let Some(lifetime) = kept_for(error) else {
        return;
    };
    remove_old(folder);
    let mut text = format!("{}\n{}\n{error}", conditions.0, lifetime.as_secs());
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
    }
    let _ = fs::write(path(folder, stem), text);
}

/// Returns the failure recorded under `stem`, if compiling would fail again.
pub(crate) fn recall(folder: &Path, stem: &str, conditions: &Conditions) -> Option<PastFailure> {
    let path = path(folder, stem);
    let text = fs::read_to_string(&path).ok()?;
    let mut parts = text.splitn(3, '\n');
    let (under, lifetime, reason) = (parts.next()?, parts.next()?, parts.next()?);
    let again_in = Duration::from_secs(lifetime.parse().ok()?).checked_sub(age(&path))?;
    (under == conditions.0 && !again_in.is_zero()).then(|| PastFailure {
        reason: reason.to_owned(),
        again_in,
    })
}

/// Returns the age of the file. A file from the future counts as new: the time of a board without a clock is in the
/// past after each start.
fn age(path: &Path) -> Duration {
    let written = fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let age = written.and_then(|written| SystemTime::now().duration_since(written).ok());
    age.unwrap_or_default()
}

fn path(folder: &Path, stem: &str) -> PathBuf {
    folder.join(format!("{stem}{SUFFIX}"))
}

/// Removes records that no longer count.
fn remove_old(folder: &Path) {
    let listing = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in listing {
        let (name, path) = (entry.file_name(), entry.path());
        if name.to_string_lossy().ends_with(SUFFIX) && age(&path) > KEPT {
            let _ = fs::remove_file(path);
        }
    }
}

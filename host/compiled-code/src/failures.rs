//! What did not compile, kept beside what did: a component on which the compiler works for minutes is not given to it
//! again at every start.
//!
//! A record is a file: under which conditions it failed, for how long that is believed, and why.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::{CompileError, Limits};

/// What a record's name ends in.
const SUFFIX: &str = ".failed";
/// For how long a failure is believed that the component alone has to answer for.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// The same where the board may have had a part in it: no time, or no memory.
const KEPT_WHERE_CHANCE: Duration = Duration::from_secs(3600);
/// The longest record, in bytes.
const LONGEST: usize = 8 << 10;

/// Under which conditions something failed: under others it is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conditions(String);

impl Conditions {
    /// The compiler as it is now, the limits, what the component's owner has done to have it tried again, and whether
    /// the compiler has to be confined.
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
            wall,
            at_once: _,
            folder: _,
        } = limits;
        (wasm, output, memory, cpu, wall, edition).hash(&mut hasher);
        requires_confinement.hash(&mut hasher);
        Conditions(format!("{:016x}", hasher.finish()))
    }
}

/// A failure of before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PastFailure {
    pub(crate) reason: String,
    pub(crate) again_in: Duration,
}

/// For how long `error` is believed; `None` where it says nothing of the component.
pub(crate) fn kept_for(error: &CompileError) -> Option<Duration> {
    // SIGKILL: the kernel had no memory left, and took what it can do without.
    const KILL: i32 = 9;
    match error {
        CompileError::Killed { signal: KILL, .. } | CompileError::TimedOut { .. } => {
            Some(KEPT_WHERE_CHANCE)
        }
        CompileError::Killed { .. }
        | CompileError::Refused { .. }
        | CompileError::OutputTooLarge { .. } => Some(KEPT),
        _ => None,
    }
}

/// Notes that what is known as `stem` failed. Where that cannot be written, it is tried again.
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

/// The failure of what is known as `stem`, where it would fail again.
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

/// How old the file is. One from the future is new: a board without a clock begins in the past at each start.
fn age(path: &Path) -> Duration {
    let written = fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let age = written.and_then(|written| SystemTime::now().duration_since(written).ok());
    age.unwrap_or_default()
}

fn path(folder: &Path, stem: &str) -> PathBuf {
    folder.join(format!("{stem}{SUFFIX}"))
}

/// Removes what nobody believes any more.
fn remove_old(folder: &Path) {
    let listing = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in listing {
        let (name, path) = (entry.file_name(), entry.path());
        if name.to_string_lossy().ends_with(SUFFIX) && age(&path) > KEPT {
            let _ = fs::remove_file(path);
        }
    }
}

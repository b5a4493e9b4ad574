//! The files that a process can reach by a path, limited by Landlock.
//!
//! Files that are already open stay usable, whatever they are. Owners and modes apply in addition.

use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};

/// The oldest useful Landlock, of Linux 5.19: the previous one refuses to move any file from one folder to another.
const OLDEST: ABI = ABI::V2;
/// The newest version whose accesses are known here; an older kernel enforces those that it knows.
const NEWEST: ABI = ABI::V6;

/// Files and folders, each with all its contents. Missing ones are skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileAccess {
    /// Paths for reading.
    pub read: Vec<PathBuf>,
    /// Paths for reading, writing, creating and removing: files, folders and links, but no devices, sockets or pipes.
    pub write: Vec<PathBuf>,
}

/// How much of it the kernel supports.
pub(crate) enum Enforcement {
    Whole,
    /// Not all of it; the text says what the kernel lacks.
    Partial(String),
}

impl FileAccess {
    pub(crate) fn enforce(&self) -> Result<Enforcement, String> {
        let status = self.restrict().map_err(|error| match error {
            RulesetError::HandleAccesses(_) => {
                "the kernel has no Landlock, or an older version than that of Linux 5.19".to_owned()
            }
            error => format!("Landlock failed: {error}"),
        })?;
        match status.ruleset {
            RulesetStatus::FullyEnforced => Ok(Enforcement::Whole),
            RulesetStatus::PartiallyEnforced => Ok(Enforcement::Partial(format!(
                "Landlock restricts files, but not with everything in version {}: {:?}",
                NEWEST as i32, status.landlock
            ))),
            RulesetStatus::NotEnforced => Err("the kernel has no Landlock".to_owned()),
        }
    }

    fn restrict(&self) -> Result<RestrictionStatus, RulesetError> {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(OLDEST))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            // Signals to processes outside, and abstract sockets that others have bound.
            .scope(Scope::from_all(NEWEST))?
            .create()?
            .add_rules(path_beneath_rules(&self.read, reading()))?
            .add_rules(path_beneath_rules(&self.write, writing()))?
            .restrict_self()
    }
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir
}

fn writing() -> BitFlags<AccessFs> {
    reading()
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSym
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer
}

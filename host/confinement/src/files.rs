//! The files that a process reaches by a path, by Landlock.
//!
//! What is open already stays open, whatever it is. Owners and modes hold beside it.

use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};

/// The oldest Landlock that is any use here, of Linux 5.19: the one before refuses every renaming from one folder into
/// another.
const OLDEST: ABI = ABI::V2;
/// The newest whose accesses are known here; an older kernel enforces what it has of them.
const NEWEST: ABI = ABI::V6;

/// Files and folders, each with all that is in it. What is not there is passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileAccess {
    /// To be read.
    pub read: Vec<PathBuf>,
    /// To be read, written, made and removed: files, folders and links, but no devices, sockets or pipes.
    pub write: Vec<PathBuf>,
}

/// How much of it the kernel has.
pub(crate) enum Enforcement {
    Whole,
    /// What it lacks.
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
            // Signals to processes outside, and sockets of the abstract namespace that others have bound.
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

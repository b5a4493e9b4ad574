//! Why a device does not take a target.

use std::collections::BTreeMap;
use std::fmt;

use super::TargetErrors;
use crate::{AppUuid, Commit};

/// Why a target was not taken; then nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum SetTargetError {
    /// The device is not in local mode.
    #[error("Target state can only set when device is in local mode")]
    NotLocalMode,
    /// It ends local mode, and there is no cloud whose targets would be followed then.
    #[error(
        "`SUPERVISOR_LOCAL_MODE` cannot be off here: the device has no cloud whose targets it would follow instead"
    )]
    NoCloud,
    /// The target is not valid; all problems, one a line.
    #[error(transparent)]
    Invalid(TargetErrors),
    /// It is the cloud's, and not what the device's owner has signed.
    #[error("the target is not what the device's owner has signed: {0}")]
    NotSigned(RefusedTarget),
    /// It is a local one, and the device's owner wants targets signed.
    #[error("{0}")]
    LocalNotSigned(String),
    /// It could not be stored, or a service's key could not be had.
    #[error("failed to store the target state: {0}")]
    Store(String),
}

/// A target that is not what the device's owner has signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedTarget {
    /// Why, a sentence each.
    pub reasons: Vec<String>,
    /// The releases that it has.
    pub releases: BTreeMap<AppUuid, Commit>,
}

impl fmt::Display for RefusedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reasons.join("; "))
    }
}

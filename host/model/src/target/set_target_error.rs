//! Reasons why a device refuses a target.

use std::collections::BTreeMap;
use std::fmt;

use super::TargetErrors;
use crate::{AppUuid, Commit};

/// The reason why a target was refused; in that case nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum SetTargetError {
    /// The device is not in local mode.
    #[error("Target state can only set when device is in local mode")]
    NotLocalMode,
    /// The target ends local mode, but there is no cloud whose targets could be followed instead.
    #[error(
        "`SUPERVISOR_LOCAL_MODE` cannot be off here: the device has no cloud whose targets it would follow instead"
    )]
    NoCloud,
    /// The target is not valid; all problems, one a line.
    #[error(transparent)]
    Invalid(TargetErrors),
    /// The cloud's target is not what the device's owner has signed.
    #[error("the target is not what the device's owner has signed: {0}")]
    NotSigned(RefusedTarget),
    /// The target is local, and the device's owner requires signed targets.
    #[error("{0}")]
    LocalNotSigned(String),
    /// The target could not be stored, or a service's key could not be obtained.
    #[error("failed to store the target state: {0}")]
    Store(String),
}

/// A target that is not what the device's owner has signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedTarget {
    /// The reasons, a sentence each.
    pub reasons: Vec<String>,
    /// The releases in the target.
    pub releases: BTreeMap<AppUuid, Commit>,
}

impl fmt::Display for RefusedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reasons.join("; "))
    }
}

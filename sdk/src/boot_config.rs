//! The action behind the variables `HOST_*` of a device's target state: the boot configuration of a family
//! of boards.
//!
//! **To provide it**: a type that implements [`Provider`], named at `boot_config` in [`crate::plugin!`], and
//! the `boards` that it is for. The host calls it when the target changes and after a start: [`compare`] first,
//! and [`set`] where that finds a difference; then it reboots the device, once the update locks of all apps
//! allow it. Each call runs in a fresh instance, and ends what it has begun.
//!
//! [`compare`]: Provider::compare
//! [`set`]: Provider::set

use std::fmt::Display;

use crate::bindings::boot::exports::platform::supervisor::boot_config as wit;

#[doc(hidden)]
pub mod provide;

/// What a plugin does that provides the action.
pub trait Provider {
    /// The settings that the next boot will have, as far as they hold for every board of the kind.
    ///
    /// # Errors
    /// What could not be read, for people.
    fn get() -> impl Future<Output = Result<Vec<Setting>, String>>;

    /// Compares, and changes nothing.
    ///
    /// # Errors
    /// What could not be read, for people.
    fn compare(wanted: Vec<Setting>) -> impl Future<Output = Result<Comparison, String>>;

    /// Writes what differs, all of it or nothing, with a copy of what was before. Writes nothing where the
    /// comparison refuses a setting. Answers the comparison of before.
    ///
    /// # Errors
    /// What could not be read or written, for people.
    fn set(wanted: Vec<Setting>) -> impl Future<Output = Result<Comparison, String>>;
}

/// A variable of the target state without the cloud's prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Such as `HOST_CONFIG_gpu_mem`.
    pub name: String,
    /// As the target has it.
    pub value: String,
}

impl Setting {
    /// The setting `name`.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}

/// A setting that cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which.
    pub name: String,
    /// What is wrong with it, without its name.
    pub reason: String,
}

impl Refusal {
    /// Of the setting `name`.
    pub fn new(name: impl Into<String>, reason: impl Display) -> Self {
        Self {
            name: name.into(),
            reason: reason.to_string(),
        }
    }
}

/// How the configuration stands to what is wanted of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// The settings that differ, by name; none where all is as wanted.
    pub changes: Vec<String>,
    /// Settings that cannot be written. While there is one, nothing is.
    pub refused: Vec<Refusal>,
    /// Settings that mean nothing on this board.
    pub foreign: Vec<String>,
    /// The changes take effect with the next boot.
    pub needs_reboot: bool,
}

impl From<wit::Setting> for Setting {
    fn from(wit::Setting { name, value }: wit::Setting) -> Self {
        Self { name, value }
    }
}

impl From<Setting> for wit::Setting {
    fn from(Setting { name, value }: Setting) -> Self {
        Self { name, value }
    }
}

impl From<Comparison> for wit::Comparison {
    fn from(comparison: Comparison) -> Self {
        let refused = comparison.refused.into_iter();
        Self {
            changes: comparison.changes,
            refused: refused
                .map(|Refusal { name, reason }| wit::Refusal { name, reason })
                .collect(),
            foreign: comparison.foreign,
            needs_reboot: comparison.needs_reboot,
        }
    }
}

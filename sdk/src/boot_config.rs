//! The action behind the variables `HOST_*` of a device's target state: the boot configuration of a family of
//! boards.
//!
//! **To provide it**: a type that implements [`Provider`], named at `boot_config` in [`crate::plugin!`], and the
//! `boards` that it is for. The host calls it when the target changes and after a start: [`compare`] first, and
//! [`set`] if that finds a difference; then it reboots the device, once the update locks of all apps allow it. Each
//! call runs in a fresh instance, and runs to its end.
//!
//! [`compare`]: Provider::compare
//! [`set`]: Provider::set

use std::fmt::Display;

use crate::bindings::boot::exports::platform::supervisor::boot_config as wit;

#[doc(hidden)]
pub mod provide;

/// What a plugin implements to provide the action.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not provide the action `boot-config`",
    note = "implement `supervisor_sdk::boot_config::Provider` for `{Self}`"
)]
pub trait Provider {
    /// Returns the settings of the next boot, restricted to those that apply to all boards of the kind.
    ///
    /// # Errors
    /// If the configuration cannot be read; the text is for people.
    fn get() -> impl Future<Output = Result<Vec<Setting>, String>>;

    /// Compares the configuration with these settings, without changing anything.
    ///
    /// # Errors
    /// If the configuration cannot be read; the text is for people.
    fn compare(target: Vec<Setting>) -> impl Future<Output = Result<Comparison, String>>;

    /// Writes the settings that differ, all of them or none, and keeps a copy of the previous configuration. Writes
    /// nothing if the comparison refuses a setting. Returns the comparison from before the change.
    ///
    /// # Errors
    /// If the configuration cannot be read or written; the text is for people.
    fn set(target: Vec<Setting>) -> impl Future<Output = Result<Comparison, String>>;
}

/// A variable of the target state, without the cloud's prefix in its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The variable's name without the prefix, such as `HOST_CONFIG_gpu_mem`.
    pub name: String,
    /// The value in the target.
    pub value: String,
}

impl Setting {
    /// Creates the setting `name`.
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
    /// The setting's name.
    pub name: String,
    /// What is wrong with it, without its name.
    pub reason: String,
}

impl Refusal {
    /// Creates the refusal of the setting `name`.
    pub fn new(name: impl Into<String>, reason: impl Display) -> Self {
        Self {
            name: name.into(),
            reason: reason.to_string(),
        }
    }
}

/// The differences between the configuration and the target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// The names of the settings that differ; empty if the configuration matches.
    pub changes: Vec<String>,
    /// The settings that cannot be written. If there is one, nothing is written.
    pub refused: Vec<Refusal>,
    /// The settings that mean nothing on this board.
    pub foreign: Vec<String>,
    /// Whether the changes take effect only at the next boot.
    pub needs_reboot: bool,
}

mirror! { struct wit::Setting, Setting { name, value } }
mirror! { one way struct Refusal, wit::Refusal { name, reason } }

impl From<Comparison> for wit::Comparison {
    fn from(comparison: Comparison) -> Self {
        Self {
            changes: comparison.changes,
            refused: comparison.refused.into_iter().map(Into::into).collect(),
            foreign: comparison.foreign,
            needs_reboot: comparison.needs_reboot,
        }
    }
}

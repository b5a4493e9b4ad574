//! What components are compiled for.

use std::fmt;
use std::str::FromStr;

/// What a component is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// A plugin: many small instances in one process, each for one call.
    Plugin,
    /// A wasm service: one instance in a process of its own.
    Service,
}

impl Profile {
    /// The name, as in `supervisor-compile --profile`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Profile::Plugin => "plugin",
            Profile::Service => "service",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Text that names no [`Profile`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile `{0}`, expected `plugin` or `service`")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;
    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        match text {
            "plugin" => Ok(Profile::Plugin),
            "service" => Ok(Profile::Service),
            _ => Err(UnknownProfile(text.to_owned())),
        }
    }
}

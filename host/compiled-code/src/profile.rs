//! What components are compiled for.

use strum::{Display, EnumString, IntoStaticStr};

/// What a component is compiled for, named as in `supervisor-compile --profile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
#[strum(
    serialize_all = "lowercase",
    parse_err_ty = UnknownProfile,
    parse_err_fn = unknown_profile
)]
pub enum Profile {
    /// A plugin: many small instances in one process, each for one call.
    Plugin,
    /// A wasm service: one instance in its own process.
    Service,
}

/// A text that is not the name of a [`Profile`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile `{0}`, expected `plugin` or `service`")]
pub struct UnknownProfile(String);

fn unknown_profile(text: &str) -> UnknownProfile {
    UnknownProfile(text.to_owned())
}

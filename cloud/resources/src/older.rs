//! What the older versions have otherwise (docs/spec/cloud.md#older-versions), each against the version after it.

mod v5;
mod v6;

pub(crate) use v5::V5;
pub(crate) use v6::V6;

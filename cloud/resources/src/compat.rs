//! The differences of each older version from the next one (docs/spec/cloud.md#older-versions).

mod v5;
mod v6;

pub(crate) use v5::V5;
pub(crate) use v6::V6;

//! The declarations fit together, mean what they should, and match the documentation.
#![allow(
    clippy::expect_used,
    reason = "a test that finds no such thing is to fail"
)]

mod access;
mod documented;
mod metadata;
mod model;
mod names;
mod release_version;
mod values;
mod versions;

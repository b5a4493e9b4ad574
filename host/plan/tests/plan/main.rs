//! Tests of the planner: pictures of its plans, and properties of them.

#![expect(
    clippy::unwrap_used,
    reason = "a builder that fails is a test that fails"
)]

mod build;
mod fuzz;
mod pictures;
mod properties;
mod world;

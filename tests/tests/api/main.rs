//! The API as a whole, operation by operation: what its description lists, each way to make a wrong request, and random
//! requests.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod bad_input;
mod description;
mod documented;
mod fixture;
mod fuzz;
mod random;

//! What the engine of WebAssembly services and the process of each service know alike, and nothing of how components
//! are run.
//!
//! The engine, in the supervisor, writes a [`record::Launch`] into the container's folder and starts the program
//! `supervisor-wasm`, which is in another crate. What the two then know of each other are the files of that folder
//! ([`record`], [`log_file`]), which process it is ([`process`]), and one line ([`StartOutcome`]).

#![warn(missing_docs)]

mod backoff;
mod health;
pub mod log_file;
pub mod process;
pub mod record;
mod start_outcome;

pub use backoff::{Backoff, starts_again};
pub use health::{HealthCheck, HealthProbe, HealthStreak};
pub use start_outcome::StartOutcome;

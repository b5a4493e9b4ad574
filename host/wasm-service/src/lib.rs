//! Definitions that the engine of WebAssembly services shares with the process of each service. Nothing here runs
//! components.
//!
//! The engine, in the supervisor, writes a [`record::Launch`] into the container's folder and starts the program
//! `supervisor-wasm`, which is in another crate. From then on the two exchange data only through the files of that
//! folder ([`record`], [`log_file`]), the process's identity ([`process`]), and one line ([`StartOutcome`]).

#![warn(missing_docs)]

mod backoff;
mod health;
pub mod log_file;
pub mod process;
pub mod record;
mod start_outcome;
mod supervisor_folder;

pub use backoff::{RestartBackoff, starts_again};
pub use health::{HealthCheck, HealthProbe, HealthStreak};
pub use start_outcome::StartOutcome;
pub use supervisor_folder::SupervisorFolder;

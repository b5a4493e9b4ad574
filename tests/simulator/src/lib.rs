//! A fleet of simulated devices at a real cloud. Each has the link of a device (`cloud-link`: registration, poll,
//! report, tunnel) but does nothing else: it counts its target as applied, and reports that.
//!
//! ```text
//! story           the course of events, and their measurement
//! device          one simulated device, and the start of all of them
//! device_context  what devices share, and what they have done
//! admin           creates the fleet and its releases, as a person would
//! cloud           the simulation's own cloud, if no other is given
//! outcome         the result, as a table or as JSON
//! ```

#![warn(missing_docs)]

mod admin;
mod cloud;
mod device;
mod device_context;
mod outcome;
mod process;
mod story;
mod target;
mod troubles;

pub use admin::{Admin, Fleet};
pub use cloud::{Cloud, Setup};
pub use outcome::{Outcome, Phase, Spread};
pub use process::{Usage, allow_open_files, usage};
pub use story::{At, Plan, run};
pub use troubles::{Trouble, Troubles};

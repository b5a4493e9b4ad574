//! A fleet of simulated devices at a real cloud. Each is the link that a device has (`cloud-link`: registration,
//! poll, report, tunnel) with nothing behind it: what its target says it takes for done, and says so.
//!
//! ```text
//! story    what happens, in order, and what is measured of it
//! devices  the simulated devices together: starting them, what they did
//! device   one of them
//! admin    makes the fleet and its releases, as a person would
//! cloud    a cloud of the simulation's own, where it is given none
//! outcome  what it came to, as a table or as JSON
//! ```

#![warn(missing_docs)]

mod admin;
mod cloud;
mod device;
mod devices;
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

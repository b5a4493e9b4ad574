//! The API from its clients' point of view.

mod actions;
mod events;
mod locks;
mod metrics;
mod plan;
mod plugins;
mod router;
mod sockets;

use std::time::Duration;

/// How long anything may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(240);

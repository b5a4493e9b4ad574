//! Turns a target state into the configuration that engines run: compose fields are read with their defaults, names,
//! labels and variables of the supervisor are added, and unsupported fields cause warnings.
//!
//! [`resolve`] is the entry point, called by the reconciler for each new target and each change of [`DeviceFacts`]. It
//! touches no engine and no file; its only request is for the services' API keys. Leniency follows
//! docs/spec/device.md#compose-fields: a field without meaning here is ignored with a warning, an unreadable value is
//! replaced by the default with a warning, and an app is refused only if a service would become something other than
//! requested (a port that does not parse).
//!
//! ```text
//! TargetState ─ resolve ─┬─ service ─ ports, mounts, durations, sizes, lists …  one file per topic
//!                        │     └─ environment, labels, features                 additions of the supervisor
//!                        ├─ networks, volumes
//!                        └─ digest                                              compared with what runs
//! ```

mod api_keys;
mod attachments;
mod dependencies;
mod digest;
mod environment;
mod facts;
mod features;
mod findings;
mod healthcheck;
mod labels;
mod limits;
mod mounts;
mod networks;
mod ports;
mod quantities;
mod reader;
mod resolve;
mod service;
mod service_context;
mod volumes;

pub use api_keys::{ApiKeys, KeyError};
pub use facts::{CloudAccess, DeviceFacts, HostFacts};
pub use features::EXTRA_FIRMWARE;
pub use labels::HANDOVER_TIMEOUT;
pub use networks::{SUPERVISOR_GATEWAY, SUPERVISOR_SUBNET, is_of_supervisor_network};
pub use resolve::{ResolvedTarget, is_not_ours, resolve};

#[cfg(test)]
mod tests;

//! Values that the supervisor, its plugins and their tests pass to each other, as plain data.
//!
//! The supervisor's messages, the SDK and `supervisor-testing` take these types from here, so that each is declared and
//! described once. Authors of plugins build this crate too: it contains nothing but the data.

#![warn(missing_docs)]

pub mod bounded_list;
mod events;
mod proxy;
mod system;

pub use events::{
    GateVerdict, InstalledRelease, PendingUpdate, PluginEvent, Postponement, ServiceChange,
    TargetProgress,
};
pub use proxy::{DnsRemote, Proxy, ProxyCall, ProxyError, ProxyKind, ProxyState, Redirection};
pub use system::{BootComparison, BootSetting, OsCall, OsStatus};

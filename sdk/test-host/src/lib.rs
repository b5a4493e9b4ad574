//! The supervisor's own plugin runtime with a fake device, for trying plugins: used by the tool `supervisor-plugin`,
//! and by a few tests of plugins.
//!
//! [`supervisor_testing::Host`] describes what the device has, [`EmbeddedHost::start`] loads the components as a device
//! would (manifest, grants, limits, compilation), and [`RunningHost`] calls them. It replaces the parts of the supervisor
//! that capabilities use: a device, a store, LEDs and a host name in a temporary folder, and update locks that somebody
//! may hold. It does not serve the core endpoints, and does not check keys.
//!
//! It needs the supervisor's compiler: `SUPERVISOR_DIST` names a layout that `cargo xtask build` created or that was
//! released; without it, one in a `target/dist` in a parent folder is used.
//!
//! Functions without a `Result` fail by panicking, as tests do. Most tests start the described device as an author of
//! plugins does, with [`supervisor_testing::Host::start`], which reaches a host like this in another process. This crate
//! is for the tool itself, and for tests that need the host in their own process: to play the cloud, or to set the clock.

mod action_observer;
mod call_filter;
mod fake_cloud;
mod fakes;
mod host;
mod running;
mod wrapped_runtime;

pub use action_observer::{ActionEnd, ActionObserver, EndedAction};
pub use call_filter::{AnswerChange, CallFilter};
pub use host::EmbeddedHost;
pub use os::UnitName;
/// The messages between plugins and their host, for a [`CallFilter`].
pub use plugin_protocol as protocol;
pub use plugins::{
    BootComparison, BootConfigError, CallerScope, Cloud, CloudRefusal, EventCall, GateVerdict,
    InstalledRelease, OsCall, OsStatus, OsUpdateError, PendingUpdate, PluginEvent,
    PluginMetricValue, Postponement, ServiceChange, TargetProgress,
};
pub use running::RunningHost;
pub use supervisor_testing::{
    Answer, BuiltPlugin, Host, build, try_build_plugin_without_variables,
};

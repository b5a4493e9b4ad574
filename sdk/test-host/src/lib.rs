//! The supervisor's own plugin runtime around a device of fakes, for whoever tries plugins: the tool
//! `supervisor-plugin`, and tests of the plugins that the supervisor ships with.
//!
//! [`Host::new`] collects what the device has, [`Host::start`] loads the components as a device would (manifest, grants,
//! limits, compilation), and [`RunningHost`] calls them. It stands in for the parts of the supervisor that capabilities
//! reach: a device, a store, LEDs and a host name in a temporary folder, and update locks that somebody may hold. It does
//! not serve the core endpoints and checks no keys.
//!
//! It needs the supervisor's compiler: `SUPERVISOR_DIST` names a layout that `cargo xtask build` made or
//! that was released; without it, one in a `target/dist` above is taken.
//!
//! Functions without a `Result` fail by panicking, as tests do. `supervisor-testing` is the same for authors of plugins,
//! without having to build this.

mod fakes;
mod host;
mod running;

pub use host::Host;
pub use plugins::{
    BootComparison, BootConfigError, CallerScope, Cloud, CloudRefusal, GateVerdict, Identity,
    InstalledRelease, OsCall, OsStatus, OsUpdateError, PendingUpdate, PluginEvent, Postponement,
    ServiceChange, TargetProgress,
};
pub use running::{DeviceFolder, RunningHost};
pub use supervisor_testing::{Answer, assert_described, build, schemas, try_build};

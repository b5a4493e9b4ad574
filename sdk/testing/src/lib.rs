//! Tests a plugin in the supervisor's own plugin runtime, with no socket, device or policy file of yours.
//!
//! A plugin's tests call this: [`Host::new`] collects what the test needs, [`Host::start`] loads the
//! component as a device would (manifest, grants, limits, compilation), and [`RunningHost`] calls it. It
//! stands in for the parts of the supervisor that capabilities reach: a device of the test's, a store,
//! LEDs and a host name in a temporary folder, and update locks that the test may hold. It does not serve the core endpoints and checks no keys.
//!
//! It needs the supervisor's compiler: `SUPERVISOR_DIST` names a layout that `cargo xtask build` made or
//! that was released; without it, one in a `target/dist` above is taken.
//!
//! Functions here fail by panicking, as tests do.

mod answer;
mod build;
mod description;
mod fakes;
mod host;
mod running;

pub use answer::Answer;
pub use build::{build, try_build};
pub use description::{assert_described, schemas};
pub use host::Host;
pub use plugins::{
    BootComparison, BootConfigError, CallerScope, Cloud, CloudRefusal, GateVerdict, Identity,
    InstalledRelease, PendingUpdate, PluginEvent, Postponement, ServiceChange, TargetProgress,
};
pub use running::{DeviceFolder, RunningHost};

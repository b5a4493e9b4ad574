//! Decides what the device should do next.
//!
//! [`plan`] is called once a pass by the reconciler with what it has observed ([`CurrentState`]) and
//! what should be ([`model::DesiredState`]), and answers the [`Plan`]: the steps that can be taken
//! now, all of them side by side, and what cannot be done yet and why. Whatever must come after
//! another step comes in a later plan, made from what was observed then; so a plan is never stored,
//! and a kill at any moment costs one pass.
//!
//! ```text
//! plan ── app ──┬─ placement   which engine each service runs on, and whether its image is there
//!               ├─ services    keep, rename, replace or remove each container
//!               ├─ components  volumes and networks
//!               └─ strategy    when an old container may go
//!      ├─ images               pulls, and removal of what nothing uses
//!      ├─ host                 its configuration, and a reboot where something waits for one
//!      └─ os                   another version of its operating system, and the way back from one
//! ```
//!
//! [`forecast()`] shows what the plans to come would do, by doing it to a model; nothing follows it.
//!
//! It does no I/O, reads no clock and knows no engine: whatever it depends on is in its arguments. A
//! step that disturbs a running service is a [`LockedStep`], which exists only inside
//! [`Step::UnderLocks`]: a plan that stops a service without its locks does not type-check.

#![warn(missing_docs)]

mod app;
mod component;
mod components;
mod current;
mod forecast;
mod host;
mod images;
mod os;
mod placement;
mod plan;
mod replaced_keys;
mod services;
mod step;
mod stopping;
mod strategy;
mod subject;
mod waiting;

pub use component::{ComponentKind, DesiredComponent, has_component};
pub use current::{CurrentComponent, CurrentState, EngineHealth, Failure};
pub use forecast::{AnyStep, Forecast, ForecastStep, forecast, is_foreseen};
pub use host::{CurrentHost, MOST_REBOOTS};
pub use os::{CurrentOs, OsAttempt, OsPhase, OsStatus, OsVerdict};
pub use placement::{is_same_image, names};
pub use plan::{Plan, plan};
pub use replaced_keys::ReplacedKeys;
pub use step::{ContainerRef, ImageUser, LockedStep, LockedWork, ServiceWork, StartService, Step};
pub use subject::Subject;
pub use waiting::WaitingOn;

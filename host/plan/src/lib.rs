//! Decides what the device should do next.
//!
//! Once per pass, the reconciler calls [`plan`] with the state it has observed ([`CurrentState`]) and the desired state
//! ([`model::DesiredState`]). The result is the [`Plan`]: the steps that can be taken now, all in parallel, and what
//! cannot be done yet and why. Whatever must follow another step is left to a later plan, made from what is observed
//! then. So a plan is never stored, and a kill at any moment costs one pass.
//!
//! ```text
//! planner ─┬─ app_plan ──┬─ placement   the engine of each service, and whether its image is available
//!          │             ├─ services    keep, rename, replace or remove each container
//!          │             ├─ components  volumes and networks
//!          │             └─ strategy    when an old container may be removed
//!          ├─ images                    pulls, and removal of unused images
//!          ├─ host                      its configuration, and a reboot if something waits for one
//!          └─ os                        updates of its operating system, and roll-backs
//! ```
//!
//! [`forecast()`] shows what later plans would do, by applying them to a model; nothing acts on it.
//!
//! The crate does no I/O, reads no clock and knows no engine: everything it depends on is in its arguments. A step that
//! disturbs a running service is a [`LockedStep`], which exists only inside [`Step::UnderLocks`]: a plan that stops a
//! service without its locks does not type-check.

#![warn(missing_docs)]

mod app;
mod app_plan;
mod blocked_subject;
mod component;
mod component_state;
mod components;
mod current;
mod draft;
mod forecast;
mod host;
mod images;
mod os;
mod placement;
mod plan;
mod planner;
mod replaced_keys;
mod services;
mod step;
mod stopping;
mod strategy;
mod subject;

pub use blocked_subject::BlockedSubject;
pub use component::{ComponentKind, DesiredComponent, has_component};
pub use current::{
    CurrentComponent, CurrentHost, CurrentOs, CurrentState, EngineHealth, Failure, OsAttempt,
    OsPhase, OsStatus, OsVerdict,
};
pub use forecast::{AnyStep, Forecast, ForecastStep, forecast, is_foreseen};
pub use host::MOST_REBOOTS;
pub use placement::{is_same_image, names};
pub use plan::Plan;
pub use planner::plan;
pub use replaced_keys::ReplacedKeys;
pub use step::{ContainerRef, ImageUser, LockedStep, LockedWork, ServiceWork, StartService, Step};
pub use subject::Subject;

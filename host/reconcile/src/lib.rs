//! Brings the device to its target and keeps it there: observes the engines, asks [`plan`] for the next steps, takes
//! them, and publishes the resulting state.
//!
//! [`Reconciler::start`] is the entry point; the API holds the handle that it returns. Behind the handle, one task owns
//! all state. It never waits for an engine, so it always answers:
//!
//! ```text
//! commands (target, trigger) ─┐
//! engine events ──────────────┤             ┌─ observe: lists of all engines at once
//! finished steps ─────────────┼─► the loop ─┼─ plan (pure)
//! timers of back-offs ────────┘             ├─ apply: one task per step, bounded ─► engines, store, locks
//!                                           └─ publish: `watch` of the device's status; log hub
//! ```
//!
//! State that can be observed is not remembered. Other state (the target, whose images are whose, which containers the
//! supervisor stopped, the local-mode snapshot) is stored before the first step that depends on it, so a kill at any
//! moment costs one pass. The loop sleeps whenever there is nothing to do: the only timed passes are retries of failed
//! steps.
//!
//! It knows no endpoints, parses no requests, and leaves every decision to the plan that the plan can make.

#![warn(missing_docs)]

#[cfg(feature = "moments")]
mod abort;
mod actions;
mod apply;
mod backoff;
mod clock;
mod config;
mod counters;
mod definitions;
mod device_plan;
mod events;
mod extra_firmware;
#[cfg(test)]
mod fixtures;
mod health;
mod host;
mod local_mode;
mod locks;
mod logs;
mod messages;
mod moments;
mod observe;
mod os_update;
mod persistence;
mod progress;
mod reconciler;
mod release_trials;
mod service_states;
mod signing;
mod status;
mod status_events;
mod step_context;
mod step_span;
mod steps;
mod stored_state;
mod target;
mod targets;
mod task;
mod view;

#[cfg(feature = "moments")]
pub use abort::AbortAt;
pub use config::{EventSubscriber, Limits, ReconcilerConfig};
pub use host::{
    EffectiveSettings, Exposure, Host, HostComparison, InstalledRelease, OsAction, OsObservation,
    PendingUpdate, ReleaseVerdict, UpdatePostponement,
};
pub use locks::{AllLocks, LockError, LockPolicy, Locks, UpdateLocks};
pub use logs::LogSubscription;
pub use moments::Moments;
pub use plan::OsStatus;
pub use reconciler::{Reconciler, StartError};
pub use signing::{ReadTargetPolicy, SigningState};

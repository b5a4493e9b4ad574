//! The loop with an engine in memory: failures, restarts, locks and readers. The clock is paused, so back-offs cost no
//! time, and every wait that nothing would end fails at once.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that fails is a test that fails"
)]

mod actions;
mod cloud;
mod crashes;
mod device_plan;
mod engine;
mod events;
mod failures;
mod fake_host;
mod fake_os;
mod gates;
mod host;
mod keys;
mod local_mode;
mod locks;
mod logs;
mod os_update;
mod pending;
mod random_kills;
mod release_health;
mod rig;
mod strategies;
mod updates;
mod witness;

//! `wit/update-lock.wit`: the update locks of all apps.

use std::sync::Arc;

use wasmtime::component::{Accessor, Resource};

use crate::bindings::platform::supervisor::update_lock::{self, LockError};
use crate::config::{HeldLocks, LocksError};
use crate::guest::{Guest, ThisGuest};

/// The locks in the hands of a call; dropping it gives them back.
#[expect(
    unreachable_pub,
    reason = "generated code re-exports it within this crate"
)]
pub struct Lock(#[expect(dead_code, reason = "held for its drop")] HeldLocks);

impl update_lock::Host for &mut Guest {}

impl update_lock::HostLock for &mut Guest {
    fn drop(&mut self, lock: Resource<Lock>) -> wasmtime::Result<()> {
        self.table.delete(lock)?;
        Ok(())
    }
}

impl update_lock::HostLockWithStore<Guest> for ThisGuest {
    async fn acquire_all(
        accessor: &Accessor<Guest, Self>,
        force: bool,
    ) -> Result<Resource<Lock>, LockError> {
        let around = accessor.with(|mut access| Arc::clone(&access.get().around));
        let held = around.locks.acquire_all(force).await;
        let held = held.map_err(|error| match error {
            LocksError::Locked(who) => LockError::Locked(who),
            LocksError::Other(why) => LockError::Other(why),
        })?;
        let pushed = accessor.with(|mut access| access.get().table.push(Lock(held)));
        pushed.map_err(|_| LockError::Other("too many resources at a time".to_owned()))
    }
}

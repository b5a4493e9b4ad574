//! `wit/update-lock.wit`: the update locks of all apps.

use plugin_protocol::{Handle, LockAcquire, LocksError};
use wasmtime::component::{Accessor, Resource};

use crate::bindings::platform::supervisor::update_lock::{self, LockError};
use crate::guest::{Guest, ThisGuest, host};

/// The locks in the hands of a call: the host's handle of them.
#[expect(
    unreachable_pub,
    reason = "generated code re-exports it within this crate"
)]
pub struct Lock(Handle);

impl update_lock::Host for &mut Guest {}

impl update_lock::HostLock for &mut Guest {
    async fn drop(&mut self, lock: Resource<Lock>) -> wasmtime::Result<()> {
        let Lock(held) = self.table.delete(lock)?;
        self.host.release(held);
        Ok(())
    }
}

impl update_lock::HostLockWithStore<Guest> for ThisGuest {
    async fn acquire_all(
        accessor: &Accessor<Guest, Self>,
        force: bool,
    ) -> wasmtime::Result<Result<Resource<Lock>, LockError>> {
        let host = host(accessor);
        let held = match host.ask(LockAcquire { force }).await? {
            Ok(held) => held,
            Err(error) => return Ok(Err(error.into())),
        };
        let pushed = accessor.with(|mut access| access.get().table.push(Lock(held)));
        Ok(pushed.map_err(|_| {
            host.release(held);
            LockError::Other("too many resources at a time".to_owned())
        }))
    }
}

impl From<LocksError> for LockError {
    fn from(error: LocksError) -> LockError {
        match error {
            LocksError::Locked(who) => LockError::Locked(who),
            LocksError::Other(why) => LockError::Other(why),
        }
    }
}

//! `wit/update-lock.wit`: the update locks of all apps.

use plugin_protocol::{LockAcquire, LocksError};
use wasmtime::component::Resource;

use crate::bindings::Lock;
use crate::bindings::platform::supervisor::update_lock::{self, LockError};
use crate::guest::{Guest, GuestAccess, GuestData, host};
use crate::instance_host::Answer;

impl update_lock::Host for &mut Guest {}

// As in `serial.rs`: the generated traits are others for each resource, so each has its own `drop`.
impl update_lock::HostLock for &mut Guest {
    async fn drop(&mut self, lock: Resource<Lock>) -> wasmtime::Result<()> {
        let Lock(handle) = self.table.delete(lock)?;
        self.host.release(handle);
        Ok(())
    }
}

impl update_lock::HostLockWithStore<Guest> for GuestData {
    async fn acquire_all(access: &GuestAccess, force: bool) -> Answer<Resource<Lock>, LockError> {
        let host = host(access);
        let handle = match host.try_ask(LockAcquire { force }).await? {
            Ok(handle) => handle,
            Err(error) => return Ok(Err(error)),
        };
        let pushed = access.with(|mut access| access.get().table.push(Lock(handle)));
        Ok(pushed.map_err(|_| {
            host.release(handle);
            LockError::Other("too many resources at a time".to_owned())
        }))
    }
}

mirror! { one way enum LocksError, LockError { Locked(who), Other(why) } }

//! The update locks of all apps.

use std::sync::Arc;

use plugin_manifest::Capability;
use plugin_protocol::{Handle, LockAcquire, Provide};

use super::InstanceCall;
use crate::config::LocksError;
use crate::holdings::HeldResource;
use crate::holdings::update_locks::Lock;
use crate::refusal::Refusal;

impl InstanceCall<'_> {
    async fn acquire_locks(&self, force: bool) -> Result<Handle, LocksError> {
        let context = self.plugin;
        // Without the grant, the flag is ignored: locks that services hold are respected.
        let may_force = context.grants.grants.contains(&Capability::UpdateLockForce);
        if force && !may_force && context.may_log() {
            let plugin: &str = &context.name;
            tracing::warn!(
                plugin,
                "the plugin tried to override update locks without the grant `{}` in the policy; the supervisor respects them",
                Capability::UpdateLockForce
            );
        }
        let locks = context
            .services
            .locks
            .acquire_all(force && may_force)
            .await?;
        self.holdings
            .add(HeldResource::Locks(Lock::new(
                locks,
                Arc::clone(&context.name),
            )))
            .map_err(|_| LocksError::Other("too many resources at a time".to_owned()))
    }
}

impl Provide<LockAcquire, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        LockAcquire { force }: LockAcquire,
    ) -> Result<Result<Handle, LocksError>, Refusal> {
        Ok(self.acquire_locks(force).await)
    }
}

//! The running device, behind the interfaces of the API and the plugins: the reconciler's state,
//! with the facts of the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{Events, Facts};
use device_types::event::{Audience, PluginFault};
use device_types::{Confinement, DevicePlan, Event, LogEvent, ReconcilerStats};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use model::{
    Action, ActionError, AppId, Branding, ContainerId, DeviceStatus, DeviceUuid, LockRefusal,
    LockRequest, PowerAction, ServiceName, SetTargetError, UpdateLock, error_chain,
};
use plugins::CloudRefusal;
use reconcile::{LockError, Reconciler};
use serde_json::Value;
use store::{KeyOwner, Store};

use crate::cloud::Cloud;
use crate::facts::{Board, DeviceFacts, host_name};
use crate::firewall::FirewallState;
use crate::power::Power;
use crate::walls::Walls;

/// The name of a device that has none of its own (docs/spec/device.md#host-facts).
pub(crate) const UNNAMED: &str = "local";

/// The number of digits of its uuid by which people call a device.
const SHORT_UUID: usize = 7;

/// The device of this process.
pub(crate) struct RunningDevice {
    pub(crate) reconciler: Reconciler,
    pub(crate) facts: Arc<DeviceFacts>,
    pub(crate) board: Board,
    pub(crate) uuid: DeviceUuid,
    pub(crate) cloud: Cloud,
    pub(crate) branding: Branding,
    pub(crate) power: Power,
    pub(crate) events: Events,
    pub(crate) store: Store,
    pub(crate) firewall: FirewallState,
    pub(crate) walls: Walls,
    /// Whether the supervisor has not run in this boot before.
    pub(crate) is_first_start: bool,
}

impl api::Device for RunningDevice {
    fn status(&self) -> Arc<DeviceStatus> {
        self.reconciler.status()
    }

    fn facts(&self) -> Arc<Facts> {
        self.facts.now()
    }

    fn local_mode(&self) -> bool {
        self.reconciler.local_mode()
    }

    fn host_names(&self) -> Vec<String> {
        let uuid = self.uuid.as_str();
        // The names that clients use on its network.
        let short = uuid.get(..SHORT_UUID).unwrap_or(uuid);
        vec![
            host_name().to_ascii_lowercase(),
            uuid.to_owned(),
            short.to_owned(),
        ]
    }

    fn local_target(&self) -> Value {
        self.reconciler.local_target()
    }

    fn set_local_target(
        &self,
        target: Value,
        force: bool,
    ) -> BoxFuture<'_, Result<Vec<String>, SetTargetError>> {
        self.reconciler.set_local_target(target, force).boxed()
    }

    fn act(&self, action: Action) -> BoxFuture<'_, Result<(), ActionError>> {
        self.reconciler.act(action).boxed()
    }

    fn power(&self, action: PowerAction, force: bool) -> BoxFuture<'_, Result<(), ActionError>> {
        self.power.go_down(&self.reconciler, action, force).boxed()
    }

    fn clean_up_volumes(&self) -> BoxFuture<'_, Result<(), String>> {
        self.reconciler.clean_up_volumes().boxed()
    }

    fn environment<'a>(
        &'a self,
        container: &'a ContainerId,
    ) -> BoxFuture<'a, Result<BTreeMap<String, String>, String>> {
        self.reconciler.environment(container).boxed()
    }

    fn key_replaced(&self, owner: KeyOwner) -> BoxFuture<'_, ()> {
        async move {
            // The device's own key is not in any container.
            if let KeyOwner::Service { app, service } = owner {
                self.reconciler.key_replaced(app, service).await;
            }
        }
        .boxed()
    }

    fn update(&self, force: bool, cancel: bool) -> bool {
        self.cloud.update(&self.reconciler, force, cancel)
    }

    fn plan(&self) -> BoxFuture<'_, Result<DevicePlan, String>> {
        self.reconciler.plan().boxed()
    }

    fn update_locks(&self) -> BoxFuture<'_, Result<Vec<UpdateLock>, String>> {
        self.reconciler.update_locks().boxed()
    }

    fn lease_lock(&self, request: LockRequest) -> BoxFuture<'_, Result<UpdateLock, LockRefusal>> {
        self.reconciler.lease_lock(request).boxed()
    }

    fn give_lock_back(
        &self,
        app: AppId,
        service: ServiceName,
    ) -> BoxFuture<'_, Result<(), LockRefusal>> {
        self.reconciler.give_lock_back(app, service).boxed()
    }

    fn stats(&self) -> ReconcilerStats {
        self.reconciler.stats()
    }

    fn events(&self) -> &Events {
        &self.events
    }

    fn confinement(&self) -> BoxFuture<'_, Confinement> {
        self.walls.now().boxed()
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = self.reconciler.problems();
        problems.extend(self.cloud.problems());
        problems.extend(self.firewall.problem());
        if !self.store.takes_writes() {
            problems
                .push("cannot write into the state folder: its disk is full or read-only".into());
        }
        problems
    }

    fn logs(&self) -> BoxStream<'static, Arc<LogEvent>> {
        self.reconciler.logs().boxed()
    }
}

impl plugins::AppLocks for RunningDevice {
    fn acquire_all(
        &self,
        force: bool,
    ) -> BoxFuture<'_, Result<plugins::HeldLocks, plugins::LocksError>> {
        async move {
            match self.reconciler.lock_all_apps(force).await {
                Ok(locks) => Ok(Box::new(locks) as plugins::HeldLocks),
                Err(failed @ LockError::Failed { .. }) => {
                    Err(plugins::LocksError::Other(error_chain(&failed)))
                }
                Err(locked) => Err(plugins::LocksError::Locked(locked.to_string())),
            }
        }
        .boxed()
    }
}

impl plugins::Device for RunningDevice {
    fn identity(&self) -> plugins::Identity {
        plugins::Identity {
            uuid: self.uuid.to_string(),
            name: self.reconciler.device_name(),
            device_type: self.board.device_type.clone(),
            arch: self.board.arch.clone(),
        }
    }

    fn state(&self) -> Value {
        let json =
            api::device_state_json(&self.reconciler.status(), &self.facts.now(), &self.branding);
        serde_json::from_slice(&json).unwrap_or_default()
    }

    fn is_first_start(&self) -> bool {
        self.is_first_start
    }

    fn faulted(&self, plugin: &str, message: &str) {
        let fault = PluginFault {
            plugin: plugin.to_owned(),
            message: message.to_owned(),
        };
        self.events
            .publish(Audience::Everyone, Event::PluginFault(fault));
    }
}

impl plugins::Cloud for RunningDevice {
    fn records<'a>(
        &'a self,
        kind: &'a str,
        fields: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Value>, CloudRefusal>> {
        self.cloud.records(&self.reconciler, kind, fields).boxed()
    }

    fn queue<'a>(
        &'a self,
        kind: &'a str,
        values: Vec<(String, String)>,
    ) -> BoxFuture<'a, Result<(), CloudRefusal>> {
        self.cloud.queue(kind, values).boxed()
    }
}

//! A device as plain values.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use device_types::{
    ConfinedProcess, Confinement, DevicePlan, LogEvent, MissingWall, ReconcilerStats,
};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, future::BoxFuture};
use model::{
    Action, ActionError, ApiLock, AppId, ContainerId, DeviceStatus, LockHolder, LockRefusal,
    LockRequest, PowerAction, ServiceId, ServiceName, SetTargetError, UpdateLock,
};
use serde_json::{Value, json};
use store::KeyOwner;

use crate::Events;
use crate::device::{Device, Facts};

/// A device whose parts a test can change.
pub(crate) struct FakeDevice {
    pub(crate) status: Mutex<Arc<DeviceStatus>>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) local_mode: bool,
    pub(crate) problems: Vec<String>,
    pub(crate) targets: Mutex<Vec<(Value, bool)>>,
    /// Instant updates are off if it is false.
    pub(crate) updates: bool,
    /// The `force` and `cancel` of each update.
    pub(crate) updated: Mutex<Vec<(bool, bool)>>,
    /// The owners whose keys were replaced.
    pub(crate) replaced: Mutex<Vec<KeyOwner>>,
    pub(crate) panics: bool,
    /// The requested actions, and the answer to every action.
    pub(crate) actions: Mutex<Vec<Action>>,
    pub(crate) powered: Mutex<Vec<(PowerAction, bool)>>,
    pub(crate) outcome: Result<(), ActionError>,
    pub(crate) plan: Result<DevicePlan, String>,
    /// The locks that are held, and those that were requested and released.
    pub(crate) locks: Vec<UpdateLock>,
    pub(crate) leased: Mutex<Vec<LockRequest>>,
    pub(crate) given_back: Mutex<Vec<(AppId, ServiceName)>>,
    pub(crate) lock_refusal: Option<LockRefusal>,
    pub(crate) events: Events,
    pub(crate) stats: ReconcilerStats,
}

impl Default for FakeDevice {
    fn default() -> Self {
        FakeDevice {
            status: Mutex::default(),
            facts: Arc::new(Facts {
                api_port: 48484,
                ..Facts::default()
            }),
            local_mode: false,
            problems: Vec::new(),
            targets: Mutex::default(),
            updates: true,
            updated: Mutex::default(),
            replaced: Mutex::default(),
            panics: false,
            actions: Mutex::default(),
            powered: Mutex::default(),
            outcome: Ok(()),
            plan: Err("the supervisor is stopping".into()),
            locks: Vec::new(),
            leased: Mutex::default(),
            given_back: Mutex::default(),
            lock_refusal: None,
            events: Events::default(),
            stats: ReconcilerStats::default(),
        }
    }
}

impl Device for FakeDevice {
    fn status(&self) -> Arc<DeviceStatus> {
        assert!(!self.panics, "a handler's panic");
        self.status.lock().unwrap().clone()
    }

    fn facts(&self) -> Arc<Facts> {
        self.facts.clone()
    }

    fn local_mode(&self) -> bool {
        self.local_mode
    }

    fn host_names(&self) -> Vec<String> {
        vec!["board".into()]
    }

    fn local_target(&self) -> Value {
        json!({"local": {"name": "local", "config": {}, "apps": {}}})
    }

    fn set_local_target(
        &self,
        target: Value,
        force: bool,
    ) -> BoxFuture<'_, Result<Vec<String>, SetTargetError>> {
        async move {
            if !self.local_mode {
                return Err(SetTargetError::NotLocalMode);
            }
            match target.get("local") {
                Some(Value::String(word)) if word == "warn" => {
                    return Ok(vec!["`build` is not supported".into()]);
                }
                Some(Value::String(word)) if word == "break" => {
                    return Err(SetTargetError::Store("disk full".into()));
                }
                Some(Value::Object(_)) | None => {}
                Some(_) => {
                    return Err(SetTargetError::LocalNotSigned(
                        "Invalid target state.\n`local` must be an object".into(),
                    ));
                }
            }
            self.targets.lock().unwrap().push((target, force));
            Ok(Vec::new())
        }
        .boxed()
    }

    fn act(&self, action: Action) -> BoxFuture<'_, Result<(), ActionError>> {
        self.actions.lock().unwrap().push(action);
        std::future::ready(self.outcome.clone()).boxed()
    }

    fn power(&self, action: PowerAction, force: bool) -> BoxFuture<'_, Result<(), ActionError>> {
        self.powered.lock().unwrap().push((action, force));
        std::future::ready(self.outcome.clone()).boxed()
    }

    fn clean_up_volumes(&self) -> BoxFuture<'_, Result<(), String>> {
        let outcome = self.outcome.clone().map_err(|error| error.to_string());
        std::future::ready(outcome).boxed()
    }

    fn environment<'a>(
        &'a self,
        container: &'a ContainerId,
    ) -> BoxFuture<'a, Result<BTreeMap<String, String>, String>> {
        let variables = [
            ("CONTAINER", container.as_str()),
            ("PLATFORM_SUPERVISOR_API_KEY", "secret"),
            ("PLATFORM_API_KEY", "secret"),
        ];
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        std::future::ready(Ok(environment.into())).boxed()
    }

    fn key_replaced(&self, owner: KeyOwner) -> BoxFuture<'_, ()> {
        self.replaced.lock().unwrap().push(owner);
        std::future::ready(()).boxed()
    }

    fn update(&self, force: bool, cancel: bool) -> bool {
        self.updated.lock().unwrap().push((force, cancel));
        self.updates || force
    }

    fn plan(&self) -> BoxFuture<'_, Result<DevicePlan, String>> {
        std::future::ready(self.plan.clone()).boxed()
    }

    fn update_locks(&self) -> BoxFuture<'_, Result<Vec<UpdateLock>, String>> {
        std::future::ready(Ok(self.locks.clone())).boxed()
    }

    fn lease_lock(&self, request: LockRequest) -> BoxFuture<'_, Result<UpdateLock, LockRefusal>> {
        let lock = match &self.lock_refusal {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(UpdateLock {
                app: request.app,
                service: Some(request.service.clone()),
                path: "/tmp/lock".into(),
                since_ms: Some(0),
                holder: LockHolder::Api(ApiLock {
                    reason: request.reason.clone(),
                    ttl: request.ttl,
                    expires_ms: 60_000,
                    survives_reboot: request.survives_reboot,
                }),
            }),
        };
        self.leased.lock().unwrap().push(request);
        std::future::ready(lock).boxed()
    }

    fn give_lock_back(
        &self,
        app: AppId,
        service: ServiceName,
    ) -> BoxFuture<'_, Result<(), LockRefusal>> {
        self.given_back.lock().unwrap().push((app, service));
        std::future::ready(self.lock_refusal.clone().map_or(Ok(()), Err)).boxed()
    }

    fn confinement(&self) -> BoxFuture<'_, Confinement> {
        let compiler = ConfinedProcess {
            process: "compiler".to_owned(),
            in_force: vec!["user".to_owned()],
            missing: vec![MissingWall {
                wall: "files".to_owned(),
                reason: "no Landlock".to_owned(),
            }],
            lower: Vec::new(),
        };
        let confinement = Confinement {
            required: true,
            processes: vec![compiler],
        };
        futures::future::ready(confinement).boxed()
    }

    fn stats(&self) -> ReconcilerStats {
        self.stats
    }

    fn events(&self) -> &Events {
        &self.events
    }

    fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    fn logs(&self) -> BoxStream<'static, Arc<LogEvent>> {
        let line = LogEvent {
            service_name: "web".parse().ok(),
            service_id: Some(ServiceId(11)),
            is_system: false,
            is_stderr: true,
            ..LogEvent::system("hello", Some(5))
        };
        futures::stream::iter([line, LogEvent::system("2 lines were lost", Some(6))])
            .map(Arc::new)
            .chain(futures::stream::pending())
            .boxed()
    }
}

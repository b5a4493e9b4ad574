//! A device in a separate folder: store, lock folders, an engine in memory, and the reconciler.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use device_types::event::{Audience, Event};
use engine::Engines;
use model::compose::{DeviceFacts, HostFacts};
use model::contracts::DeviceProperties;
use model::{AppId, Branding, DeviceStatus, DeviceUuid};
use reconcile::{Limits, Moments, Reconciler, ReconcilerConfig};
use serde_json::{Map, Value, json};
use store::Store;

use crate::engine::MemoryEngine;
use crate::fake_host::FakeHost;

/// Longer than any back-off; measured by the paused clock, so it ends at once if nothing else can
/// happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct Rig {
    pub engine: MemoryEngine,
    pub host: FakeHost,
    pub reconciler: Reconciler,
    store: Store,
    folder: tempfile::TempDir,
    pub managed: bool,
    /// The events that were sent.
    pub events: SentEvents,
}

pub(crate) type SentEvents = Arc<Mutex<Vec<(Audience, Event)>>>;

/// Returns a device without a cloud.
pub(crate) fn rig() -> Rig {
    rig_that_is(false)
}

/// Returns a device with a cloud.
pub(crate) fn managed_rig() -> Rig {
    rig_that_is(true)
}

fn rig_that_is(managed: bool) -> Rig {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("state")).unwrap().store;
    let engine = MemoryEngine::new();
    let host = FakeHost::default();
    let events = SentEvents::default();
    let reconciler = start(&engine, &host, &store, &folder, &events, managed);
    Rig {
        events,
        engine,
        host,
        reconciler,
        store,
        folder,
        managed,
    }
}

fn start(
    engine: &MemoryEngine,
    host: &FakeHost,
    store: &Store,
    folder: &tempfile::TempDir,
    events: &SentEvents,
    managed: bool,
) -> Reconciler {
    let uuid = store.device_uuid().clone();
    let host_root = folder.path().join("host");
    let root = host_root.display().to_string();
    let sent = Arc::clone(events);
    let on_event = Arc::new(move |audience, event| sent.lock().unwrap().push((audience, event)));
    let reconciler = Reconciler::start(ReconcilerConfig {
        engines: Engines::new(vec![Arc::new(engine.clone())]),
        store: store.clone(),
        facts: Arc::new(move || facts(&uuid, &root)),
        host_root,
        host: Arc::new(host.clone()),
        managed,
        on_event,
        offers: DeviceProperties {
            supervisor: "19.0.0".into(),
            arch: "amd64".into(),
            ..DeviceProperties::default()
        },
        target_policy: Arc::new(|| Ok(None)),
        limits: Limits::default(),
        moments: Moments::default(),
    })
    .unwrap();
    host.runs(&reconciler);
    reconciler
}

pub(crate) fn facts(uuid: &DeviceUuid, host_root: &str) -> DeviceFacts {
    DeviceFacts {
        uuid: uuid.clone(),
        name: "bench".into(),
        hostname: "bench".into(),
        device_type: "generic".into(),
        arch: "amd64".into(),
        os_version: "test".into(),
        host_root: host_root.to_owned(),
        api_port: 48484,
        branding: Branding::default(),
        host: HostFacts::default(),
    }
}

impl Rig {
    /// Stops this supervisor and starts the next on its state.
    pub(crate) async fn restart(&mut self) {
        self.reconciler.shutdown().await;
        self.engine = self.engine.for_next_supervisor();
        self.reconciler = start(
            &self.engine,
            &self.host,
            &self.store,
            &self.folder,
            &self.events,
            self.managed,
        );
    }

    /// Starts the next supervisor after this one was cut off: nothing of it keeps running.
    pub(crate) async fn restart_after_a_kill(&mut self) {
        self.reconciler.shutdown().await;
        self.engine = self.engine.for_next_supervisor();
        self.reconciler = start(
            &self.engine,
            &self.host,
            &self.store,
            &self.folder,
            &self.events,
            self.managed,
        );
    }

    pub(crate) fn lock_path(&self, service: &str) -> PathBuf {
        let services = "host/tmp/platform-supervisor/services/1";
        let folder = self.folder.path().join(services).join(service);
        folder.join("updates.lock")
    }

    /// Returns the stored definitions of objects.
    pub(crate) fn definitions(&self) -> Vec<store::Definition> {
        self.store.definitions().unwrap()
    }

    /// Waits until these services of app 1, and no others, have API keys.
    pub(crate) async fn until_keys_are_of(&self, services: &[&str]) {
        let names = || {
            let keys = self.store.services_with_keys().into_iter();
            keys.map(|(_, service)| service.to_string())
                .collect::<Vec<_>>()
        };
        let waiting = async {
            while names() != services {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let waited = tokio::time::timeout(DEADLINE, waiting).await;
        assert!(waited.is_ok(), "there are keys of {:?}", names());
    }

    /// Returns the key of a service of app 1; a new one if it has none.
    pub(crate) fn key_of(&self, service: &str) -> String {
        let key = self.store.service_key(AppId(1), &service.parse().unwrap());
        key.unwrap().reveal().to_owned()
    }

    /// Makes the store refuse to record which version of the operating system is being tried, or no longer.
    pub(crate) fn refuse_os_records(&self, refuses: bool) {
        let database = rusqlite::Connection::open(self.folder.path().join("state/store.db"));
        let statement = if refuses {
            "CREATE TRIGGER refusal BEFORE INSERT ON intent WHEN NEW.key = 'os-update'
             BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        } else {
            "DROP TRIGGER refusal"
        };
        database.unwrap().execute_batch(statement).unwrap();
    }

    pub(crate) fn uuid(&self) -> &str {
        self.store.device_uuid().as_str()
    }

    /// Sets a target as the cloud does.
    pub(crate) async fn cloud_says(&self, target: Target) {
        let body = target.cloud_json(self.store.device_uuid().as_str());
        let result = self.reconciler.set_cloud_target(body, false).await;
        result.unwrap();
    }

    pub(crate) async fn set(&self, target: Value) {
        self.reconciler
            .set_local_target(target, false)
            .await
            .unwrap();
    }

    /// Returns the status once it satisfies `condition`.
    pub(crate) async fn until(
        &self,
        condition: impl Fn(&DeviceStatus) -> bool,
    ) -> Arc<DeviceStatus> {
        let mut watch = self.reconciler.watch();
        let found =
            tokio::time::timeout(DEADLINE, watch.wait_for(|status| condition(status))).await;
        match found {
            Ok(found) => found.unwrap().clone(),
            Err(_) => panic!(
                "it did not come to that: {:#?}\ncalls: {:#?}",
                self.reconciler.status(),
                self.engine.calls()
            ),
        }
    }

    pub(crate) async fn settled(&self) -> Arc<DeviceStatus> {
        self.until(|status| !status.applying).await
    }

    /// Waits for something that is not in the status.
    pub(crate) async fn eventually(&self, what: &str, holds: impl Fn() -> bool) {
        let waiting = async {
            while !holds() {
                self.engine.changed().await;
            }
        };
        let waited = tokio::time::timeout(DEADLINE, waiting).await;
        assert!(
            waited.is_ok(),
            "never {what}: {:#?}",
            self.reconciler.status()
        );
    }
}

/// A local target of app 1.
#[derive(Clone)]
pub(crate) struct Target {
    services: Map<String, Value>,
    commit: String,
    networks: Value,
    volumes: Value,
    config: Value,
}

pub(crate) fn target() -> Target {
    Target {
        services: Map::new(),
        commit: "c1".into(),
        networks: json!({}),
        volumes: json!({ "data": {} }),
        config: json!({}),
    }
}

impl Target {
    pub(crate) fn service(self, name: &str, image: &str) -> Self {
        self.service_with(name, image, json!({}))
    }

    pub(crate) fn service_with(mut self, name: &str, image: &str, more: Value) -> Self {
        let number = self.services.len() + 1;
        let mut service = json!({
            "imageId": number,
            "serviceName": name,
            "image": image,
            "environment": {},
            "labels": {},
            "running": true,
        });
        let more = more.as_object().unwrap().clone();
        service.as_object_mut().unwrap().extend(more);
        self.services.insert(number.to_string(), service);
        self
    }

    pub(crate) fn commit(mut self, commit: &str) -> Self {
        self.commit = commit.into();
        self
    }

    pub(crate) fn network(mut self, name: &str, config: Value) -> Self {
        self.networks[name] = config;
        self
    }

    pub(crate) fn without_volumes(mut self) -> Self {
        self.volumes = json!({});
        self
    }

    pub(crate) fn config(mut self, key: &str, value: &str) -> Self {
        self.config[key] = json!(value);
        self
    }

    /// Returns the cloud's form: app 1 with the uuid `fleet`.
    pub(crate) fn cloud_json(self, device: &str) -> Value {
        let services: Map<String, Value> = self
            .services
            .values()
            .map(|service| {
                let name = service["serviceName"].as_str().unwrap().to_owned();
                let service = json!({
                    "id": service["imageId"],
                    "image_id": service["imageId"],
                    "image": service["image"],
                    "environment": service["environment"],
                    "labels": service["labels"],
                    "contract": service["contract"],
                });
                (name, service)
            })
            .collect();
        json!({ device: {
            "name": "by-cloud",
            "config": self.config,
            "apps": { "fleet": {
                "id": 1,
                "name": "shop",
                "releases": { self.commit: {
                    "id": 1,
                    "services": services,
                    "volumes": { "data": {} },
                    "networks": self.networks,
                } },
            } },
        } })
    }

    pub(crate) fn json(self) -> Value {
        json!({ "local": {
            "name": "bench",
            "config": self.config,
            "apps": { "1": {
                "name": "shop",
                "commit": self.commit,
                "releaseId": "1",
                "services": self.services,
                "volumes": self.volumes,
                "networks": self.networks,
            } },
        } })
    }
}

//! State that cannot be observed, in the store: read and written from tasks of the runtime, while the store's calls
//! block.

use std::collections::{BTreeMap, BTreeSet};

use model::{AppUuid, error_chain};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{ImageRecord, Store, StoreError, TargetSource};

use crate::actions::StoredAction;
use crate::messages::StoredRecord;
use crate::os_update::OsRecord;
use crate::release_trials::ReleaseRecord;
use crate::stored_state::StoredState;

/// Intents of this kind name containers that the supervisor stopped.
const STOPPED: &str = "stopped";

/// Intents of this kind are unfinished actions, by the uuid of their app.
const ACTION: &str = "action";

/// Intents of this kind are the loop's own, one per key.
const OWN: &str = "reconcile";

/// The state of local mode: what remains to be done about it after a kill.
const LOCAL_MODE: &str = "local-mode";

/// Intents of this kind record which releases of an app were healthy, by its uuid.
const RELEASES: &str = "releases";

/// The number of reboots for the current target since it was last reached or replaced.
const REBOOTS: &str = "reboots";

/// The record of versions of the operating system.
const OS_UPDATE: &str = "os-update";

/// This device's marker in lock files.
const LOCK_MARKER: &str = "lock-marker";

/// The state of local mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LocalMode {
    On,
    /// It was left, and the objects created in it are not all removed yet.
    Leaving,
    Off,
}

/// The contents of the store at the start.
pub(crate) struct RecoveredState {
    pub local_target: Option<Value>,
    pub cloud_target: Option<Value>,
    pub stored: StoredState,
    pub snapshot: Option<Value>,
    pub local_mode: LocalMode,
    pub lock_marker: String,
    pub reboots: u32,
    pub os: OsRecord,
    /// Actions that a kill interrupted.
    pub actions: Vec<(AppUuid, StoredAction)>,
    /// The healthy releases of each app.
    pub releases: BTreeMap<AppUuid, ReleaseRecord>,
}

/// Access to the store for tasks. Failures are reported as one line.
#[derive(Clone)]
pub(crate) struct Persistence {
    store: Store,
}

impl Persistence {
    pub(crate) fn new(store: Store) -> Self {
        Persistence { store }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Reads everything that the loop starts from. Blocks; called at the start.
    pub(crate) fn recover(&self) -> Result<RecoveredState, StoreError> {
        let store = &self.store;
        let intents = store.intents()?;
        let of_kind = |kind: &'static str| intents.iter().filter(move |it| it.kind == kind);
        let own = |key: &str| {
            let mut own = of_kind(OWN);
            own.find(|intent| intent.key == key)
                .map(|intent| &intent.value)
        };
        let actions = of_kind(ACTION).filter_map(|intent| {
            let app = intent.key.parse().ok()?;
            Some((app, StoredAction::deserialize(&intent.value).ok()?))
        });
        let releases = of_kind(RELEASES).filter_map(|intent| {
            let app = intent.key.parse().ok()?;
            // A value of an older version that this one cannot read counts as missing.
            Some((app, ReleaseRecord::deserialize(&intent.value).ok()?))
        });
        let images = store.image_records()?.into_iter();
        let stopped = of_kind(STOPPED).filter_map(|intent| intent.key.parse().ok());
        let local_mode = own(LOCAL_MODE).and_then(|mode| LocalMode::deserialize(mode).ok());
        let reboots = own(REBOOTS).and_then(|reboots| u32::deserialize(reboots).ok());
        Ok(RecoveredState {
            actions: actions.collect(),
            releases: releases.collect(),
            local_target: store.target(TargetSource::Local)?,
            cloud_target: store.target(TargetSource::Cloud)?,
            stored: StoredState {
                commits: store.commits()?,
                recorded_images: images.map(|record| record.image).collect(),
                definitions: store.definitions()?.into_iter().collect(),
                stopped: stopped.collect(),
                held: BTreeSet::new(),
                services_with_keys: None,
            },
            snapshot: store.snapshot()?,
            local_mode: local_mode.unwrap_or(LocalMode::Off),
            reboots: reboots.unwrap_or_default(),
            // A value of an older version that this one cannot read counts as missing.
            os: own(OS_UPDATE)
                .and_then(|record| OsRecord::deserialize(record).ok())
                .unwrap_or_default(),
            lock_marker: match own(LOCK_MARKER).and_then(Value::as_str) {
                Some(marker) => marker.to_owned(),
                None => self.make_lock_marker()?,
            },
        })
    }

    /// Creates this device's marker in lock files, at the first start.
    fn make_lock_marker(&self) -> Result<String, StoreError> {
        // Without random numbers the uuid will do: it only matters that no user writes the same.
        let marker = secure_fs::random_hex();
        let marker = marker.unwrap_or_else(|_| self.store.device_uuid().to_string());
        self.store
            .put_intent(OWN, LOCK_MARKER, &Value::from(marker.as_str()))?;
        Ok(marker)
    }

    /// Records that local mode is on. Blocks; called at the start.
    pub(crate) fn enter_local_mode(&self) -> Result<(), StoreError> {
        note(&self.store, LocalMode::On)
    }

    pub(crate) async fn set_target(
        &self,
        source: TargetSource,
        target: Value,
    ) -> Result<(), String> {
        self.call(move |store| store.set_target(source, &target))
            .await
    }

    /// Stores an action before its first step.
    pub(crate) async fn put_action(
        &self,
        app: AppUuid,
        action: StoredAction,
    ) -> Result<(), String> {
        let value = serde_json::to_value(&action).map_err(|error| error_chain(&error))?;
        self.call(move |store| store.put_intent(ACTION, app.as_str(), &value))
            .await
    }

    pub(crate) async fn forget_action(&self, app: AppUuid) -> Result<(), String> {
        self.call(move |store| store.remove_intent(ACTION, app.as_str()))
            .await
    }

    /// Stores which releases of an app were healthy; does nothing if the app no longer exists.
    pub(crate) async fn put_release_record(
        &self,
        app: AppUuid,
        record: Option<ReleaseRecord>,
    ) -> Result<(), String> {
        let value = record.map(serde_json::to_value).transpose();
        let value = value.map_err(|error| error_chain(&error))?;
        self.call(move |store| match value {
            Some(value) => store.put_intent(RELEASES, app.as_str(), &value),
            None => store.remove_intent(RELEASES, app.as_str()),
        })
        .await
    }

    /// Stores the record of versions of the operating system.
    pub(crate) async fn put_os_record(&self, record: OsRecord) -> Result<(), String> {
        let value = serde_json::to_value(record).map_err(|error| error_chain(&error))?;
        self.call(move |store| store.put_intent(OWN, OS_UPDATE, &value))
            .await
    }

    /// Stores a target of the cloud that begins local mode, together with the initial local target: after a kill, both
    /// or neither are in force, since the mode follows changes of the cloud's target.
    pub(crate) async fn open_local_mode(&self, local: Value, cloud: Value) -> Result<(), String> {
        self.call(move |store| {
            store.set_target(TargetSource::Local, &local)?;
            note(store, LocalMode::On)?;
            store.set_target(TargetSource::Cloud, &cloud)
        })
        .await
    }

    pub(crate) async fn set_local_mode(&self, mode: LocalMode) -> Result<(), String> {
        self.call(move |store| note(store, mode)).await
    }

    /// Ends local mode: its target and its snapshot are deleted. The mark that it was being left is deleted last.
    pub(crate) async fn close_local_mode(&self) -> Result<(), String> {
        self.call(|store| {
            store.clear_target(TargetSource::Local)?;
            store.clear_snapshot()?;
            note(store, LocalMode::Off)
        })
        .await
    }

    /// Calls the store on a thread that may block.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, String> {
        let store = self.store.clone();
        match tokio::task::spawn_blocking(move || call(&store)).await {
            Ok(result) => result.map_err(|error| error_chain(&error)),
            Err(error) => Err(error_chain(&error)),
        }
    }
}

impl StoredRecord {
    pub(crate) fn write(&self, store: &Store) -> Result<(), StoreError> {
        match self {
            StoredRecord::Image(image, users) => users.iter().try_for_each(|user| {
                store.record_image(&ImageRecord {
                    image: image.clone(),
                    app_id: user.app_id,
                    app: user.service.app.clone(),
                    service: user.service.service.clone(),
                    image_id: user.image_id,
                })
            }),
            StoredRecord::NoImage(image) => store.forget_image(image),
            StoredRecord::Definition(definition) => store.put_definition(definition),
            StoredRecord::Commit(app, commit) => store.set_commit(app, commit),
            StoredRecord::NoCommit(app) => store.forget_commit(app),
            StoredRecord::Stopped(id) => store.put_intent(STOPPED, id.as_str(), &Value::Null),
            StoredRecord::NotStopped(id) => store.remove_intent(STOPPED, id.as_str()),
        }
    }
}

/// Stores the number of reboots, before the next one is requested.
pub(crate) fn note_reboots(store: &Store, count: u32) -> Result<(), StoreError> {
    match count {
        0 => store.remove_intent(OWN, REBOOTS),
        count => store.put_intent(OWN, REBOOTS, &Value::from(count)),
    }
}

fn note(store: &Store, mode: LocalMode) -> Result<(), StoreError> {
    store.put_intent(OWN, LOCAL_MODE, &json!(mode))
}

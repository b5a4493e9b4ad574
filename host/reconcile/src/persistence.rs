//! What cannot be observed, in the store: asked for and written from tasks of the runtime, while the
//! store's calls block.

use std::collections::BTreeSet;

use model::{AppUuid, Commit, ContainerId, ImageRef, error_chain};
use plan::ImageUser;
use serde_json::Value;
use signed_targets::AcceptedReleases;
use store::{Definition, ImageRecord, Store, StoreError, TargetSource};

use crate::actions::StoredAction;
use crate::stored_state::StoredState;

/// Intents of this kind name containers that the supervisor stopped.
const STOPPED: &str = "stopped";

/// Intents of this kind are actions that are not finished, by the uuid of their app.
const ACTION: &str = "action";

/// Intents of this kind are the loop's own, one of each key.
const OWN: &str = "reconcile";

/// Where local mode stands: what is left to do about it after a kill.
const LOCAL_MODE: &str = "local-mode";

/// How often the device was rebooted for its target since that was last reached or replaced.
const REBOOTS: &str = "reboots";

/// This device's mark in lock files.
const LOCK_MARKER: &str = "lock-marker";

/// Where local mode stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalMode {
    On,
    /// It was left, and what was made in it is not all gone yet.
    Leaving,
    Off,
}

/// What the store held at the start.
pub(crate) struct RecoveredState {
    pub local_target: Option<Value>,
    pub cloud_target: Option<Value>,
    pub stored: StoredState,
    pub snapshot: Option<Value>,
    pub local_mode: LocalMode,
    pub lock_marker: String,
    pub reboots: u32,
    /// What a kill cut short.
    pub actions: Vec<(AppUuid, StoredAction)>,
}

/// The store, for tasks. Failures come as one line.
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

    /// Reads all that the loop starts from. Blocks; for the start.
    pub(crate) fn recover(&self) -> Result<RecoveredState, StoreError> {
        let store = &self.store;
        let intents = store.intents()?;
        let stopped = intents.iter().filter(|intent| intent.kind == STOPPED);
        let own = |key: &str| {
            let mut intents = intents.iter();
            let own = intents.find(|intent| intent.kind == OWN && intent.key == key);
            own.and_then(|intent| intent.value.as_str())
        };
        let actions = intents.iter().filter(|intent| intent.kind == ACTION);
        let actions = actions.filter_map(|intent| {
            let app = intent.key.parse().ok()?;
            Some((app, serde_json::from_value(intent.value.clone()).ok()?))
        });
        Ok(RecoveredState {
            actions: actions.collect(),
            local_target: store.target(TargetSource::Local)?,
            cloud_target: store.target(TargetSource::Cloud)?,
            stored: StoredState {
                commits: store.commits()?,
                recorded_images: store
                    .image_records()?
                    .into_iter()
                    .map(|record| record.image)
                    .collect(),
                definitions: store.definitions()?.into_iter().collect(),
                stopped: stopped
                    .filter_map(|intent| intent.key.parse().ok())
                    .collect(),
                held: BTreeSet::new(),
            },
            snapshot: store.snapshot()?,
            local_mode: match own(LOCAL_MODE) {
                Some("on") => LocalMode::On,
                Some("leaving") => LocalMode::Leaving,
                _ => LocalMode::Off,
            },
            reboots: intents
                .iter()
                .find(|intent| intent.kind == OWN && intent.key == REBOOTS)
                .and_then(|intent| u32::try_from(intent.value.as_u64()?).ok())
                .unwrap_or_default(),
            lock_marker: match own(LOCK_MARKER) {
                Some(marker) => marker.to_owned(),
                None => self.make_lock_marker()?,
            },
        })
    }

    /// Makes this device's mark in lock files, at the first start.
    fn make_lock_marker(&self) -> Result<String, StoreError> {
        let mut bytes = [0; 16];
        // Without random numbers the uuid will do: what counts is that no user writes the same.
        let marker = match getrandom::fill(&mut bytes) {
            Ok(()) => hex::encode(bytes),
            Err(_) => self.store.device_uuid().to_string(),
        };
        self.store
            .put_intent(OWN, LOCK_MARKER, &Value::from(marker.as_str()))?;
        Ok(marker)
    }

    /// Notes that local mode is on. Blocks; for the start.
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

    pub(crate) async fn set_signed_targets(
        &self,
        accepted: AcceptedReleases,
    ) -> Result<(), String> {
        let accepted = serde_json::to_value(accepted).map_err(|error| error_chain(&error))?;
        self.call(move |store| store.set_signed_targets(&accepted))
            .await
    }

    pub(crate) async fn set_commit(&self, app: AppUuid, commit: Commit) -> Result<(), String> {
        self.call(move |store| store.set_commit(&app, &commit))
            .await
    }

    pub(crate) async fn forget_commit(&self, app: AppUuid) -> Result<(), String> {
        self.call(move |store| store.forget_commit(&app)).await
    }

    pub(crate) async fn record_image(
        &self,
        image: ImageRef,
        users: &[ImageUser],
    ) -> Result<(), String> {
        let records: Vec<ImageRecord> = users
            .iter()
            .map(|user| ImageRecord {
                image: image.clone(),
                app_id: user.app_id,
                app: user.service.app.clone(),
                service: user.service.service.clone(),
                image_id: user.image_id,
            })
            .collect();
        self.call(move |store| {
            records
                .iter()
                .try_for_each(|record| store.record_image(record))
        })
        .await
    }

    /// Keeps what something is about to be made from.
    pub(crate) async fn put_definition(&self, definition: Definition) -> Result<(), String> {
        self.call(move |store| store.put_definition(&definition))
            .await
    }

    pub(crate) async fn forget_definitions(
        &self,
        gone: Vec<(String, String)>,
    ) -> Result<(), String> {
        self.call(move |store| store.forget_definitions(&gone))
            .await
    }

    pub(crate) async fn forget_image(&self, image: ImageRef) -> Result<(), String> {
        self.call(move |store| store.forget_image(&image)).await
    }

    /// Notes that we stop a container, so that we are the ones to start it again.
    pub(crate) async fn remember_stop(&self, container: ContainerId) -> Result<(), String> {
        self.call(move |store| store.put_intent(STOPPED, container.as_str(), &Value::Null))
            .await
    }

    pub(crate) async fn forget_stop(&self, container: ContainerId) -> Result<(), String> {
        self.call(move |store| store.remove_intent(STOPPED, container.as_str()))
            .await
    }

    /// Notes an action before its first step.
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

    /// Counts reboots, before the next is asked for.
    pub(crate) async fn set_reboots(&self, count: u32) -> Result<(), String> {
        self.call(move |store| match count {
            0 => store.remove_intent(OWN, REBOOTS),
            count => store.put_intent(OWN, REBOOTS, &Value::from(count)),
        })
        .await
    }

    pub(crate) async fn set_snapshot(&self, snapshot: Value) -> Result<(), String> {
        self.call(move |store| store.set_snapshot(&snapshot)).await
    }

    /// Keeps a target of the cloud that begins local mode, with what local mode begins with: both or
    /// neither is in force after a kill, since the cloud's word counts where it changes.
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

    /// Local mode is over: its target and its snapshot go. The mark that it was being left goes last.
    pub(crate) async fn close_local_mode(&self) -> Result<(), String> {
        self.call(|store| {
            store.clear_target(TargetSource::Local)?;
            store.clear_snapshot()?;
            note(store, LocalMode::Off)
        })
        .await
    }

    async fn call<T: Send + 'static>(
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

fn note(store: &Store, mode: LocalMode) -> Result<(), StoreError> {
    let text = match mode {
        LocalMode::On => "on",
        LocalMode::Leaving => "leaving",
        LocalMode::Off => "off",
    };
    store.put_intent(OWN, LOCAL_MODE, &Value::from(text))
}

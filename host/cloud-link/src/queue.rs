//! Data about this device that is kept until the cloud has accepted it (docs/spec/device.md#cloud-queue): values by
//! name, for a few kinds of records.
//!
//! Added values are in the store before the caller receives an answer, and are sent later: at most every 10 s, and less
//! and less often while the cloud does not accept them. If there are two values with one name, the later one is sent; a
//! value that the cloud already has is not.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use model::{Backoff, DeviceUuid, error_chain};
use parking_lot::Mutex;
use serde_json::{Value, json};
use store::{Store, StoreError};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::client::{Client, CloudError};
use crate::poll::Device;
use crate::retry;

/// The kinds that can be queued, by their names in the data API, and the path they are sent to:
/// `PATCH /device/v3/<path>`.
const KINDS: &[(&str, &str)] = &[("device_tag", "tags")];

fn kind_named(name: &str) -> Option<&'static str> {
    KINDS
        .iter()
        .find_map(|(kind, _)| (*kind == name).then_some(*kind))
}
/// The pause between two requests.
const GAP: Duration = Duration::from_secs(10);
/// How many names can wait at a time.
const MAX_WAITING: usize = 1000;
/// The maximum characters of a name, and of a value.
const MAX_NAME: usize = 100;
const MAX_VALUE: usize = 10_000;
/// Queued values are intents of this kind; their key is kind and name.
const INTENT: &str = "cloud-queue";

/// The receiver of queued values. [`Client`] implements it; tests have others.
pub trait Sink: Send + Sync + 'static {
    /// Returns the uuid under which the cloud keeps the device's records.
    fn uuid(&self) -> &DeviceUuid;

    /// `PATCH /device/v3/<what>`.
    fn patch<'a>(
        &'a self,
        what: &'a str,
        body: &'a Value,
        limit: Duration,
    ) -> BoxFuture<'a, Result<(), CloudError>>;
}

impl Sink for Client {
    fn uuid(&self) -> &DeviceUuid {
        Client::uuid(self)
    }

    fn patch<'a>(
        &'a self,
        what: &'a str,
        body: &'a Value,
        limit: Duration,
    ) -> BoxFuture<'a, Result<(), CloudError>> {
        Client::patch(self, what, body, limit).boxed()
    }
}

/// Why values are not queued. Then none of the call's values are.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Records of this kind are not supported.
    #[error("records of the kind `{0}` cannot be sent to the cloud")]
    Kind(String),
    #[error(
        "`{0}` cannot be the name of a record: a name has 1 to {MAX_NAME} characters, none of them white space"
    )]
    /// The name, cut to the maximum length, is empty, too long or has white space.
    Name(String),
    /// The value of this name is too long.
    #[error("the value of `{0}` has more than {MAX_VALUE} characters")]
    Value(String),
    /// There is no room for all values of the call.
    #[error("more than {MAX_WAITING} values wait for the cloud")]
    Full,
    /// The store failed.
    #[error("failed to store data for the cloud")]
    Store(#[source] Box<dyn Error + Send + Sync>),
}

/// Values by name.
type Values = BTreeMap<String, String>;

/// The queue of one device. Clones share it.
#[derive(Clone)]
pub struct Queue {
    shared: Arc<QueueState>,
}

struct QueueState {
    store: Store,
    sink: Arc<dyn Sink>,
    device: Arc<dyn Device>,
    /// Waiting values, by kind. Never locked while the store works.
    waiting: Mutex<BTreeMap<&'static str, Values>>,
    /// Allows one caller to add at a time.
    adding: Arc<tokio::sync::Mutex<()>>,
    wake: Notify,
}

impl Queue {
    /// Loads the values that were waiting at the last end, and sends until `stop`. Blocks for the store; runs in a
    /// tokio runtime.
    ///
    /// # Errors
    /// If the stored values cannot be read.
    pub fn start(
        store: Store,
        sink: Arc<dyn Sink>,
        device: Arc<dyn Device>,
        stop: CancellationToken,
    ) -> Result<Queue, StoreError> {
        let mut waiting: BTreeMap<&'static str, Values> = BTreeMap::new();
        for intent in store.intents()? {
            if intent.kind == INTENT
                && let Some((kind, name)) = intent.key.split_once(' ')
                && let Some(kind) = kind_named(kind)
                && let Some(value) = intent.value.as_str()
            {
                let values = waiting.entry(kind).or_default();
                values.insert(name.to_owned(), value.to_owned());
            }
        }
        let shared = Arc::new(QueueState {
            store,
            sink,
            device,
            waiting: Mutex::new(waiting),
            adding: Arc::default(),
            wake: Notify::new(),
        });
        let running = Arc::clone(&shared);
        tokio::spawn(async move {
            stop.run_until_cancelled(running.run()).await;
        });
        Ok(Queue { shared })
    }

    /// Adds values, by name. They survive restarts once this has returned.
    ///
    /// # Errors
    /// [`QueueError`].
    pub async fn add(
        &self,
        kind: &str,
        values: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), QueueError> {
        let kind = kind_named(kind).ok_or_else(|| QueueError::Kind(kind.to_owned()))?;
        let shared = Arc::clone(&self.shared);
        let one_at_a_time = Arc::clone(&shared.adding).lock_owned().await;
        let waiting: usize = shared.waiting.lock().values().map(Values::len).sum();
        let mut room = MAX_WAITING.saturating_sub(waiting);
        let mut added = Values::new();
        for (name, value) in values {
            let length = name.chars().count();
            if !(1..=MAX_NAME).contains(&length) || name.contains(char::is_whitespace) {
                return Err(QueueError::Name(name.chars().take(MAX_NAME).collect()));
            }
            if value.chars().count() > MAX_VALUE {
                return Err(QueueError::Value(name));
            }
            if added.insert(name, value).is_none() {
                room = room.checked_sub(1).ok_or(QueueError::Full)?;
            }
        }
        // Goes on if the caller leaves: what is in the store must also be counted and sent.
        let stored = tokio::spawn(async move {
            let _one_at_a_time = one_at_a_time;
            shared.store_and_wake(kind, added).await
        });
        let stored = stored.await.unwrap_or_else(|error| Err(error.into()));
        stored.map_err(QueueError::Store)
    }
}

impl QueueState {
    /// Stores values and has them sent. No others may be added meanwhile.
    async fn store_and_wake(
        &self,
        kind: &'static str,
        added: Values,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (store, intents) = (self.store.clone(), added.clone());
        blocking(move || {
            let intents = intents.into_iter();
            let intents: Vec<(String, Value)> = intents
                .map(|(name, value)| (format!("{kind} {name}"), Value::String(value)))
                .collect();
            let intents = intents.iter().map(|(key, value)| (key.as_str(), value));
            Ok(store.put_intents(INTENT, intents)?)
        })
        .await?;
        self.waiting.lock().entry(kind).or_default().extend(added);
        self.wake.notify_one();
        Ok(())
    }

    async fn run(&self) {
        let mut accepted_by_kind: BTreeMap<&'static str, Values> = BTreeMap::new();
        let mut backoff = Backoff::new(retry::BASE);
        let mut next = Instant::now();
        loop {
            let Some((kind, path, batch)) = self.next_batch() else {
                self.wake.notified().await;
                continue;
            };
            let accepted = accepted_by_kind.entry(kind).or_default();
            let mut changed = batch.clone();
            changed.retain(|name, value| accepted.get(name) != Some(value));
            if changed.is_empty() {
                self.forget(kind, batch).await;
                continue;
            }
            tokio::time::sleep_until(next).await;
            let settings = self.device.settings();
            let body = json!({ self.sink.uuid().as_str(): changed });
            match self.sink.patch(path, &body, settings.request_timeout).await {
                Ok(()) => {
                    backoff.reset();
                    next = Instant::now() + GAP;
                    accepted.extend(changed);
                    // Bounded, since repeating a value costs only one request.
                    if accepted.len() > MAX_WAITING {
                        accepted.clear();
                    }
                    self.forget(kind, batch).await;
                }
                Err(error) if error.is_final() => {
                    tracing::error!(
                        kind,
                        "the cloud rejected records, which are dropped: {error}"
                    );
                    next = Instant::now() + GAP;
                    self.forget(kind, batch).await;
                }
                Err(error) => {
                    let wait =
                        retry::after_failure(&mut backoff, settings.interval, error.retry_after());
                    let why = error_chain(&error);
                    tracing::warn!(
                        kind,
                        "failed to send records to the cloud, trying again in {wait:.0?}: {why}"
                    );
                    next = Instant::now() + wait;
                }
            }
        }
    }

    /// Returns all waiting values of one kind.
    fn next_batch(&self) -> Option<(&'static str, &'static str, Values)> {
        let waiting = self.waiting.lock();
        KINDS.iter().find_map(|(kind, path)| {
            let values = waiting.get(kind).filter(|values| !values.is_empty())?;
            Some((*kind, *path, values.clone()))
        })
    }

    /// Removes finished values from the queue, except those that have been replaced.
    async fn forget(&self, kind: &'static str, batch: Values) {
        // Nothing may be added between the two steps, or it would be lost at the next start.
        let _nobody_adds = self.adding.lock().await;
        let mut keys = Vec::new();
        {
            let mut waiting = self.waiting.lock();
            let values = waiting.entry(kind).or_default();
            for (name, value) in batch {
                if values.get(&name) == Some(&value) {
                    values.remove(&name);
                    keys.push(format!("{kind} {name}"));
                }
            }
        }
        let store = self.store.clone();
        let forgotten = tokio::task::spawn_blocking(move || {
            let mut keys = keys.iter();
            keys.try_for_each(|key| store.remove_intent(INTENT, key))
        });
        if let Ok(Err(error)) = forgotten.await {
            // The value is sent once more after the next start, which changes nothing.
            tracing::warn!(
                "failed to delete what the cloud has accepted: {}",
                error_chain(&error)
            );
        }
    }
}

#[cfg(test)]
mod tests;

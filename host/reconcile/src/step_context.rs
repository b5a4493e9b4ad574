//! The shared context of the loop and its steps.

use std::sync::Arc;

use device_types::event::{Audience, Event};
use engine::{Engine, EngineError, Engines};
use model::{Branding, EngineKind, ServiceKey, ServiceState, error_chain};
use store::{Definition, Store, StoreError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Semaphore, watch};

use crate::config::EventSubscriber;
use crate::counters::Counters;
use crate::health::Health;
use crate::logs::LogHub;
use crate::messages::{Message, StepFailure, StoredRecord};
use crate::persistence::Persistence;
use crate::progress::Progress;
use crate::targets::Targets;
use crate::view::Effect;
use crate::{EffectiveSettings, Host, Locks, Moments, SigningState};

/// Everything that a step may use.
pub(crate) struct StepContext {
    pub engines: Engines,
    pub branding: Branding,
    pub persistence: Persistence,
    pub locks: Locks,
    pub host: Arc<dyn Host>,
    pub telemetry: Telemetry,
    pub channels: TargetChannels,
    pub moments: Moments,
    pub pulls: Semaphore,
    pub steps: Semaphore,
    pub messages: UnboundedSender<Message>,
}

/// The records of the loop's and the steps' work, for monitoring the device. They influence no decision.
pub(crate) struct Telemetry {
    pub hub: LogHub,
    pub progress: Arc<Progress>,
    pub health: Health,
    pub counters: Counters,
    on_event: EventSubscriber,
}

impl Telemetry {
    pub(crate) fn new(hub: LogHub, on_event: EventSubscriber) -> Self {
        Telemetry {
            hub,
            progress: Arc::default(),
            health: Health::default(),
            counters: Counters::default(),
            on_event,
        }
    }

    pub(crate) fn send_event(&self, audience: Audience, event: Event) {
        (self.on_event)(audience, event);
    }
}

/// The callers' view of the targets, with change notifications.
pub(crate) struct TargetChannels {
    /// The targets of all sources, and the state of local mode.
    pub targets: watch::Sender<Targets>,
    /// Serializes targets: they take effect in the order in which they are stored. The keys in a target that is being
    /// read are in use already, so this must also be held while keys are forgotten.
    pub setting: tokio::sync::Mutex<()>,
    pub effective_settings: watch::Sender<Arc<EffectiveSettings>>,
    pub signing: watch::Sender<Arc<SigningState>>,
}

impl TargetChannels {
    pub(crate) fn new(targets: Targets, signing: SigningState) -> Self {
        TargetChannels {
            targets: watch::Sender::new(targets),
            setting: tokio::sync::Mutex::new(()),
            effective_settings: watch::Sender::default(),
            signing: watch::Sender::new(Arc::new(signing)),
        }
    }
}

/// Publishes a value, unless it equals the last one. Returns whether it differs.
pub(crate) fn publish<T: PartialEq>(channel: &watch::Sender<Arc<T>>, value: T) -> bool {
    channel.send_if_modified(|last| {
        let is_new = **last != value;
        if is_new {
            *last = Arc::new(value);
        }
        is_new
    })
}

impl StepContext {
    /// Sends the loop a message; it is dropped if the loop has ended.
    pub(crate) fn send(&self, message: Message) {
        let _ = self.messages.send(message);
    }

    pub(crate) fn effect(&self, effect: Effect) {
        self.send(Message::Effect(effect));
    }

    /// Reports the state of a service from now on.
    pub(crate) fn service_is(&self, service: &ServiceKey, state: ServiceState) {
        self.send(Message::ServiceState(service.clone(), state));
    }

    pub(crate) fn engine(&self, kind: EngineKind) -> Result<&Arc<dyn Engine>, StepFailure> {
        let missing = || StepFailure::new(format!("this device has no {kind} engine"));
        self.engines.get(kind).ok_or_else(missing)
    }

    pub(crate) fn log(&self, line: impl Into<String>) {
        self.telemetry.hub.system(line.into());
    }

    /// Writes to the store, and then informs the loop.
    pub(crate) async fn record(&self, record: StoredRecord) -> Result<(), String> {
        let written = record.clone();
        let written = self.persistence.call(move |store| written.write(store));
        written.await?;
        self.send(Message::Stored(record));
        Ok(())
    }

    /// Writes to the store without waiting for it; `what` completes "failed to".
    pub(crate) fn write_later(
        &self,
        what: &'static str,
        write: impl FnOnce(&Store) -> Result<(), StoreError> + Send + 'static,
    ) {
        let persistence = self.persistence.clone();
        tokio::spawn(async move {
            if let Err(why) = persistence.call(write).await {
                tracing::warn!("failed to {what}: {why}");
            }
        });
    }

    /// Stores the definition of something that is about to be created.
    pub(crate) async fn define(
        &self,
        definition: serde_json::Result<Definition>,
    ) -> Result<(), String> {
        let definition = definition.map_err(|error| error_chain(&error))?;
        self.record(StoredRecord::Definition(definition)).await
    }

    /// Logs why `what` failed, and returns it as the step's failure.
    pub(crate) fn failed(&self, what: &str, error: &EngineError) -> StepFailure {
        self.failed_due_to(what, error_chain(error))
    }

    pub(crate) fn failed_due_to(&self, what: &str, reason: String) -> StepFailure {
        self.log(format!("Failed to {what} due to '{reason}'"));
        StepFailure::new(reason)
    }
}

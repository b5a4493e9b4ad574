//! What happens on the device, for whoever listens: a ring of the last events, which sources put in and
//! readers of `GET /v3/events` take from at their own pace.
//!
//! ```text
//! reconciler, plugins, power ──► Events (ring) ◄── one position a reader ──► sockets
//! ```
//!
//! A reader has no queue of its own: it remembers which event it wants next, so one that is slow holds
//! nobody up and costs nothing. When what it wants has been overwritten it gets an event `gap` instead.

mod happening;
mod reader;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use model::AppId;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::auth::Scope;
use crate::moment::Moment;

pub use happening::{
    ApplyBegin, ApplyEnd, Download, EventType, Happening, LockWait, PluginFault, PowerRequested,
    ReleaseChanged, ServiceChanged, StepFailed,
};
pub(crate) use reader::{Filter, Position, read};

/// How many events are kept for readers that are behind or come back, and how many bytes of them.
const MAX_EVENTS: usize = if cfg!(test) { 16 } else { 1024 };
const MAX_BYTES: usize = 512 << 10;
/// Readers at the same time. Each holds a connection, and they must leave some for everybody else.
pub(crate) const MAX_READERS: usize = if cfg!(test) { 3 } else { 32 };

/// The events of this run of the supervisor. Clones share them.
#[derive(Debug, Clone)]
pub struct Events(Arc<Ring>);

#[derive(Debug)]
struct Ring {
    /// Tells the events of this run from those of others: when it began, in milliseconds since the epoch.
    epoch: i64,
    held: Mutex<Held>,
    /// The number of the newest event.
    newest: watch::Sender<u64>,
    places: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Held {
    /// Of the newest event; 0 before the first.
    number: u64,
    events: VecDeque<Told>,
    bytes: usize,
}

/// Who may know of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Whoever has a key.
    Everyone,
    /// Whoever may see this app.
    App(AppId),
    /// The device's own key alone.
    Owner,
}

impl Audience {
    fn includes(self, scope: Scope) -> bool {
        match self {
            Audience::Everyone => true,
            Audience::App(app) => scope.covers(app),
            Audience::Owner => scope == Scope::All,
        }
    }
}

/// What is sent as the data of an event.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Event<'a> {
    /// Of this event in this run of the supervisor; for the header `Last-Event-ID`. Missing in an event `gap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    /// When it happened; ISO 8601.
    time: Moment,
    #[serde(flatten)]
    told: &'a What<'a>,
}

/// What has happened, or that something is not told any more.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum What<'a> {
    Happened(&'a Happening),
    Missed(Missed),
}

/// Events are missing.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "kebab-case")]
enum Missed {
    /// Events that the reader wanted are no longer there.
    Gap(Gap),
}

/// Events that are no longer there.
#[derive(Serialize, JsonSchema)]
struct Gap {
    /// How many, of all types; null where those that the reader has seen are of an earlier run.
    missed: Option<u64>,
}

/// An event as it is held.
#[derive(Debug, Clone)]
struct Told {
    number: u64,
    kind: EventType,
    audience: Audience,
    frame: Bytes,
}

impl Default for Events {
    fn default() -> Self {
        Events(Arc::new(Ring {
            epoch: Moment::now().0,
            held: Mutex::default(),
            newest: watch::Sender::new(0),
            places: Arc::new(Semaphore::new(MAX_READERS)),
        }))
    }
}

impl Events {
    /// Tells `audience` that something has happened, now. Never waits.
    pub fn publish(&self, audience: Audience, happening: Happening) {
        let happening = happening.bounded();
        let mut held = self.held();
        held.number += 1;
        let number = held.number;
        let kind = happening.kind();
        let frame = self.frame(number, kind, &happening);
        held.bytes += frame.len();
        held.events.push_back(Told {
            number,
            kind,
            audience,
            frame,
        });
        while held.events.len() > MAX_EVENTS || held.bytes > MAX_BYTES {
            let Some(oldest) = held.events.pop_front() else {
                break;
            };
            held.bytes -= oldest.frame.len();
        }
        drop(held);
        self.0.newest.send_replace(number);
    }

    /// A place for one more reader; `None` where there are too many.
    pub(crate) fn admit(&self) -> Option<OwnedSemaphorePermit> {
        self.0.places.clone().try_acquire_owned().ok()
    }

    /// How many read now.
    pub(crate) fn readers(&self) -> usize {
        MAX_READERS.saturating_sub(self.0.places.available_permits())
    }

    fn frame(&self, number: u64, kind: EventType, happening: &Happening) -> Bytes {
        let id = format!("{}-{number}", self.0.epoch);
        let event = Event {
            id: Some(&id),
            time: Moment::now(),
            told: &What::Happened(happening),
        };
        // Strings, numbers and flags: writing them cannot fail.
        let data = serde_json::to_string(&event).unwrap_or_default();
        format!("id: {id}\nevent: {}\ndata: {data}\n\n", kind.name()).into()
    }

    /// Says that events are missing. It has no id, so that a client that comes back names the last one that
    /// it has seen.
    fn gap(missed: Option<u64>) -> String {
        let event = Event {
            id: None,
            time: Moment::now(),
            told: &What::Missed(Missed::Gap(Gap { missed })),
        };
        // Numbers and fixed words: writing them cannot fail.
        let data = serde_json::to_string(&event).unwrap_or_default();
        format!("event: gap\ndata: {data}\n\n")
    }

    /// A panic elsewhere leaves a ring that may miss an event's bytes in its count, and nothing worse.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

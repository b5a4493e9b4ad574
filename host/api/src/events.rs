//! What happens on the device, for whoever listens: a ring of the last events, which sources put in and
//! readers of `GET /v3/events` take from at their own pace.
//!
//! ```text
//! reconciler, plugins, power ──► Events (ring) ◄── one position a reader ──► sockets
//! ```
//!
//! A reader has no queue of its own: it remembers which event it wants next, so one that is slow holds
//! nobody up and costs nothing. When what it wants has been overwritten it gets an event `gap` instead.

mod reader;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use device_types::Moment;
use device_types::event::{Audience, Event, EventType};
use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::auth::Scope;

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
    content: Mutex<RingContent>,
    /// The number of the newest event.
    newest: watch::Sender<u64>,
    places: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct RingContent {
    /// The number of the newest event; 0 before the first.
    number: u64,
    events: VecDeque<StoredEvent>,
    bytes: usize,
}

impl RingContent {
    /// The number of the oldest event that is stored, or of the next one if none is.
    fn oldest(&self) -> u64 {
        let oldest = self.events.front();
        oldest.map_or(self.number + 1, |event| event.number)
    }
}

/// Whether a reader with `scope` may know of an event for `audience`.
fn includes(audience: Audience, scope: Scope) -> bool {
    match audience {
        Audience::Everyone => true,
        Audience::App(app) => scope.covers(app),
        Audience::Owner => scope == Scope::All,
    }
}

/// The data of an event, as it is sent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub(crate) struct EventData<'a> {
    /// Of this event in this run of the supervisor; for the header `Last-Event-ID`. Missing in an event `gap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    /// The time of the event, in ISO 8601.
    time: Moment,
    #[serde(flatten)]
    content: &'a EventContent<'a>,
}

/// An event, or that events are missing.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum EventContent<'a> {
    Event(&'a Event),
    Gap(GapEvent),
}

/// Events are missing.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "kebab-case")]
#[schemars(rename = "Missed")]
enum GapEvent {
    /// Events that the reader requested are no longer available.
    Gap(Gap),
}

/// Events that are no longer available.
#[derive(Serialize, JsonSchema)]
struct Gap {
    /// How many, of all types; null if those that the reader has seen are of an earlier run.
    missed: Option<u64>,
}

/// An event as the history keeps it.
#[derive(Debug, Clone)]
struct StoredEvent {
    number: u64,
    kind: EventType,
    audience: Audience,
    frame: Bytes,
}

impl Default for Events {
    fn default() -> Self {
        Events(Arc::new(Ring {
            epoch: Moment::now().0,
            content: Mutex::default(),
            newest: watch::Sender::new(0),
            places: Arc::new(Semaphore::new(MAX_READERS)),
        }))
    }
}

impl Events {
    /// Publishes an event to `audience`, with the current time. Never waits.
    pub fn publish(&self, audience: Audience, event: Event) {
        let event = event.bounded();
        let mut content = self.content();
        content.number += 1;
        let number = content.number;
        let kind = EventType::from(&event);
        let frame = self.frame(number, kind, &event);
        content.bytes += frame.len();
        content.events.push_back(StoredEvent {
            number,
            kind,
            audience,
            frame,
        });
        while content.events.len() > MAX_EVENTS || content.bytes > MAX_BYTES {
            let Some(oldest) = content.events.pop_front() else {
                break;
            };
            content.bytes -= oldest.frame.len();
        }
        drop(content);
        self.0.newest.send_replace(number);
    }

    /// A place for one more reader; `None` if there are too many.
    pub(crate) fn admit(&self) -> Option<OwnedSemaphorePermit> {
        self.0.places.clone().try_acquire_owned().ok()
    }

    /// The current number of readers.
    pub(crate) fn readers(&self) -> usize {
        MAX_READERS.saturating_sub(self.0.places.available_permits())
    }

    fn frame(&self, number: u64, kind: EventType, event: &Event) -> Bytes {
        let id = format!("{}-{number}", self.0.epoch);
        let data = EventData {
            id: Some(&id),
            time: Moment::now(),
            content: &EventContent::Event(event),
        };
        // Strings, numbers and flags: writing them cannot fail.
        let data = serde_json::to_string(&data).unwrap_or_default();
        format!("id: {id}\nevent: {kind}\ndata: {data}\n\n").into()
    }

    /// The event that reports missing events. It has no id, so that a client that comes back names the last one that
    /// it has seen.
    fn gap(missed: Option<u64>) -> String {
        let data = EventData {
            id: None,
            time: Moment::now(),
            content: &EventContent::Gap(GapEvent::Gap(Gap { missed })),
        };
        // Numbers and fixed words: writing them cannot fail.
        let data = serde_json::to_string(&data).unwrap_or_default();
        format!("event: gap\ndata: {data}\n\n")
    }

    /// A panic elsewhere leaves a ring that may miss an event's bytes in its count, and nothing worse.
    fn content(&self) -> MutexGuard<'_, RingContent> {
        self.0.content.lock()
    }
}

#[cfg(test)]
mod tests;

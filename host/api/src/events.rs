//! The events on the device, for any number of listeners: a ring of the last events, which sources add to and readers
//! of `GET /v3/events` read at their own pace.
//!
//! ```text
//! reconciler, plugins, power ──► Events (ring) ◄── one position a reader ──► sockets
//! ```
//!
//! A reader has no queue of its own: it remembers the number of the next event, so a slow reader delays nobody and
//! costs nothing. If that event has been overwritten, the reader gets an event `gap` instead.

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

use crate::caller::KeyScope;

pub(crate) use reader::{Filter, Position, read};

/// How many events are kept for readers that are behind or reconnect, and how many bytes of them.
const MAX_EVENTS: usize = if cfg!(test) { 16 } else { 1024 };
const MAX_BYTES: usize = 512 << 10;
/// The maximum number of simultaneous readers. Each holds a connection, and some must be left for others.
pub(crate) const MAX_READERS: usize = if cfg!(test) { 3 } else { 32 };

/// The events of this run of the supervisor. Clones share them.
#[derive(Debug, Clone)]
pub struct Events(Arc<Ring>);

#[derive(Debug)]
struct Ring {
    /// Distinguishes the events of this run from those of other runs: its start, in milliseconds since the epoch.
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
    /// Returns the number of the oldest stored event, or of the next one if none is stored.
    fn oldest(&self) -> u64 {
        let oldest = self.events.front();
        oldest.map_or(self.number + 1, |event| event.number)
    }
}

/// Returns whether a reader with `scope` may receive an event for `audience`.
fn includes(audience: Audience, scope: KeyScope) -> bool {
    match audience {
        Audience::Everyone => true,
        Audience::App(app) => scope.covers(app),
        Audience::Owner => scope == KeyScope::All,
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
#[schemars(rename = "MissedEvents")]
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

/// An event as stored in the history.
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

    /// Returns a permit for one more reader; `None` if there are too many.
    pub(crate) fn admit(&self) -> Option<OwnedSemaphorePermit> {
        self.0.places.clone().try_acquire_owned().ok()
    }

    /// Returns the current number of readers.
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

    /// Returns the event that reports missing events. It has no id, so a reconnecting client names the last event that
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

    /// Locks the ring. After a panic elsewhere, the worst case is that an event's bytes are missing in its count.
    fn content(&self) -> MutexGuard<'_, RingContent> {
        self.0.content.lock()
    }
}

#[cfg(test)]
mod tests;

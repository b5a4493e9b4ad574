//! The events that a plugin still has to be called for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use parking_lot::Mutex;
use plugin_manifest::EventKind;
use plugin_protocol::kind_of_event;
use plugin_values::{PluginEvent, ServiceChange, TargetProgress};
use tokio::sync::Notify;

/// The most services whose changes are reported in one call.
const SERVICES: usize = 256;
/// The most calls with changes of services that wait. A service has one change, so these are enough for a device that
/// replaces each of 2,048 services by another one while the plugin is busy.
const BATCHES: usize = 16;

/// The events of one plugin that it has not been called for yet, in the order in which they occurred. Events of one
/// kind are combined into one, which keeps the place of the first, so their number is limited however slow the plugin
/// is, and none waits for ever behind others that occur again and again.
pub(super) struct PendingEvents {
    /// The kinds of events that the plugin asks for.
    kinds: BTreeSet<EventKind>,
    content: Mutex<Content>,
    added: Notify,
}

#[derive(Default)]
struct Content {
    queue: VecDeque<Entry>,
    /// How many changes of services have found no room since this was last reported.
    dropped: u64,
    /// Whether the plugin has been called for an event and has not answered yet.
    is_in_call: bool,
}

/// What becomes one call.
enum Entry {
    Start(bool),
    Connection(bool),
    Target(TargetProgress),
    Schedule(String),
    /// At least one, and at most [`SERVICES`].
    Services(BTreeMap<ServiceKey, ServiceChange>),
}

/// The number of an app, and the name of a service in it.
type ServiceKey = (u64, String);

impl PendingEvents {
    pub(super) fn new(kinds: BTreeSet<EventKind>) -> PendingEvents {
        PendingEvents {
            kinds,
            content: Mutex::default(),
            added: Notify::new(),
        }
    }

    /// Queues the event if the plugin asks for its kind. Never waits.
    pub(super) fn add(&self, event: PluginEvent) {
        if self.kinds.contains(&kind_of_event(&event)) {
            self.content.lock().add(event);
            self.added.notify_one();
        }
    }

    /// Waits for the next event and takes it. Its call ends with [`PendingEvents::end_call`].
    pub(super) async fn next(&self) -> PluginEvent {
        loop {
            let added = self.added.notified();
            let next = self.content.lock().begin_call();
            if let Some(event) = next {
                return event;
            }
            added.await;
        }
    }

    /// Records that the plugin has answered the event, or failed at it.
    pub(super) fn end_call(&self) {
        self.content.lock().is_in_call = false;
    }

    /// Returns how many changes of services were dropped since this was last called.
    pub(super) fn take_dropped(&self) -> u64 {
        std::mem::take(&mut self.content.lock().dropped)
    }

    /// Returns whether the plugin has answered, or failed at, each event so far.
    pub(super) fn are_answered(&self) -> bool {
        let content = self.content.lock();
        !content.is_in_call && content.queue.is_empty()
    }
}

impl Content {
    fn add(&mut self, event: PluginEvent) {
        let entry = match event {
            PluginEvent::Start(is_first) => Entry::Start(is_first),
            PluginEvent::Connection(is_there) => Entry::Connection(is_there),
            PluginEvent::Target(progress) => Entry::Target(progress),
            PluginEvent::Schedule(name) => Entry::Schedule(name),
            PluginEvent::Services(changes) => {
                changes
                    .into_iter()
                    .for_each(|change| self.add_change(change));
                return;
            }
        };
        match self
            .queue
            .iter_mut()
            .find(|earlier| earlier.is_same(&entry))
        {
            Some(earlier) => *earlier = entry,
            None => self.queue.push_back(entry),
        }
    }

    fn add_change(&mut self, change: ServiceChange) {
        let key = (change.app_id, change.service.clone());
        for (place, entry) in self.queue.iter_mut().enumerate() {
            let Entry::Services(changes) = entry else {
                continue;
            };
            let Some(pending) = changes.get_mut(&key) else {
                continue;
            };
            pending.status = change.status;
            // The status is back to what the plugin knows.
            if pending.status == pending.before {
                changes.remove(&key);
                if changes.is_empty() {
                    self.queue.remove(place);
                }
            }
            return;
        }
        let mut batches = 0;
        for entry in &mut self.queue {
            if let Entry::Services(changes) = entry {
                if changes.len() < SERVICES {
                    changes.insert(key, change);
                    return;
                }
                batches += 1;
            }
        }
        if batches < BATCHES {
            let changes = BTreeMap::from([(key, change)]);
            self.queue.push_back(Entry::Services(changes));
        } else {
            self.dropped += 1;
        }
    }

    /// Takes the next event and records its call in one step: between two, the event would seem to be answered.
    fn begin_call(&mut self) -> Option<PluginEvent> {
        let next = self.take();
        self.is_in_call = next.is_some();
        next
    }

    fn take(&mut self) -> Option<PluginEvent> {
        Some(match self.queue.pop_front()? {
            Entry::Start(is_first) => PluginEvent::Start(is_first),
            Entry::Connection(is_there) => PluginEvent::Connection(is_there),
            Entry::Target(progress) => PluginEvent::Target(progress),
            Entry::Schedule(name) => PluginEvent::Schedule(name),
            Entry::Services(changes) => PluginEvent::Services(changes.into_values().collect()),
        })
    }
}

impl Entry {
    /// Returns whether one call for the later of the two is enough. Changes of services are combined one by one.
    fn is_same(&self, later: &Entry) -> bool {
        match (self, later) {
            (Entry::Start(_), Entry::Start(_))
            | (Entry::Connection(_), Entry::Connection(_))
            | (Entry::Target(_), Entry::Target(_)) => true,
            (Entry::Schedule(name), Entry::Schedule(later)) => name == later,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;

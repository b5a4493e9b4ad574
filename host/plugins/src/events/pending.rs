//! The events that a plugin still has to be called for.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use plugin_manifest::EventKind;
use plugin_protocol::kind_of_event;
use plugin_values::{PluginEvent, ServiceChange, TargetProgress};
use tokio::sync::Notify;

/// The most services whose changes are reported in one call.
const SERVICES: usize = 256;

/// The events of one plugin that it has not been called for yet. Events of one kind are combined into one, so their
/// number is limited however slow the plugin is.
pub(super) struct PendingEvents {
    /// The kinds of events that the plugin asks for.
    kinds: BTreeSet<EventKind>,
    content: Mutex<Content>,
    added: Notify,
}

#[derive(Default)]
struct Content {
    start: Option<bool>,
    connection: Option<bool>,
    target: Option<TargetProgress>,
    services: BTreeMap<(u64, String), ServiceChange>,
    schedules: BTreeSet<String>,
    /// Whether the plugin has been called for an event and has not answered yet.
    is_in_call: bool,
}

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

    /// Returns whether the plugin has answered, or failed at, each event so far.
    pub(super) fn are_answered(&self) -> bool {
        let content = self.content.lock();
        !content.is_in_call && content.is_empty()
    }
}

impl Content {
    fn add(&mut self, event: PluginEvent) {
        match event {
            PluginEvent::Start(is_first) => self.start = Some(is_first),
            PluginEvent::Connection(is_there) => self.connection = Some(is_there),
            PluginEvent::Target(progress) => self.target = Some(progress),
            PluginEvent::Schedule(name) => {
                self.schedules.insert(name);
            }
            PluginEvent::Services(changes) => changes.into_iter().for_each(|change| {
                self.add_change(change);
            }),
        }
    }

    fn add_change(&mut self, change: ServiceChange) {
        let key = (change.app_id, change.service.clone());
        if let Some(pending) = self.services.get_mut(&key) {
            pending.status = change.status;
            // The status is back to what the plugin knows.
            if pending.status == pending.before {
                self.services.remove(&key);
            }
        } else if self.services.len() < SERVICES {
            self.services.insert(key, change);
        }
    }

    /// Takes the next event and records its call in one step: between two, the event would seem to be answered.
    fn begin_call(&mut self) -> Option<PluginEvent> {
        let next = self.take();
        self.is_in_call = next.is_some();
        next
    }

    fn is_empty(&self) -> bool {
        self.start.is_none()
            && self.connection.is_none()
            && self.target.is_none()
            && self.services.is_empty()
            && self.schedules.is_empty()
    }

    fn take(&mut self) -> Option<PluginEvent> {
        if let Some(is_first) = self.start.take() {
            return Some(PluginEvent::Start(is_first));
        }
        if let Some(is_there) = self.connection.take() {
            return Some(PluginEvent::Connection(is_there));
        }
        if let Some(progress) = self.target.take() {
            return Some(PluginEvent::Target(progress));
        }
        if !self.services.is_empty() {
            let changes = std::mem::take(&mut self.services).into_values();
            return Some(PluginEvent::Services(changes.collect()));
        }
        self.schedules.pop_first().map(PluginEvent::Schedule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(service: &str, before: Option<&str>, status: Option<&str>) -> PluginEvent {
        PluginEvent::Services(vec![ServiceChange {
            app_id: 1,
            service: service.to_owned(),
            status: status.map(str::to_owned),
            before: before.map(str::to_owned),
        }])
    }

    fn all() -> PendingEvents {
        PendingEvents::new(EventKind::all().iter().copied().collect())
    }

    fn take_all(pending: &PendingEvents) -> Vec<PluginEvent> {
        std::iter::from_fn(|| pending.content.lock().take()).collect()
    }

    #[test]
    fn events_of_a_kind_become_one_with_the_latest_state() {
        let pending = all();
        for event in [
            PluginEvent::Schedule("poll".to_owned()),
            PluginEvent::Target(TargetProgress::Applying),
            PluginEvent::Schedule("poll".to_owned()),
            change("main", Some("Running"), Some("Stopping")),
            PluginEvent::Connection(false),
            PluginEvent::Target(TargetProgress::Reached),
            change("main", Some("Stopping"), None),
            PluginEvent::Start(true),
        ] {
            pending.add(event);
        }
        assert_eq!(
            take_all(&pending),
            [
                PluginEvent::Start(true),
                PluginEvent::Connection(false),
                PluginEvent::Target(TargetProgress::Reached),
                change("main", Some("Running"), None),
                PluginEvent::Schedule("poll".to_owned()),
            ]
        );
        assert_eq!(take_all(&pending), []);
    }

    #[test]
    fn a_service_that_is_again_what_it_was_has_not_changed() {
        let pending = all();
        pending.add(change("main", Some("Running"), Some("Stopping")));
        pending.add(change("main", Some("Stopping"), Some("Running")));
        assert_eq!(take_all(&pending), []);
    }

    #[tokio::test]
    async fn events_are_answered_when_the_call_for_the_last_one_has_ended() {
        for event in [
            PluginEvent::Start(true),
            PluginEvent::Connection(true),
            PluginEvent::Target(TargetProgress::Applying),
            change("main", None, Some("Running")),
            PluginEvent::Schedule("poll".to_owned()),
        ] {
            let pending = all();
            assert!(pending.are_answered(), "{event:?}");
            pending.add(event.clone());
            assert!(!pending.are_answered(), "{event:?}");
            pending.next().await;
            assert!(!pending.are_answered(), "{event:?}");
            pending.add(event.clone());
            pending.end_call();
            assert!(!pending.are_answered(), "{event:?}");
            pending.next().await;
            pending.end_call();
            assert!(pending.are_answered(), "{event:?}");
        }
    }

    #[test]
    fn a_plugin_is_called_for_what_it_asks_for_and_nothing_else() {
        let pending = PendingEvents::new([EventKind::Connection].into());
        pending.add(PluginEvent::Start(false));
        pending.add(change("main", None, Some("Running")));
        pending.add(PluginEvent::Connection(true));
        assert_eq!(take_all(&pending), [PluginEvent::Connection(true)]);
    }

    #[test]
    fn the_changes_that_wait_have_a_bound() {
        let pending = all();
        for number in 0..2 * SERVICES {
            pending.add(change(&format!("s{number}"), None, Some("Running")));
        }
        let events = take_all(&pending);
        let [PluginEvent::Services(changes)] = events.as_slice() else {
            panic!("{events:?}");
        };
        assert_eq!(changes.len(), SERVICES);
    }
}

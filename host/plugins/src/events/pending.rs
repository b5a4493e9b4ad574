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

    fn due(schedule: &str) -> PluginEvent {
        PluginEvent::Schedule(schedule.to_owned())
    }

    /// Events that occur before the plugin is called the next time, and what it is then called for.
    type Round = (Vec<PluginEvent>, PluginEvent);

    /// Otherwise an event waits for ever behind others that occur again during each call.
    #[test]
    fn events_are_taken_in_the_order_of_the_first_of_their_kind() {
        let applying = PluginEvent::Target(TargetProgress::Applying);
        let reached = PluginEvent::Target(TargetProgress::Reached);
        let running = change("main", None, Some("Running"));
        let stopped = change("main", None, Some("exited"));
        let cases: [(&str, Vec<Round>); 5] = [
            (
                "a schedule that is due again during each call",
                vec![
                    (vec![due("a"), due("b")], due("a")),
                    (vec![due("a")], due("b")),
                    (vec![due("b")], due("a")),
                    (vec![], due("b")),
                ],
            ),
            (
                "a service that changes during each call",
                vec![
                    (vec![running.clone(), due("a")], running.clone()),
                    (vec![running.clone()], due("a")),
                    (vec![], running.clone()),
                ],
            ),
            (
                "a connection and a target that change during each call",
                vec![
                    (vec![applying.clone(), due("a")], applying.clone()),
                    (
                        vec![PluginEvent::Connection(false), reached.clone()],
                        due("a"),
                    ),
                    (vec![due("a")], PluginEvent::Connection(false)),
                    (vec![PluginEvent::Connection(true)], reached.clone()),
                    (vec![], due("a")),
                    (vec![], PluginEvent::Connection(true)),
                ],
            ),
            (
                "the latest state in the place of the first",
                vec![
                    (
                        vec![
                            applying,
                            due("a"),
                            running,
                            due("b"),
                            due("a"),
                            reached.clone(),
                            change("main", Some("Running"), Some("exited")),
                        ],
                        reached,
                    ),
                    (vec![], due("a")),
                    (vec![], stopped),
                    (vec![], due("b")),
                ],
            ),
            (
                "a service that is again what it was leaves no place behind",
                vec![
                    (
                        vec![
                            change("main", Some("Running"), Some("Stopping")),
                            due("a"),
                            change("main", Some("Stopping"), Some("Running")),
                            change("main", Some("Running"), None),
                        ],
                        due("a"),
                    ),
                    (vec![], change("main", Some("Running"), None)),
                ],
            ),
        ];
        for (case, rounds) in cases {
            let pending = all();
            for (events, expected) in rounds {
                events.into_iter().for_each(|event| pending.add(event));
                let next = pending.content.lock().take();
                assert_eq!(next, Some(expected), "{case}");
            }
            assert_eq!(take_all(&pending), [], "{case}");
        }
    }

    #[test]
    fn events_of_a_kind_become_one_with_the_latest_state() {
        let pending = all();
        for event in [
            PluginEvent::Start(true),
            PluginEvent::Schedule("poll".to_owned()),
            PluginEvent::Target(TargetProgress::Applying),
            PluginEvent::Schedule("poll".to_owned()),
            change("main", Some("Running"), Some("Stopping")),
            PluginEvent::Connection(false),
            PluginEvent::Target(TargetProgress::Reached),
            change("main", Some("Stopping"), None),
        ] {
            pending.add(event);
        }
        assert_eq!(
            take_all(&pending),
            [
                PluginEvent::Start(true),
                PluginEvent::Schedule("poll".to_owned()),
                PluginEvent::Target(TargetProgress::Reached),
                change("main", Some("Running"), None),
                PluginEvent::Connection(false),
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
        for (services, calls, dropped) in [
            (1, 1, 0),
            (SERVICES, 1, 0),
            (SERVICES + 1, 2, 0),
            (BATCHES * SERVICES, BATCHES, 0),
            (BATCHES * SERVICES + 3, BATCHES, 3),
        ] {
            let pending = all();
            for number in 0..services {
                pending.add(change(&format!("s{number}"), None, Some("Created")));
            }
            // A service that waits has its place, however many wait.
            pending.add(change("s0", Some("Created"), Some("Running")));
            let events = take_all(&pending);
            assert_eq!(events.len(), calls, "{services}");
            let mut changes = Vec::new();
            for event in events {
                let PluginEvent::Services(batch) = event else {
                    panic!("{services}: {event:?}");
                };
                assert!(batch.len() <= SERVICES, "{services}: {}", batch.len());
                changes.extend(batch);
            }
            assert_eq!(changes.len() as u64, services as u64 - dropped);
            let first = changes.iter().find(|change| change.service == "s0");
            let status = first.and_then(|change| change.status.as_deref());
            assert_eq!(status, Some("Running"), "{services}");
            assert_eq!(pending.take_dropped(), dropped, "{services}");
            assert_eq!(pending.take_dropped(), 0, "{services}");
        }
    }
}

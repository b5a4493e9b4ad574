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

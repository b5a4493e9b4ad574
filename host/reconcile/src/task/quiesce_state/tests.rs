use model::ContainerState::{self, Exited, Running};

use super::*;
use crate::fixtures::service;

struct Callers {
    locked: oneshot::Receiver<Result<(), ActionError>>,
    stopped: oneshot::Receiver<()>,
}

fn begun(apps: &[&str]) -> (QuiesceState, Callers) {
    let apps = apps.iter().map(|app| app.parse().unwrap());
    let (locked, hears_locked) = oneshot::channel();
    let (stopped, hears_stopped) = oneshot::channel();
    let callers = Callers {
        locked: hears_locked,
        stopped: hears_stopped,
    };
    (
        QuiesceState::new(true, apps.collect(), locked, stopped),
        callers,
    )
}

fn depending(app: &str, name: &str, state: ContainerState, on: &[&str]) -> CurrentService {
    CurrentService {
        depends_on: on.iter().map(|name| name.parse().unwrap()).collect(),
        ..service(app, name, state)
    }
}

/// Returns the names of the services that are stopped next.
fn stops(
    state: &mut QuiesceState,
    services: &[CurrentService],
    is_busy: impl Fn(&AppUuid) -> bool,
) -> Vec<String> {
    let work = state.take_next_stops(services.iter().cloned(), is_busy);
    let services = work.iter().flat_map(|work| &work.services);
    services.map(ToString::to_string).collect()
}

#[test]
fn services_are_stopped_after_the_locks_of_all_apps_are_held() {
    let (mut state, mut callers) = begun(&["shop", "bakery"]);
    let [shop, bakery]: [AppUuid; 2] = ["shop", "bakery"].map(|app| app.parse().unwrap());
    state.note_locks(&shop);
    assert!(state.waits_for(&bakery) && !state.waits_for(&shop));
    let apps = [bakery.clone()].into();
    assert_eq!(state.next(), QuiesceStep::Lock { apps, force: true });
    state.note_locks(&bakery);
    assert_eq!(state.next(), QuiesceStep::Proceed);
    state.begin_activation();
    assert_eq!(state.next(), QuiesceStep::Wait);
    assert!(callers.locked.try_recv().is_err());
    state.begin_to_stop();
    assert_eq!(callers.locked.try_recv(), Ok(Ok(())));
    assert_eq!(state.next(), QuiesceStep::Stop);
    assert!(callers.stopped.try_recv().is_err());
    state.end();
    assert_eq!(state.next(), QuiesceStep::Wait);
    assert_eq!(callers.stopped.try_recv(), Ok(()));
}

#[test]
fn a_preparation_that_is_given_up_says_why() {
    let (state, mut callers) = begun(&["shop"]);
    let why = ActionError::Locked("a file".to_owned());
    state.give_up(why.clone());
    assert_eq!(callers.locked.try_recv(), Ok(Err(why)));
    assert!(callers.stopped.try_recv().is_err());
}

#[test]
fn a_service_is_stopped_before_those_that_it_depends_on() {
    let web = |state| depending("shop", "web", state, &["data"]);
    let data = |state| depending("shop", "data", state, &[]);
    let oven = depending("bakery", "oven", Running, &["data"]);
    let cycle = [
        depending("shop", "one", Running, &["other"]),
        depending("shop", "other", Running, &["one"]),
    ];
    for (services, expected) in [
        (&[][..], &[][..]),
        (&[web(Running), data(Running)], &["web"]),
        (&[web(Exited), data(Running)], &["data"]),
        (&[web(Exited), data(Exited)], &[]),
        (&[web(Running), data(Running), oven], &["oven", "web"]),
        (&cycle, &["one", "other"]),
    ] {
        let (mut state, _callers) = begun(&[]);
        let stopped = stops(&mut state, services, |_| false);
        assert_eq!(stopped, expected, "{services:?}");
    }
}

#[test]
fn a_container_is_stopped_once_and_not_while_its_app_is_busy() {
    let web = [service("shop", "web", Running)];
    let (mut state, _callers) = begun(&[]);
    assert_eq!(stops(&mut state, &web, |_| true), [""; 0]);
    assert_eq!(stops(&mut state, &web, |_| false), ["web"]);
    assert_eq!(stops(&mut state, &web, |_| false), [""; 0]);
}

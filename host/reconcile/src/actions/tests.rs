use std::time::Duration;

use model::{ActionError, ContainerId, ContainerState, DesiredState, ServiceName};
use serde_json::json;
use tokio::sync::oneshot;

use super::*;
use crate::fixtures::{service, shop};
use crate::messages::StepFailure;

fn name(text: &str) -> ServiceName {
    text.parse().unwrap()
}

fn ids(ids: &[&str]) -> BTreeSet<ContainerId> {
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

fn stored(verb: Verb, phase: ActionPhase) -> StoredAction {
    StoredAction {
        verb,
        force: false,
        phase,
        containers: ids(&["web"]),
        services: BTreeSet::new(),
        restores: None,
    }
}

/// Returns an action in this phase; `caller` says whether somebody waits for its outcome.
fn action(verb: Verb, phase: ActionPhase, caller: bool) -> OngoingAction {
    let mut actions = Actions::default();
    let app: AppUuid = "fleet".parse().unwrap();
    actions.resume(app.clone(), stored(verb, phase));
    let mut action = actions.take(&app).unwrap();
    action.answer = caller.then(|| oneshot::channel().0);
    action
}

#[test]
fn actions_of_one_app_are_done_in_the_order_of_the_requests() {
    let mut actions = Actions::default();
    let [shop, bakery]: [AppUuid; 2] = ["shop", "bakery"].map(|app| app.parse().unwrap());
    let purge = |app: &AppUuid, force| Action {
        app: app.clone(),
        verb: Verb::Purge,
        force,
    };
    for (app, force) in [(&shop, true), (&shop, false), (&bakery, false)] {
        actions.add(purge(app, force), oneshot::channel().0);
    }
    assert_eq!(actions.current().count(), 2);
    assert!(actions.is_forced(&shop) && !actions.is_forced(&bakery));
    let first = actions.take(&shop).unwrap();
    assert!(first.state.force && !actions.is_forced(&shop));
    let next = actions.for_app_mut(&shop).unwrap();
    assert!(next.number > first.number);
    next.state.phase = ActionPhase::Writing;
    let number = next.number;
    assert!(actions.in_writing(&shop, first.number).is_none());
    assert!(actions.in_writing(&shop, number).is_some());
    actions.take(&shop);
    assert!(!actions.has(&shop) && actions.in_writing(&shop, number).is_none());
    actions.take(&bakery);
    assert!(actions.is_empty());
}

#[test]
fn the_phase_decides_what_the_end_of_taking_locks_means() {
    use ActionPhase::{Acting, Locking, Waiting};
    use LocksEffect::{Begins, Fails, Nothing, TriesAgain};
    let busy = || {
        Err(StepFailure {
            is_busy: true,
            ..StepFailure::new("busy")
        })
    };
    let broken = || Err(StepFailure::new("broken"));
    let locked = ActionError::Locked("busy".to_owned());
    let failed = ActionError::Failed("broken".to_owned());
    for (phase, caller, seconds, outcome, effect, next) in [
        (Locking, true, 0, Ok(()), Begins, Locking),
        (Acting, false, 0, Ok(()), Nothing, Acting),
        (Waiting, true, 0, busy(), Nothing, Waiting),
        (Waiting, true, 99, broken(), Nothing, Waiting),
        (Locking, true, 9, busy(), TriesAgain, Waiting),
        (Acting, false, 9, busy(), TriesAgain, Acting),
        (Locking, true, 10, busy(), Fails(locked), Locking),
        (Locking, true, 0, broken(), Fails(failed), Locking),
        (Acting, false, 10, busy(), Nothing, Acting),
        (Acting, false, 0, broken(), Nothing, Acting),
    ] {
        let mut action = action(Verb::Purge, phase, caller);
        let now = action.begun + Duration::from_secs(seconds);
        let row = format!("{phase:?} {caller} {seconds} {outcome:?}");
        assert_eq!(action.end_locking(&outcome, now), effect, "{row}");
        assert_eq!(action.state.phase, next, "{row}");
        let is_repeated = action.retry_at.is_some_and(|at| at > now);
        assert_eq!(is_repeated, effect == TriesAgain, "{row}");
    }
}

#[test]
fn locks_are_taken_for_what_waits_and_again_for_what_a_kill_interrupted() {
    use ActionPhase::{Acting, Clearing, Locking, Waiting, Writing};
    let now = Instant::now();
    let soon = now + Duration::from_millis(50);
    for (phase, lacks_locks, retry_at, expected) in [
        (Waiting, false, None, true),
        (Waiting, false, Some(now), true),
        (Waiting, false, Some(soon), false),
        (Locking, true, None, false),
        (Writing, true, None, false),
        (Acting, false, None, false),
        (Clearing, true, None, true),
        (Acting, true, Some(soon), false),
    ] {
        let mut action = action(Verb::Purge, phase, false);
        action.retry_at = retry_at;
        let row = format!("{phase:?} {lacks_locks} {retry_at:?}");
        assert_eq!(action.needs_locks(lacks_locks, now), expected, "{row}");
        action.begin_locking();
        assert_eq!(action.retry_at, None);
        let begins = phase == Waiting;
        assert_eq!(action.state.phase, if begins { Locking } else { phase });
    }
}

#[test]
fn an_action_begins_with_the_containers_that_it_concerns() {
    let services = [
        service("fleet", "web", ContainerState::Running),
        service("fleet", "job", ContainerState::Exited),
    ];
    for (verb, containers, ended, first_phase) in [
        (Verb::Stop(name("web")), &["web"][..], None, None),
        (Verb::Start(name("web")), &["web"], Some(&[][..]), None),
        (Verb::Start(name("job")), &["job"], Some(&["job"]), None),
        (
            Verb::Restart(Some(name("job"))),
            &["job"],
            None,
            Some(ActionPhase::Acting),
        ),
        (
            Verb::Restart(None),
            &["job", "web"],
            None,
            Some(ActionPhase::Acting),
        ),
        (
            Verb::Purge,
            &["job", "web"],
            None,
            Some(ActionPhase::Clearing),
        ),
    ] {
        let mut action = action(verb.clone(), ActionPhase::Locking, true);
        let start = action.begin(&services, Some(shop("c0", json!([]))));
        assert_eq!(action.state.containers, ids(containers), "{verb:?}");
        assert!(action.state.restores.is_some());
        let expected = match (ended, first_phase) {
            (Some(ended), _) => ActionStart::Start { ended: ids(ended) },
            (None, Some(phase)) => ActionStart::Store(StoredAction {
                phase,
                ..action.state.clone()
            }),
            (None, None) => ActionStart::Hold,
        };
        assert_eq!(start, expected, "{verb:?}");
        let is_written = action.state.phase == ActionPhase::Writing;
        assert_eq!(is_written, first_phase.is_some(), "{verb:?}");
    }
}

#[test]
fn the_planner_recreates_and_clears_what_an_action_in_progress_says() {
    use ActionPhase::{Acting, Clearing, Restoring, Waiting, Writing};
    let app: AppUuid = "fleet".parse().unwrap();
    for (verb, phase, is_recreated, is_purged, starts) in [
        (Verb::Restart(None), Waiting, false, false, false),
        (Verb::Restart(None), Writing, false, false, true),
        (Verb::Restart(None), Acting, true, false, true),
        (Verb::Purge, Clearing, false, true, true),
        (Verb::Purge, Restoring, false, false, true),
        (Verb::Start(name("web")), Acting, false, false, true),
        (Verb::Stop(name("web")), Acting, false, false, false),
    ] {
        let row = format!("{verb:?} {phase:?}");
        let mut actions = Actions::default();
        actions.resume(app.clone(), stored(verb, phase));
        let mut current = CurrentState::default();
        actions.describe(&mut current);
        assert_eq!(!current.recreated.is_empty(), is_recreated, "{row}");
        assert_eq!(current.purged.contains(&app), is_purged, "{row}");
        assert_eq!(actions.apps_to_start().contains(&app), starts, "{row}");
        assert!(current.restored.is_empty() && actions.restored_app(&app).is_none());
        let before = shop("c0", json!([]));
        actions.for_app_mut(&app).unwrap().state.restores = Some(Box::new(before.clone()));
        actions.describe(&mut current);
        assert!(current.restored.contains(&app));
        assert_eq!(actions.restored_app(&app), Some(&before));
    }
}

#[test]
fn an_action_on_what_the_target_does_not_run_here_is_refused() {
    let desired = |change: &dyn Fn(&mut DesiredApp)| {
        let services =
            json!([{ "serviceName": "web" }, { "serviceName": "off", "running": false }]);
        let mut app = shop("c1", services);
        change(&mut app);
        DesiredState {
            apps: [(app.uuid.clone(), app)].into(),
            ..DesiredState::default()
        }
    };
    let as_is = desired(&|_| {});
    let not_ours = desired(&|app| app.not_ours = true);
    let rejected = desired(&|app| app.rejected = true);
    let start = |service| Verb::Start(name(service));
    for (target, verb, expected) in [
        (None, Verb::Purge, Some("no target state")),
        (Some(&not_ours), Verb::Purge, Some("not run by this")),
        (Some(&rejected), Verb::Purge, Some("was rejected")),
        (Some(&as_is), start("off"), Some("stops service `off`")),
        (Some(&as_is), Verb::Stop(name("off")), None),
        (Some(&as_is), start("web"), None),
        (Some(&DesiredState::default()), start("off"), None),
    ] {
        let refusal = action(verb.clone(), ActionPhase::Waiting, true).refusal(target);
        let is_expected = match (&refusal, expected) {
            (Some(why), Some(expected)) => why.contains(expected),
            (refusal, expected) => refusal.is_none() && expected.is_none(),
        };
        assert!(is_expected, "{verb:?}: {refusal:?}");
    }
}

use std::time::Duration;

use serde_json::json;

use super::trial::STEADY;
use super::*;
use crate::fixtures::shop;

fn commit(text: &str) -> Commit {
    text.parse().unwrap()
}

fn app(release: &str) -> DesiredApp {
    DesiredApp {
        id: AppId(1),
        uuid: "fleet".parse().unwrap(),
        name: "shop".to_owned(),
        commit: Some(commit(release)),
        release: None,
        not_ours: false,
        rejected: false,
        services: BTreeMap::new(),
        volumes: BTreeMap::new(),
        networks: BTreeMap::new(),
    }
}

const RULES: TrialRules = TrialRules {
    time: Duration::from_secs(60),
    has_gates: false,
};

fn seen(services: Result<(), &str>) -> AppObservation {
    AppObservation {
        has_begun: true,
        is_whole: true,
        is_busy: false,
        services: services.map_err(str::to_owned),
    }
}

/// Examines the release until it is judged; returns `None` if it never is.
fn outcome(
    trials: &mut ReleaseTrials,
    release: &str,
    services: Result<(), &str>,
) -> Option<TrialStep> {
    let begin = Instant::now();
    (0..300).find_map(|second| {
        let now = begin + Duration::from_secs(second);
        trials.look(&app(release), &seen(services), Some(RULES), now)
    })
}

#[test]
fn the_newest_releases_that_were_not_healthy_are_remembered() {
    let mut trials = ReleaseTrials::default();
    assert_eq!(
        outcome(&mut trials, "good", Ok(())),
        Some(TrialStep::Accept)
    );
    for number in 0..20 {
        let release = format!("bad{number}");
        let step = outcome(&mut trials, &release, Err("it fails"));
        assert!(matches!(step, Some(TrialStep::Reject { .. })), "{step:?}");
        assert_eq!(outcome(&mut trials, &release, Ok(())), None);
    }
    let record = &trials.records[&app("good").uuid];
    let rejected = record.rejected.iter().map(|it| it.commit.as_str());
    let expected: Vec<String> = (12..20).map(|number| format!("bad{number}")).collect();
    assert!(rejected.eq(expected.iter().map(String::as_str)));
}

#[test]
fn a_release_is_steady_for_ten_seconds_without_a_break_before_it_counts() {
    let mut trials = ReleaseTrials::default();
    let begin = Instant::now();
    let mut look = |second, services| {
        let now = begin + Duration::from_secs(second);
        trials.look(&app("c1"), &seen(services), Some(RULES), now)
    };
    assert_eq!(look(0, Ok(())), None);
    assert_eq!(look(9, Ok(())), None);
    assert_eq!(look(10, Err("it ends")), None);
    assert_eq!(look(11, Ok(())), None);
    assert_eq!(look(20, Ok(())), None);
    assert_eq!(look(21, Ok(())), Some(TrialStep::Accept));
}

#[test]
fn the_time_begins_anew_after_what_stands_in_its_way_and_does_not_end_for_what_has_just_become_healthy()
 {
    let mut trials = ReleaseTrials::default();
    trials.look(&app("c0"), &seen(Ok(())), None, Instant::now());
    let begin = Instant::now();
    let busy = AppObservation {
        is_busy: true,
        ..seen(Ok(()))
    };
    let mut look = |second, seen: &AppObservation| {
        let now = begin + Duration::from_secs(second);
        trials.look(&app("c1"), seen, Some(RULES), now)
    };
    assert_eq!(look(0, &seen(Err("it fails"))), None);
    assert_eq!(look(10, &busy), None);
    assert_eq!(look(500, &seen(Err("it fails"))), None);
    assert_eq!(look(559, &seen(Ok(()))), None);
    assert_eq!(look(565, &seen(Ok(()))), None);
    assert_eq!(look(569, &seen(Ok(()))), Some(TrialStep::Accept));
}

#[test]
fn the_loop_wakes_when_a_release_may_be_judged() {
    let mut trials = ReleaseTrials::default();
    let now = Instant::now();
    trials.look(&app("c1"), &seen(Ok(())), Some(RULES), now);
    let mut times: Vec<_> = trials.times(Some(RULES)).collect();
    times.sort();
    assert_eq!(times, [now + STEADY, now + RULES.time]);
}

#[test]
fn records_of_one_app_are_written_one_after_the_other() {
    let mut trials = ReleaseTrials::default();
    let uuid = app("c1").uuid;
    trials.look(&app("c1"), &seen(Ok(())), None, Instant::now());
    assert_eq!(trials.take_unwritten().len(), 1);
    trials.look(&app("c2"), &seen(Ok(())), None, Instant::now());
    assert_eq!(trials.take_unwritten(), []);
    trials.written(&uuid);
    let unwritten = trials.take_unwritten();
    let [(_, Some(record))] = unwritten.as_slice() else {
        panic!("{unwritten:?}");
    };
    assert_eq!(record.healthy, Some(app("c2")));
    trials.write_again(uuid);
    assert_eq!(trials.take_unwritten().len(), 1);
}

#[test]
fn a_record_comes_back_from_the_store_as_it_was_and_an_app_that_is_gone_has_none() {
    let mut trials = ReleaseTrials::default();
    outcome(&mut trials, "good", Ok(()));
    outcome(&mut trials, "bad", Err("it fails"));
    let uuid = app("good").uuid;
    let record = &trials.records[&uuid];
    let stored = serde_json::to_value(record).unwrap();
    let read: ReleaseRecord = serde_json::from_value(stored).unwrap();
    assert_eq!(read, *record);

    let mut trials = ReleaseTrials::new([(uuid.clone(), read)].into());
    let mut desired = DesiredState::default();
    desired.apps.insert(uuid.clone(), app("bad"));
    trials.substitute(&mut desired, &[]);
    assert_eq!(desired.apps[&uuid], app("good"));
    assert_eq!(trials.rejected_release(&uuid).unwrap().reason, "it fails");

    trials.retain(&DesiredState::default());
    assert_eq!(trials.take_unwritten(), [(uuid, None)]);
}

#[test]
fn what_runs_in_place_of_another_release_has_the_keys_of_now() {
    let with_service = |release: &str, key: &str| {
        let environment = json!({ "KEY": key, "RELEASE": release });
        shop(
            release,
            json!([{ "serviceName": "web", "environment": environment }]),
        )
    };
    let mut trials = ReleaseTrials::default();
    let now = Instant::now();
    trials.look(&with_service("good", "old"), &seen(Ok(())), None, now);
    outcome(&mut trials, "bad", Err("it fails"));
    let uuid = app("good").uuid;
    let mut desired = DesiredState::default();
    desired
        .apps
        .insert(uuid.clone(), with_service("bad", "new"));
    trials.substitute(&mut desired, &["KEY".to_owned()]);
    let environment = &desired.apps[&uuid].services[&"web".parse::<ServiceName>().unwrap()]
        .config
        .environment;
    assert_eq!(
        (&*environment["KEY"], &*environment["RELEASE"]),
        ("new", "good")
    );
}

#[test]
fn a_verdict_counts_for_the_release_that_plugins_were_asked_about_and_for_no_other() {
    let rules = TrialRules {
        has_gates: true,
        ..RULES
    };
    let mut trials = ReleaseTrials::default();
    trials.look(&app("c0"), &seen(Ok(())), None, Instant::now());
    let begin = Instant::now();
    let at = |second| begin + Duration::from_secs(second);
    let uuid = app("c0").uuid;
    let look = |trials: &mut ReleaseTrials, release: &str, second| {
        trials.look(&app(release), &seen(Ok(())), Some(rules), at(second))
    };
    assert_eq!(look(&mut trials, "c1", 0), None);
    assert_eq!(look(&mut trials, "c1", 10), Some(TrialStep::AskGates));
    assert_eq!(look(&mut trials, "c2", 11), None);
    assert_eq!(look(&mut trials, "c2", 21), Some(TrialStep::AskGates));
    let refusal = ReleaseVerdict::Unhealthy {
        reason: "the press does not move".to_owned(),
    };
    trials.answered(&uuid, &commit("c1"), refusal, at(22));
    assert_eq!(look(&mut trials, "c2", 22), None);
    trials.answered(&uuid, &commit("c2"), ReleaseVerdict::Healthy, at(23));
    assert_eq!(look(&mut trials, "c2", 23), Some(TrialStep::Accept));
}

#[test]
fn plugins_that_are_being_asked_when_the_time_is_over_still_answer_and_are_not_asked_again() {
    let rules = TrialRules {
        has_gates: true,
        ..RULES
    };
    let not_yet = |seconds| ReleaseVerdict::NotYet {
        reason: "the press warms up".to_owned(),
        delay: Duration::from_secs(seconds),
    };
    let mut trials = ReleaseTrials::default();
    trials.look(&app("c0"), &seen(Ok(())), None, Instant::now());
    let begin = Instant::now();
    let at = |second| begin + Duration::from_secs(second);
    let uuid = app("c0").uuid;
    let look = |trials: &mut ReleaseTrials, second| {
        trials.look(&app("c1"), &seen(Ok(())), Some(rules), at(second))
    };
    assert_eq!(look(&mut trials, 0), None);
    assert_eq!(look(&mut trials, 10), Some(TrialStep::AskGates));
    trials.answered(&uuid, &commit("c1"), not_yet(45), at(11));
    assert_eq!(look(&mut trials, 55), None);
    assert_eq!(look(&mut trials, 56), Some(TrialStep::AskGates));
    assert_eq!(look(&mut trials, 60), None);
    trials.answered(&uuid, &commit("c1"), not_yet(0), at(61));
    let step = look(&mut trials, 61);
    let Some(TrialStep::Reject { rejected, .. }) = step else {
        panic!("{step:?}");
    };
    assert_eq!(rejected.reason, "the press warms up");
}

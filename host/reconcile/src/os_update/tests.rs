//! The findings from the provider's status, as tables.

use std::time::Duration;

use model::DesiredOs;
use plan::{OsPhase, OsStatus};
use tokio::time::Instant;

use super::{OsNotice, OsRecord, OsTrialRules, OsUpdate, TrialApp, TrialOutcome};
use crate::ReleaseVerdict;

fn status(running: &str, staged: Option<&str>) -> OsStatus {
    OsStatus {
        running: running.parse().unwrap(),
        staged: staged.map(|version| version.parse().unwrap()),
        committed: false,
        installing: None,
    }
}

fn desired_os(version: &str) -> DesiredOs {
    DesiredOs {
        version: version.parse().unwrap(),
        bundle: "/data/bundle".parse().unwrap(),
    }
}

fn boot(name: &str) -> model::BootId {
    name.parse().unwrap()
}

/// Returns the state when the provider is about to activate version 2 in the boot `one`, and this
/// is stored.
fn activating() -> OsUpdate {
    let mut update = OsUpdate::new(OsRecord::default(), Some(&boot("one")));
    let version = "2".parse().unwrap();
    let record = update.begin_activation(&version, Some(&desired_os("2")), Some(&boot("one")));
    assert!(record.is_some());
    update.written();
    update
}

/// Returns the state when it has done so, and this is stored.
fn activated() -> OsUpdate {
    let mut update = activating();
    update.activated();
    assert!(update.take_unwritten().is_some());
    update.written();
    update
}

/// Processes a status: this version runs in this boot.
fn look(update: &mut OsUpdate, running: &str, in_boot: &str) -> Vec<OsNotice> {
    let status = status(running, None);
    let (desired, boot) = (desired_os("2"), boot(in_boot));
    update.look(status, None, Some(&desired), Some(&boot), Instant::now())
}

#[tokio::test(start_paused = true)]
async fn what_came_up_after_a_reboot_decides() {
    assert_eq!(look(&mut activated(), "1", "one"), []);
    assert_eq!(
        look(&mut activated(), "2", "two"),
        [OsNotice::OnTrial("2".parse().unwrap())]
    );
    let mut fell_back = activated();
    let notices = look(&mut fell_back, "1", "two");
    assert!(
        matches!(notices.as_slice(), [OsNotice::Rejected(_)]),
        "{notices:?}"
    );
    assert!(!fell_back.has_attempt());
    assert!(fell_back.rejected(&"2".parse().unwrap()).is_some());
    assert_eq!(look(&mut fell_back, "1", "two"), []);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_nobody_knows_to_have_been_activated_is_not_rejected() {
    let version = "2".parse().unwrap();
    let mut update = activating();
    let notices = look(&mut update, "1", "two");
    assert_eq!(notices, [OsNotice::NotActivated(version)]);
    assert!(!update.has_attempt() && update.rejected(&"2".parse().unwrap()).is_none());
    // It was activated, so if the boot loader gives it up later, it has a reason.
    let mut update = activating();
    let notices = look(&mut update, "2", "two");
    assert_eq!(notices, [OsNotice::OnTrial("2".parse().unwrap())]);
    let record = serde_json::to_string(&update.take_unwritten().unwrap()).unwrap();
    let mut update = OsUpdate::new(serde_json::from_str(&record).unwrap(), Some(&boot("three")));
    let notices = look(&mut update, "1", "three");
    assert!(
        matches!(notices.as_slice(), [OsNotice::Rejected(_)]),
        "{notices:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_planner_is_told_nothing_while_the_store_is_behind() {
    let rules = OsTrialRules {
        time: Duration::from_secs(60),
        has_gates: false,
    };
    let mut update = activated();
    look(&mut update, "1", "two");
    assert_eq!(update.describe(rules).status, None);
    let record = update.take_unwritten().unwrap();
    assert!(update.is_writing() && update.take_unwritten().is_none());
    assert_eq!(update.describe(rules).status, None);
    update.write_failed();
    assert_eq!(update.describe(rules).status, None);
    update.write_again();
    assert_eq!(update.take_unwritten(), Some(record));
    update.written();
    assert!(update.describe(rules).status.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_record_outlives_the_process_and_the_newest_rejections_are_kept() {
    let mut record = OsRecord::default();
    for number in 0..20 {
        record.reject(number.to_string().parse().unwrap(), "no".to_owned());
    }
    record.reject("15".parse().unwrap(), "still not".to_owned());
    let text = serde_json::to_string(&record).unwrap();
    let update = OsUpdate::new(serde_json::from_str(&text).unwrap(), None);
    let is_rejected = |number: i32| update.rejected(&number.to_string().parse().unwrap());
    let kept: Vec<i32> = (0..20).filter(|it| is_rejected(*it).is_some()).collect();
    assert_eq!(kept, [12, 13, 14, 15, 16, 17, 18, 19]);
    assert_eq!(is_rejected(15).unwrap().reason, "still not");
}

#[tokio::test(start_paused = true)]
async fn a_version_has_its_time_and_no_longer() {
    let rules = OsTrialRules {
        time: Duration::from_secs(60),
        has_gates: false,
    };
    let app = |services: Result<(), &str>| TrialApp {
        app: "shop".parse().unwrap(),
        services: services.map_err(str::to_owned),
    };
    let (well, ill) = (app(Ok(())), app(Err("the service `web` has ended")));
    let begun = Instant::now();
    let at = |seconds: u64| begun + Duration::from_secs(seconds);
    let mut update = activated();
    look(&mut update, "2", "two");
    for (seconds, app, expected) in [
        (0, &ill, None),
        (5, &well, None),
        (14, &well, None),
        (15, &well, Some(TrialOutcome::Healthy)),
        (16, &ill, None),
        (90, &ill, None),
    ] {
        let outcome = update.judge(std::slice::from_ref(app), rules, at(seconds));
        assert_eq!(outcome, expected, "{seconds}");
    }
    let mut update = activated();
    look(&mut update, "2", "two");
    for (seconds, app) in [(5, &well), (14, &ill), (20, &well), (29, &ill), (59, &ill)] {
        let outcome = update.judge(std::slice::from_ref(app), rules, at(seconds));
        assert_eq!(outcome, None, "{seconds}");
    }
    let outcome = update.judge(&[ill], rules, at(60));
    let reason = "the service `web` has ended".to_owned();
    assert_eq!(outcome, Some(TrialOutcome::Unhealthy(reason)));
    let described = update.describe(rules);
    let attempt = described.attempt.unwrap();
    assert_eq!(attempt.phase, OsPhase::RollingBack);
    assert!(described.rejected.contains(&"2".parse().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn an_activation_begins_only_for_the_wanted_version_and_once_the_store_is_not_behind() {
    let version = "2".parse().unwrap();
    let in_boot = boot("one");
    let begins = |update: &mut OsUpdate, desired: Option<&DesiredOs>, boot| {
        update.begin_activation(&version, desired, boot).is_some()
    };
    let (desired_version, other) = (desired_os("2"), desired_os("3"));
    for (desired, boot, expected) in [
        (Some(&desired_version), Some(&in_boot), true),
        (Some(&desired_version), None, false),
        (Some(&other), Some(&in_boot), false),
        (None, Some(&in_boot), false),
    ] {
        let mut update = OsUpdate::default();
        assert_eq!(begins(&mut update, desired, boot), expected, "{desired:?}");
        assert_eq!(update.has_attempt(), expected);
    }
    let mut behind = OsUpdate::default();
    behind.write_again();
    assert!(!begins(&mut behind, Some(&desired_version), Some(&in_boot)));
    let mut record = OsRecord::default();
    record.reject(version.clone(), "it is not healthy".to_owned());
    let mut rejecting = OsUpdate::new(record, Some(&in_boot));
    assert!(!begins(
        &mut rejecting,
        Some(&desired_version),
        Some(&in_boot)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_version_that_runs_gets_no_other_trial() {
    let mut record = OsRecord::default();
    record.reject("2".parse().unwrap(), "it is not healthy".to_owned());
    let mut update = OsUpdate::new(record, Some(&boot("two")));
    assert_eq!(look(&mut update, "2", "two"), []);
    assert!(!update.has_attempt());
}

#[tokio::test(start_paused = true)]
async fn a_failed_installation_beside_an_older_version_is_no_reason_to_reject_the_new_one() {
    let mut update = OsUpdate::default();
    let look = |update: &mut OsUpdate| {
        let status = status("1", Some("1.5"));
        let desired = desired_os("2");
        let failure = Some("no space left".to_owned());
        update.look(status, failure, Some(&desired), None, Instant::now())
    };
    assert_eq!(look(&mut update), []);
    update.staging_begun("2".parse().unwrap());
    let failed = OsNotice::StagingFailed("no space left".to_owned());
    assert_eq!(look(&mut update), [failed]);
    assert!(update.rejected(&"2".parse().unwrap()).is_none());
}

/// Returns the state in which version 2 is on trial from now on.
fn on_trial() -> OsUpdate {
    let mut update = activated();
    look(&mut update, "2", "two");
    update
}

fn healthy_app(name: &str) -> TrialApp {
    TrialApp {
        app: name.parse().unwrap(),
        services: Ok(()),
    }
}

/// A trial in which plugins are queried.
const GATED: OsTrialRules = OsTrialRules {
    time: Duration::from_secs(60),
    has_gates: true,
};

#[tokio::test(start_paused = true)]
async fn a_short_trial_ends_well_after_half_of_its_time() {
    let rules = OsTrialRules {
        time: Duration::from_secs(10),
        has_gates: false,
    };
    let begun = Instant::now();
    let mut update = on_trial();
    for (seconds, expected) in [(0, None), (4, None), (5, Some(TrialOutcome::Healthy))] {
        let now = begun + Duration::from_secs(seconds);
        let outcome = update.judge(&[healthy_app("shop")], rules, now);
        assert_eq!(outcome, expected, "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_app_is_queried_once_it_is_steady_and_again_when_its_plugins_say() {
    let begun = Instant::now();
    let at = |seconds: u64| begun + Duration::from_secs(seconds);
    let (shop, bar) = (healthy_app("shop"), healthy_app("bar"));
    let ill = TrialApp {
        services: Err("the service `web` has ended".to_owned()),
        ..shop.clone()
    };
    let both = [shop.clone(), bar.clone()];
    let ask = |apps: &[&TrialApp]| {
        let apps = apps.iter().map(|app| app.app.clone());
        Some(TrialOutcome::Ask(apps.collect()))
    };
    let mut update = on_trial();
    assert_eq!(update.judge(&both, GATED, at(0)), None);
    assert_eq!(update.judge(&both, GATED, at(10)), ask(&[&shop, &bar]));
    assert_eq!(update.judge(&both, GATED, at(11)), None);
    update.answered(&shop.app, ReleaseVerdict::Healthy, at(11));
    let not_yet = ReleaseVerdict::NotYet {
        reason: "it warms up".to_owned(),
        delay: Duration::from_secs(20),
    };
    update.answered(&bar.app, not_yet, at(11));
    for seconds in [11, 30] {
        assert_eq!(update.judge(&both, GATED, at(seconds)), None, "{seconds}");
    }
    assert!(update.times(GATED).any(|time| time == at(31)));
    assert_eq!(update.judge(&both, GATED, at(31)), ask(&[&bar]));
    update.answered(&bar.app, ReleaseVerdict::Healthy, at(32));
    // What plugins found before a service failed does not count any more.
    assert_eq!(update.judge(&[ill, bar.clone()], GATED, at(33)), None);
    assert_eq!(update.judge(&both, GATED, at(34)), None);
    assert_eq!(update.judge(&both, GATED, at(44)), ask(&[&shop, &bar]));
    for app in [&shop, &bar] {
        update.answered(&app.app, ReleaseVerdict::Healthy, at(45));
    }
    let outcome = update.judge(&both, GATED, at(45));
    assert_eq!(outcome, Some(TrialOutcome::Healthy));
}

#[tokio::test(start_paused = true)]
async fn a_query_that_is_open_when_the_time_is_over_is_still_answered() {
    let begun = Instant::now();
    let at = |seconds: u64| begun + Duration::from_secs(seconds);
    let app = healthy_app("shop");
    let judge = |update: &mut OsUpdate, seconds| {
        update.judge(std::slice::from_ref(&app), GATED, at(seconds))
    };
    let not_yet = ReleaseVerdict::NotYet {
        reason: "it warms up".to_owned(),
        delay: Duration::from_secs(20),
    };
    for (verdict, expected) in [
        (ReleaseVerdict::Healthy, TrialOutcome::Healthy),
        (not_yet, TrialOutcome::Unhealthy("it warms up".to_owned())),
    ] {
        let mut update = on_trial();
        assert_eq!(judge(&mut update, 45), None);
        let ask = TrialOutcome::Ask(vec![app.app.clone()]);
        assert_eq!(judge(&mut update, 59), Some(ask));
        assert_eq!(judge(&mut update, 60), None);
        update.answered(&app.app, verdict, at(61));
        assert_eq!(judge(&mut update, 61), Some(expected));
    }
}

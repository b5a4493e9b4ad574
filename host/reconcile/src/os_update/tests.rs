//! The findings from the provider's status, as tables.

use std::time::Duration;

use model::DesiredOs;
use plan::{OsPhase, OsStatus};
use tokio::time::Instant;

use super::{OsNotice, OsRecord, OsTrialRules, OsUpdate, TrialApp, TrialOutcome};

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

use plan::OsStatus;
use serde_json::json;

use super::*;

const POLL: Duration = Duration::from_secs(900);

fn view() -> OsView {
    OsView::new(OsRecord::default(), None)
}

fn version(text: &str) -> OsVersion {
    text.parse().unwrap()
}

fn desired() -> DesiredOs {
    DesiredOs {
        version: version("2"),
        bundle: "/data/bundle".parse().unwrap(),
    }
}

fn status() -> OsObservation {
    OsObservation::Status {
        status: OsStatus {
            running: version("1"),
            staged: None,
            committed: true,
            installing: None,
        },
        failure: None,
    }
}

#[test]
fn the_status_is_queried_only_if_a_version_is_desired_or_being_tried() {
    let now = Instant::now();
    let attempt = json!({ "attempt": { "version": "2", "boot": "b", "phase": "activated" } });
    let trying = OsView::new(
        serde_json::from_value(attempt).unwrap(),
        Some(&"b".parse().unwrap()),
    );
    for (view, desired, expected) in [
        (view(), None, false),
        (view(), Some(&desired()), true),
        (trying, None, true),
    ] {
        assert_eq!(view.needs_look(desired, now), expected);
        assert_eq!(view.is_busy(desired), expected);
    }
}

#[test]
fn one_query_at_a_time_and_its_result_does_not_count_if_something_has_changed() {
    let (now, desired) = (Instant::now(), desired());
    let desired = Some(&desired);
    let mut view = view();
    view.begin_look();
    assert!(!view.needs_look(desired, now) && view.is_busy(desired));
    view.is_stale = true;
    assert!(!view.accept(&status()));
    assert!(view.needs_look(desired, now));
    view.begin_look();
    assert!(view.accept(&status()));
    assert!(!view.is_busy(desired));
    view.look_again(now, POLL);
    assert!(!view.needs_look(desired, now));
    assert!(view.needs_look(desired, now + POLL));
}

#[test]
fn an_installation_is_watched_more_closely_and_each_percentage_is_reported_once() {
    let now = Instant::now();
    let rules = OsTrialRules {
        time: POLL,
        has_gates: false,
    };
    let mut view = view();
    for (wait, expected) in [(POLL, WATCH), (WATCH / 2, WATCH / 2)] {
        view.look_again(now, wait);
        assert!(view.times(rules).eq([now + wait]));
        view.begin_staging(version("2"));
        view.look_again(now, wait);
        assert!(view.times(rules).eq([now + expected]));
        view.update = OsUpdate::default();
    }
    let reported = [0, 0, 40].map(|percent| view.note_progress(percent));
    assert_eq!(reported, [true, false, true]);
    view.begin_staging(version("3"));
    assert!(view.note_progress(40));
}

#[test]
fn what_holds_a_version_back_is_known_once_and_only_if_the_reboot_does_not_take_place() {
    let postponement = UpdatePostponement {
        plugin: "press".to_owned(),
        reason: "the press is running".to_owned(),
        delay: POLL,
    };
    let postponed = "the plugin `press` postpones it: the press is running".to_owned();
    let changed = "the target no longer asks for the version".to_owned();
    for (hold, error) in [
        (
            Hold::Postponed(postponement),
            ActionError::Locked(postponed),
        ),
        (
            Hold::Failed("why".into()),
            ActionError::Failed("why".into()),
        ),
        (Hold::Changed, ActionError::Failed(changed)),
    ] {
        assert_eq!(hold.to_action_error(), error);
        for is_taking_place in [false, true] {
            let mut view = view();
            view.activates = Some(version("2"));
            view.hold_back(hold.clone());
            let expected = (!is_taking_place).then(|| hold.clone());
            assert_eq!(view.end_reboot(is_taking_place), expected);
            assert_eq!(view.activates, None);
            assert_eq!(view.end_reboot(false), None);
        }
    }
}

#[test]
fn an_activation_ends_with_the_write_that_records_it() {
    for (write, ends) in [
        (RecordWrite::Again, false),
        (RecordWrite::Done, true),
        (RecordWrite::Failed, true),
    ] {
        let mut view = view();
        assert!(!view.ends_activation(write), "nothing was activated");
        view.note_activation();
        assert_eq!(view.ends_activation(write), ends);
        assert_eq!(view.ends_activation(RecordWrite::Done), !ends);
    }
}

#[test]
fn the_blocker_says_why_nothing_leads_to_the_version() {
    let record = json!({ "rejected": [{ "version": "2", "reason": "it is not healthy" }] });
    let rejecting = || OsView::new(serde_json::from_value(record.clone()).unwrap(), None);
    let version = desired().version;
    let reason = "it is not healthy".to_owned();
    let rejected = Blocker::OsRejected {
        version: version.clone(),
        reason,
    };
    let unavailable = Blocker::OsUnavailable { version };
    for (mut view, look, expected) in [
        (view(), status(), None),
        (view(), OsObservation::Unavailable, Some(unavailable)),
        (rejecting(), status(), Some(rejected.clone())),
        (
            rejecting(),
            OsObservation::Unavailable,
            Some(rejected.clone()),
        ),
    ] {
        view.begin_look();
        assert!(view.accept(&look));
        let is_rejected = expected.as_ref() == Some(&rejected);
        assert_eq!(view.blocker(Some(&desired())), expected);
        assert_eq!(view.rejected(Some(&desired())).is_some(), is_rejected);
        assert_eq!(view.blocker(None), None);
    }
    let mut view = view();
    view.note_unreadable();
    assert!(view.note_readable() && !view.note_readable());
}

#[test]
fn what_a_provider_reported_before_it_failed_does_not_count() {
    let rules = OsTrialRules {
        time: POLL,
        has_gates: false,
    };
    let mut view = view();
    let OsObservation::Status { status, failure } = status() else {
        panic!("it is a status");
    };
    let look = view
        .update
        .look(status, failure, None, None, Instant::now());
    assert_eq!(look, []);
    assert!(view.update.describe(rules).status.is_some());
    view.note_unreadable();
    assert_eq!(view.update.describe(rules).status, None);
}

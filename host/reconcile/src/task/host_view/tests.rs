use std::time::Duration;

use model::HostPart;

use super::*;

fn view() -> HostView {
    HostView::new(None, None, 0, OsRecord::default())
}

/// Returns a host of which the first comparison shows that the boot configuration differs.
fn compared(look: &HostComparison) -> HostView {
    let mut view = view();
    view.begin_look();
    assert_eq!(
        view.accept(look, Instant::now()),
        Some(look.warnings.clone())
    );
    view
}

fn differs() -> HostComparison {
    HostComparison {
        differs: [HostPart::BootConfig].into(),
        ..HostComparison::default()
    }
}

fn target(number: u32) -> Option<Arc<TargetState>> {
    let config = [("A".to_owned(), number.to_string())];
    Some(Arc::new(TargetState {
        config: config.into(),
        ..TargetState::default()
    }))
}

#[test]
fn the_host_is_compared_if_something_may_have_changed_or_it_is_time_to() {
    let now = Instant::now();
    let later = now + Duration::from_secs(900);
    let look = HostComparison {
        look_again: true,
        ..HostComparison::default()
    };
    let mut view = view();
    assert!(view.needs_look(false, now));
    view.begin_look();
    view.mark();
    assert!(!view.needs_look(true, now), "one comparison at a time");
    assert_eq!(view.accept(&look, later), None);
    assert!(view.needs_look(false, now), "it was marked meanwhile");
    view.begin_look();
    assert!(view.accept(&look, later).is_some());
    for (is_retry_due, at, expected) in
        [(false, now, false), (true, now, true), (false, later, true)]
    {
        assert_eq!(view.needs_look(is_retry_due, at), expected);
    }
    assert_eq!(view.next_look(), Some(later));
    view.begin_look();
    assert_eq!(view.next_look(), None);
}

#[test]
fn a_comparison_does_not_apply_to_what_has_changed_since() {
    type Change = fn(&mut HostView);
    for (what, change, counts) in [
        ("nothing", (|_| ()) as Change, true),
        ("the host", HostView::mark, false),
        ("the target", |view| _ = view.set_target(target(1)), false),
        ("a shutdown that ended", |view| view.resume(None), false),
        ("another comparison", HostView::begin_look, false),
    ] {
        let mut view = compared(&differs());
        change(&mut view);
        let current = view.describe(BTreeSet::new());
        assert_eq!(!current.differs.is_empty(), counts, "{what}");
        assert_eq!(view.can_reboot(), counts, "{what}");
        assert_eq!(
            view.is_unknown(Some(&DesiredHost::default())),
            !counts,
            "{what}"
        );
        assert!(!view.is_unknown(None));
    }
}

#[test]
fn an_empty_configuration_does_not_wait_for_the_first_comparison() {
    let empty = DesiredHost::default();
    let logging = DesiredHost {
        persistent_logging: true,
        ..DesiredHost::default()
    };
    let mut view = view();
    assert!(!view.is_unknown(Some(&empty)));
    assert!(view.is_unknown(Some(&logging)));
    view.begin_look();
    view.accept(&differs(), Instant::now());
    assert!(!view.is_unknown(Some(&logging)));
    view.mark();
    assert!(view.is_unknown(Some(&empty)));
}

#[test]
fn a_warning_is_logged_once_for_as_long_as_it_applies() {
    let look = |warnings: &[&str]| HostComparison {
        warnings: warnings.iter().map(|&warning| warning.to_owned()).collect(),
        ..HostComparison::default()
    };
    let mut view = compared(&look(&["a"]));
    for (warnings, new) in [
        (&["a", "b"][..], &["b"][..]),
        (&["b"], &[]),
        (&["b", "a", "a"], &["a"]),
    ] {
        view.begin_look();
        let logged = view.accept(&look(warnings), Instant::now()).unwrap();
        assert_eq!(logged, new, "{warnings:?}");
    }
}

#[test]
fn reboots_are_counted_until_the_target_is_reached_or_another_one() {
    let mut view = compared(&HostComparison::default());
    assert!(view.set_target(target(1)));
    let version: OsVersion = "2".parse().unwrap();
    assert_eq!(view.begin_reboot(Some(version.clone())), 1);
    assert_eq!(view.os.activates, Some(version));
    assert_eq!(view.begin_reboot(None), 2);
    assert!(!view.set_target(target(1)), "the same target again");
    assert!(view.set_target(target(2)));
    assert_eq!(view.variables().unwrap()["A"], "2");
    assert_eq!(view.describe(BTreeSet::new()).reboots, 2);
    assert_eq!([(); 3].map(|()| view.uncount_reboot()), [1, 0, 0]);
    view.begin_reboot(None);
    assert!(view.forget_reboots() && !view.forget_reboots());
}

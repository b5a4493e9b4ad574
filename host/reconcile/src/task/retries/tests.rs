use model::ServiceKey;

use super::*;

const POLL: Duration = Duration::from_secs(900);

fn fail_reboot(retries: &mut Retries, poll_interval: Duration) -> BackOff {
    retries.step_failed(Subject::Reboot, &StepFailure::new("locked"), poll_interval)
}

#[test]
fn a_container_that_is_refused_three_times_in_a_row_is_stuck() {
    let service = || {
        Subject::Service(ServiceKey {
            app: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            service: "web".parse().unwrap(),
        })
    };
    let refused = |id: &str| StepFailure {
        stuck_container: Some(id.parse().unwrap()),
        ..StepFailure::new("already exists")
    };
    let other = || StepFailure::new("out of memory");
    let cases = [
        (vec![refused("a"), refused("a")], None),
        (vec![refused("a"), refused("a"), refused("a")], Some("a")),
        (
            vec![refused("a"), refused("a"), other(), refused("a")],
            None,
        ),
        (vec![refused("a"), refused("a"), refused("b")], None),
    ];
    for (failures, expected) in cases {
        let mut retries = Retries::new(&Limits::default());
        for failure in &failures {
            retries.step_failed(service(), failure, POLL);
        }
        let failed = retries.failures(Instant::now());
        let stuck = failed[&service()].stuck_container.as_ref();
        assert_eq!(stuck.map(ContainerId::as_str), expected, "{failures:?}");
    }
}

#[test]
fn failures_in_a_row_wait_longer_and_a_success_begins_anew() {
    let mut retries = Retries::new(&Limits::default());
    let first = fail_reboot(&mut retries, POLL);
    let second = fail_reboot(&mut retries, POLL);
    assert_eq!((first.count, second.count), (1, 2));
    assert!(second.delay > first.delay);
    retries.forget_step(&Subject::Reboot);
    assert_eq!(fail_reboot(&mut retries, POLL).count, 1);
}

#[test]
fn what_is_forgotten_has_no_reason_and_other_steps_keep_theirs() {
    let mut retries = Retries::new(&Limits::default());
    fail_reboot(&mut retries, POLL);
    retries.step_failed(Subject::Os, &StepFailure::new("no space"), POLL);
    retries.forget_step(&Subject::Reboot);
    assert_eq!(retries.reason_of(&Subject::Reboot), None);
    assert_eq!(retries.reason_of(&Subject::Os), Some("no space"));
    assert!(retries.has_failed_steps());
    retries.forget_steps();
    assert_eq!(retries.reason_of(&Subject::Os), None);
    assert!(!retries.has_failed_steps());
}

#[test]
fn a_step_waits_no_longer_than_the_poll_interval() {
    let mut retries = Retries::new(&Limits::default());
    let poll = Duration::from_millis(300);
    let delays = (0..20).map(|_| fail_reboot(&mut retries, poll).delay);
    assert!(delays.max().is_some_and(|longest| longest <= poll));
}

#[test]
fn what_is_expired_is_due_at_once_and_keeps_its_count() {
    let mut retries = Retries::new(&Limits::default());
    fail_reboot(&mut retries, POLL);
    retries.engine_failed(EngineKind::Docker, "gone".to_owned());
    let now = Instant::now();
    assert!(retries.failures(now)[&Subject::Reboot].held);
    assert!(retries.engine_waits(EngineKind::Docker, now));
    assert_eq!(retries.engines_due(now).count(), 0);
    retries.expire(now);
    assert!(!retries.failures(now)[&Subject::Reboot].held);
    assert!(retries.engines_due(now).eq([EngineKind::Docker]));
    assert!(retries.times().all(|at| at == now));
    assert_eq!(fail_reboot(&mut retries, POLL).count, 2);
}

#[test]
fn what_a_plugin_postpones_waits_for_as_long_as_it_says() {
    let mut retries = Retries::new(&Limits::default());
    fail_reboot(&mut retries, POLL);
    let postponement = UpdatePostponement {
        plugin: "press".to_owned(),
        reason: "the press is running".to_owned(),
        delay: Duration::from_secs(600),
    };
    let BackOff { count, delay } = retries.postponed(Subject::Reboot, postponement);
    assert_eq!((count, delay.as_secs()), (2, 600));
    let failure = &retries.failures(Instant::now())[&Subject::Reboot];
    assert_eq!(failure.postponed_by.as_deref(), Some("press"));
    fail_reboot(&mut retries, POLL);
    let failure = &retries.failures(Instant::now())[&Subject::Reboot];
    assert_eq!(failure.postponed_by, None);
}

#[test]
fn an_engine_answers_again_once() {
    let mut retries = Retries::new(&Limits::default());
    retries.engine_failed(EngineKind::Wasm, "gone".to_owned());
    assert!(retries.is_silent(EngineKind::Wasm) && !retries.is_silent(EngineKind::Docker));
    assert!(retries.engine_answers(EngineKind::Wasm));
    assert!(!retries.engine_answers(EngineKind::Wasm));
    assert!(!retries.has_silent_engines());
}

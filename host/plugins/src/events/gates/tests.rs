use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn update() -> PendingUpdate {
    PendingUpdate {
        app_id: 1,
        app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        services: vec!["main".to_owned()],
        running_commit: None,
        target_commit: None,
    }
}

fn later(seconds: u32) -> EventAnswer {
    EventAnswer::Postpone {
        reason: "the press\nis running".to_owned(),
        seconds,
    }
}

#[test]
fn a_gate_is_queried_again_at_its_requested_time_within_bounds() {
    let gates = Gates::default();
    let now = Instant::now();
    for (seconds, expected) in [(0, 10), (30, 30), (u32::MAX, 900)] {
        let verdict = gates.hold("press", &update(), later(seconds), 60 * MINUTE, now);
        let Verdict::Wait(reason, delay) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(delay, Duration::from_secs(expected));
        assert!(!reason.contains('\n'), "{reason}");
    }
}

#[test]
fn a_gate_holds_an_update_up_for_as_long_as_the_policy_allows_and_no_longer() {
    let gates = Gates::default();
    let begin = Instant::now();
    let hold = |at| gates.hold("press", &update(), later(900), 60 * MINUTE, begin + at);
    let waits = |verdict: Verdict| match verdict {
        Verdict::Wait(_, delay) => Some(delay),
        _ => None,
    };
    assert_eq!(waits(hold(Duration::ZERO)), Some(15 * MINUTE));
    assert_eq!(waits(hold(50 * MINUTE)), Some(10 * MINUTE));
    assert_eq!(hold(60 * MINUTE), Verdict::PassedOver);
    // The rest of the same update.
    assert_eq!(hold(61 * MINUTE), Verdict::PassedOver);
    // Much later it is another update, which may be delayed again.
    assert_eq!(waits(hold(200 * MINUTE)), Some(15 * MINUTE));
}

#[test]
fn a_gate_has_its_time_for_each_app() {
    let gates = Gates::default();
    let begin = Instant::now();
    let other = PendingUpdate {
        app_uuid: "fedcba9876543210fedcba9876543210".to_owned(),
        ..update()
    };
    let hold =
        |update: &PendingUpdate, at| gates.hold("press", update, later(60), MINUTE, begin + at);
    assert!(matches!(hold(&update(), Duration::ZERO), Verdict::Wait(..)));
    assert_eq!(hold(&update(), MINUTE), Verdict::PassedOver);
    assert!(matches!(hold(&other, MINUTE), Verdict::Wait(..)));
    // And each gate has its own.
    let verdict = gates.hold("guard", &update(), later(60), MINUTE, begin + MINUTE);
    assert!(matches!(verdict, Verdict::Wait(..)), "{verdict:?}");
}

#[test]
fn a_gate_that_lets_an_update_go_on_has_no_more_time_until_that_begins() {
    let gates = Gates::default();
    let begin = Instant::now();
    let limit = 3 * MINUTE;
    let at = |answer, minutes: u32| {
        let now = begin + minutes * MINUTE;
        gates.hold("press", &update(), answer, limit, now)
    };
    let delay = |verdict: Verdict| match verdict {
        Verdict::Wait(_, delay) => Some(delay.as_secs()),
        _ => None,
    };
    assert_eq!(delay(at(later(60), 0)), Some(60));
    assert_eq!(at(EventAnswer::GoOn, 1), Verdict::GoOn);
    // The update is locked until somebody removes the lock. That is not the plugin's time.
    assert_eq!(at(EventAnswer::GoOn, 30), Verdict::GoOn);
    assert_eq!(at(EventAnswer::GoOn, 80), Verdict::GoOn);
    assert_eq!(delay(at(later(900), 120)), Some(120));
    assert_eq!(at(EventAnswer::GoOn, 121), Verdict::GoOn);
    assert_eq!(delay(at(later(900), 122)), Some(60));
    assert_eq!(at(later(900), 123), Verdict::PassedOver);
    assert_eq!(at(EventAnswer::GoOn, 124), Verdict::GoOn);
    assert_eq!(at(later(900), 125), Verdict::PassedOver);
    // The next update may be held up for the whole time again.
    gates.forget("fedcba9876543210fedcba9876543210");
    assert_eq!(at(later(900), 126), Verdict::PassedOver);
    gates.forget(&update().app_uuid);
    assert_eq!(delay(at(later(60), 127)), Some(60));
    assert_eq!(at(EventAnswer::GoOn, 128), Verdict::GoOn);
    // So may one that is asked about much later.
    assert_eq!(delay(at(later(900), 188)), Some(180));
}

/// Asks about all apps of an update, or all gates, every 10 seconds: `answer` says which of them postpone it at which
/// attempt. Returns for how long that goes on.
fn hold_up(
    gates: &Gates,
    answers: [(&str, &PendingUpdate); 2],
    answer: impl Fn(usize, u32) -> bool,
) -> Duration {
    let begin = Instant::now();
    let attempts = 0_u32..1000;
    let waits = attempts.take_while(|attempt| {
        let now = begin + Duration::from_secs(10) * *attempt;
        let verdicts = answers.iter().enumerate().map(|(number, (plugin, app))| {
            let answer = if answer(number, *attempt) {
                later(10)
            } else {
                EventAnswer::GoOn
            };
            gates.hold(plugin, app, answer, 10 * MINUTE, now)
        });
        // All of them are asked, whatever the first one answers.
        let verdicts: Vec<_> = verdicts.collect();
        verdicts
            .iter()
            .any(|verdict| matches!(verdict, Verdict::Wait(..)))
    });
    Duration::from_secs(10) * u32::try_from(waits.count()).unwrap()
}

#[test]
fn two_apps_or_two_gates_that_take_turns_hold_up_an_update_no_longer_than_both_may() {
    let other = PendingUpdate {
        app_uuid: "fedcba9876543210fedcba9876543210".to_owned(),
        ..update()
    };
    let one = update();
    for answers in [
        // An update of the operating system is asked about for each app.
        [("press", &one), ("press", &other)],
        [("press", &one), ("guard", &one)],
    ] {
        for turn in [1, 2, 7] {
            let takes_turns = |number: usize, attempt: u32| {
                usize::try_from(attempt / turn).unwrap() % 2 == number
            };
            let held = hold_up(&Gates::default(), answers, takes_turns);
            assert!(
                held > 19 * MINUTE && held <= 20 * MINUTE,
                "{turn}: {held:?}"
            );
        }
        let both = hold_up(&Gates::default(), answers, |_, _| true);
        assert_eq!(both, 10 * MINUTE);
    }
}

#[test]
fn a_policy_can_leave_a_gate_no_time() {
    let gates = Gates::default();
    let verdict = gates.hold(
        "press",
        &update(),
        later(60),
        Duration::ZERO,
        Instant::now(),
    );
    assert_eq!(verdict, Verdict::PassedOver);
}

#[test]
fn of_several_gates_of_a_release_a_refusal_counts_and_then_the_longest_wait() {
    let refusal = || EventAnswer::Refuse {
        reason: "the press\nis stuck".to_owned(),
    };
    let found = |answers: Vec<(&'static str, EventAnswer)>| verdict(answers.into_iter());
    assert_eq!(found(vec![]), GateVerdict::Healthy);
    assert_eq!(found(vec![("a", EventAnswer::GoOn)]), GateVerdict::Healthy);
    for (seconds, expected) in [(0, 10), (90, 90), (u32::MAX, 900)] {
        let answers = vec![
            ("a", later(20)),
            ("b", later(seconds)),
            ("c", EventAnswer::GoOn),
        ];
        let GateVerdict::NotYet { plugin, delay, .. } = found(answers) else {
            panic!("{seconds}");
        };
        let expected = (if expected > 20 { "b" } else { "a" }, expected.max(20));
        assert_eq!((&*plugin, delay.as_secs()), expected);
    }
    let refused = found(vec![
        ("a", later(20)),
        ("b", refusal()),
        ("c", EventAnswer::GoOn),
    ]);
    let GateVerdict::Unhealthy { plugin, reason } = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(plugin, "b");
    assert!(!reason.contains('\n'), "{reason}");
}

//! Gates for updates that fail, never answer, or postpone: an update waits for them for a bounded time.

use std::time::Duration;

use plugins::{GateVerdict, InstalledRelease, PendingUpdate, Postponement};
use tokio::time::Instant;

use crate::fixture::{ALL, Fixture, grant_all, manifest, plugin, setup};

/// The updates of `press` and of the plugins beside it wait for this many minutes at most.
const HOLD_MINUTES: u64 = 2;

/// Starts a device with a gate for each of these plugins: their names, what the configuration says that they do, and
/// their limits in the policy. Once they are loaded, the clock advances whenever nothing is running.
async fn device(gates: &[(&str, &str, &str)]) -> Fixture {
    let mut device = setup().in_process();
    let (mut policy, mut config) = (String::new(), String::new());
    for (name, behaviour, limits) in gates {
        let file = plugin(&manifest(
            name,
            &format!("{ALL}\nprovides = [\"events\"]\nevents = [\"update-gate\"]"),
        ));
        device = device.file(&format!("{name}.wasm"), &file);
        policy += &format!(
            "{}events = [\"update-gate\"]\nhold_minutes = {HOLD_MINUTES}\n{limits}\n",
            grant_all(&[name])
        );
        config += &format!("[{name}]\n{behaviour} = true\n");
    }
    let device = device.policy(&policy).config(&config).start().await;
    tokio::time::pause();
    device
}

fn update() -> PendingUpdate {
    PendingUpdate {
        app_id: 1,
        app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        services: vec!["main".to_owned()],
        running_commit: None,
        target_commit: None,
    }
}

#[tokio::test]
async fn a_gate_that_fails_postpones_an_update_by_a_minute_and_counts_as_a_failure() {
    for (behaviour, limits, expected, failure) in [
        (
            "gate-fails",
            "",
            "it cannot say: the press\\nFORGED INFO is running",
            "the gate `update-gate` failed: the press",
        ),
        (
            "gate-traps",
            "",
            "it failed: plugin `press` failed: ",
            "this gate panics",
        ),
        (
            "gate-sleeps",
            "limits = { wall_ms = 2000 }",
            "it failed: plugin `press` did not answer within 2000 ms",
            "did not answer within 2000 ms",
        ),
    ] {
        let device = device(&[("press", behaviour, limits)]).await;
        let Postponement {
            plugin,
            reason,
            delay,
        } = device.plugins.postponement(&update()).await.unwrap();
        assert_eq!(plugin, "press");
        assert!(reason.starts_with(expected), "{behaviour}: {reason}");
        assert!(!reason.contains('\n'), "{behaviour}: {reason}");
        assert_eq!(delay.as_secs(), 60, "{behaviour}");
        let report = device.report("press");
        assert_eq!((report.calls, report.failures), (1, 1), "{behaviour}");
        let last = report.last_error.unwrap();
        assert!(last.contains(failure), "{behaviour}: {last}");
        // The next device loads its plugins in real time.
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_gate_that_never_answers_has_ten_seconds_and_holds_up_nothing_else() {
    let patient = "limits = { wall_ms = 900000 }";
    let device = device(&[("press", "gate-sleeps", patient), ("b", "nothing", "")]).await;
    let begin = Instant::now();
    let update = update();
    let gate = async {
        let postponement = device.plugins.postponement(&update).await.unwrap();
        (postponement, begin.elapsed())
    };
    let others = async {
        // The gate has been called, and does not answer.
        device
            .until("the gate is asked", |plugins| {
                plugins.report().iter().all(|plugin| plugin.calls > 0)
            })
            .await;
        for plugin in ["b", "press"] {
            let answer = device.get(&format!("/v3/{plugin}/hello")).await;
            assert_eq!(answer.1, "hello");
        }
        begin.elapsed()
    };
    let ((postponement, elapsed), others) = tokio::join!(gate, others);
    assert!(others < Duration::from_secs(5), "{others:?}");
    assert_eq!(elapsed.as_secs(), 10);
    let expected = Postponement {
        plugin: "press".to_owned(),
        reason: "it did not answer within 10 s".to_owned(),
        delay: Duration::from_secs(60),
    };
    assert_eq!(postponement, expected);
    let report = device.report("press");
    assert_eq!(report.failures, 1);
    let last = report.last_error.unwrap();
    assert_eq!(last, "the gate `update-gate` did not answer within 10 s");
    assert_eq!(device.report("b").failures, 0);
}

#[tokio::test]
async fn no_gate_holds_up_an_update_for_longer_than_the_policy_says_however_it_fails() {
    for (behaviour, limits, delay) in [
        ("gate-fails", "", 60),
        ("gate-traps", "", 60),
        ("gate-sleeps", "", 60),
        ("gate-sleeps", "limits = { wall_ms = 2000 }", 60),
        ("gate-postpones", "", 30),
        ("gate-refuses", "", 10),
    ] {
        let device = device(&[("press", behaviour, limits)]).await;
        let begin = Instant::now();
        let mut postponements = 0;
        // The device asks again when the gate, or its failure, says.
        while let Some(postponement) = device.plugins.postponement(&update()).await {
            postponements += 1;
            let limit = Duration::from_secs(60 * HOLD_MINUTES);
            let is_last = begin.elapsed() + postponement.delay >= limit;
            assert!(
                is_last || postponement.delay.as_secs() == delay,
                "{behaviour}: {postponement:?}"
            );
            assert!(postponements < 20, "{behaviour}: {postponement:?}");
            tokio::time::sleep(postponement.delay).await;
        }
        let total = begin.elapsed().as_secs();
        // At the end it is asked once more, which takes the time of its answer.
        assert!((120..=140).contains(&total), "{behaviour}: {total} s");
        assert!(postponements > 1, "{behaviour}");
        // It does not delay the rest of the update again, but the next one.
        assert_eq!(device.plugins.postponement(&update()).await, None);
        device.plugins.note_begun_update(&update().app_uuid);
        let next = device.plugins.postponement(&update()).await;
        assert!(next.is_some(), "{behaviour}");
        // The next device loads its plugins in real time.
        tokio::time::resume();
    }
}

#[tokio::test]
async fn of_several_gates_that_postpone_an_update_the_longest_wait_counts() {
    // One postpones by 30 seconds, and one that fails by 60.
    for longest in ["a", "b"] {
        let behaviour = |name: &str| {
            if name == longest {
                "gate-fails"
            } else {
                "gate-postpones"
            }
        };
        let device = device(&[("a", behaviour("a"), ""), ("b", behaviour("b"), "")]).await;
        let postponement = device.plugins.postponement(&update()).await.unwrap();
        assert_eq!(postponement.plugin, longest);
        assert_eq!(postponement.delay.as_secs(), 60);
        // The next device loads its plugins in real time.
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_gate_for_updates_is_not_queried_about_releases() {
    let device = device(&[("press", "gate-postpones", "")]).await;
    assert!(!device.plugins.may_judge_releases());
    let release = InstalledRelease {
        app_id: 1,
        app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        services: vec!["main".to_owned()],
        commit: "c1".to_owned(),
    };
    let verdict = device.plugins.judge_release(&release).await;
    assert_eq!(verdict, GateVerdict::Healthy);
    assert_eq!(device.report("press").calls, 0);
}

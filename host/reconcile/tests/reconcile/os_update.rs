//! Versions of the operating system (docs/spec/device.md#os-update).

use std::time::Duration;

use device_types::Event;
use device_types::event::OsProgress;
use device_types::plan::StepKind;
use model::ContainerHealth::{Healthy, Starting, Unhealthy};
use reconcile::{ReleaseVerdict, UpdatePostponement};

use crate::rig::{DEADLINE, Rig, Target, managed_rig, target};

/// The duration of a version's trial.
const TIME: Duration = Duration::from_secs(900);

/// Returns a target with the app and a version of the operating system.
fn wants(version: &str) -> Target {
    let target = app();
    let target = target.config("SUPERVISOR_OS_VERSION", version);
    target.config("SUPERVISOR_OS_BUNDLE", "https://os.example/bundle")
}

fn app() -> Target {
    target().service("press", "press:1")
}

/// Returns a device that runs version 1 and the app.
async fn device() -> Rig {
    let rig = managed_rig();
    rig.host.os(|os| os.runs("1"));
    rig.cloud_says(app()).await;
    rig.settled().await;
    rig
}

/// Waits until a condition holds, however long that takes.
async fn until(rig: &Rig, what: &str, holds: impl Fn(&Rig) -> bool) {
    let waiting = async {
        while !holds(rig) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let waited = tokio::time::timeout(DEADLINE, waiting).await;
    assert!(
        waited.is_ok(),
        "never {what}: done {:?}, waiting on {:?}",
        rig.host.done(),
        rig.reconciler.status().waiting_on
    );
}

async fn until_done(rig: &Rig, expected: &[&str]) {
    until(rig, &format!("{expected:?}"), |rig| {
        rig.host.done() == expected
    })
    .await;
}

/// Waits until this release runs completely.
async fn until_release(rig: &Rig, commit: &str) {
    rig.until(|status| {
        let mut apps = status.apps.values();
        apps.all(|app| app.commit.as_ref().is_some_and(|it| it.as_str() == commit))
    })
    .await;
}

/// Waits until everything pending has happened.
async fn rest(rig: &Rig) {
    rig.settled().await;
    tokio::time::sleep(TIME * 10).await;
    rig.settled().await;
}

/// Returns the progress of the update, from its events.
fn events(rig: &Rig) -> Vec<(String, OsProgress)> {
    let events = rig.events.lock().unwrap();
    let of_os = events.iter().filter_map(|(_, event)| match event {
        Event::OsUpdate(changed) => Some((changed.version.to_string(), changed.state)),
        _ => None,
    });
    of_os.collect()
}

/// Returns what blocks the operating system's version, according to `GET /v3/plan`.
async fn unplanned(rig: &Rig) -> Vec<String> {
    let plan = rig.reconciler.plan().await.unwrap();
    let blocked = plan.unplanned.into_iter().flat_map(|it| it.blocked_by);
    blocked.map(|blocked| blocked.message).collect()
}

const UPDATED: [&str; 4] = ["stage 2", "activate", "reboot", "commit"];

#[tokio::test(start_paused = true)]
async fn a_version_is_staged_activated_booted_and_committed() {
    let rig = device().await;
    rig.cloud_says(wants("2")).await;
    rest(&rig).await;
    assert_eq!(rig.host.done(), UPDATED);
    assert_eq!(rig.host.boots(), 1);
    assert!(rig.host.os(|os| os.running() == "2" && os.is_committed()));
    assert_eq!(
        events(&rig),
        [
            ("2".to_owned(), OsProgress::Staged),
            ("2".to_owned(), OsProgress::Activating),
            ("2".to_owned(), OsProgress::OnTrial),
            ("2".to_owned(), OsProgress::Committed),
        ]
    );
    assert_eq!(rig.engine.picture(), ["press_1_1_c1 Running"]);
    assert_eq!(unplanned(&rig).await, [""; 0]);
    // The previous version is still present, and is activated without being downloaded.
    rig.cloud_says(wants("1")).await;
    rest(&rig).await;
    assert_eq!(
        rig.host.done()[UPDATED.len()..],
        ["activate", "reboot", "commit"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_logged_while_a_version_is_changed_is_in_the_span_of_its_step() {
    // For all threads: with a subscriber of this thread alone, a test on another thread that reaches one of these spans
    // first decides that nobody records it.
    let recorder = tracing_subscriber::registry();
    tracing::subscriber::set_global_default(recorder).unwrap();
    let rig = device().await;
    rig.cloud_says(wants("2")).await;
    rest(&rig).await;
    let of_update = ["stage-os", "reboot", "activate-os", "commit-os"];
    assert_eq!(rig.host.spans(), of_update);
}

#[tokio::test(start_paused = true)]
async fn staging_disturbs_nobody_and_holds_up_no_update_of_services() {
    let rig = device().await;
    rig.host.os(|os| os.takes_long = true);
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &["stage 2"]).await;
    rig.host.os(|os| os.progress(40));
    until(&rig, "40 %", |rig| {
        let waits = &rig.reconciler.status().waiting_on;
        waits.iter().any(|line| line.contains("40 %"))
    })
    .await;
    let plan = rig.reconciler.plan().await.unwrap();
    let steps: Vec<_> = plan.steps.iter().map(|it| (it.kind, it.progress)).collect();
    assert_eq!(
        steps,
        [
            (StepKind::StageOs, Some(40)),
            (StepKind::Reboot, None),
            (StepKind::CommitOs, None),
        ]
    );
    assert_eq!(rig.engine.picture(), ["press_1_1_c1 Running"]);
    // It never ends, and services are updated anyway.
    tokio::time::sleep(TIME * 100).await;
    let next = wants("2").service("oven", "oven:1").commit("c2");
    rig.cloud_says(next).await;
    until_release(&rig, "c2").await;
    assert_eq!(rig.host.done(), ["stage 2"]);
    rig.host.os(|os| os.installed());
    rest(&rig).await;
    assert_eq!(rig.host.done(), UPDATED);
}

#[tokio::test(start_paused = true)]
async fn an_installation_that_fails_is_tried_again_and_holds_up_no_update_of_services() {
    let rig = device().await;
    rig.host.os(|os| os.takes_long = true);
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &["stage 2"]).await;
    rig.host.os(|os| os.installation_failed());
    until(&rig, "a failure", |rig| {
        rig.reconciler.status().update_failed
    })
    .await;
    let next = wants("2").service("oven", "oven:1").commit("c2");
    rig.cloud_says(next).await;
    until_release(&rig, "c2").await;
    rig.host.os(|os| os.takes_long = false);
    until(&rig, "another try", |rig| rig.host.done().len() > 1).await;
    if rig.host.done().len() == 2 {
        // The second attempt had begun before.
        rig.host.os(|os| os.installed());
    }
    rest(&rig).await;
    assert!(rig.host.os(|os| os.running() == "2" && os.is_committed()));
}

#[tokio::test(start_paused = true)]
async fn a_lock_of_any_app_delays_the_activation_and_force_does_not_wait() {
    for force in [false, true] {
        let rig = device().await;
        let lock = rig.lock_path("press");
        std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
        std::fs::write(&lock, "").unwrap();
        rig.cloud_says(wants("2")).await;
        until(&rig, "locked", |rig| {
            let waits = &rig.reconciler.status().waiting_on;
            waits
                .iter()
                .any(|line| line.contains("the reboot of the host"))
        })
        .await;
        tokio::time::sleep(TIME * 10).await;
        assert_eq!(rig.host.done(), ["stage 2"]);
        assert!(rig.host.os(|os| os.running() == "1"));
        let plan = rig.reconciler.plan().await.unwrap();
        let blocked: Vec<_> = plan.steps[0]
            .blocked_by
            .iter()
            .map(|it| &it.message)
            .collect();
        assert_eq!(plan.steps[0].kind, StepKind::Reboot);
        assert_eq!(plan.steps[0].os_version.as_ref().unwrap().as_str(), "2");
        assert!(
            blocked.contains(&&"the service `press` holds its update lock".to_owned()),
            "{blocked:?}"
        );
        if force {
            rig.reconciler.trigger(true, false);
        } else {
            std::fs::remove_file(&lock).unwrap();
        }
        rest(&rig).await;
        assert_eq!(rig.host.done(), UPDATED);
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_postpones_updates_postpones_the_activation() {
    let rig = device().await;
    let before = rig.host.postponement_queries().len();
    rig.host.postpone(Some(UpdatePostponement {
        plugin: "guard".to_owned(),
        reason: "the press is running".to_owned(),
        delay: Duration::from_secs(300),
    }));
    rig.cloud_says(wants("2")).await;
    until(&rig, "asked", |rig| {
        rig.host.postponement_queries().len() > before + 3
    })
    .await;
    assert_eq!(rig.host.done(), ["stage 2"]);
    let update = rig.host.postponement_queries().pop().unwrap();
    assert_eq!(update.running_commit, update.target_commit);
    assert_eq!(update.running_commit.unwrap().as_str(), "c1");
    let plan = rig.reconciler.plan().await.unwrap();
    let blocked: Vec<_> = plan.steps[0]
        .blocked_by
        .iter()
        .map(|it| &it.message)
        .collect();
    assert!(
        blocked
            .iter()
            .any(|line| line
                .contains("the plugin `guard` postpones the update: the press is running")),
        "{blocked:?}"
    );
    rig.host.postpone(None);
    rest(&rig).await;
    assert_eq!(rig.host.done(), UPDATED);
}

#[tokio::test(start_paused = true)]
async fn force_does_not_wait_for_a_plugin_that_postpones_the_activation() {
    let rig = device().await;
    rig.host.postpone(Some(UpdatePostponement {
        plugin: "guard".to_owned(),
        reason: "the press is running".to_owned(),
        delay: Duration::from_secs(300),
    }));
    rig.cloud_says(wants("2")).await;
    until(&rig, "postponed", |rig| {
        let waits = &rig.reconciler.status().waiting_on;
        let reason = "the press is running";
        waits.iter().any(|line| line.contains(reason))
    })
    .await;
    assert_eq!(rig.host.done(), ["stage 2"]);
    rig.reconciler.trigger(true, false);
    rest(&rig).await;
    assert_eq!(rig.host.done(), UPDATED);
}

const ROLLED_BACK: [&str; 5] = ["stage 2", "activate", "reboot", "roll back", "reboot"];

#[tokio::test(start_paused = true)]
async fn a_version_in_which_services_are_not_healthy_is_rolled_back_and_not_tried_again() {
    let mut rig = device().await;
    rig.engine.health_of("press:1", Unhealthy);
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &ROLLED_BACK).await;
    rig.engine.health_of("press:1", Healthy);
    rest(&rig).await;
    assert!(rig.host.os(|os| os.running() == "1" && os.is_committed()));
    let rejected = "version 2 of the operating system is not tried again: the service `press` fails its health check";
    assert_eq!(unplanned(&rig).await, [rejected]);
    let states: Vec<_> = events(&rig).into_iter().map(|(_, state)| state).collect();
    assert_eq!(
        states[2..],
        [
            OsProgress::OnTrial,
            OsProgress::Rejected,
            OsProgress::RolledBack,
            OsProgress::Returned,
        ]
    );
    // Neither the next poll nor the next start tries it again.
    rig.cloud_says(wants("2")).await;
    rest(&rig).await;
    rig.restart().await;
    rest(&rig).await;
    assert_eq!(rig.host.done(), ROLLED_BACK);
    assert_eq!(unplanned(&rig).await, [rejected]);
    // Another version is unaffected, and force tries this one.
    rig.cloud_says(wants("3")).await;
    rest(&rig).await;
    assert!(rig.host.os(|os| os.running() == "3"));
    rig.cloud_says(wants("2")).await;
    rest(&rig).await;
    assert!(rig.host.os(|os| os.running() == "3"));
    rig.reconciler.trigger(true, false);
    rest(&rig).await;
    assert!(rig.host.os(|os| os.running() == "2" && os.is_committed()));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_judges_releases_judges_the_version_too() {
    let rig = device().await;
    let judged = rig.host.judged().len();
    rig.host.judge(ReleaseVerdict::Unhealthy {
        reason: "the plugin `guard` finds it unhealthy: the press does not move".to_owned(),
    });
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &ROLLED_BACK).await;
    assert!(rig.host.judged().len() > judged);
    rest(&rig).await;
    assert_eq!(
        unplanned(&rig).await.last().unwrap(),
        "version 2 of the operating system is not tried again: the plugin `guard` finds it unhealthy: the press does not move"
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_the_boot_loader_does_not_start_is_not_tried_again() {
    let mut rig = device().await;
    rig.host.os(|os| os.falls_back = true);
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &["stage 2", "activate", "reboot"]).await;
    rest(&rig).await;
    let rejected = "version 2 of the operating system is not tried again: \
                    the device came up in version 1: the boot loader did not start it, or gave it up";
    assert_eq!(unplanned(&rig).await, [rejected]);
    rig.restart().await;
    rest(&rig).await;
    assert_eq!(rig.host.done(), ["stage 2", "activate", "reboot"]);
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_step_costs_a_pass_and_no_version() {
    // After the installation has begun.
    let mut rig = device().await;
    rig.host.os(|os| os.takes_long = true);
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &["stage 2"]).await;
    rig.restart_after_a_kill().await;
    rig.host.os(|os| os.installed());
    rest(&rig).await;
    assert_eq!(rig.host.done(), UPDATED);

    // During the activation, before the reboot or after it.
    for boots in [false, true] {
        let mut rig = device().await;
        rig.host.os(|os| os.hangs = Some("activate".to_owned()));
        rig.cloud_says(wants("2")).await;
        until_done(&rig, &["stage 2", "activate"]).await;
        rig.host.os(|os| os.hangs = None);
        if boots {
            rig.host.boot_by_itself();
        }
        rig.restart_after_a_kill().await;
        rest(&rig).await;
        assert!(rig.host.os(|os| os.running() == "2" && os.is_committed()));
        assert_eq!(rig.host.boots(), 1);
    }

    // By a power cut, before the provider had activated anything.
    let mut rig = device().await;
    rig.host.os(|os| os.hangs = Some("activate".to_owned()));
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &["stage 2", "activate"]).await;
    rig.host.os(|os| (os.hangs, os.falls_back) = (None, true));
    rig.host.boot_by_itself();
    rig.host.os(|os| os.falls_back = false);
    rig.restart_after_a_kill().await;
    rest(&rig).await;
    assert!(rig.host.os(|os| os.running() == "2" && os.is_committed()));
    assert_eq!(rig.host.boots(), 2);
    assert_eq!(unplanned(&rig).await, [""; 0]);

    // During the commit.
    let mut rig = device().await;
    rig.host.os(|os| os.hangs = Some("commit".to_owned()));
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &UPDATED).await;
    rig.host.os(|os| os.hangs = None);
    rig.restart_after_a_kill().await;
    rest(&rig).await;
    assert!(rig.host.os(|os| os.running() == "2" && os.is_committed()));
    assert_eq!(rig.host.boots(), 1);

    // During the rollback.
    for boots in [false, true] {
        let mut rig = device().await;
        rig.engine.health_of("press:1", Unhealthy);
        rig.host.os(|os| os.hangs = Some("roll back".to_owned()));
        rig.cloud_says(wants("2")).await;
        until_done(&rig, &ROLLED_BACK[..4]).await;
        rig.host.os(|os| os.hangs = None);
        if boots {
            rig.host.boot_by_itself();
        }
        rig.restart_after_a_kill().await;
        rest(&rig).await;
        assert!(rig.host.os(|os| os.running() == "1" && os.is_committed()));
        assert_eq!(rig.host.boots(), 2);
        assert_eq!(unplanned(&rig).await.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_takes_the_supervisor_down_again_and_again_is_rolled_back() {
    let mut rig = device().await;
    rig.engine.health_of("press:1", Unhealthy);
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &ROLLED_BACK[..3]).await;
    until(&rig, "on trial", |rig| {
        let events = events(rig);
        events
            .iter()
            .any(|(_, state)| *state == OsProgress::OnTrial)
    })
    .await;
    for _ in 0..4 {
        rig.restart_after_a_kill().await;
        rig.settled().await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    until_done(&rig, &ROLLED_BACK).await;
    rest(&rig).await;
    assert_eq!(
        unplanned(&rig).await,
        [
            "version 2 of the operating system is not tried again: the supervisor has started 4 times in it"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_was_activated_and_is_not_wanted_any_more_is_taken_back() {
    let rig = device().await;
    rig.host.ignore_reboots(true);
    rig.cloud_says(wants("2")).await;
    until(&rig, "a reboot", |rig| rig.host.done().len() >= 3).await;
    rig.cloud_says(app()).await;
    until(&rig, "taken back", |rig| {
        rig.host.done().last().unwrap() == "roll back"
    })
    .await;
    rest(&rig).await;
    rig.host.boot_by_itself();
    assert!(rig.host.os(|os| os.running() == "1"));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_a_power_cut_has_started_is_on_trial_all_the_same() {
    let mut rig = device().await;
    rig.host.stay("the press is locked");
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &["stage 2"]).await;
    rig.host.os(|os| os.was_booted("2"));
    rig.host.boot_by_itself();
    rig.engine.health_of("press:1", Unhealthy);
    rig.restart_after_a_kill().await;
    until(&rig, "on trial", |rig| {
        let events = events(rig);
        events
            .iter()
            .any(|(_, state)| *state == OsProgress::OnTrial)
    })
    .await;
    rig.engine.health_of("press:1", Healthy);
    rest(&rig).await;
    assert_eq!(rig.host.done(), ["stage 2", "commit"]);
}

#[tokio::test(start_paused = true)]
async fn a_device_without_a_provider_says_so_and_goes_on() {
    let rig = managed_rig();
    rig.cloud_says(wants("2")).await;
    rest(&rig).await;
    assert_eq!(rig.engine.picture(), ["press_1_1_c1 Running"]);
    assert_eq!(
        unplanned(&rig).await,
        [
            "no plugin of this device updates its operating system to version 2: docs/os-update.md says how to add one"
        ]
    );
    // A provider that appears later is found.
    rig.host.os(|os| os.runs("1"));
    tokio::time::sleep(TIME * 2).await;
    rest(&rig).await;
    assert_eq!(rig.host.done(), UPDATED);
}

#[tokio::test(start_paused = true)]
async fn a_target_of_local_mode_names_no_version_since_services_may_set_it() {
    let rig = crate::rig::rig();
    rig.host.os(|os| os.runs("1"));
    rig.set(wants("2").json()).await;
    rest(&rig).await;
    assert_eq!(rig.host.done(), [""; 0]);
    assert_eq!(unplanned(&rig).await, [""; 0]);
    // Nor is a provider missing.
    let rig = crate::rig::rig();
    rig.set(wants("2").json()).await;
    rest(&rig).await;
    assert_eq!(unplanned(&rig).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_lies_costs_a_version_and_nothing_else() {
    // The bundle contains another version.
    let rig = device().await;
    rig.host.os(|os| os.holds = Some("1.5"));
    rig.cloud_says(wants("2")).await;
    rest(&rig).await;
    assert_eq!(rig.host.done(), ["stage 2"]);
    assert_eq!(
        unplanned(&rig).await,
        ["version 2 of the operating system is not tried again: the bundle holds version 1.5"]
    );

    // It never reports that the version is committed.
    let rig = device().await;
    rig.host.os(|os| os.denies_commits = true);
    rig.cloud_says(wants("2")).await;
    rest(&rig).await;
    assert_eq!(rig.host.done(), UPDATED);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_fails_holds_up_neither_services_nor_other_reboots() {
    for failing in ["look", "stage", "activate"] {
        let rig = device().await;
        rig.host
            .os(|os| os.failure = Some((failing, "no such slot")));
        let both = || wants("2").config("HOST_CONFIG_gpu_mem", "16");
        rig.cloud_says(both()).await;
        until(&rig, "a failure", |rig| {
            let waits = &rig.reconciler.status().waiting_on;
            waits.iter().any(|line| {
                line.contains("the operating system is tried again later: no such slot")
            })
        })
        .await;
        until(&rig, "a reboot", |rig| rig.host.boots() == 1).await;
        let next = both().service("oven", "oven:1").commit("c2");
        rig.cloud_says(next).await;
        until_release(&rig, "c2").await;
        tokio::time::sleep(TIME * 10).await;
        assert_eq!(rig.host.boots(), 1, "{failing}");
        assert!(rig.host.os(|os| os.running() == "1"));
        rig.host.os(|os| os.failure = None);
        rest(&rig).await;
        assert!(
            rig.host.os(|os| os.running() == "2" && os.is_committed()),
            "{failing}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_answers_has_a_minute_and_is_asked_again() {
    for (hanging, message) in [
        ("look", "report the state of the operating system"),
        ("stage 2", "stage the operating system"),
        ("activate", "activate the operating system"),
        ("commit", "commit the operating system"),
    ] {
        let rig = device().await;
        rig.host.os(|os| os.hangs = Some(hanging.to_owned()));
        rig.cloud_says(wants("2")).await;
        let expected = format!("its provider did not {message} within 60s");
        until(&rig, &expected, |rig| {
            let waits = &rig.reconciler.status().waiting_on;
            waits.iter().any(|line| line.contains(&expected))
        })
        .await;
        rig.host.os(|os| os.hangs = None);
        rest(&rig).await;
        let is_updated = rig.host.os(|os| os.running() == "2" && os.is_committed());
        assert!(is_updated, "{hanging}: {:?}", rig.host.done());
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_counts_as_committed_or_rolled_back_only_once_its_provider_has_done_so() {
    let rig = device().await;
    rig.host
        .os(|os| os.failure = Some(("commit", "no such slot")));
    rig.cloud_says(wants("2")).await;
    until(&rig, "two tries", |rig| rig.host.done().len() > 4).await;
    assert!(!events(&rig).contains(&("2".to_owned(), OsProgress::Committed)));
    rig.host.os(|os| os.failure = None);
    rest(&rig).await;
    assert!(rig.host.os(|os| os.running() == "2" && os.is_committed()));

    let rig = device().await;
    rig.engine.health_of("press:1", Unhealthy);
    rig.host
        .os(|os| os.failure = Some(("roll back", "no such slot")));
    rig.cloud_says(wants("2")).await;
    until(&rig, "two tries", |rig| rig.host.done().len() > 4).await;
    assert_eq!(rig.host.done()[3..5], ["roll back", "roll back"]);
    assert!(!events(&rig).contains(&("2".to_owned(), OsProgress::RolledBack)));
    rig.host.os(|os| os.failure = None);
    rest(&rig).await;
    assert!(rig.host.os(|os| os.running() == "1" && os.is_committed()));
}

#[tokio::test(start_paused = true)]
async fn an_activation_that_failed_leaves_nothing_to_take_back() {
    let rig = device().await;
    rig.host
        .os(|os| os.failure = Some(("activate", "no such slot")));
    rig.cloud_says(wants("2")).await;
    until(&rig, "a failure", |rig| {
        let waits = &rig.reconciler.status().waiting_on;
        waits.iter().any(|line| line.contains("no such slot"))
    })
    .await;
    rig.cloud_says(app()).await;
    rest(&rig).await;
    let done = rig.host.done();
    assert!(!done.contains(&"roll back".to_owned()), "{done:?}");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_was_being_activated_in_a_kill_is_taken_back_if_nobody_wants_it_any_more() {
    let mut rig = device().await;
    rig.host.os(|os| os.hangs = Some("activate".to_owned()));
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &["stage 2", "activate"]).await;
    rig.host.os(|os| os.hangs = None);
    rig.restart_after_a_kill().await;
    rig.cloud_says(app()).await;
    until_done(&rig, &["stage 2", "activate", "roll back"]).await;
    rest(&rig).await;
    rig.host.boot_by_itself();
    assert!(rig.host.os(|os| os.running() == "1"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_activated_that_the_store_does_not_record() {
    let rig = device().await;
    let lock = rig.lock_path("press");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(&lock, "").unwrap();
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &["stage 2"]).await;
    rig.refuse_os_records(true);
    std::fs::remove_file(&lock).unwrap();
    until(&rig, "a failure", |rig| {
        let waits = &rig.reconciler.status().waiting_on;
        let reason = "the store does not record which version is being tried";
        waits.iter().any(|line| line.contains(reason))
    })
    .await;
    tokio::time::sleep(TIME * 2).await;
    assert_eq!(rig.host.done(), ["stage 2"]);
    assert_eq!(rig.engine.picture(), ["press_1_1_c1 Running"]);
    rig.refuse_os_records(false);
    rest(&rig).await;
    assert_eq!(rig.host.done(), UPDATED);
}

#[tokio::test(start_paused = true)]
async fn the_device_does_not_reboot_before_it_is_recorded_that_the_version_is_activated() {
    let rig = device().await;
    rig.host.os(|os| os.hangs = Some("activate".to_owned()));
    rig.cloud_says(wants("2")).await;
    until_done(&rig, &["stage 2", "activate"]).await;
    rig.refuse_os_records(true);
    // It has activated the version, and says so now.
    rig.host.let_os_answer();
    until(&rig, "a failure", |rig| {
        rig.reconciler.status().update_failed
    })
    .await;
    tokio::time::sleep(TIME * 2).await;
    assert!(!rig.host.done().contains(&"reboot".to_owned()));
    rig.refuse_os_records(false);
    rest(&rig).await;
    assert!(rig.host.os(|os| os.running() == "2" && os.is_committed()));
}

#[tokio::test(start_paused = true)]
async fn without_a_boot_id_no_version_is_started() {
    let mut rig = device().await;
    rig.host.hide_boot_id();
    rig.restart().await;
    rig.cloud_says(wants("2")).await;
    until(&rig, "a failure", |rig| {
        let waits = &rig.reconciler.status().waiting_on;
        let reason = "failed to read the boot id";
        waits.iter().any(|line| line.contains(reason))
    })
    .await;
    rest(&rig).await;
    assert_eq!(rig.host.done(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_version_is_not_committed_while_an_engine_does_not_answer() {
    let rig = device().await;
    rig.engine.health_of("press:1", Starting);
    rig.cloud_says(wants("2")).await;
    until(&rig, "on trial", |rig| {
        let events = events(rig);
        let state = events.last().map(|(_, state)| *state);
        state == Some(OsProgress::OnTrial)
    })
    .await;
    rig.engine.health_of("press:1", Healthy);
    rig.engine.go_silent();
    until(&rig, "rolled back", |rig| {
        rig.host.done().contains(&"roll back".to_owned())
    })
    .await;
    rig.engine.come_back();
    rest(&rig).await;
    assert_eq!(
        unplanned(&rig).await,
        ["version 2 of the operating system is not tried again: an engine does not answer"]
    );
}

#[tokio::test(start_paused = true)]
async fn plugins_judge_no_version_by_an_app_that_the_device_does_not_run() {
    let rig = managed_rig();
    rig.host.os(|os| os.runs("1"));
    rig.host.judge(ReleaseVerdict::Unhealthy {
        reason: "the plugin `guard` finds it unhealthy: the press does not move".to_owned(),
    });
    let requires = serde_json::json!([{ "type": "arch.sw", "slug": "riscv" }]);
    let more = serde_json::json!({ "contract": { "requires": requires } });
    let target = target().service_with("press", "press:1", more);
    let target = target.config("SUPERVISOR_OS_VERSION", "2");
    let target = target.config("SUPERVISOR_OS_BUNDLE", "https://os.example/bundle");
    rig.cloud_says(target).await;
    rest(&rig).await;
    assert_eq!(rig.host.done(), UPDATED);
    assert_eq!(rig.host.judged(), []);
}

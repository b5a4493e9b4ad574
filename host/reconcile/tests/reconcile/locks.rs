use std::fs;
use std::time::Duration;

use futures::StreamExt as _;
use model::{Action, ActionError, AppId, LockHolder, LockRefusal, LockRequest, Verb};

use crate::rig::{Rig, rig, target};

/// Returns a service's request over the API.
fn lease(service: &str) -> LockRequest {
    LockRequest {
        app: AppId(1),
        service: service.parse().unwrap(),
        reason: "writes flash".into(),
        ttl: Duration::from_secs(3600),
        survives_reboot: false,
    }
}

fn act(verb: Verb, force: bool) -> Action {
    Action {
        app: "1".parse().unwrap(),
        verb,
        force,
    }
}

fn new_web() -> serde_json::Value {
    let services = target().service("web", "web:2").service("db", "db:1");
    services.json()
}

/// Returns a device that runs `web:1`, locked by its user.
async fn locked() -> Rig {
    let rig = rig();
    rig.set(
        target()
            .service("web", "web:1")
            .service("db", "db:1")
            .json(),
    )
    .await;
    rig.settled().await;
    fs::write(rig.lock_path("web"), "").unwrap();
    rig.engine.forget_calls();
    rig
}

#[tokio::test(start_paused = true)]
async fn a_users_lock_blocks_and_its_removal_lets_go() {
    let rig = locked().await;
    rig.set(
        target()
            .service("web", "web:2")
            .service("db", "db:1")
            .json(),
    )
    .await;
    let status = rig.until(|status| status.update_failed).await;
    assert!(status.applying && status.update_downloaded);
    assert_eq!(
        status.waiting_on,
        ["the update of app 1 is locked: Lockfile exists for { appId: 1, service: web }"]
    );
    assert_eq!(rig.engine.calls(), ["pull web:2"]);
    fs::remove_file(rig.lock_path("web")).unwrap();
    let status = rig.settled().await;
    assert!(!status.update_failed);
    assert!(rig.engine.calls().contains(&"start web".into()));
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_one_service_blocks_its_whole_app() {
    let rig = locked().await;
    rig.set(
        target()
            .service("web", "web:1")
            .service("db", "db:2")
            .json(),
    )
    .await;
    rig.until(|status| status.update_failed).await;
    assert_eq!(rig.engine.calls(), ["pull db:2"]);
}

#[tokio::test(start_paused = true)]
async fn force_overrides_a_users_lock() {
    let rig = locked().await;
    let body = target()
        .service("web", "web:2")
        .service("db", "db:1")
        .json();
    rig.reconciler.set_local_target(body, true).await.unwrap();
    rig.settled().await;
    assert!(rig.engine.calls().contains(&"start web".into()));
    // The user's lock is gone for good, and so is ours.
    assert!(fs::symlink_metadata(rig.lock_path("web")).is_err());
}

#[tokio::test(start_paused = true)]
async fn locks_are_held_from_the_first_kill_until_all_is_started() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    assert!(!rig.lock_path("web").exists());
    for held in ["stop web", "remove web", "create web", "start web"] {
        rig.engine.hold(held);
    }
    rig.set(target().service("web", "web:2").json()).await;
    rig.eventually("locked", || rig.lock_path("web").exists())
        .await;
    for held in ["stop web", "remove web", "create web", "start web"] {
        assert!(rig.lock_path("web").exists(), "{held}");
        rig.engine.let_go(held);
        rig.eventually("made", || {
            rig.engine.calls().iter().filter(|c| *c == held).count() > 0
        })
        .await;
    }
    rig.settled().await;
    assert!(!rig.lock_path("web").exists());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_locked_during_a_download() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.engine.hold("pull web:2");
    rig.set(target().service("web", "web:2").json()).await;
    rig.until(|status| {
        status
            .images
            .iter()
            .any(|image| image.download_progress == Some(50))
    })
    .await;
    assert!(!rig.lock_path("web").exists());
    rig.engine.let_go("pull web:2");
    rig.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_configuration_variable_overrides_every_lock() {
    let rig = locked().await;
    let body = target()
        .config("SUPERVISOR_OVERRIDE_LOCK", "1")
        .service("web", "web:2")
        .service("db", "db:1");
    rig.set(body.json()).await;
    rig.settled().await;
    assert!(rig.engine.calls().contains(&"start web".into()));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_taken_during_a_download_holds_the_update_until_it_is_given_back() {
    let rig = locked().await;
    fs::remove_file(rig.lock_path("web")).unwrap();
    rig.engine.hold("pull web:2");
    rig.set(new_web()).await;
    rig.eventually("downloading", || rig.engine.waiting() > 0)
        .await;
    rig.reconciler.lease_lock(lease("db")).await.unwrap();
    rig.engine.let_go("pull web:2");
    let status = rig.until(|status| status.update_failed).await;
    assert!(status.update_downloaded);
    assert_eq!(rig.engine.calls(), ["pull web:2"]);
    let given = rig
        .reconciler
        .give_lock_back(AppId(1), "db".parse().unwrap());
    given.await.unwrap();
    rig.settled().await;
    assert!(rig.engine.calls().contains(&"start web".into()));
}

#[tokio::test(start_paused = true)]
async fn an_update_goes_on_when_the_time_of_a_lock_over_the_api_is_over() {
    let rig = locked().await;
    fs::remove_file(rig.lock_path("web")).unwrap();
    rig.reconciler.lease_lock(lease("web")).await.unwrap();
    let begun = tokio::time::Instant::now();
    rig.set(new_web()).await;
    rig.until(|status| status.update_failed).await;
    rig.settled().await;
    assert!(begun.elapsed() >= Duration::from_secs(3590));
    assert!(rig.engine.calls().contains(&"start web".into()));
    assert!(rig.reconciler.update_locks().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lock_over_the_api_outlives_the_supervisor_and_is_overridden_like_any_other() {
    let mut rig = locked().await;
    fs::remove_file(rig.lock_path("web")).unwrap();
    rig.reconciler.lease_lock(lease("web")).await.unwrap();
    rig.restart_after_a_kill().await;
    rig.settled().await;
    let locks = rig.reconciler.update_locks().await.unwrap();
    assert!(matches!(&locks[..], [lock] if matches!(lock.holder, LockHolder::Api(_))));

    let stop = || Verb::Stop("db".parse().unwrap());
    let refused = rig.reconciler.act(act(stop(), false)).await;
    let why = "Lockfile exists for { appId: 1, service: web }".to_owned();
    assert_eq!(refused, Err(ActionError::Locked(why)));
    rig.reconciler.act(act(stop(), true)).await.unwrap();
    rig.settled().await;
    assert!(rig.reconciler.update_locks().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_lock_is_leased_while_the_supervisor_changes_the_app() {
    let rig = locked().await;
    fs::remove_file(rig.lock_path("web")).unwrap();
    rig.engine.hold("stop web");
    rig.set(new_web()).await;
    rig.eventually("locked", || rig.engine.waiting() > 0).await;
    let locks = rig.reconciler.update_locks().await.unwrap();
    assert_eq!(locks.len(), 2);
    assert!(
        locks
            .iter()
            .all(|lock| lock.holder == LockHolder::Supervisor)
    );
    let refused = rig.reconciler.lease_lock(lease("web")).await;
    assert!(
        matches!(refused, Err(LockRefusal::HeldBySupervisor(_))),
        "{refused:?}"
    );
    rig.engine.let_go("stop web");
    rig.settled().await;
    rig.reconciler.lease_lock(lease("web")).await.unwrap();
}

/// Creates the lock of a service that is neither current nor desired.
fn leave_behind(rig: &Rig) {
    let left = rig.lock_path("gone");
    fs::create_dir_all(left.parent().unwrap()).unwrap();
    fs::write(left, "").unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_a_service_that_is_gone_counts_for_actions_on_one_service_alone() {
    let rig = locked().await;
    fs::remove_file(rig.lock_path("web")).unwrap();
    leave_behind(&rig);
    let web = || "web".parse().unwrap();
    let why = "Lockfile exists for { appId: 1, service: gone }".to_owned();
    for verb in [
        Verb::Stop(web()),
        Verb::Start(web()),
        Verb::Restart(Some(web())),
    ] {
        let refused = rig.reconciler.act(act(verb.clone(), false)).await;
        assert_eq!(refused, Err(ActionError::Locked(why.clone())), "{verb:?}");
    }
    let Err(refused) = rig.reconciler.quiesce(false).await else {
        panic!("a reboot disturbs it too");
    };
    assert_eq!(refused, ActionError::Locked(why));
    assert_eq!(rig.engine.calls(), [""; 0]);
    // Not relevant to actions that only concern current and desired services.
    for verb in [Verb::Restart(None), Verb::Purge] {
        rig.reconciler.act(act(verb, false)).await.unwrap();
    }
    rig.settled().await;
    assert!(rig.lock_path("gone").exists());
    let restart = act(Verb::Restart(Some(web())), true);
    rig.reconciler.act(restart).await.unwrap();
    rig.settled().await;
    assert!(!rig.lock_path("gone").exists());
}

#[tokio::test(start_paused = true)]
async fn a_lock_folder_that_cannot_be_read_holds_everything_even_by_force() {
    let rig = locked().await;
    let app = rig.lock_path("web").ancestors().nth(2).unwrap().to_owned();
    let aside = app.with_extension("aside");
    fs::rename(&app, &aside).unwrap();
    fs::write(&app, "").unwrap();
    let stop = act(Verb::Stop("db".parse().unwrap()), true);
    let Err(ActionError::Failed(why)) = rig.reconciler.act(stop).await else {
        panic!("nobody knows whether it is locked");
    };
    assert!(
        why.contains(app.to_str().unwrap()) && why.contains("can be neither read nor taken"),
        "{why}"
    );
    rig.reconciler
        .set_local_target(new_web(), true)
        .await
        .unwrap();
    rig.until(|status| status.update_failed).await;
    assert_eq!(rig.engine.calls(), ["pull web:2"]);

    fs::remove_file(&app).unwrap();
    fs::rename(&aside, &app).unwrap();
    rig.settled().await;
    assert!(rig.engine.calls().contains(&"start web".into()));
}

#[tokio::test(start_paused = true)]
async fn an_update_that_waits_for_a_lock_for_a_week_says_so() {
    let rig = locked().await;
    let mut logs = rig.reconciler.logs();
    rig.set(new_web()).await;
    let begin = tokio::time::Instant::now();
    let line = loop {
        let line = logs.next().await.unwrap().message.clone();
        if line.contains("has waited for") {
            break line;
        }
    };
    let days = begin.elapsed().as_secs_f64() / (24.0 * 3600.0);
    assert!((7.0..7.5).contains(&days), "{days}");
    assert!(line.contains("for 7 days"), "{line}");
    let path = rig.lock_path("web");
    assert!(line.contains(&path.display().to_string()), "{line}");
    let held = rig.reconciler.update_locks().await.unwrap();
    let since = held
        .iter()
        .find(|lock| matches!(lock.holder, LockHolder::File(_)));
    assert!(
        since.is_some_and(|lock| lock.since_ms.is_some()),
        "{held:?}"
    );
}

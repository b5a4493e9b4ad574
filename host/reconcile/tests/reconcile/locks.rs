use std::fs;

use crate::rig::{Rig, rig, target};

/// A device that runs `web:1`, locked by its user.
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

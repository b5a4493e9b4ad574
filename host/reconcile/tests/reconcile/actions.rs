//! Actions on services in addition to the target: stop, start, restart, purge, and going down.

use std::collections::BTreeSet;
use std::fs;

use model::{Action, ActionError, Verb};
use serde_json::json;

use crate::rig::{Rig, rig, target};

fn two() -> serde_json::Value {
    target()
        .service_with("web", "web:1", json!({ "volumes": ["data:/data"] }))
        .service("db", "db:1")
        .json()
}

async fn running() -> Rig {
    let rig = rig();
    rig.set(two()).await;
    rig.settled().await;
    rig.engine.forget_calls();
    rig
}

fn action(verb: Verb) -> Action {
    Action {
        app: "1".parse().unwrap(),
        verb,
        force: false,
    }
}

fn stop(service: &str) -> Action {
    action(Verb::Stop(service.parse().unwrap()))
}

fn start(service: &str) -> Action {
    action(Verb::Start(service.parse().unwrap()))
}

fn restart(service: &str) -> Action {
    action(Verb::Restart(Some(service.parse().unwrap())))
}

fn both_run(rig: &Rig) -> bool {
    let picture: BTreeSet<String> = rig.engine.picture().into_iter().collect();
    picture
        == ["db_2_1_c1 Running", "web_1_1_c1 Running"]
            .map(str::to_owned)
            .into()
}

#[tokio::test(start_paused = true)]
async fn a_stopped_service_keeps_its_container_and_stays_stopped_until_it_is_started() {
    let rig = running().await;
    let id = rig.engine.id_of("web");
    rig.reconciler.act(stop("web")).await.unwrap();
    assert_eq!(rig.engine.calls(), ["stop web"]);
    assert!(!rig.lock_path("web").exists() || rig.reconciler.status().applying);

    // Neither the same target nor a check starts it again.
    rig.set(two()).await;
    rig.reconciler.trigger(true, true);
    rig.settled().await;
    assert_eq!(rig.engine.calls(), ["stop web"]);
    assert!(!rig.lock_path("web").exists());

    rig.reconciler.act(start("web")).await.unwrap();
    assert_eq!(rig.engine.calls(), ["stop web", "start web"]);
    assert_eq!(rig.engine.id_of("web"), id);
    rig.settled().await;
    assert!(both_run(&rig));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_service_is_started_by_a_start_of_the_supervisor_or_a_restart() {
    let mut rig = running().await;
    rig.reconciler.act(stop("web")).await.unwrap();
    rig.restart().await;
    rig.settled().await;
    assert!(both_run(&rig));

    rig.reconciler.act(stop("web")).await.unwrap();
    rig.reconciler
        .act(action(Verb::Restart(None)))
        .await
        .unwrap();
    rig.settled().await;
    assert!(both_run(&rig));
}

#[tokio::test(start_paused = true)]
async fn a_start_of_a_service_that_ended_by_itself_starts_it() {
    let rig = running().await;
    rig.engine.end("web");
    rig.until(|status| {
        let mut services = status.apps.values().flat_map(|app| &app.services);
        services.any(|service| service.state == model::ServiceState::Exited)
    })
    .await;
    rig.reconciler.act(start("web")).await.unwrap();
    assert!(both_run(&rig));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_the_target_keeps_stopped_is_not_started() {
    let rig = rig();
    let off = json!({ "running": false });
    rig.set(target().service_with("web", "web:1", off).json())
        .await;
    rig.settled().await;
    let Err(ActionError::Failed(why)) = rig.reconciler.act(start("web")).await else {
        panic!("the action must fail");
    };
    assert!(why.contains("`web`"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_makes_the_containers_anew_and_keeps_the_volumes() {
    let rig = running().await;
    let (web, db) = (rig.engine.id_of("web"), rig.engine.id_of("db"));
    rig.reconciler.act(restart("web")).await.unwrap();
    assert!(both_run(&rig));
    assert_ne!(rig.engine.id_of("web"), web);
    assert_eq!(rig.engine.id_of("db"), db);

    let web = rig.engine.id_of("web");
    rig.reconciler
        .act(action(Verb::Restart(None)))
        .await
        .unwrap();
    assert!(both_run(&rig));
    assert_ne!(rig.engine.id_of("web"), web);
    assert_ne!(rig.engine.id_of("db"), db);
    let calls = rig.engine.calls();
    assert!(
        !calls.iter().any(|call| call.contains("volume")),
        "{calls:?}"
    );
    rig.settled().await;
    assert!(!rig.lock_path("web").exists());
}

#[tokio::test(start_paused = true)]
async fn a_purge_removes_the_data_also_in_local_mode_and_brings_everything_back() {
    let rig = running().await;
    let (web, db) = (rig.engine.id_of("web"), rig.engine.id_of("db"));
    rig.reconciler.act(action(Verb::Purge)).await.unwrap();
    assert!(both_run(&rig));
    assert_ne!(rig.engine.id_of("web"), web);
    assert_ne!(rig.engine.id_of("db"), db);
    let calls = rig.engine.calls();
    let at = |name: &str| calls.iter().position(|call| call == name).unwrap();
    assert!(at("remove web") < at("remove volume 1_data"));
    assert!(at("remove volume 1_data") < at("create volume 1_data"));
    assert!(at("create volume 1_data") < at("create web"));
    // Images are kept, whatever is removed around them.
    assert!(
        !calls
            .iter()
            .any(|call| call.contains("image") || call.starts_with("pull"))
    );
    rig.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_users_lock_refuses_every_action_and_force_overrides_it() {
    for action in [
        stop("db"),
        start("db"),
        restart("db"),
        action(Verb::Restart(None)),
        action(Verb::Purge),
    ] {
        let rig = running().await;
        fs::write(rig.lock_path("web"), "").unwrap();
        let refused = rig.reconciler.act(action.clone()).await;
        let why = "Lockfile exists for { appId: 1, service: web }".to_owned();
        assert_eq!(refused, Err(ActionError::Locked(why)), "{action:?}");
        rig.settled().await;
        assert_eq!(rig.engine.calls(), [""; 0], "{action:?}");
        assert!(rig.lock_path("web").exists());

        let forced = Action {
            force: true,
            ..action
        };
        rig.reconciler.act(forced).await.unwrap();
        rig.settled().await;
        assert!(!rig.lock_path("web").exists());
    }
}

#[tokio::test(start_paused = true)]
async fn actions_on_one_app_are_done_in_the_order_they_came() {
    let rig = running().await;
    let first = rig.reconciler.act(restart("web"));
    let second = rig.reconciler.act(stop("web"));
    let third = rig.reconciler.act(start("web"));
    let (first, second, third) = tokio::join!(first, second, third);
    assert_eq!((first, second, third), (Ok(()), Ok(()), Ok(())));
    let calls = rig.engine.calls();
    assert_eq!(
        calls,
        [
            "stop web",
            "remove web",
            "create web",
            "start web",
            "stop web",
            "start web"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_cancels_nothing() {
    let rig = running().await;
    rig.engine.hold("stop web");
    let acting = rig.reconciler.act(restart("web"));
    let given_up = tokio::time::timeout(std::time::Duration::from_millis(100), acting).await;
    assert!(given_up.is_err());
    let web = rig.engine.id_of("web");
    rig.engine.let_go("stop web");
    rig.settled().await;
    assert!(both_run(&rig));
    assert_ne!(rig.engine.id_of("web"), web);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_is_the_failure_of_its_action_and_tried_again_by_the_loop() {
    let rig = running().await;
    rig.engine.fail("create web", 1);
    let Err(ActionError::Failed(why)) = rig.reconciler.act(restart("web")).await else {
        panic!("it failed");
    };
    assert!(why.contains("the test makes it fail"), "{why}");
    rig.settled().await;
    assert!(both_run(&rig));
    // It is not done a second time.
    let calls = rig.engine.calls();
    assert_eq!(calls.iter().filter(|call| *call == "remove web").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_action_on_an_app_with_nothing_left_is_done() {
    let rig = running().await;
    let action = Action {
        app: "77".parse().unwrap(),
        verb: Verb::Purge,
        force: false,
    };
    assert_eq!(rig.reconciler.act(action).await, Ok(()));
}

/// After a kill at any call of a purge or a restart, the next start completes it.
#[tokio::test(start_paused = true)]
async fn a_purge_and_a_restart_that_a_kill_cuts_short_are_finished() {
    for verb in [Verb::Purge, Verb::Restart(None)] {
        let mut moments = 0;
        loop {
            let mut rig = running().await;
            let (web, db) = (rig.engine.id_of("web"), rig.engine.id_of("db"));
            rig.engine.cut_off_at(moments);
            let reconciler = rig.reconciler.clone();
            let acting = {
                let action = action(verb.clone());
                tokio::spawn(async move { reconciler.act(action).await })
            };
            rig.eventually("cut off or done", || {
                rig.engine.is_cut_off() || acting.is_finished()
            })
            .await;
            let done = !rig.engine.is_cut_off();
            rig.restart_after_a_kill().await;
            rig.settled().await;
            assert!(both_run(&rig), "{verb:?} killed at call {moments}");
            assert_ne!(rig.engine.id_of("web"), web, "{verb:?} killed at {moments}");
            assert_ne!(rig.engine.id_of("db"), db, "{verb:?} killed at {moments}");
            if verb == Verb::Purge {
                let calls = rig.engine.calls();
                assert!(calls.contains(&"remove volume 1_data".into()));
            }
            assert!(!rig.lock_path("web").exists());
            if done {
                break;
            }
            moments += 1;
        }
        assert!(moments > 5, "{verb:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn before_the_host_goes_down_everything_is_locked_and_stopped() {
    let rig = running().await;
    rig.engine.hold("stop web");
    let all_stopped = rig.reconciler.quiesce(false).await.unwrap();
    assert!(rig.lock_path("web").exists() && rig.lock_path("db").exists());
    rig.engine.let_go("stop web");
    all_stopped.await;
    let mut calls = rig.engine.calls();
    calls.sort();
    assert_eq!(calls, ["stop db", "stop web"]);

    // It did not go down.
    rig.reconciler.resume();
    rig.settled().await;
    assert!(both_run(&rig));
    assert!(!rig.lock_path("web").exists());
}

#[tokio::test(start_paused = true)]
async fn before_the_host_goes_down_what_depends_on_others_is_stopped_first() {
    let rig = rig();
    let target = target()
        .service_with("web", "web:1", json!({ "depends_on": ["db"] }))
        .service_with("db", "db:1", json!({ "depends_on": ["disk"] }))
        .service("disk", "disk:1");
    rig.set(target.json()).await;
    rig.settled().await;
    rig.engine.forget_calls();
    rig.reconciler.quiesce(false).await.unwrap().await;
    assert_eq!(rig.engine.calls(), ["stop web", "stop db", "stop disk"]);
}

#[tokio::test(start_paused = true)]
async fn a_users_lock_keeps_the_host_up_unless_it_is_forced() {
    let rig = running().await;
    fs::write(rig.lock_path("db"), "").unwrap();
    let Err(refused) = rig.reconciler.quiesce(false).await else {
        panic!("it is locked");
    };
    let why = "Lockfile exists for { appId: 1, service: db }".to_owned();
    assert_eq!(refused, ActionError::Locked(why));
    rig.settled().await;
    assert_eq!(rig.engine.calls(), [""; 0]);
    assert!(!rig.lock_path("web").exists());
    rig.reconciler.quiesce(true).await.unwrap().await;
    assert_eq!(rig.engine.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_removes_volumes_that_no_target_names_and_nothing_uses() {
    let rig = running().await;
    rig.set(target().service("db", "db:1").without_volumes().json())
        .await;
    rig.settled().await;
    rig.engine.forget_calls();
    rig.reconciler.clean_up_volumes().await.unwrap();
    assert_eq!(rig.engine.calls(), ["remove volume 1_data"]);

    rig.set(two()).await;
    rig.settled().await;
    rig.engine.forget_calls();
    rig.reconciler.clean_up_volumes().await.unwrap();
    assert_eq!(rig.engine.calls(), [""; 0]);
}

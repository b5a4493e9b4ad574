use futures::StreamExt;
use model::{ImageState, ServiceState};
use serde_json::json;

use crate::rig::{rig, target};

#[tokio::test(start_paused = true)]
async fn a_target_is_reached_and_the_commit_recorded() {
    let rig = rig();
    rig.set(
        target()
            .service("web", "web:1")
            .service("db", "db:1")
            .json(),
    )
    .await;
    // The call returns once the state says so.
    assert!(rig.reconciler.status().applying);
    let status = rig.settled().await;
    let mut picture = rig.engine.picture();
    picture.sort();
    assert_eq!(picture, ["db_2_1_c1 Running", "web_1_1_c1 Running"]);
    let app = status.apps.values().next().unwrap();
    assert_eq!(app.commit.as_ref().unwrap().as_str(), "c1");
    assert!(!status.update_pending && !status.update_failed);
    assert_eq!(status.waiting_on, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn no_engine_call_is_made_twice() {
    let rig = rig();
    rig.set(
        target()
            .service("web", "web:1")
            .service("db", "db:1")
            .json(),
    )
    .await;
    rig.settled().await;
    let mut calls = rig.engine.calls();
    calls.sort();
    assert_eq!(
        calls,
        [
            "create db",
            "create network 1_default",
            "create volume 1_data",
            "create web",
            "pull db:1",
            "pull web:1",
            "start db",
            "start web",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_of_one_service_leaves_the_other_untouched() {
    let rig = rig();
    rig.set(
        target()
            .service("web", "web:1")
            .service("db", "db:1")
            .json(),
    )
    .await;
    rig.settled().await;
    let (web, db) = (rig.engine.id_of("web"), rig.engine.id_of("db"));
    rig.engine.forget_calls();
    rig.set(
        target()
            .service("web", "web:2")
            .service("db", "db:1")
            .json(),
    )
    .await;
    rig.settled().await;
    assert_eq!(rig.engine.id_of("db"), db);
    assert_ne!(rig.engine.id_of("web"), web);
    assert!(rig.engine.calls().iter().all(|call| !call.ends_with(" db")));
}

#[tokio::test(start_paused = true)]
async fn another_release_of_the_same_configuration_renames() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.engine.forget_calls();
    rig.set(target().service("web", "web:1").commit("c2").json())
        .await;
    let status = rig.settled().await;
    assert_eq!(rig.engine.calls(), ["rename web"]);
    assert_eq!(rig.engine.picture(), ["web_1_1_c2 Running"]);
    let app = status.apps.values().next().unwrap();
    assert_eq!(app.commit.as_ref().unwrap().as_str(), "c2");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_vanishes_comes_back() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    let before = rig.engine.id_of("web");
    rig.engine.vanish("web");
    rig.eventually("back", || rig.engine.picture().len() == 1)
        .await;
    rig.settled().await;
    assert_ne!(rig.engine.id_of("web"), before);
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_ended_is_left_to_the_engine() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.engine.forget_calls();
    rig.engine.end("web");
    let ended = |status: &model::DeviceStatus| {
        let app = status.apps.values().next().unwrap();
        app.services[0].state == ServiceState::Exited
    };
    let status = rig.until(ended).await;
    assert!(!status.applying);
    assert_eq!(rig.engine.calls(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn services_start_in_the_order_of_their_dependencies() {
    let rig = rig();
    rig.set(
        target()
            .service_with("web", "web:1", json!({ "depends_on": ["db"] }))
            .service("db", "db:1")
            .json(),
    )
    .await;
    rig.settled().await;
    let calls = rig.engine.calls();
    let at = |call: &str| calls.iter().position(|made| made == call).unwrap();
    assert!(at("start db") < at("create web"));
}

#[tokio::test(start_paused = true)]
async fn a_service_is_stopped_and_started_by_the_target() {
    let mut rig = rig();
    let stopped = || {
        target()
            .service_with("web", "web:1", json!({ "running": false }))
            .json()
    };
    let running = || target().service("web", "web:1").json();
    rig.set(running()).await;
    rig.settled().await;
    let id = rig.engine.id_of("web");
    rig.set(stopped()).await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Exited"]);
    // The next supervisor also knows which containers were stopped.
    rig.restart().await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Exited"]);
    rig.set(running()).await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
    assert_eq!(rig.engine.id_of("web"), id);
}

#[tokio::test(start_paused = true)]
async fn a_changed_network_is_made_anew_with_its_services() {
    let rig = rig();
    let with = |driver: &str| {
        target()
            .network(
                "front",
                json!({ "driver_opts": { "com.example.x": driver } }),
            )
            .service_with("web", "web:1", json!({ "networks": ["front"] }))
            .service("db", "db:1")
            .json()
    };
    rig.set(with("a")).await;
    rig.settled().await;
    let db = rig.engine.id_of("db");
    rig.engine.forget_calls();
    rig.set(with("b")).await;
    rig.settled().await;
    assert_eq!(
        rig.engine.calls(),
        [
            "stop web",
            "remove web",
            "remove network 1_front",
            "create network 1_front",
            "create web",
            "start web",
        ]
    );
    assert_eq!(rig.engine.id_of("db"), db);
}

#[tokio::test(start_paused = true)]
async fn a_new_target_breaks_off_pulls_that_nobody_wants_any_more() {
    let rig = rig();
    rig.engine.hold("pull slow:1");
    rig.set(target().service("web", "slow:1").json()).await;
    let status = rig
        .until(|status| {
            let mut images = status.images.iter();
            images.any(|image| image.download_progress == Some(50))
        })
        .await;
    assert!(status.applying && status.update_pending);
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
    // It was never released, so it can only have ended by being aborted.
    assert!(!rig.engine.calls().contains(&"pull slow:1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn cancelling_breaks_off_the_pull_in_flight_and_begins_it_anew() {
    let rig = rig();
    let mut logs = rig.reconciler.logs();
    rig.engine.hold("pull slow:1");
    rig.set(target().service("web", "slow:1").json()).await;
    rig.until(|status| {
        let mut images = status.images.iter();
        images.any(|image| image.download_progress == Some(50))
    })
    .await;
    rig.reconciler.trigger(false, true);
    let twice = async {
        let mut begun = 0;
        while begun < 2 {
            let line = logs.next().await.unwrap();
            begun += usize::from(line.message == "Downloading image 'slow:1'");
        }
    };
    let day = std::time::Duration::from_secs(24 * 3600);
    tokio::time::timeout(day, twice).await.unwrap();
    rig.engine.let_go("pull slow:1");
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_supervisor_touches_nothing() {
    let mut rig = rig();
    rig.set(
        target()
            .service("web", "web:1")
            .service("db", "db:1")
            .json(),
    )
    .await;
    rig.settled().await;
    let before = rig.engine.picture();
    rig.engine.forget_calls();
    rig.restart().await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), before);
    assert_eq!(rig.engine.calls(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn states_of_a_service_are_told_while_it_is_made() {
    let rig = rig();
    let state = |status: &model::DeviceStatus| {
        let app = status.apps.values().next()?;
        app.services.first().map(|service| service.state)
    };
    for (held, shown) in [
        ("pull web:1", ServiceState::Downloading),
        ("create web", ServiceState::Installing),
        ("start web", ServiceState::Starting),
    ] {
        rig.engine.hold(held);
        if held == "pull web:1" {
            rig.set(target().service("web", "web:1").json()).await;
        }
        rig.until(|status| state(status) == Some(shown)).await;
        // The next call is held before this one continues.
        let next = match held {
            "pull web:1" => "create web",
            _ => "start web",
        };
        if next != held {
            rig.engine.hold(next);
        }
        rig.engine.let_go(held);
    }
    rig.until(|status| state(status) == Some(ServiceState::Running))
        .await;
    rig.engine.hold("stop web");
    rig.set(target().service("web", "web:2").json()).await;
    rig.until(|status| state(status) == Some(ServiceState::Stopping))
        .await;
    rig.engine.let_go("stop web");
    rig.settled().await;
}

#[tokio::test(start_paused = true)]
async fn an_image_under_another_name_with_the_same_digest_counts_as_downloaded() {
    let rig = rig();
    let digest = "a".repeat(64);
    let named = |repository: &str| format!("r.io/{repository}@sha256:{digest}");
    rig.set(target().service("web", &named("first")).json())
        .await;
    rig.settled().await;
    let web = rig.engine.id_of("web");
    let second = target().commit("c2").service("web", &named("second"));
    rig.set(second.json()).await;
    let status = rig.settled().await;
    assert_eq!(rig.engine.id_of("web"), web);
    let images: Vec<_> = status
        .images
        .iter()
        .map(|image| (image.name.as_str(), image.state, image.download_progress))
        .collect();
    let name = named("second");
    assert_eq!(images, [(name.as_str(), ImageState::Downloaded, None)]);
}

use crate::rig::{rig, target};

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_holds_up_no_other_and_is_tried_again() {
    let rig = rig();
    rig.engine.fail("start bad", 3);
    rig.set(
        target()
            .service("bad", "bad:1")
            .service("good", "good:1")
            .json(),
    )
    .await;
    let status = rig
        .until(|status| {
            status.update_failed && rig.engine.picture().contains(&"good_2_1_c1 Running".into())
        })
        .await;
    assert!(status.applying);
    let status = rig.settled().await;
    assert!(!status.update_failed);
    assert!(rig.engine.picture().contains(&"bad_1_1_c1 Running".into()));
    // Only the start is retried, not the creation.
    let created = rig
        .engine
        .calls()
        .into_iter()
        .filter(|call| call == "create bad");
    assert_eq!(created.count(), 1);
}

/// Docker may keep a start on record that something killed at the wrong moment, and then never starts that container again.
#[tokio::test(start_paused = true)]
async fn a_container_that_its_engine_keeps_refusing_to_start_is_replaced() {
    let starts_of = |refusals: u32| async move {
        let rig = rig();
        rig.engine.refuse_starts("web", refusals);
        rig.set(target().service("web", "web:1").json()).await;
        rig.settled().await;
        assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
        let calls = rig.engine.calls();
        let of_container = calls.into_iter().filter(|call| call.ends_with(" web"));
        of_container.collect::<Vec<_>>()
    };
    let passing = ["create web", "start web", "start web", "start web"];
    assert_eq!(starts_of(2).await, passing);
    let lasting = [&passing[..], &["remove web", "create web", "start web"][..]];
    assert_eq!(starts_of(3).await, lasting.concat());
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_not_there_holds_up_only_its_own_service() {
    let rig = rig();
    rig.set(
        target()
            .service("bad", "missing:1")
            .service("good", "good:1")
            .json(),
    )
    .await;
    let running = |_: &_| rig.engine.picture() == ["good_2_1_c1 Running"];
    let status = rig.until(running).await;
    assert!(status.applying && status.update_failed);
    let message = status
        .waiting_on
        .iter()
        .any(|line| line.contains("missing:1"));
    assert!(message, "{:?}", status.waiting_on);
    // A target with an available image ends it.
    rig.set(target().service("good", "good:1").json()).await;
    assert!(!rig.settled().await.update_failed);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_images_are_pulled_at_a_time() {
    let rig = rig();
    let names: Vec<String> = (0..10).map(|number| format!("s{number}")).collect();
    let mut desired = target();
    for name in &names {
        rig.engine.hold(&format!("pull {name}:1"));
        desired = desired.service(name, &format!("{name}:1"));
    }
    rig.set(desired.json()).await;
    rig.eventually("4 pulls", || rig.engine.waiting() == 4)
        .await;
    // The clock is paused: after this, everything that could happen has happened.
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(rig.engine.waiting(), 4);
    for name in &names {
        rig.engine.let_go(&format!("pull {name}:1"));
    }
    rig.settled().await;
    assert_eq!(rig.engine.picture().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_new_target_is_tried_at_once() {
    let rig = rig();
    rig.set(target().service("web", "missing:1").json()).await;
    rig.until(|status| status.update_failed).await;
    let before = tokio::time::Instant::now();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    assert!(before.elapsed() < std::time::Duration::from_millis(450));
}

#[tokio::test(start_paused = true)]
async fn every_call_may_fail_once() {
    for call in [
        "pull web:1",
        "create network 1_default",
        "create volume 1_data",
        "create web",
        "start web",
    ] {
        let rig = rig();
        rig.engine.fail(call, 1);
        rig.set(target().service("web", "web:1").json()).await;
        let status = rig.settled().await;
        assert!(!status.update_failed, "{call}");
        assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"], "{call}");
    }
    for call in ["stop web", "remove web"] {
        let rig = rig();
        rig.set(target().service("web", "web:1").json()).await;
        rig.settled().await;
        rig.engine.fail(call, 1);
        rig.set(target().service("web", "web:2").json()).await;
        rig.settled().await;
        assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"], "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_restarts_is_absorbed() {
    let rig = rig();
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
    rig.engine.go_silent();
    let is_waiting =
        |status: &model::DeviceStatus| status.applying && !status.waiting_on.is_empty();
    let status = rig.until(is_waiting).await;
    assert!(
        status.waiting_on[0].contains("does not answer"),
        "{:?}",
        status.waiting_on
    );
    assert!(!rig.reconciler.problems().is_empty());
    rig.engine.come_back();
    rig.settled().await;
    assert!(rig.reconciler.problems().is_empty());
    assert_eq!(rig.engine.picture(), before);
    assert_eq!(rig.engine.calls(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_engine_may_come_later_than_the_supervisor() {
    let mut rig = rig();
    rig.engine.go_silent();
    rig.restart().await;
    rig.set(target().service("web", "web:1").json()).await;
    rig.until(|status| !status.waiting_on.is_empty()).await;
    rig.engine.come_back();
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_leaves_services_running() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.engine.forget_calls();
    rig.reconciler.shutdown().await;
    assert_eq!(rig.engine.calls(), Vec::<String>::new());
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_a_service_that_is_being_replaced() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.engine.hold("remove web");
    rig.set(target().service("web", "web:2").json()).await;
    rig.eventually("stopped", || {
        rig.engine.calls().contains(&"stop web".into())
    })
    .await;
    let stopping = rig.reconciler.clone();
    let stopping = tokio::spawn(async move { stopping.shutdown().await });
    tokio::task::yield_now().await;
    rig.engine.let_go("remove web");
    stopping.await.unwrap();
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
    assert!(!rig.lock_path("web").exists());
}

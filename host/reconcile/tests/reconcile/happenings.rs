//! What the loop tells of while it works.

use std::fs;

use model::ServiceState;
use reconcile::Happening;

use crate::rig::{Rig, rig, target};

fn told(rig: &Rig) -> Vec<String> {
    let told = rig.told.lock().unwrap();
    let lines = told.iter().map(|happening| match happening {
        Happening::Service { service, state, .. } => {
            let state = state.map_or("nothing", ServiceState::as_str);
            format!("{service} {state}")
        }
        Happening::Download { image, percent, .. } => format!("{image} {percent}"),
        Happening::LockWait { app, .. } => format!("app {app} is locked"),
        Happening::StepFailed { subject, apps, .. } => {
            format!("{subject} failed, for {} apps", apps.len())
        }
        Happening::ApplyBegin { .. } => "begin".to_owned(),
        Happening::ApplyEnd { reached } => format!("end {reached}"),
        Happening::Release { .. } => "release".to_owned(),
    });
    lines.collect()
}

fn has(told: &[String], wanted: &[&str]) {
    let mut left = told.iter();
    for line in wanted {
        assert!(
            left.any(|told| told == line),
            "no `{line}` in its place of {wanted:?} in {told:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_is_told_from_its_begin_to_its_end() {
    let rig = rig();
    rig.settled().await;
    rig.told.lock().unwrap().clear();
    rig.engine.hold("pull web:1");
    rig.set(target().service("web", "web:1").json()).await;
    rig.eventually("a pull", || rig.engine.waiting() == 1).await;
    rig.until(|status| {
        status
            .images
            .iter()
            .any(|i| i.download_progress == Some(50))
    })
    .await;
    rig.engine.let_go("pull web:1");
    rig.settled().await;
    let told = told(&rig);
    has(
        &told,
        &["begin", "web Downloading", "web Running", "end true"],
    );
    has(&told, &["web:1 50", "web:1 100"]);
    let ends = told.iter().filter(|line| line.starts_with("end")).count();
    assert_eq!(ends, 1, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_and_a_failure_are_told_while_they_hold_an_update_up() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.told.lock().unwrap().clear();
    fs::write(rig.lock_path("web"), "").unwrap();
    rig.engine.fail("pull web:2", 1);
    rig.set(target().service("web", "web:2").json()).await;
    rig.until(|status| status.waiting_on.iter().any(|why| why.contains("locked")))
        .await;
    fs::remove_file(rig.lock_path("web")).unwrap();
    rig.settled().await;
    has(
        &told(&rig),
        &[
            "begin",
            "image web:2 failed, for 1 apps",
            "app 1 is locked",
            "web Running",
            "end true",
        ],
    );
    rig.told.lock().unwrap().clear();
    rig.set(target().json()).await;
    rig.settled().await;
    has(&told(&rig), &["web Stopping", "web nothing", "end true"]);
}

//! Events of the loop.

use std::fs;

use device_types::Event;

use crate::rig::{Rig, rig, target};

fn sent(rig: &Rig) -> Vec<String> {
    let sent = rig.events.lock().unwrap();
    let lines = sent.iter().map(|(audience, event)| match event {
        Event::Service(changed) => {
            let status = changed.status.map_or("nothing", |state| state.into());
            format!("{} {status}", changed.service)
        }
        Event::Download(download) => format!("{} {}", download.image, download.progress),
        Event::LockWait(wait) => format!("app {} is locked", wait.app_id),
        Event::UpdatePostponed(postponed) => format!("app {} waits", postponed.app_id),
        Event::ReleaseUnhealthy(release) => format!("{} is unhealthy", release.commit),
        Event::OsUpdate(os) => format!("{} is {:?}", os.version, os.state),
        Event::StepFailed(failed) => format!("{} failed, for {audience:?}", failed.subject),
        Event::ApplyBegin(_) => "begin".to_owned(),
        Event::ApplyEnd(end) => format!("end {}", end.reached),
        Event::Release(_) => "release".to_owned(),
        Event::PluginFault(_) | Event::Power(_) => panic!("not the loop's: {event:?}"),
    });
    lines.collect()
}

fn has(sent: &[String], expected: &[&str]) {
    let mut left = sent.iter();
    for line in expected {
        assert!(
            left.any(|sent| sent == line),
            "no `{line}` in its place of {expected:?} in {sent:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_is_reported_from_its_begin_to_its_end() {
    let rig = rig();
    rig.settled().await;
    rig.events.lock().unwrap().clear();
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
    let sent = sent(&rig);
    has(
        &sent,
        &["begin", "web Downloading", "web Running", "end true"],
    );
    has(&sent, &["web:1 50", "web:1 100"]);
    let ends = sent.iter().filter(|line| line.starts_with("end")).count();
    assert_eq!(ends, 1, "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_and_a_failure_are_reported_while_they_hold_an_update_up() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.events.lock().unwrap().clear();
    fs::write(rig.lock_path("web"), "").unwrap();
    rig.engine.fail("pull web:2", 1);
    rig.set(target().service("web", "web:2").json()).await;
    rig.until(|status| status.waiting_on.iter().any(|why| why.contains("locked")))
        .await;
    fs::remove_file(rig.lock_path("web")).unwrap();
    rig.settled().await;
    has(
        &sent(&rig),
        &[
            "begin",
            "image web:2 failed, for App(AppId(1))",
            "app 1 is locked",
            "web Running",
            "end true",
        ],
    );
    rig.events.lock().unwrap().clear();
    rig.set(target().json()).await;
    rig.settled().await;
    has(&sent(&rig), &["web Stopping", "web nothing", "end true"]);
}

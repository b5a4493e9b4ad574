//! A small disk: a download that does not fit, and a state folder that cannot be written.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tests::{Answer, Registry, Stage, Supervisor, guest, service, target, until};

/// How much space a download leaves free.
const RESERVE: usize = 64 << 20;

/// A file system in memory, with a limited size, over a folder.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it; returns `None`, and prints a line about it, if the test may not mount.
    fn over(folder: &Path, bytes: usize) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(folder)
            .output();
        match mounted {
            Ok(done) if done.status.success() => Some(SmallDisk(folder.to_owned())),
            other => {
                println!("SKIPPED: no small disk ({other:?})");
                None
            }
        }
    }

    fn grow(&self, bytes: usize) {
        let options = format!("remount,size={bytes}");
        let done = Command::new("mount")
            .args(["-o", &options])
            .arg(&self.0)
            .status();
        assert!(done.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_component_that_does_not_fit_is_refused_with_the_figures_and_tried_again() {
    let device = Supervisor::on_wasm().start().await;
    // With 64 MiB reserved there is no room for anything.
    let Some(disk) = SmallDisk::over(&device.state_dir().join("wasm/components"), RESERVE) else {
        return;
    };
    let registry = Registry::start().await;
    let component = std::fs::read(guest("guest")).unwrap();
    let image = registry.publish_component(&component, "large");
    let web = service(
        "web",
        &guest("guest"),
        &json!({ "image": image, "command": ["wait"] }),
    );
    let mut logs = device.read_logs().await;
    device.set_target(&target(7140, &[web])).await;
    let line = logs.until_message("there is no room for").await;
    let message = line["message"].as_str().unwrap();
    for part in [
        image.as_str(),
        "64.0 MiB stay reserved",
        "wasm/components` has only 64.0 MiB free",
        "/v2/cleanup-volumes",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    until("the failure to show", || async {
        let state = device.json("/v1/device").await;
        if state["update_failed"] == true && state["update_downloaded"] != true {
            Ok(())
        } else {
            Err(state)
        }
    })
    .await;

    disk.grow(RESERVE * 4);
    device.post("/v1/update", &json!({})).await;
    device.until_applied().await;
    let ids = device.json("/v2/containerId").await;
    assert!(ids["services"]["web"].is_string(), "{ids}");
    let nothing = json!({ "local": { "apps": {} } });
    device.set_target(&nothing).await;
    device.until_applied().await;
}

#[tokio::test]
async fn a_service_that_deletes_before_it_downloads_needs_room_for_one_image() {
    let device = Supervisor::on_wasm().start().await;
    let component = std::fs::read(guest("guest")).unwrap();
    // Room for one and a half components.
    let bytes = RESERVE + component.len() * 3 / 2;
    let Some(_disk) = SmallDisk::over(&device.state_dir().join("wasm/components"), bytes) else {
        return;
    };
    let registry = Registry::start().await;
    let set = async |image: &str, strategy: &str| {
        let more = json!({
            "image": image, "command": ["wait"],
            "labels": { "io.platform.update.strategy": strategy },
        });
        let web = service("web", &guest("guest"), &more);
        device.set_target(&target(7141, &[web])).await;
    };
    let first = registry.publish_component(&component, "one");
    let second = registry.publish_component(&component, "two");
    set(&first, "download-then-kill").await;
    device.until_applied().await;
    let before = device.json("/v2/containerId").await;
    let mut logs = device.read_logs().await;
    set(&second, "download-then-kill").await;
    logs.until_message("there is no room for").await;
    assert_eq!(device.json("/v2/containerId").await, before);
    set(&second, "delete-then-download").await;
    device.until_applied().await;
    assert_ne!(device.json("/v2/containerId").await, before);
    let status = device.json("/v2/state/status").await;
    assert_eq!(status["images"][0]["name"], second, "{status}");
    let nothing = json!({ "local": { "apps": {} } });
    device.set_target(&nothing).await;
    device.until_applied().await;
}

/// A device with one service whose state is on a small disk.
struct OnASmallDisk {
    // Unmounted before the device's folder is removed.
    disk: SmallDisk,
    stage: Stage,
    target: Value,
}

impl OnASmallDisk {
    async fn new(mut stage: Stage) -> Option<Self> {
        stage.device.kill().await;
        // The existing files move to the disk.
        let state = stage.device.state_dir().to_owned();
        let aside = state.with_file_name("state-before");
        std::fs::rename(&state, &aside).unwrap();
        std::fs::create_dir(&state).unwrap();
        // Of compiled code it includes everything that tests on this machine have kept.
        let kept = std::fs::read_dir(aside.join("compiled")).unwrap();
        let kept = kept.map(|file| file.unwrap().metadata().unwrap().len());
        let kept = usize::try_from(kept.sum::<u64>()).unwrap();
        let disk = SmallDisk::over(&state, kept + (64 << 20))?;
        let copied = Command::new("cp")
            .arg("-a")
            .arg(aside.join("."))
            .arg(&state)
            .status();
        assert!(copied.unwrap().success());
        stage.device.start_again().await;
        let web = if stage.on_docker {
            json!({
                "serviceName": "web", "image": stage.publish("web"), "imageId": stage.app,
                "command": ["sleep", "1000"], "environment": {}, "labels": {}, "stop_grace_period": "1s",
            })
        } else {
            // A file, since a download leaves more space free than this disk has.
            service("web", &guest("guest"), &json!({ "command": ["wait"] }))
        };
        let target = target(stage.app, &[web]);
        stage.device.set_target(&target).await;
        stage.device.until_applied().await;
        Some(OnASmallDisk {
            disk,
            stage,
            target,
        })
    }

    /// Returns the containers by the names of their services.
    async fn containers(&self) -> Value {
        self.stage.device.json("/v2/containerId").await["services"].clone()
    }

    async fn offer(&self, target: &Value) -> Answer {
        let path = "/v2/local/target-state";
        self.stage.device.post(path, target).await
    }

    fn filler(&self) -> PathBuf {
        self.disk.0.join("filler")
    }

    fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    }

    /// Processes of a killed device may take a moment to end, and keep the disk busy until then.
    async fn remount(&self, mode: &str) {
        until("the disk to be mounted again", || async {
            let mut mount = Command::new("mount");
            mount.args(["-o", &format!("remount,{mode}")]);
            let output = mount.arg(&self.disk.0).output().unwrap();
            if output.status.success() {
                Ok(())
            } else {
                Err(String::from_utf8_lossy(&output.stderr).into_owned())
            }
        })
        .await;
    }

    async fn until_healthy(&self) {
        until("the device to be healthy", || async {
            match self.stage.device.get("/v1/healthy").await.status {
                200 => Ok(()),
                _ => Err(self.stage.device.log()),
            }
        })
        .await;
    }

    /// Removes the service: Docker is shared with other tests.
    async fn leave_nothing(&self) {
        self.stage.device.set_target(&nothing()).await;
        self.stage.device.until_applied().await;
        assert_eq!(self.containers().await, json!({}));
    }
}

fn nothing() -> Value {
    json!({ "local": { "apps": {} } })
}

async fn a_full_disk_at_the_start(stage: Option<Stage>) {
    let Some(stage) = stage else { return };
    let Some(mut test) = OnASmallDisk::new(stage).await else {
        return;
    };
    let before = test.containers().await;
    test.stage.device.kill().await;
    test.fill();
    test.stage.device.start_again().await;
    let log = test.stage.device.log();
    assert!(log.contains("cannot write into"), "{log}");
    until("the service to be found", || async {
        let now = test.containers().await;
        if now == before { Ok(()) } else { Err(now) }
    })
    .await;
    assert_eq!(test.stage.device.get("/v1/healthy").await.status, 500);
    let refused = test.offer(&nothing()).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(test.containers().await, before);

    std::fs::remove_file(test.filler()).unwrap();
    test.leave_nothing().await;
    test.until_healthy().await;
}

#[tokio::test]
async fn a_device_with_components_whose_state_disk_is_full_starts_and_is_reached() {
    a_full_disk_at_the_start(Some(Stage::on_wasm(7141).await)).await;
}

#[tokio::test]
async fn a_device_with_containers_whose_state_disk_is_full_starts_and_is_reached() {
    a_full_disk_at_the_start(Stage::on_docker(7144).await).await;
}

async fn a_disk_that_fills(stage: Option<Stage>) {
    let Some(stage) = stage else { return };
    let Some(test) = OnASmallDisk::new(stage).await else {
        return;
    };
    let before = test.containers().await;
    assert_eq!(test.stage.device.get("/v1/healthy").await.status, 200);
    test.fill();
    let offers = AtomicUsize::new(0);
    until("a target to be refused", || async {
        // The database may still have room for some. Each has another name for the device, so that it is written.
        let mut target = test.target.clone();
        let offer = offers.fetch_add(1, Ordering::Relaxed);
        target["local"]["name"] = json!(format!("device {offer}"));
        let refused = test.offer(&target).await;
        if refused.status == 503 {
            Ok(())
        } else {
            Err(refused)
        }
    })
    .await;
    assert_eq!(test.containers().await, before);
    assert_eq!(test.stage.device.get("/v1/healthy").await.status, 500);
    let log = test.stage.device.log();
    assert!(log.contains("cannot write into"), "{log}");
    std::fs::remove_file(test.filler()).unwrap();
    assert_eq!(test.stage.device.get("/v1/healthy").await.status, 200);
    test.leave_nothing().await;
}

#[tokio::test]
async fn a_device_with_components_whose_state_disk_fills_is_not_healthy_until_there_is_room() {
    a_disk_that_fills(Some(Stage::on_wasm(7143).await)).await;
}

#[tokio::test]
async fn a_device_with_containers_whose_state_disk_fills_is_not_healthy_until_there_is_room() {
    a_disk_that_fills(Stage::on_docker(7145).await).await;
}

async fn a_read_only_disk(stage: Option<Stage>) {
    let Some(stage) = stage else { return };
    let Some(mut test) = OnASmallDisk::new(stage).await else {
        return;
    };
    if !test.stage.on_docker {
        // The processes of components write into the folder.
        test.leave_nothing().await;
    }
    let before = test.containers().await;
    // After a kill there is a log that is not in the database yet.
    test.stage.device.kill().await;
    // The harness finds the device through a file that a start writes; without it the address is the previous one.
    test.remount("ro").await;
    test.stage.device.start_again().await;
    let refused = test.offer(&nothing()).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    until("the service to be found", || async {
        let now = test.containers().await;
        if now == before { Ok(()) } else { Err(now) }
    })
    .await;
    test.remount("rw").await;
    test.leave_nothing().await;
}

#[tokio::test]
async fn a_device_with_components_whose_state_disk_is_read_only_starts_and_is_reached() {
    a_read_only_disk(Some(Stage::on_wasm(7142).await)).await;
}

#[tokio::test]
async fn a_device_with_containers_whose_state_disk_is_read_only_starts_and_is_reached() {
    a_read_only_disk(Stage::on_docker(7146).await).await;
}

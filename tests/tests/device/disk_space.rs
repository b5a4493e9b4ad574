//! A download that does not fit, on a small disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tests::{Registry, Supervisor, guest, service, target, until};

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

/// A stopped device with one service whose state is on a small disk.
async fn on_a_small_disk(app: u64) -> Option<(Supervisor, SmallDisk)> {
    let mut device = Supervisor::on_wasm().start().await;
    device.kill().await;
    // The existing files move to the disk.
    let state = device.state_dir().to_owned();
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
    device.start_again().await;
    let web = service("web", &guest("guest"), &json!({ "command": ["wait"] }));
    device.set_target(&target(app, &[web])).await;
    device.until_applied().await;
    Some((device, disk))
}

#[tokio::test]
async fn a_device_whose_state_disk_is_full_starts_and_is_reached() {
    let Some((mut device, disk)) = on_a_small_disk(7141).await else {
        return;
    };
    let before = device.json("/v2/containerId").await["services"].clone();
    device.kill().await;
    let filler = disk.0.join("filler");
    let fill = || {
        let mut file = std::fs::File::create(&filler).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    };
    fill();
    device.start_again().await;
    assert!(
        device.log().contains("cannot write into"),
        "{}",
        device.log()
    );
    until("the service to be found", || async {
        let now = device.json("/v2/containerId").await["services"].clone();
        if now == before { Ok(()) } else { Err(now) }
    })
    .await;
    assert_eq!(device.get("/v1/healthy").await.status, 500);
    let nothing = json!({ "local": { "apps": {} } });
    let refused = device.post("/v2/local/target-state", &nothing).await;
    assert_eq!(refused.status, 503, "{refused:?}");

    std::fs::remove_file(&filler).unwrap();
    device.set_target(&nothing).await;
    device.until_applied().await;
    until("the device to be healthy", || async {
        let answer = device.get("/v1/healthy").await;
        if answer.status == 200 {
            Ok(())
        } else {
            Err(device.log())
        }
    })
    .await;
}

#[tokio::test]
async fn a_device_whose_state_disk_fills_is_not_healthy_until_there_is_room() {
    let Some((device, disk)) = on_a_small_disk(7143).await else {
        return;
    };
    assert_eq!(device.get("/v1/healthy").await.status, 200);
    let filler = disk.0.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    drop(file);
    let nothing = json!({ "local": { "apps": {} } });
    until("a target to be refused", || async {
        let refused = device.post("/v2/local/target-state", &nothing).await;
        match refused.status {
            503 => Ok(()),
            // The database already had room for this one.
            _ => {
                let web = service("web", &guest("guest"), &json!({ "command": ["wait"] }));
                device
                    .post("/v2/local/target-state", &target(7143, &[web]))
                    .await;
                Err(refused)
            }
        }
    })
    .await;
    assert_eq!(device.get("/v1/healthy").await.status, 500);
    assert!(
        device.log().contains("cannot write into"),
        "{}",
        device.log()
    );
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(device.get("/v1/healthy").await.status, 200);
    device.set_target(&nothing).await;
    device.until_applied().await;
}

#[tokio::test]
async fn a_device_whose_state_disk_is_read_only_starts_and_is_reached() {
    let Some((mut device, disk)) = on_a_small_disk(7142).await else {
        return;
    };
    let nothing = json!({ "local": { "apps": {} } });
    device.set_target(&nothing).await;
    device.until_applied().await;
    // After a kill there is a log that is not in the database yet.
    device.kill().await;
    // Processes of the killed device may take a moment to end, and keep the disk busy until then.
    let remount = async |mode: &str| {
        until("the disk to be mounted again", || async {
            let mut mount = Command::new("mount");
            mount.args(["-o", &format!("remount,{mode}")]).arg(&disk.0);
            let output = mount.output().unwrap();
            if output.status.success() {
                Ok(())
            } else {
                Err(String::from_utf8_lossy(&output.stderr).into_owned())
            }
        })
        .await;
    };
    // The harness finds the device through a file that a start writes; without it the address is the previous one.
    remount("ro").await;
    device.start_again().await;
    let refused = device.post("/v2/local/target-state", &nothing).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    remount("rw").await;
    device.set_target(&nothing).await;
    device.until_applied().await;
}

//! A download that does not fit, on a small disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tests::{Registry, Supervisor, guest, service, target, until};

/// A file system of a size, in memory, over a folder.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, and a line that says so, where the test may not mount.
    fn over(folder: &Path, mebibytes: u32) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"])
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

    fn grow(&self, mebibytes: u32) {
        let options = format!("remount,size={mebibytes}m");
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
    let Some(disk) = SmallDisk::over(&device.state_dir().join("wasm/components"), 64) else {
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
    let said = logs.until_message("there is no room for").await;
    let said = said["message"].as_str().unwrap();
    for part in [
        image.as_str(),
        "64.0 MiB stay reserved",
        "wasm/components` is only 64.0 MiB are free",
        "/v2/cleanup-volumes",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    until("the failure to show", || async {
        let state = device.json("/v1/device").await;
        match state["update_failed"] == true && state["update_downloaded"] != true {
            true => Ok(()),
            false => Err(state),
        }
    })
    .await;

    disk.grow(256);
    device.post("/v1/update", &json!({})).await;
    device.until_applied().await;
    let ids = device.json("/v2/containerId").await;
    assert!(ids["services"]["web"].is_string(), "{ids}");
    let nothing = json!({ "local": { "apps": {} } });
    device.set_target(&nothing).await;
    device.until_applied().await;
}

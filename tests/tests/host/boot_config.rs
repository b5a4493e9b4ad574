//! The variables `HOST_CONFIG_...` of a target: the file on the boot partition, and the reboot after a change.

use std::fs;

use serde_json::{Value, json};
use tests::{
    Builder, RecordedCloud, Supervisor, SystemBus, guest, service, services_of, target, until,
};

const STOCK: &str = "\
# As it came
gpu_mem=64
dtoverlay=vc4-kms-v3d
kernel=u-boot.bin
[pi4]
arm_boost=1
";
const WRITTEN: &str = "\
# As it came
# Set aside by the device supervisor: gpu_mem=64
dtoverlay=vc4-kms-v3d
kernel=u-boot.bin
[pi4]
arm_boost=1
# Set by the device supervisor (HOST_CONFIG_...), which undoes changes made here:
[all]
dtoverlay=
dtparam=i2c_arm=on
dtparam=spi=on
gpu_mem=16
# End of what the device supervisor has set.
";

/// A device of this type whose boot partition has the file from the beginning.
async fn board(device_type: &str, builder: Builder) -> Supervisor {
    let slug = json!({ "slug": device_type, "arch": "aarch64" });
    builder
        .host_file("mnt/boot/device-type.json", slug.to_string())
        .host_file("mnt/boot/config.txt", STOCK)
        .start()
        .await
}

async fn pi() -> Supervisor {
    board("raspberrypi4-64", Supervisor::on_wasm()).await
}

fn boot(device: &Supervisor, name: &str) -> Option<String> {
    fs::read_to_string(device.host_root().join("mnt/boot").join(name)).ok()
}

/// Returns how often the host was to reboot.
fn reboots(device: &Supervisor) -> usize {
    device.log().matches("rehearsal: would reboot").count()
}

fn with_config(config: Value, services: &[Value]) -> Value {
    let mut target = target(7, services);
    target["local"]["config"] = config;
    target
}

fn desired_config() -> Value {
    json!({
        "PLATFORM_HOST_CONFIG_gpu_mem": "16",
        "HOST_CONFIG_dtparam": "\"i2c_arm=on\",\"spi=on\"",
        "HOST_CONFIG_kernel": "u-boot.bin",
    })
}

fn waiting() -> Value {
    service("main", &guest("guest"), &json!({ "command": ["wait"] }))
}

#[tokio::test]
async fn variables_are_written_into_config_txt_and_followed_by_one_reboot() {
    let device = pi().await;
    let set = device
        .set_target(&with_config(desired_config(), &[waiting()]))
        .await;
    assert!(set.json().get("warnings").is_none(), "{set:?}");
    device.until_applied().await;
    assert_eq!(boot(&device, "config.txt").unwrap(), WRITTEN);
    assert_eq!(boot(&device, "config.txt.before").unwrap(), STOCK);
    assert_eq!(reboots(&device), 1);
    assert_eq!(services_of(device.state_dir()).len(), 1, "it runs again");
    let shown = device.json("/v2/local/target-state").await;
    let config = &shown["state"]["local"]["config"];
    assert_eq!(config["HOST_CONFIG_gpu_mem"], "16");
    assert_eq!(config["HOST_CONFIG_dtparam"], "\"i2c_arm=on\",\"spi=on\"");
    let mark = "run/supervisor/reboot-after-apply";
    assert!(!device.host_root().join(mark).exists());

    device
        .set_target(&with_config(desired_config(), &[waiting()]))
        .await;
    device.until_applied().await;
    assert_eq!(reboots(&device), 1, "nothing has changed");

    device
        .set_target(&with_config(json!({}), &[waiting()]))
        .await;
    device.until_applied().await;
    assert_eq!(boot(&device, "config.txt").unwrap(), STOCK);
    assert_eq!(reboots(&device), 2);
}

#[tokio::test]
async fn settings_that_the_file_already_has_are_no_change() {
    let device = pi().await;
    let same = json!({ "HOST_CONFIG_gpu_mem": "64", "HOST_CONFIG_dtoverlay": "\"vc4-kms-v3d\"" });
    device.set_target(&with_config(same, &[])).await;
    device.until_applied().await;
    assert_eq!(boot(&device, "config.txt").unwrap(), STOCK);
    assert_eq!(boot(&device, "config.txt.before"), None);
    assert_eq!(reboots(&device), 0);
}

#[tokio::test]
async fn a_key_that_decides_what_is_booted_is_refused_in_words() {
    let device = pi().await;
    let config = json!({ "HOST_CONFIG_kernel": "mine.bin", "HOST_CONFIG_gpu_mem": "16" });
    let set = device.set_target(&with_config(config, &[waiting()])).await;
    let why = "`HOST_CONFIG_kernel`: `kernel` decides what the device boots, and cannot be changed";
    assert_eq!(
        set.json()["warnings"],
        json!([format!(
            "the host's boot configuration is not changed: {why}"
        )])
    );
    until("the failure to show", || async {
        let state = device.json("/v1/device").await;
        if state["update_failed"] == true {
            Ok(())
        } else {
            Err(state)
        }
    })
    .await;
    until("the service to run all the same", || async {
        match services_of(device.state_dir()).len() {
            1 => Ok(()),
            other => Err((other, device.log())),
        }
    })
    .await;
    assert_eq!(boot(&device, "config.txt").unwrap(), STOCK);
    assert_eq!(reboots(&device), 0);
    assert!(device.log().contains(why), "{}", device.log());
}

#[tokio::test]
async fn the_reboot_waits_for_a_lock_and_comes_when_it_is_gone() {
    let device = pi().await;
    device.set_target(&target(7, &[waiting()])).await;
    device.until_applied().await;
    let folder = "tmp/platform-supervisor/services/7/main";
    let lock = device.host_root().join(folder).join("updates.lock");
    fs::write(&lock, "mine").unwrap();
    device
        .set_target(&with_config(desired_config(), &[waiting()]))
        .await;
    until("the reboot to wait", || async {
        let log = device.log();
        let refused = "Lockfile exists for { appId: 7, service: main }";
        if log.contains(refused) {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
    assert_eq!(
        boot(&device, "config.txt").unwrap(),
        WRITTEN,
        "as it will be"
    );
    assert_eq!(reboots(&device), 0);
    assert_eq!(services_of(device.state_dir()).len(), 1);
    fs::remove_file(&lock).unwrap();
    device.until_applied().await;
    assert_eq!(reboots(&device), 1);
}

#[tokio::test]
async fn a_kill_between_the_file_and_the_reboot_forgets_no_reboot() {
    let mut device = pi().await;
    device.set_target(&target(7, &[waiting()])).await;
    device.until_applied().await;
    let folder = "tmp/platform-supervisor/services/7/main";
    let lock = device.host_root().join(folder).join("updates.lock");
    fs::write(&lock, "mine").unwrap();
    device
        .set_target(&with_config(desired_config(), &[waiting()]))
        .await;
    until("the file to be written", || async {
        let file = boot(&device, "config.txt");
        if file.as_deref() == Some(WRITTEN) {
            Ok(())
        } else {
            Err(file)
        }
    })
    .await;
    device.kill().await;
    fs::remove_file(&lock).unwrap();
    device.start_again().await;
    device.until_applied().await;
    assert_eq!(reboots(&device), 1);
    device.kill().await;
    device.start_again().await;
    device.until_applied().await;
    assert_eq!(reboots(&device), 1, "once is enough");
}

#[tokio::test]
async fn a_board_without_such_a_file_keeps_the_variables_and_says_so_once() {
    let device = board("qemux86-64", Supervisor::on_wasm()).await;
    let set = device.set_target(&with_config(desired_config(), &[])).await;
    let warnings = set.json()["warnings"].clone();
    let warning = warnings[0].as_str().unwrap().to_owned();
    assert!(
        warning.starts_with("no plugin of this device writes"),
        "{warning}"
    );
    assert_eq!(warnings.as_array().unwrap().len(), 1);
    device.until_applied().await;
    device
        .set_target(&with_config(desired_config(), &[waiting()]))
        .await;
    device.until_applied().await;
    let warnings = device.log().matches(&warning).count();
    assert_eq!(warnings, 1, "{}", device.log());
    assert_eq!(boot(&device, "config.txt").unwrap(), STOCK);
    let shown = device.json("/v2/local/target-state").await;
    assert_eq!(
        shown["state"]["local"]["config"]["HOST_CONFIG_gpu_mem"],
        "16"
    );
}

#[tokio::test]
async fn the_clouds_variables_are_written_and_logind_reboots() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    let cloud = RecordedCloud::start(&guest("guest")).await;
    cloud.change(|device| device["config"] = desired_config());
    let builder = Supervisor::on_wasm()
        .argument("--host-actions")
        .argument("dbus")
        .argument("--dbus-address")
        .argument(bus.address())
        .config_json(cloud.config_json());
    let device = board("raspberrypi4-64", builder).await;
    until("logind to be told", || async {
        let calls = bus.calls();
        if calls.iter().any(|call| call.starts_with("Reboot")) {
            Ok(())
        } else {
            Err((calls, device.log()))
        }
    })
    .await;
    assert_eq!(boot(&device, "config.txt").unwrap(), WRITTEN);
    let mark = "run/supervisor/reboot-after-apply";
    assert!(
        device.host_root().join(mark).exists(),
        "until it has booted"
    );
}

#[tokio::test]
async fn a_service_that_requires_a_reboot_is_started_after_it() {
    let device = pi().await;
    let mut careful = waiting();
    careful["labels"] = json!({ "io.platform.update.requires-reboot": "true" });
    device.set_target(&target(7, &[careful.clone()])).await;
    device.until_applied().await;
    assert_eq!(reboots(&device), 1);
    assert_eq!(services_of(device.state_dir()).len(), 1);
    // The same again, and a target that does not require it: no reason to reboot.
    device.set_target(&target(7, &[careful])).await;
    device.until_applied().await;
    device.set_target(&target(7, &[waiting()])).await;
    device.until_applied().await;
    assert_eq!(reboots(&device), 1);
    let log = device.log();
    let at = |text: &str| log.find(text).unwrap_or_else(|| panic!("{text}: {log}"));
    assert!(at("Installed service 'main") < at("would reboot"));
    assert!(at("would reboot") < at("Starting service 'main"));
}

#[tokio::test]
async fn the_journals_storage_is_set_in_config_json() {
    let device = pi().await;
    let config = json!({ "SUPERVISOR_PERSISTENT_LOGGING": "true" });
    device.set_target(&with_config(config, &[])).await;
    device.until_applied().await;
    let config: Value = serde_json::from_str(&boot(&device, "config.json").unwrap()).unwrap();
    assert_eq!(config["persistentLogging"], true);
    assert_eq!(reboots(&device), 1);
}

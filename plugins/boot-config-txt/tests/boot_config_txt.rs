//! The action on the plugin runtime, with the shipped policy.

use std::fs;

use supervisor_testing::{Host, Identity, RunningHost, build};

const POLICY: &str = include_str!("../../../packaging/policy.toml");
const STOCK: &str = "gpu_mem=64\nkernel=u-boot.bin\n[pi4]\narm_boost=1\n";

fn host(device_type: &str) -> Host {
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(POLICY)
        .device(Identity {
            uuid: "0123456789abcdef0123456789abcdef".to_owned(),
            name: "local".to_owned(),
            device_type: device_type.to_owned(),
            arch: "aarch64".to_owned(),
        })
}

async fn board() -> RunningHost {
    let host = host("raspberrypi4-64");
    host.file("mnt/boot/config.txt", STOCK).start().await
}

fn file(host: &RunningHost, name: &str) -> Option<String> {
    fs::read_to_string(host.root().join("mnt/boot").join(name)).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_compared_then_written_with_a_copy_of_what_was_before() {
    let host = board().await;
    let settings = [
        ("HOST_CONFIG_gpu_mem", "16"),
        ("HOST_CONFIG_dtparam", "\"i2c_arm=on\",\"spi=on\""),
        ("HOST_SPLASH_image", "x"),
    ];
    let compared = host.compare_boot_config(&settings).await.unwrap();
    assert_eq!(
        compared.changes,
        ["HOST_CONFIG_dtparam", "HOST_CONFIG_gpu_mem"]
    );
    assert!(compared.needs_reboot && compared.refused.is_empty());
    assert_eq!(compared.foreign, ["HOST_SPLASH_image"]);
    assert_eq!(file(&host, "config.txt").unwrap(), STOCK, "only compared");

    assert_eq!(host.set_boot_config(&settings).await.unwrap(), compared);
    let expected = "\
# Set aside by the device supervisor: gpu_mem=64
kernel=u-boot.bin
[pi4]
arm_boost=1
# Set by the device supervisor (HOST_CONFIG_...), which undoes changes made here:
[all]
dtparam=i2c_arm=on
dtparam=spi=on
gpu_mem=16
# End of what the device supervisor has set.
";
    assert_eq!(file(&host, "config.txt").unwrap(), expected);
    assert_eq!(file(&host, "config.txt.before").unwrap(), STOCK);
    let settings = host.boot_settings().await.unwrap();
    let expected = [
        ("HOST_CONFIG_dtparam", "\"i2c_arm=on\",\"spi=on\""),
        ("HOST_CONFIG_gpu_mem", "16"),
        ("HOST_CONFIG_kernel", "u-boot.bin"),
    ];
    let settings: Vec<_> = settings
        .iter()
        .map(|setting| (setting.name.as_str(), setting.value.as_str()))
        .collect();
    assert_eq!(settings, expected);

    let again = host.set_boot_config(&settings).await.unwrap();
    assert!(again.changes.is_empty() && !again.needs_reboot);
    assert_eq!(file(&host, "config.txt.before").unwrap(), STOCK);
    let back = host.set_boot_config(&[]).await.unwrap();
    assert_eq!(back.changes, ["HOST_CONFIG_dtparam", "HOST_CONFIG_gpu_mem"]);
    assert_eq!(file(&host, "config.txt").unwrap(), STOCK);
    let left = fs::read_dir(host.root().join("mnt/boot")).unwrap();
    assert_eq!(left.count(), 2, "the file and its copy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_decides_what_is_booted_is_refused_with_all_else() {
    let host = board().await;
    let settings = [
        ("HOST_CONFIG_gpu_mem", "16"),
        ("HOST_CONFIG_kernel", "other.bin"),
    ];
    let refused = host.set_boot_config(&settings).await.unwrap().refused;
    let expected = "`kernel` decides what the device boots, and cannot be changed";
    assert_eq!(
        refused,
        [("HOST_CONFIG_kernel".to_owned(), expected.to_owned())]
    );
    let settings = [("HOST_CONFIG_dtparam", "\"a\",b")];
    let refused = host.set_boot_config(&settings).await.unwrap().refused;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(file(&host, "config.txt").unwrap(), STOCK);
    assert_eq!(file(&host, "config.txt.before"), None);
    // The present value is not a change.
    let settings = [("HOST_CONFIG_kernel", "u-boot.bin")];
    let same = host.compare_boot_config(&settings).await.unwrap();
    assert!(same.refused.is_empty() && same.changes.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn other_boards_have_no_such_file() {
    let host = host("qemux86-64").start().await;
    let refused = host.compare_boot_config(&[]).await.unwrap_err();
    assert_eq!(
        refused,
        "no plugin of this device writes the boot configuration of its board"
    );
}

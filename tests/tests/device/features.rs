//! Feature labels, observed from inside the service (docs/spec/device.md#feature-labels).

use std::fs;

use serde_json::{Value, json};
use tests::{DEVICE, DEVICE_KEY, RecordedCloud, Supervisor, guest, service, target, until};

/// Folders of the host with some content.
const FOLDERS: [&str; 7] = [
    "proc",
    "run/dbus",
    "var/log/journal",
    "run/log/journal",
    "lib/modules",
    "lib/firmware",
    "sys",
];

fn furnish(device: &Supervisor) {
    for folder in FOLDERS {
        let path = device.host_root().join(folder);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("found"), format!("in {folder}\n")).unwrap();
    }
    let etc = device.host_root().join("etc");
    fs::create_dir_all(&etc).unwrap();
    fs::write(etc.join("machine-id"), "a machine\n").unwrap();
}

fn labels(features: &[&str]) -> Value {
    features
        .iter()
        .map(|feature| (format!("io.platform.features.{feature}"), "1".into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[tokio::test]
async fn a_container_finds_what_its_labels_open() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let device = builder.start().await;
    furnish(&device);
    let registry = std::env::var("SUPERVISOR_TEST_REGISTRY").unwrap();
    let look = "for file in /host/run/dbus/found /var/log/journal/found /run/log/journal/found \
                /etc/machine-id /lib/modules/found /lib/firmware/found /sys/found; do \
                  echo \"$file $(cat $file)\"; \
                done; \
                touch /var/log/journal/mine || echo read only; \
                touch /extra-firmware/mine && echo kept; \
                test -S /host/run/docker.sock && echo socket at $DOCKER_HOST; \
                exec sleep 1000";
    let all = [
        "dbus",
        "journal-logs",
        "kernel-modules",
        "firmware",
        "sysfs",
        "extra-firmware",
        "platform-socket",
    ];
    let looking = json!({
        "serviceName": "looking", "imageId": 1, "image": format!("{registry}/busybox:latest"),
        "environment": {}, "labels": labels(&all), "stop_grace_period": "1s",
        "command": ["sh", "-c", look],
    });
    let mut logs = device.read_logs().await;
    device.set_target(&target(41, &[looking])).await;
    let socket = std::env::var("SUPERVISOR_TEST_DOCKER").unwrap();
    for line in [
        "/host/run/dbus/found in run/dbus",
        "/var/log/journal/found in var/log/journal",
        "/run/log/journal/found in run/log/journal",
        "/etc/machine-id a machine",
        "/lib/modules/found in lib/modules",
        "/lib/firmware/found in lib/firmware",
        "/sys/found in sys",
        "read only",
        "kept",
        &format!("socket at {socket}"),
    ] {
        logs.until_message(line).await;
    }
    // A clean-up keeps what the label has mounted.
    device.set_target(&json!({"local": {"apps": {}}})).await;
    device.until_applied().await;
    assert_eq!(device.get("/v2/cleanup-volumes").await.status, 200);
}

#[tokio::test]
async fn a_component_finds_the_folders_that_its_labels_open() {
    let device = Supervisor::on_wasm().start().await;
    furnish(&device);
    let mut logs = device.read_logs().await;
    for (feature, file, message) in [
        ("dbus", "/host/run/dbus/found", "in run/dbus"),
        (
            "journal-logs",
            "/var/log/journal/found",
            "in var/log/journal",
        ),
        ("kernel-modules", "/lib/modules/found", "in lib/modules"),
        ("firmware", "/lib/firmware/found", "in lib/firmware"),
        ("sysfs", "/sys/found", "in sys"),
        ("procfs", "/proc/found", "in proc"),
    ] {
        let reader = |labels: Value| {
            let more = json!({"command": ["read", file], "labels": labels, "restart": "no"});
            target(42, &[service("reader", &guest("guest"), &more)])
        };
        device.set_target(&reader(labels(&[feature]))).await;
        logs.until_message(message).await;
        // Without the label there is nothing there.
        device.set_target(&reader(json!({}))).await;
        logs.until_message("failed").await;
    }
}

/// A process file system at a folder, while this lives.
struct ProcessFileSystem(std::path::PathBuf);

impl ProcessFileSystem {
    /// Mounts it; returns `None`, and prints a line about it, if that is not allowed.
    fn at(folder: std::path::PathBuf) -> Option<Self> {
        fs::create_dir_all(&folder).unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "proc", "proc"])
            .arg(&folder)
            .status();
        if mount.is_ok_and(|status| status.success()) {
            return Some(ProcessFileSystem(folder));
        }
        println!("SKIPPED: no file system may be mounted here");
        None
    }
}

impl Drop for ProcessFileSystem {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_container_sees_the_hosts_processes_with_the_label_for_it_alone() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let device = builder.start().await;
    let Some(mounted) = ProcessFileSystem::at(device.host_root().join("proc")) else {
        return;
    };
    let registry = std::env::var("SUPERVISOR_TEST_REGISTRY").unwrap();
    let pid = device.pid();
    let mut logs = device.read_logs().await;
    for (labels, says) in [
        (labels(&["procfs"]), "sees it"),
        (json!({}), "sees nothing"),
    ] {
        let look = format!(
            "test -d /proc/{pid} && grep -q supervisor /proc/{pid}/comm && echo sees it || echo sees nothing; \
             exec sleep 1000"
        );
        let looking = json!({
            "serviceName": "looking", "imageId": 1, "image": format!("{registry}/busybox:latest"),
            "environment": {}, "labels": labels, "stop_grace_period": "1s", "stop_signal": "SIGKILL",
            "command": ["sh", "-c", look],
        });
        device.set_target(&target(43, &[looking])).await;
        logs.until_message(says).await;
    }
    device.set_target(&json!({"local": {"apps": {}}})).await;
    device.until_applied().await;
    drop(mounted);
}

/// Every variable that the supervisor sets, with the labels that some of them need.
async fn variables_are_found(builder: tests::Builder, app: u64, service: Value) {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    cloud.change(|device| {
        device["config"] = json!({ "PLATFORM_SUPERVISOR_LOCAL_MODE": "true" });
    });
    let config_json = cloud.config_json();
    let endpoint = config_json["apiEndpoint"].as_str().unwrap().to_owned();
    let mut device = builder.config_json(config_json).start().await;
    // The host's files are read at the start.
    device.terminate().await;
    let root = device.host_root();
    let board = json!({ "slug": "raspberrypi4-64", "arch": "aarch64" });
    fs::write(root.join("mnt/boot/device-type.json"), board.to_string()).unwrap();
    fs::create_dir_all(root.join("etc")).unwrap();
    let release = "PRETTY_NAME=\"Example OS 2.5\"\nBOARD_REV=b03112\n";
    fs::write(root.join("etc/os-release"), release).unwrap();
    device.start_again().await;
    let mut logs = device.read_logs().await;
    let mut service = service;
    service["labels"] = labels(&["supervisor-api", "platform-api", "host-os.board-rev"]);
    let mut target_state = target(app, &[service]);
    target_state["local"]["name"] = "bench".into();
    until("local mode", || async {
        let answer = device.post("/v2/local/target-state", &target_state).await;
        match answer.status {
            200 => Ok(()),
            _ => Err(answer),
        }
    })
    .await;
    let (found, _) = logs.messages_until("dumped").await;
    let port = device.base().rsplit_once(':').unwrap().1.to_owned();
    let app_name = format!("app{app}");
    let app = app.to_string();
    for (name, value) in [
        ("APP_UUID", app.as_str()),
        ("APP_NAME", &app_name),
        ("APP_ID", &app),
        ("APP_LOCK_PATH", "/tmp/platform/updates.lock"),
        (
            "SERVICE_HANDOVER_COMPLETE_PATH",
            "/tmp/platform/handover-complete",
        ),
        ("SERVICE_NAME", "telling"),
        ("DEVICE_UUID", DEVICE),
        ("DEVICE_TYPE", "raspberrypi4-64"),
        ("DEVICE_ARCH", "aarch64"),
        ("DEVICE_NAME_AT_INIT", "bench"),
        ("HOST_OS_VERSION", "Example OS 2.5"),
        ("HOST_OS_BOARD_REV", "b03112"),
        ("SUPERVISOR_PORT", &port),
        ("SUPERVISOR_ADDRESS", "http://"),
        ("SUPERVISOR_HOST", "1"),
        ("SUPERVISOR_API_KEY", ""),
        ("API_KEY", DEVICE_KEY),
        ("API_URL", &endpoint),
    ] {
        let variable = format!("variable PLATFORM_{name}={value}");
        let is_there = found.iter().any(|line| line.starts_with(&variable));
        assert!(is_there, "{variable}: {found:#?}");
    }
    for variable in ["variable PLATFORM=1", "variable USER=root"] {
        assert!(
            found.iter().any(|line| line == variable),
            "{variable}: {found:#?}"
        );
    }
    device.set_target(&json!({"local": {"apps": {}}})).await;
    device.until_applied().await;
}

#[tokio::test]
async fn a_component_finds_every_variable() {
    let more = json!({ "command": ["dump"] });
    let telling = service("telling", &guest("guest"), &more);
    variables_are_found(Supervisor::on_wasm(), 44, telling).await;
}

#[tokio::test]
async fn a_container_finds_every_variable() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let registry = std::env::var("SUPERVISOR_TEST_REGISTRY").unwrap();
    // Repeated, since an engine may give a line to its readers only when the next one is printed.
    let tell = "env | while read -r line; do echo \"variable $line\"; done; \
                while :; do echo dumped; sleep 1; done";
    let telling = json!({
        "serviceName": "telling", "imageId": 1, "image": format!("{registry}/busybox:latest"),
        "environment": {}, "stop_grace_period": "1s", "stop_signal": "SIGKILL",
        "command": ["sh", "-c", tell],
    });
    variables_are_found(builder, 45, telling).await;
}

//! Feature labels, looked at from inside the service (device behaviour 4.5).

use std::fs;

use serde_json::{Value, json};
use tests::{Supervisor, guest, service, target};

/// Folders of the host with something to find in them.
const FOLDERS: [&str; 6] = [
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
    // A clean-up spares what it brought.
    device.set_target(&json!({"local": {"apps": {}}})).await;
    device.until_applied().await;
    assert_eq!(device.get("/v2/cleanup-volumes").await.status, 200);
}

#[tokio::test]
async fn a_component_finds_the_folders_that_its_labels_open() {
    let device = Supervisor::on_wasm().start().await;
    furnish(&device);
    let mut logs = device.read_logs().await;
    for (feature, file, said) in [
        ("dbus", "/host/run/dbus/found", "in run/dbus"),
        (
            "journal-logs",
            "/var/log/journal/found",
            "in var/log/journal",
        ),
        ("kernel-modules", "/lib/modules/found", "in lib/modules"),
        ("firmware", "/lib/firmware/found", "in lib/firmware"),
        ("sysfs", "/sys/found", "in sys"),
    ] {
        let reader = |labels: Value| {
            let more = json!({"command": ["read", file], "labels": labels, "restart": "no"});
            target(42, &[service("reader", &guest("guest"), &more)])
        };
        device.set_target(&reader(labels(&[feature]))).await;
        logs.until_message(said).await;
        // Without the label there is nothing there.
        device.set_target(&reader(json!({}))).await;
        logs.until_message("failed").await;
    }
}

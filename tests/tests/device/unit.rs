//! The unit that the supervisor ships with: how much it allows, and that everything works with that.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tests::{Supervisor, distribution, guest, repository, service, target, until};

fn path() -> PathBuf {
    repository().join("packaging/supervisor.service")
}

/// Returns the values of a key of the unit, from all lines that set it.
fn values(key: &str) -> Vec<String> {
    let unit = fs::read_to_string(path()).unwrap();
    let of_key = unit.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name == key).then_some(value)
    });
    of_key
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect()
}

/// Returns the system calls of a set that systemd knows, with those of the sets within it, or the call itself.
fn calls(name: &str) -> BTreeSet<String> {
    if !name.starts_with('@') {
        return [name.to_owned()].into();
    }
    let mut analyze = Command::new("systemd-analyze");
    let output = analyze.args(["syscall-filter", name]).output().unwrap();
    assert!(output.status.success(), "{name}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // The first line is the name of the set; comments begin with `#`.
    let members = text.lines().skip(1).map(str::trim);
    let members = members.filter(|line| !line.is_empty() && !line.starts_with('#'));
    members.flat_map(calls).collect()
}

/// Returns the system calls that the unit leaves: a line with `~` takes away what those before it allow.
fn allowed_calls() -> BTreeSet<String> {
    let unit = fs::read_to_string(path()).unwrap();
    let lines = unit.lines();
    let mut allowed = calls("@default");
    for line in lines.filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let (removes, names) = match line.strip_prefix('~') {
            Some(names) => (true, names),
            None => (false, line),
        };
        for call in names.split_whitespace().flat_map(calls) {
            if removes {
                allowed.remove(&call);
            } else {
                allowed.insert(call);
            }
        }
    }
    allowed
}

/// Writes a word a line.
fn write_lines(path: &Path, words: impl IntoIterator<Item = String>) {
    let lines: Vec<String> = words.into_iter().collect();
    fs::write(path, lines.join("\n")).unwrap();
}

/// Creates a program that runs the supervisor with the unit's files, capabilities and system calls, without systemd.
/// The machine's files are read-only for it, except the folder that holds its state folder and its host root. In the
/// host root only the paths that the unit names are writable.
fn program(folder: &Path) -> PathBuf {
    write_lines(&folder.join("calls"), allowed_calls());
    write_lines(&folder.join("families"), values("RestrictAddressFamilies"));
    let mut writable: Vec<String> = values("ReadWritePaths")
        .iter()
        .map(|path| path.trim_start_matches('-').to_owned())
        .collect();
    writable.extend(
        values("RuntimeDirectory")
            .iter()
            .map(|name| format!("/run/{name}")),
    );
    let capabilities: Vec<String> = values("CapabilityBoundingSet")
        .iter()
        .map(|name| name.to_ascii_lowercase().replace("cap_", "+"))
        .collect();
    let script = format!(
        r#"#!/bin/sh
exec unshare --mount sh -ec '
host=$(echo "$*" | sed "s/.*--host-root \([^ ]*\).*/\1/")
folders=$(dirname "$host")
mount --bind "$folders" "$folders"
mount --bind "$host" "$host"
for path in {writable}; do
    mkdir -p "$host$path"
    mount --bind "$host$path" "$host$path"
done
mount -o remount,bind,ro "$host"
mount -o remount,bind,ro /
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -o remount,bind,ro /sys
exec setpriv --no-new-privs --bounding-set=-all,{capabilities} \
    /usr/bin/python3 "{filter}" "{folder}/calls" "{folder}/families" "{supervisor}" "$@"
' supervisor "$@"
"#,
        filter = repository()
            .join("tests/tests/device/unit_filter.py")
            .display(),
        folder = folder.display(),
        writable = writable.join(" "),
        capabilities = capabilities.join(","),
        supervisor = distribution().join("bin/supervisor").display(),
    );
    let program = folder.join("supervisor");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[tokio::test]
async fn everything_works_with_what_the_unit_leaves() {
    let unshare = Command::new("unshare").args(["--mount", "true"]).status();
    if !unshare.is_ok_and(|status| status.success()) {
        println!("SKIPPED: no mount namespace (unshare --mount)");
        return;
    }
    if !Path::new("/usr/share/doc/python3-seccomp").exists() {
        println!("SKIPPED: python3-seccomp is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let led = |file: &str| format!("sys/class/leds/ACT/{file}");
    let mut device = Supervisor::on_wasm()
        .program(program(folder.path()))
        .configuration("[plugins.led-blink]\nled = \"ACT\"\n")
        .host_file(led("brightness"), "0\n")
        .host_file(led("max_brightness"), "255\n")
        .host_file(led("trigger"), "none [mmc0]\n")
        .start()
        .await;
    let status = fs::read_to_string(format!("/proc/{}/status", device.pid())).unwrap();
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    // The unit's five filters, before those of its own.
    assert!(status.contains("Seccomp_filters:\t5"), "{status}");

    // Services of the wasm engine, with a limit that uses a cgroup if there are any, and their update locks.
    let web = json!({ "mem_limit": "64m", "command": ["tick"] });
    device
        .set_target(&target(7, &[service("web", &guest("guest"), &web)]))
        .await;
    device.until_applied().await;
    let lock = device
        .request("PUT", "/v3/locks/7/web")
        .json(&json!({ "reason": "the test has it", "ttl": 60 }));
    let answer = device.send(lock).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        device
            .host_root()
            .join("tmp/platform-supervisor/services/7/web")
            .is_dir()
    );
    let given_back = device
        .send(device.request("DELETE", "/v3/locks/7/web"))
        .await;
    assert!(given_back.status < 300, "{given_back:?}");

    // Plugins that change the host: its proxy, and an LED. Its name is written by hostnamed.
    let settings = json!({ "network": {
        "proxy": { "type": "socks5", "ip": "10.2.2.2", "port": 1080 },
    } });
    let set = device
        .request("PATCH", "/v1/device/host-config")
        .json(&settings);
    let set = device.send(set).await;
    assert_eq!(set.status, 200, "{set:?}\n{}", device.log());
    let proxy = device
        .host_root()
        .join("mnt/boot/system-proxy/redsocks.conf");
    assert!(fs::read_to_string(proxy).unwrap().contains("10.2.2.2"));
    let blink = device.post("/v1/blink", &json!({})).await;
    assert_eq!(blink.status, 200, "{blink:?}");
    let trigger = device.host_root().join(led("trigger"));
    until("the LED to be taken", || async {
        let trigger = fs::read_to_string(&trigger).unwrap();
        if trigger == "none" {
            Ok(())
        } else {
            Err(trigger)
        }
    })
    .await;

    // What it reads, and that it starts and ends.
    assert_eq!(device.get("/metrics").await.status, 200);
    assert_eq!(
        device.get("/v1/healthy").await.status,
        200,
        "{}",
        device.log()
    );
    assert!(device.terminate().await.success());
    device.start_again().await;
    device.until_applied().await;
    let log = device.log();
    for wrong in [
        "Read-only file system",
        "Permission denied",
        "Operation not permitted",
    ] {
        assert!(!log.contains(wrong), "{log}");
    }
}

/// Returns systemd's assessment of a unit's security; `None` if systemd is not installed.
fn assessment(unit: &Path) -> Option<String> {
    let Ok(output) = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager"])
        .arg(unit)
        .output()
    else {
        println!("SKIPPED: systemd-analyze is not installed");
        return None;
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_drop_in_for_hardware_opens_devices_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("supervisor.service");
    let drop_in = repository().join("packaging/supervisor-hardware.conf");
    let service = fs::read_to_string(path()).unwrap();
    fs::write(&unit, service + &fs::read_to_string(drop_in).unwrap()).unwrap();
    let (Some(before), Some(after)) = (assessment(&path()), assessment(&unit)) else {
        return;
    };
    let open = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with('✗'));
        let names = lines.filter_map(|line| line.split_whitespace().nth(1));
        names.map(str::to_owned).collect()
    };
    let (before, after) = (open(&before), open(&after));
    let added: Vec<_> = after.iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(added, ["PrivateDevices="]);
}

#[test]
fn the_unit_scores_below_4() {
    let Some(text) = assessment(&path()) else {
        return;
    };
    let score = text.lines().rev().find_map(|line| {
        let (_, after) = line.split_once("exposure level for")?;
        let number = after.split_whitespace().nth(1)?;
        number.parse::<f64>().ok()
    });
    let score = score.unwrap_or_else(|| panic!("{text}"));
    assert!(score < 4.0, "{score}:\n{text}");
}

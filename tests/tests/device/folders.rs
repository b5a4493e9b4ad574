//! Folders that others can write into: what an unprivileged local user does there before the supervisor starts and
//! while it runs. The user is another uid; these tests need root, and do nothing without it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tests::{RecordedCloud, Supervisor, distribution, guest, service, services_of, target, until};

/// The unprivileged user.
const NOBODY: u32 = 65534;

/// A stopped device with a `/tmp` into which everybody can write.
struct Host {
    device: Supervisor,
    tmp: PathBuf,
    /// A folder and a file of root's, into which nobody else may write.
    victim: PathBuf,
}

impl Host {
    async fn stopped(mut device: Supervisor) -> Host {
        device.kill().await;
        let tmp = device.host_root().join("tmp");
        let victim = device.host_root().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("file"), "untouched").unwrap();
        fs::set_permissions(victim.join("file"), fs::Permissions::from_mode(0o600)).unwrap();
        // As on a host: the path to /tmp is open, and /tmp is sticky.
        let folders = device.host_root().parent().unwrap().to_owned();
        for (folder, mode) in [
            (folders.as_path(), 0o755),
            (device.host_root(), 0o755),
            (victim.as_path(), 0o755),
            (tmp.as_path(), 0o1777),
        ] {
            fs::create_dir_all(folder).unwrap();
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        }
        // Files of the first start are removed, as by a reboot.
        for made in [
            tmp.join("platform-supervisor"),
            device.host_root().join("run"),
        ] {
            fs::remove_dir_all(made).ok();
        }
        Host {
            device,
            tmp,
            victim,
        }
    }

    /// Runs a shell script of the user in `/tmp`; returns whether it worked.
    fn attack(&self, script: &str) -> bool {
        let status = Command::new("sh")
            .args(["-ec", script])
            .current_dir(&self.tmp)
            .env("VICTIM", &self.victim)
            .uid(NOBODY)
            .gid(NOBODY)
            .status()
            .unwrap();
        status.success()
    }

    fn assert_victim_is_untouched(&self) {
        let file = self.victim.join("file");
        assert_eq!(fs::read_to_string(&file).unwrap(), "untouched");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&self.victim), mode(&file)), (0o755, 0o600));
        assert_eq!(fs::read_dir(&self.victim).unwrap().count(), 1);
    }

    fn assert_folder_is_roots(&self) {
        let about = fs::symlink_metadata(self.tmp.join("platform-supervisor")).unwrap();
        assert!(about.is_dir());
        assert_eq!((about.uid(), about.mode() & 0o7777), (0, 0o755));
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test]
async fn a_user_who_was_there_first_reads_no_key_and_has_no_file_overwritten() {
    if !is_root() {
        return;
    }
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let device = Supervisor::on_wasm().config_json(cloud.config_json());
    let mut host = Host::stopped(device.start().await).await;
    assert!(host.attack(
        r#"mkdir platform-supervisor
        cd platform-supervisor
        for name in state-report-cache target-state-config reboot-after-apply; do
            : > $name.new
            chmod 666 $name.new
        done
        ln -sf "$VICTIM/file" target-state-config.new
        ln -s "$VICTIM/file" target-state-config"#
    ));
    let before = cloud.reports().len();
    host.device.start_again().await;
    until("the cloud to be told", || async {
        if cloud.reports().len() > before {
            Ok(())
        } else {
            Err(host.device.log())
        }
    })
    .await;
    let cache = host
        .device
        .host_root()
        .join("run/supervisor/state-report-cache");
    until("the cloud's answer to be kept", || async {
        let kept = fs::read_to_string(&cache).unwrap_or_default();
        if kept.contains(host.device.key()) {
            Ok(())
        } else {
            Err(kept)
        }
    })
    .await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(
        (mode(&cache), mode(cache.parent().unwrap())),
        (0o600, 0o700)
    );
    host.assert_victim_is_untouched();
    let key = host.device.key().to_owned();
    let found = Command::new("grep")
        .args(["-rl", &key])
        .arg(&host.tmp)
        .output();
    assert_eq!(String::from_utf8_lossy(&found.unwrap().stdout), "");
}

#[tokio::test]
async fn a_user_who_was_there_first_gets_no_folder_opened_to_all() {
    if !is_root() {
        return;
    }
    let mut host = Host::stopped(Supervisor::on_wasm().start().await).await;
    assert!(host.attack("mkdir -p platform-supervisor/services/1/main"));
    host.device.start_again().await;
    let main = service("main", &guest("guest"), &json!({ "command": ["wait"] }));
    let target = target(1, &[main]);
    host.device.set_target(&target).await;
    host.device.until_applied().await;
    host.assert_folder_is_roots();
    assert!(
        host.device.log().contains(".untrusted-"),
        "{}",
        host.device.log()
    );
    let lock = json!({ "reason": "writes flash", "ttl": 60 });
    for _ in 0..20 {
        // The supervisor no longer works in the folder that the user has swapped.
        assert!(!host.attack(
            r#"mv platform-supervisor/services/1/main platform-supervisor/services/1/gone
            ln -s "$VICTIM" platform-supervisor/services/1/main"#
        ));
        assert!(!host.attack("mv platform-supervisor gone"));
        let request = host.device.request("PUT", "/v3/locks/1/main");
        let answer = host.device.send(request.json(&lock)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    host.assert_victim_is_untouched();
}

#[tokio::test]
async fn a_link_in_place_of_the_folder_is_not_followed() {
    if !is_root() {
        return;
    }
    let mut host = Host::stopped(Supervisor::on_wasm().start().await).await;
    assert!(host.attack(r#"ln -s "$VICTIM" platform-supervisor"#));
    host.device.start_again().await;
    let main = service("main", &guest("guest"), &json!({ "command": ["wait"] }));
    let target = target(1, &[main]);
    host.device.set_target(&target).await;
    host.device.until_applied().await;
    host.assert_folder_is_roots();
    host.assert_victim_is_untouched();
}

/// As after a reboot: services are started before anything else uses the folder.
#[tokio::test]
async fn a_user_who_was_there_before_a_service_has_no_folder_created_elsewhere_and_hides_no_lock() {
    if !is_root() {
        return;
    }
    for script in [
        r#"mkdir -p platform-supervisor/services
        ln -s "$VICTIM" platform-supervisor/services/1"#,
        "mkdir -p platform-supervisor/services/1/main",
        r#"ln -s "$VICTIM" platform-supervisor"#,
    ] {
        let device = Supervisor::on_wasm().start().await;
        let command = ["write-and-wait", "/tmp/platform/updates.lock", "works"];
        let main = service("main", &guest("guest"), &json!({ "command": command }));
        device.set_target(&target(1, &[main])).await;
        device.until_applied().await;
        let mut host = Host::stopped(device).await;
        for process in services_of(host.device.state_dir()) {
            kill_process(Pid::from_raw(process).unwrap(), Signal::KILL).unwrap();
        }
        until("the service to end", || async {
            let processes = services_of(host.device.state_dir());
            if processes.is_empty() {
                Ok(())
            } else {
                Err(processes)
            }
        })
        .await;
        assert!(host.attack(script));
        host.device.start_again().await;
        // The supervisor sees the lock that the service has taken, so they use the same folder.
        until("the service to take its lock", || async {
            let locks = host.device.json("/v3/locks").await;
            let lock = &locks["locks"][0];
            if lock["service"] == "main" && lock["holder"] == "file" {
                Ok(())
            } else {
                Err(format!("{locks}\n{}", host.device.log()))
            }
        })
        .await;
        host.assert_folder_is_roots();
        host.assert_victim_is_untouched();
        assert!(
            host.device.log().contains(".untrusted-"),
            "{}",
            host.device.log()
        );
    }
}

/// A state folder as left by an earlier start with another umask, or by a `chmod`.
#[tokio::test]
async fn a_state_folder_that_was_open_to_others_is_closed_and_what_is_made_in_it_is_for_nobody_else()
 {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("supervisor");
    let script = format!(
        "#!/bin/sh\numask 0\nexec \"{}\" \"$@\"\n",
        distribution().join("bin/supervisor").display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut device = Supervisor::on_wasm().program(&program).start().await;
    device.terminate().await;
    let state = device.state_dir().to_owned();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    device.start_again().await;
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("address")), 0o600);
    let mut looked_at = 0;
    for entry in fs::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(
            mode(&path) & 0o022,
            0,
            "others can write `{}`",
            path.display()
        );
        looked_at += 1;
    }
    assert!(
        looked_at > 3,
        "the store, its lock, the address, compiled code"
    );
    if !is_root() {
        return;
    }
    // It has another owner now: its content cannot be trusted.
    device.terminate().await;
    std::os::unix::fs::chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
    let refused = device.run_second();
    assert!(!refused.status.success(), "{refused:?}");
    assert!(
        refused.stderr.contains(&state.display().to_string()),
        "{refused:?}"
    );
}

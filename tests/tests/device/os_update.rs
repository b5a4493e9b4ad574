//! Versions of the operating system: the example `rauc-update`, with a stand-in for RAUC on a private bus.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{Rauc, RecordedCloud, Supervisor, SystemBus, guest, until};

const BUNDLE: &str = "https://os.acme.example/gate-2.0.0.raucb";
/// The file in which the kernel names the boot, below the host's root.
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";
const GRANTS: &str = "grants = [\"dbus\", \"store\"]\nlimits = { wall_ms = 30000 }\n\
    [[plugins.rauc-update.dbus]]\nservice = \"de.pengutronix.rauc\"\npaths = [\"/\"]\n\
    members = [\"de.pengutronix.rauc.Installer.*\", \"org.freedesktop.DBus.Properties.GetAll\"]\n";

/// A device that follows a cloud, on a system with RAUC.
struct Story {
    rauc: Rauc,
    bus: SystemBus,
    cloud: RecordedCloud,
    device: Supervisor,
    _folder: TempDir,
}

impl Story {
    /// Returns `None` if there is no private bus. `provides` is the line of the policy.
    async fn begin(provides: &str) -> Option<Story> {
        let bus = SystemBus::start().await?;
        let rauc = Rauc::start(&bus, Some("1.0.0")).await;
        rauc.add_bundle(BUNDLE, "2.0.0");
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("plugins")).unwrap();
        let plugin = path("plugins/rauc-update.wasm");
        fs::copy(guest("rauc_update"), plugin).unwrap();
        let policy = format!("[plugins.rauc-update]\n{provides}{GRANTS}");
        fs::write(path("policy.toml"), policy).unwrap();
        let cloud = RecordedCloud::start(&guest("guest")).await;
        let device = Supervisor::on_wasm()
            .config_json(cloud.config_json())
            .host_file(BOOT_ID, "boot-0")
            .argument("--plugin-dir")
            .argument(path("plugins").display().to_string())
            .argument("--policy")
            .argument(path("policy.toml").display().to_string())
            .argument("--allow-unpinned")
            .argument("--host-actions")
            .argument("dbus")
            .argument("--dbus-address")
            .argument(bus.address())
            .start()
            .await;
        let story = Story {
            rauc,
            bus,
            cloud,
            device,
            _folder: folder,
        };
        story.until_running().await;
        Some(story)
    }

    async fn until_running(&self) {
        until("the service to run", || async {
            let status = self.device.json("/v2/state/status").await;
            let containers = status["containers"].as_array().unwrap();
            if containers.iter().any(|it| it["status"] == "Running") {
                Ok(())
            } else {
                Err((status, self.device.log()))
            }
        })
        .await;
    }

    /// Sets this version in the cloud, and has the device poll.
    async fn want(&self, version: &str, bundle: &str) {
        self.cloud.change(|device| {
            device["config"] = json!({
                "PLATFORM_SUPERVISOR_OS_VERSION": version,
                "PLATFORM_SUPERVISOR_OS_BUNDLE": bundle,
                "PLATFORM_SUPERVISOR_OS_UPDATE_HEALTH_TIME": "20000",
            });
        });
        let answer = self.device.post("/v1/update", &json!({})).await;
        assert_eq!(answer.status, 204);
    }

    /// Waits until the plan satisfies `is`.
    async fn until_plan(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, || async {
            let plan = self.device.json("/v3/plan").await;
            if is(&plan) {
                Ok(plan)
            } else {
                Err((plan, self.rauc.calls(), self.device.log()))
            }
        })
        .await
    }

    /// Lets the current installation succeed, until the version is activated.
    async fn install_and_activate(&self) {
        until("the installation to begin", || async {
            let installing = self.rauc.installing();
            installing.ok_or_else(|| self.device.log())
        })
        .await;
        self.rauc.finish();
        self.until_requested(&[INSTALL, "Mark active rootfs.1"], 1)
            .await;
    }

    /// Waits until all of these calls were made to RAUC, and the host was to reboot this many times.
    async fn until_requested(&self, expected: &[&str], reboots: usize) {
        until("RAUC and the host to be asked", || async {
            let calls = self.rauc.calls();
            let actions = self.bus.calls();
            let count = actions.iter().filter(|it| *it == "Reboot False").count();
            if calls == expected && count == reboots {
                Ok(())
            } else {
                Err((calls, actions, self.device.log()))
            }
        })
        .await;
    }

    /// Shuts the host down, and starts it after `meanwhile`.
    async fn reboot(&mut self, number: u32, meanwhile: impl FnOnce(&Rauc)) {
        self.device.kill().await;
        meanwhile(&self.rauc);
        let boot_id = self.device.host_root().join(BOOT_ID);
        fs::write(boot_id, format!("boot-{number}")).unwrap();
        self.device.start_again().await;
    }
}

/// Returns the kinds and messages of everything that is unplanned.
fn unplanned(plan: &Value) -> Vec<(String, String)> {
    let entries = plan["unplanned"].as_array().unwrap().iter();
    let blockers = entries.flat_map(|entry| entry["blockedBy"].as_array().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    blockers
        .map(|blocker| (text(&blocker["kind"]), text(&blocker["message"])))
        .collect()
}

fn is_settled(plan: &Value) -> bool {
    plan["state"] == "settled"
}

const PROVIDES: &str = "provides = [\"os-update\"]\n";
const INSTALL: &str = "InstallBundle https://os.acme.example/gate-2.0.0.raucb";

#[tokio::test]
async fn a_version_is_installed_by_rauc_booted_and_committed() {
    let Some(mut story) = Story::begin(PROVIDES).await else {
        return;
    };
    let mut events = story.device.read_events().await;
    story.want("2.0.0", BUNDLE).await;
    until("the installation to begin", || async {
        let installing = story.rauc.installing();
        installing.ok_or_else(|| story.device.log())
    })
    .await;
    story.rauc.progress(40);
    let plan = story
        .until_plan("the progress", |plan| plan["steps"][0]["progress"] == 40)
        .await;
    let kinds = ["stage-os", "reboot", "commit-os"];
    for (step, kind) in plan["steps"].as_array().unwrap().iter().zip(kinds) {
        assert_eq!(
            (&step["kind"], &step["osVersion"]),
            (&json!(kind), &json!("2.0.0"))
        );
    }
    events
        .until("os-update", |data| data["progress"] == 40)
        .await;
    // It disturbs no service.
    story.until_running().await;
    story.rauc.finish();
    story
        .until_requested(&[INSTALL, "Mark active rootfs.1"], 1)
        .await;
    story.reboot(1, Rauc::boot).await;
    let committed = [INSTALL, "Mark active rootfs.1", "Mark good booted"];
    story.until_requested(&committed, 1).await;
    assert_eq!(story.rauc.running().as_deref(), Some("2.0.0"));
    let plan = story.until_plan("the end", is_settled).await;
    assert_eq!(unplanned(&plan), []);
    let line = "Version 2.0.0 of the operating system is healthy, and stays";
    story.cloud.until_logged(line).await;
    // It is the same after another boot.
    story.reboot(2, Rauc::boot).await;
    story.until_plan("the end", is_settled).await;
    story.until_requested(&committed, 1).await;
}

#[tokio::test]
async fn a_version_that_rauc_itself_makes_the_next_boot_start_is_on_trial_after_a_power_cut() {
    let Some(mut story) = Story::begin(PROVIDES).await else {
        return;
    };
    story.want("2.0.0", BUNDLE).await;
    until("the installation to begin", || async {
        let installing = story.rauc.installing();
        installing.ok_or_else(|| story.device.log())
    })
    .await;
    let power_cut = |rauc: &Rauc| {
        rauc.finish_and_activate();
        rauc.boot();
    };
    story.reboot(1, power_cut).await;
    story
        .until_requested(&[INSTALL, "Mark good booted"], 0)
        .await;
    assert_eq!(story.rauc.running().as_deref(), Some("2.0.0"));
}

#[tokio::test]
async fn a_version_in_which_services_do_not_run_is_rolled_back_and_not_tried_again() {
    let Some(mut story) = Story::begin(PROVIDES).await else {
        return;
    };
    story.want("2.0.0", BUNDLE).await;
    story.install_and_activate().await;
    // A release arrives at the same time that does not run on this version.
    story.cloud.release("c2", |service| {
        service["composition"]["command"] = json!(["exit", "3"]);
    });
    story.reboot(1, Rauc::boot).await;
    let rolled_back = [
        INSTALL,
        "Mark active rootfs.1",
        "Mark active rootfs.0",
        "Mark bad rootfs.1",
    ];
    story.until_requested(&rolled_back, 2).await;
    story.reboot(2, Rauc::boot).await;
    assert_eq!(story.rauc.running().as_deref(), Some("1.0.0"));
    let plan = story
        .until_plan("the end", |plan| !unplanned(plan).is_empty())
        .await;
    let rejected = unplanned(&plan);
    assert_eq!(rejected[0].0, "os-rejected", "{rejected:?}");
    let expected = "version 2.0.0 of the operating system is not tried again: the service `main` ";
    assert!(rejected[0].1.starts_with(expected), "{rejected:?}");
    story.until_requested(&rolled_back, 2).await;
}

#[tokio::test]
async fn a_version_that_the_boot_loader_gives_up_is_not_tried_again() {
    let Some(mut story) = Story::begin(PROVIDES).await else {
        return;
    };
    story.want("2.0.0", BUNDLE).await;
    story.install_and_activate().await;
    story.reboot(1, Rauc::fall_back).await;
    let plan = story
        .until_plan("the end", |plan| !unplanned(plan).is_empty())
        .await;
    let expected = "version 2.0.0 of the operating system is not tried again: the device came up in version 1.0.0: \
                    the boot loader did not start it, or gave it up";
    let expected = ("os-rejected".to_owned(), expected.to_owned());
    assert_eq!(unplanned(&plan), [expected]);
    story
        .until_requested(&[INSTALL, "Mark active rootfs.1"], 1)
        .await;
}

#[tokio::test]
async fn a_bundle_that_rauc_or_the_device_refuses_is_named_and_nothing_is_written() {
    let Some(story) = Story::begin(PROVIDES).await else {
        return;
    };
    let other = "https://os.acme.example/other.raucb";
    story.rauc.add_bundle_for("other-board", other, "3.0.0");
    for (version, bundle, expected) in [
        (
            "2.5.0",
            BUNDLE,
            "the bundle holds version `2.0.0`, and the target wants `2.5.0`",
        ),
        (
            "3.0.0",
            other,
            "the bundle is for `other-board`, and this system is `acme-gate`",
        ),
        (
            "4.0.0",
            "https://os.acme.example/missing",
            "Failed to download bundle https://os.acme.example/missing: 404",
        ),
        (
            "2.0.0",
            "http://os.acme.example/gate-2.0.0.raucb",
            "`SUPERVISOR_OS_BUNDLE` has no TLS: use an address with `https://`, or set `allow_plain = true`",
        ),
    ] {
        story.want(version, bundle).await;
        story
            .until_plan(expected, |plan| {
                let step = &plan["steps"][0];
                step["kind"] == "stage-os" && step["blockedBy"].to_string().contains(expected)
            })
            .await;
        // The service is unchanged.
        story.until_running().await;
    }
    for bundle in ["file:///etc/shadow", "https://os.acme.example/a\nb"] {
        story.want("2.0.0", bundle).await;
        story.until_plan("the end", is_settled).await;
    }
    let long = format!("https://os.acme.example/{}", "a".repeat(10 << 10));
    story.want("2.0.0", &long).await;
    story.until_plan("the end", is_settled).await;
    assert_eq!(story.rauc.calls(), [""; 0]);
    // An installation that fails is tried again.
    story.want("2.0.0", BUNDLE).await;
    until("the installation to begin", || async {
        let installing = story.rauc.installing();
        installing.ok_or_else(|| story.device.log())
    })
    .await;
    story
        .rauc
        .fail("Failed updating slot rootfs.1: no space left");
    let expected = "Failed updating slot rootfs.1: no space left";
    story
        .until_plan(expected, |plan| plan.to_string().contains(expected))
        .await;
    until("it to be tried again", || async {
        let installing = story.rauc.installing();
        installing.ok_or_else(|| story.device.log())
    })
    .await;
}

#[tokio::test]
async fn a_plugin_without_a_grant_for_os_update_is_never_called() {
    let Some(story) = Story::begin("").await else {
        return;
    };
    story.want("2.0.0", BUNDLE).await;
    let plan = story
        .until_plan("no provider", |plan| !unplanned(plan).is_empty())
        .await;
    let (kind, message) = unplanned(&plan).remove(0);
    assert_eq!(kind, "os-unavailable");
    let expected = "no plugin of this device updates its operating system to version 2.0.0";
    assert!(message.starts_with(expected), "{message}");
    story.until_plan("the end", is_settled).await;
    let plugins = story.device.json("/v3/plugins").await.to_string();
    assert!(plugins.contains("os-update"), "{plugins}");
    assert_eq!(story.rauc.calls(), [""; 0]);
    story.until_running().await;
}

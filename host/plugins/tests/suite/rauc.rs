//! The example `rauc-update` over several boots: what it remembers of the slots.

use std::sync::Arc;

use os::Rehearsal;
use plugins::{OsCall, OsUpdateError};
use serde_json::{Value, json};

use crate::fixture::{Fixture, component, setup};

const SERVICE: &str = "de.pengutronix.rauc";
const INSTALLER: &str = "de.pengutronix.rauc.Installer";
const POLICY: &str = "[plugins.rauc-update]\nprovides = [\"os-update\"]\ngrants = [\"dbus\", \"store\"]\n\
    limits = { wall_ms = 30000 }\n[[plugins.rauc-update.dbus]]\nservice = \"de.pengutronix.rauc\"\npaths = [\"/\"]\n\
    members = [\"de.pengutronix.rauc.Installer.*\", \"org.freedesktop.DBus.Properties.GetAll\"]\n";

fn text(text: &str) -> Value {
    json!({ "type": "s", "data": text })
}

/// Makes RAUC report that it does this, and that the slot of this number runs.
fn reports(os: &Rehearsal, operation: &str, booted: usize) {
    let name = ["A", "B"][booted];
    let properties = json!([{
        "Operation": text(operation),
        "LastError": text(""),
        "Progress": { "type": "(isi)", "data": [40, "Copying image", 2] },
        "Compatible": text("acme-gate"),
        "BootSlot": text(name),
    }]);
    let slots: Vec<Value> = (0..2)
        .map(|number| {
            let state = if number == booted {
                "booted"
            } else {
                "inactive"
            };
            let fields = json!({
                "class": text("rootfs"),
                "bootname": text(["A", "B"][number]),
                "state": text(state),
                "bundle.version": text(["1.0.0", "2.0.0"][number]),
                "status": text("ok"),
            });
            json!([format!("rootfs.{number}"), fields])
        })
        .collect();
    let update = json!({ "compatible": text("acme-gate"), "version": text("3.0.0") });
    let bundle = json!([{ "update": { "type": "a{sv}", "data": update } }]);
    for (interface, member, answer) in [
        ("org.freedesktop.DBus.Properties", "GetAll", properties),
        (INSTALLER, "GetSlotStatus", json!([slots])),
        (INSTALLER, "InspectBundle", bundle),
        (INSTALLER, "InstallBundle", json!([])),
        (INSTALLER, "Mark", json!(["rootfs.0", "marked"])),
    ] {
        os.set_method(SERVICE, "/", interface, member, answer.to_string());
    }
}

async fn device() -> (Fixture, Arc<Rehearsal>) {
    let setup = setup()
        .file("rauc-update.wasm", &component("rauc_update"))
        .policy(POLICY);
    let os = Arc::clone(&setup.os);
    reports(&os, "idle", 0);
    (setup.start().await, os)
}

fn stage() -> OsCall {
    OsCall::Stage {
        source: "/data/3.0.0.raucb".to_owned(),
        version: "3.0.0".to_owned(),
    }
}

#[tokio::test]
async fn nothing_is_installed_over_the_way_back_from_a_version_on_trial() {
    let (device, os) = device().await;
    let plugins = &device.plugins;
    assert!(plugins.os_status().await.unwrap().committed);
    assert_eq!(plugins.update_os(OsCall::Activate).await, Ok(()));
    reports(&os, "idle", 1);
    let status = plugins.os_status().await.unwrap();
    assert_eq!(
        (status.running.as_str(), status.committed),
        ("2.0.0", false)
    );
    let refused = plugins.update_os(stage()).await;
    let why = "the version that runs is not committed, and the other slot is the way back";
    assert_eq!(refused, Err(OsUpdateError::Failed(why.to_owned())));
    // Nor is it committed before RAUC has marked it.
    os.set_method(SERVICE, "/", INSTALLER, "Mark", "[]".to_owned());
    assert!(plugins.update_os(OsCall::Commit).await.is_err());
    assert!(!plugins.os_status().await.unwrap().committed);
    reports(&os, "idle", 1);
    assert_eq!(plugins.update_os(OsCall::Commit).await, Ok(()));
    assert!(plugins.os_status().await.unwrap().committed);
    assert_eq!(plugins.update_os(stage()).await, Ok(()));
}

#[tokio::test]
async fn the_version_at_the_begin_of_an_installation_runs_until_another_slot_is_booted() {
    let (device, os) = device().await;
    let plugins = &device.plugins;
    assert_eq!(plugins.update_os(stage()).await, Ok(()));
    reports(&os, "installing", 0);
    let status = plugins.os_status().await.unwrap();
    assert_eq!(
        (status.running.as_str(), status.installing),
        ("1.0.0", Some(40))
    );
    reports(&os, "installing", 1);
    let failed = plugins.os_status().await;
    let why = "RAUC installs a bundle for somebody else";
    assert_eq!(failed, Err(OsUpdateError::Failed(why.to_owned())));
}

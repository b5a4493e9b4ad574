//! How the plugin interprets RAUC's answers. `tests/tests/device/os_update.rs` tests the whole
//! sequence.

use serde_json::{Value, json};
use supervisor_testing::{Host, OsCall, OsStatus, RunningHost, build};

const POLICY: &str = "[plugins.rauc-update]\nprovides = [\"os-update\"]\ngrants = [\"dbus\", \"store\"]\n\
    limits = { wall_ms = 30000 }\n[[plugins.rauc-update.dbus]]\nservice = \"de.pengutronix.rauc\"\npaths = [\"/\"]\n\
    members = [\"de.pengutronix.rauc.Installer.*\", \"org.freedesktop.DBus.Properties.GetAll\"]\n";

fn text(text: &str) -> Value {
    json!({ "type": "s", "data": text })
}

/// Starts a system whose RAUC answers with these properties and this other slot.
async fn start(operation: &str, booted: Value, other: Value) -> RunningHost {
    let properties = json!([{
        "Operation": text(operation),
        "LastError": text(""),
        "Progress": { "type": "(isi)", "data": [40, "Copying image", 2] },
        "Compatible": text("acme-gate"),
        "BootSlot": text("A"),
    }]);
    let slot = |name: &str, state: &str, mut fields: Value| {
        fields["class"] = text("rootfs");
        fields["bootname"] = text(name);
        fields["state"] = text(state);
        fields
    };
    let slots = json!([[
        ["rootfs.0", slot("A", "booted", booted)],
        ["rootfs.1", slot("B", "inactive", other)],
    ]]);
    let installer = "de.pengutronix.rauc.Installer";
    let properties_of = "org.freedesktop.DBus.Properties";
    let service = "de.pengutronix.rauc";
    let marked = json!(["rootfs.0", "marked slot(s) rootfs.0"]).to_string();
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(POLICY)
        .configuration("[plugins.rauc-update]\nfactory_version = \"0.9.0\"\n")
        .dbus_answer(
            service,
            "/",
            properties_of,
            "GetAll",
            properties.to_string(),
        )
        .dbus_answer(service, "/", installer, "GetSlotStatus", slots.to_string())
        .dbus_answer(service, "/", installer, "Mark", marked)
        .start()
        .await
}

fn installed(version: &str, status: &str) -> Value {
    json!({ "bundle.version": text(version), "status": text(status) })
}

#[tokio::test]
async fn the_slots_say_what_runs_and_what_is_staged() {
    for (booted, other, running, staged) in [
        (json!({}), json!({}), "0.9.0", None),
        (
            installed("1.0.0", "ok"),
            installed("2.0.0", "ok"),
            "1.0.0",
            Some("2.0.0"),
        ),
        (
            installed("1.0.0", "ok"),
            installed("2.0.0", "failed"),
            "1.0.0",
            None,
        ),
    ] {
        let host = start("idle", booted, other).await;
        let expected = OsStatus {
            running: running.to_owned(),
            staged: staged.map(str::to_owned),
            committed: true,
            installing: None,
            failure: None,
        };
        assert_eq!(host.os_status().await, Ok(expected));
    }
}

#[tokio::test]
async fn what_is_not_staged_is_not_activated_and_nothing_is_rolled_back_without_a_trial() {
    let host = start("idle", json!({}), json!({})).await;
    let error = host.update_os(OsCall::Activate).await.unwrap_err();
    let expected = "the other slot holds no version that is installed whole";
    assert_eq!(error, expected);
    let error = host.update_os(OsCall::RollBack).await.unwrap_err();
    let expected = "no version of the operating system is on trial";
    assert_eq!(error, expected);
    assert_eq!(host.update_os(OsCall::Commit).await, Ok(()));
}

#[tokio::test]
async fn an_installation_of_somebody_else_is_no_reason_to_guess() {
    let host = start("installing", json!({}), json!({})).await;
    let error = host.os_status().await.unwrap_err();
    assert_eq!(error, "RAUC installs a bundle for somebody else");
}

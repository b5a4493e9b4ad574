//! A plugin on a serial line and on the system bus: the example `line-meter`, a pseudo terminal and a private bus.

use std::fs;

use serde_json::json;
use tests::{PseudoTerminal, Supervisor, SystemBus, guest};

const HOSTNAMED: &str = "org.freedesktop.hostname1";

/// A device with the plugin; its policy grants `serial` and these methods.
async fn device(bus: &SystemBus, port: &str, members: &str) -> (Supervisor, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("plugins")).unwrap();
    fs::copy(guest("line_meter"), path("plugins/line-meter.wasm")).unwrap();
    let policy = format!(
        "[plugins.line-meter]\nroutes = [\"/v3/line-meter\"]\ngrants = [\"serial\", \"dbus\"]\n\
         serial = [\"{port}\"]\n[[plugins.line-meter.dbus]]\nservice = \"{HOSTNAMED}\"\n\
         paths = [\"/org/freedesktop/hostname1\"]\nmembers = [\"{members}\"]\n"
    );
    fs::write(path("policy.toml"), policy).unwrap();
    let device = Supervisor::on_wasm()
        .plugins_of(folder.path())
        .argument("--host-actions")
        .argument("dbus")
        .argument("--dbus-address")
        .argument(bus.address())
        .configuration(format!("[plugins.line-meter]\nport = \"{port}\"\n"))
        .start()
        .await;
    (device, folder)
}

async fn bus() -> Option<SystemBus> {
    let bus = SystemBus::start().await?;
    bus.add_property(HOSTNAMED, "PrettyHostname", "Pump house")
        .await;
    Some(bus)
}

/// Answers one request of the plugin as the meter does.
async fn answer(meter: &PseudoTerminal) {
    assert_eq!(meter.read(6).await, b"READ\r\n");
    meter.write(b"OK 230.1\r\n");
}

#[tokio::test]
async fn a_plugin_asks_a_serial_line_and_a_service_of_the_system_bus() {
    let Some(bus) = bus().await else { return };
    let meter = PseudoTerminal::open();
    let (device, _folder) = device(&bus, meter.name(), "org.freedesktop.DBus.Properties.*").await;
    // Each call opens the port again.
    for _ in 0..2 {
        let (reading, ()) = tokio::join!(device.get("/v3/line-meter"), answer(&meter));
        assert_eq!(reading.status, 200, "{}", reading.text);
        let expected = json!({ "volts": 230.1, "host": "Pump house" });
        assert_eq!(reading.json(), expected);
    }
}

#[tokio::test]
async fn a_method_that_the_policy_does_not_name_is_not_called() {
    let Some(bus) = bus().await else { return };
    let meter = PseudoTerminal::open();
    let members = "org.freedesktop.DBus.Properties.Set";
    let (device, _folder) = device(&bus, meter.name(), members).await;
    let (reading, ()) = tokio::join!(device.get("/v3/line-meter"), answer(&meter));
    assert_eq!(reading.status, 500);
    let expected = "the policy does not name `org.freedesktop.DBus.Properties.Get`";
    assert!(reading.text.contains(expected), "{}", reading.text);
}

#[tokio::test]
async fn a_meter_that_says_nothing_costs_its_own_call_alone() {
    let Some(bus) = bus().await else { return };
    let meter = PseudoTerminal::open();
    let (device, _folder) = device(&bus, meter.name(), "org.freedesktop.DBus.Properties.*").await;
    let silent = device.get("/v3/line-meter");
    let others = async {
        meter.read(6).await;
        // The port is in use, and everything else is answered.
        let busy = device.get("/v3/line-meter").await;
        let ping = device.get("/ping").await;
        (busy, ping)
    };
    let (silent, (busy, ping)) = tokio::join!(silent, others);
    assert_eq!((silent.status, busy.status, ping.status), (502, 409, 200));
    let expected = "the device did not finish its answer within 2000 ms";
    assert!(silent.text.contains(expected), "{}", silent.text);
    let expected = format!("another call holds the serial port `{}`", meter.name());
    assert!(busy.text.contains(&expected), "{}", busy.text);
}

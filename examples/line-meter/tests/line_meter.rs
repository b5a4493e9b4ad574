use serde_json::json;
use supervisor_testing::{Host, RunningHost, build};
use tests::PseudoTerminal;

async fn start(port: &str) -> RunningHost {
    let policy = format!(
        "[plugins.line-meter]\ngrants = [\"serial\", \"dbus\"]\nserial = [\"{port}\"]\n\
         [[plugins.line-meter.dbus]]\nservice = \"org.freedesktop.hostname1\"\n\
         paths = [\"/org/freedesktop/hostname1\"]\nmembers = [\"org.freedesktop.DBus.Properties.Get\"]\n"
    );
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(policy)
        .configuration(format!("[plugins.line-meter]\nport = \"{port}\"\n"))
        .dbus_answer(
            "org.freedesktop.hostname1",
            "/org/freedesktop/hostname1",
            "org.freedesktop.DBus.Properties",
            "Get",
            "[{\"type\":\"s\",\"data\":\"Pump house\"}]",
        )
        .start()
        .await
}

/// Answers one request of the plugin as the meter does.
async fn answer(meter: &PseudoTerminal, line: &[u8]) {
    assert_eq!(meter.read(6).await, b"READ\r\n");
    // A line arrives in pieces.
    let (first, rest) = line.split_at(line.len() / 2);
    meter.write(first);
    meter.write(rest);
}

#[tokio::test]
async fn the_meter_is_read() {
    let meter = PseudoTerminal::open();
    // Earlier text on the line is not the answer.
    meter.write(b"OK 1.0\r\n");
    let host = start(meter.name()).await;
    let (reading, ()) = tokio::join!(host.get("/v3/line-meter"), answer(&meter, b"OK 230.1\r\n"));
    assert_eq!(reading.status, 200, "{}", reading.text());
    assert_eq!(
        reading.json(),
        json!({ "volts": 230.1, "host": "Pump house" })
    );
}

#[tokio::test]
async fn an_error_of_the_meter_is_reported() {
    let meter = PseudoTerminal::open();
    let host = start(meter.name()).await;
    let (reading, ()) = tokio::join!(host.get("/v3/line-meter"), answer(&meter, b"ERR 7\x07\r\n"));
    assert_eq!(reading.status, 502);
    let expected = "the meter answered `ERR 7\\\\u{7}`";
    assert!(reading.text().contains(expected), "{}", reading.text());
}

#[tokio::test]
async fn a_port_that_is_not_there_is_named() {
    let host = start("/dev/ttyMissing0").await;
    let reading = host.get("/v3/line-meter").await;
    assert_eq!(reading.status, 502);
    let expected = "the device has no serial port `/dev/ttyMissing0`";
    assert!(reading.text().contains(expected), "{}", reading.text());
}

use serde_json::json;
use supervisor_testing::{Host, PluginEvent, RunningHost, build};
use tests::until;

const POLICY: &str = r#"
[plugins.door-relay]
grants = ["gpio", "i2c", "metrics"]
events = ["schedule"]
gpio = [
    { name = "relay", chip = "simulated", line = "RELAY", direction = "out" },
    { name = "door", chip = "simulated", line = "DOOR", direction = "in" },
]
i2c = [{ name = "thermometer", bus = 1, address = 0x48 }]
"#;

async fn start() -> RunningHost {
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(POLICY)
        .gpio_line("RELAY", false)
        .gpio_line("DOOR", false)
        .i2c_chip("1", 0x48, &[0x19, 0x80])
        .start()
        .await
}

#[tokio::test]
async fn the_door_opens_for_every_caller() {
    let host = start().await;
    let visitor = async {
        host.gpio_is_waited_for("DOOR").await;
        assert!(host.gpio_is_on("RELAY").await);
        host.drive_gpio("DOOR", true).await;
    };
    let (visit, ()) = tokio::join!(host.post("/v3/door/open", json!({})), visitor);
    assert_eq!(visit.status, 200, "{}", visit.text());
    assert_eq!(visit.json(), json!({ "was_opened": true }));
    let state = host.get("/v3/door").await;
    assert_eq!(state.status, 200, "{}", state.text());
    assert_eq!(
        state.json(),
        json!({ "is_unlocked": false, "is_open": true, "celsius": 25.5 })
    );
}

#[tokio::test]
async fn the_temperature_is_shown_every_minute() {
    let host = start().await;
    // 10.5 degrees below zero, in two's complement.
    host.set_i2c_registers("1", 0x48, 0, &[0xf5, 0x80]).await;
    let event = PluginEvent::Schedule("temperature".to_owned());
    host.publish(&event).await;
    let expected = [("celsius".to_owned(), -10.5)];
    until("the temperature", async || {
        let metrics = host.metrics("door-relay").await;
        if metrics == expected {
            Ok(())
        } else {
            Err(metrics)
        }
    })
    .await;
}

#[tokio::test]
async fn a_thermometer_that_is_not_there_is_named() {
    let policy = POLICY.replace("0x48", "0x4f");
    let host = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(policy)
        .gpio_line("RELAY", false)
        .gpio_line("DOOR", false)
        .i2c_chip("1", 0x48, &[])
        .start()
        .await;
    let state = host.get("/v3/door").await;
    assert_eq!(state.status, 502, "{}", state.text());
    let expected = "no chip answers at the address 0x4f";
    assert!(state.text().contains(expected), "{}", state.text());
}

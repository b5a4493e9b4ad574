//! Devices that are registered before their boards exist, and their switches.

use serde_json::{Value, json};

use crate::harness::{Api, Cloud, Person};

const DEVICE: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn a_device_is_registered_and_its_configuration_makes_a_board_be_it() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let fleet = ann.fleet("pump");
    let made = ann.json(&[
        "device", "register", "pump", "--uuid", DEVICE, "--name", "west",
    ]);
    assert_eq!(
        (&made["uuid"], &made["name"]),
        (&json!(DEVICE), &json!("west"))
    );
    let message = ann.refused(1, &["device", "register", "pump", "--uuid", DEVICE]);
    assert!(
        message.contains("a device with that uuid already exists"),
        "{message}"
    );
    let message = ann.refused(1, &["device", "register", "pump", "--uuid", "nope"]);
    assert!(message.contains("`uuid` must be"), "{message}");
    let message = ann.refused(4, &["device", "register", "pump", "--type", "nope"]);
    assert!(
        message.contains("there is no device type `nope`"),
        "{message}"
    );
    ann.refused(4, &["device", "register", "valve"]);
    let random = ann.done(&["device", "register", "pump", "--type", "raspberrypi3"]);
    assert!(random.starts_with("registered the device "), "{random}");

    let config: Value =
        serde_json::from_str(&ann.done(&["config", "--device", "west"])).expect("JSON");
    assert_eq!(config["applicationId"], json!(fleet));
    assert_eq!(config["apiEndpoint"], json!(cloud.url));
    assert_eq!(config["uuid"], json!(DEVICE));
    assert_eq!(config["deviceId"], made["id"]);
    assert_eq!(config["deviceType"], json!("raspberrypi4-64"));
    assert!(
        config["registered_at"]
            .as_i64()
            .is_some_and(|at| at > 1_600_000_000_000)
    );
    // It cannot register other devices.
    assert_eq!(config["apiKey"], Value::Null);
    let board = Person::new().with("FLEET_URL", &cloud.url).with(
        "FLEET_TOKEN",
        config["deviceApiKey"].as_str().expect("a key"),
    );
    assert_eq!(board.json(&["whoami"])["uuid"], json!(DEVICE));
    assert_eq!(board.json(&["devices"])[0]["uuid"], json!(DEVICE));

    ann.done(&["config", "--device", "west", "--output", "config.json"]);
    ann.refused(
        1,
        &["config", "--device", "west", "--output", "config.json"],
    );
    ann.refused(2, &["config"]);
    ann.refused(2, &["config", "pump", "--device", "west"]);
    let key = ann.done(&["keys", "create", "ci"]);
    let program = Person::new()
        .with("FLEET_URL", &cloud.url)
        .with("FLEET_TOKEN", key.trim());
    program.refused(3, &["config", "--device", "west"]);
}

#[test]
fn local_mode_is_shown_and_switched_and_the_device_goes_before_its_fleet() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    api.device(fleet, "we\u{1b}st", DEVICE);
    let local = |words: &[&str]| ann.json(&[&["device", "local-mode", DEVICE], words].concat());
    assert_eq!(local(&[])["local_mode"], json!(false));
    let variable = [
        "variable",
        "set",
        "PLATFORM_SUPERVISOR_LOCAL_MODE",
        "1",
        "--fleet",
        "pump",
    ];
    ann.done(&variable);
    assert_eq!(
        local(&[]),
        json!({ "device": DEVICE, "local_mode": true, "of": "fleet" })
    );
    local(&["off"]);
    assert_eq!(
        local(&[]),
        json!({ "device": DEVICE, "local_mode": false, "of": "device" })
    );
    let output = ann.done(&["device", "local-mode", DEVICE, "on"]);
    assert!(
        output.starts_with("west (0123456) enters local mode"),
        "{output:?}"
    );
    let row = &api.rows("device_config_variable?$select=name,value")[0];
    assert_eq!(row["name"], json!("PLATFORM_SUPERVISOR_LOCAL_MODE"));
    assert_eq!(row["value"], json!("true"));
    ann.refused(2, &["device", "local-mode", DEVICE, "perhaps"]);
    ann.refused(4, &["device", "local-mode", "east"]);
    let message = ann.refused(1, &["purge", "pump", "--yes"]);
    assert!(
        message.contains("no device of the fleet admin/pump is connected"),
        "{message}"
    );
    ann.refused(4, &["purge", "valve", "--yes"]);
}

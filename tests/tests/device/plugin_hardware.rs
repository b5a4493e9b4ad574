//! A plugin that uses GPIO lines and an I2C bus which this machine does not have: the example `door-relay` and the
//! kernel's own device files. What the kernel does with existing lines and buses is tested in `os`, in a virtual
//! machine.

use std::fs;

use tests::{Supervisor, guest};

const LINES: &str = r#"
gpio = [
    { name = "relay", chip = "gpiochip4711", line = 1, direction = "out" },
    { name = "door", chip = "no such chip", line = "DOOR", direction = "in" },
]
i2c = [{ name = "thermometer", bus = 4711, address = 0x48 }]
"#;

/// A device with the plugin, whose policy grants these lines and chips.
async fn device(hardware: &str) -> (Supervisor, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("plugins")).unwrap();
    fs::copy(guest("door_relay"), path("plugins/door-relay.wasm")).unwrap();
    let policy = format!(
        "[plugins.door-relay]\nroutes = [\"/v3/door\", \"/v3/door/open\"]\ngrants = [\"gpio\", \"i2c\", \"metrics\"]\n\
         events = [\"schedule\"]\n{hardware}"
    );
    fs::write(path("policy.toml"), policy).unwrap();
    let device = Supervisor::on_wasm()
        .plugins_of(folder.path())
        .start()
        .await;
    (device, folder)
}

#[tokio::test]
async fn hardware_that_the_device_does_not_have_is_named() {
    let (device, _folder) = device(LINES).await;
    let state = device.get("/v3/door").await;
    assert_eq!(state.status, 502, "{}", state.text);
    let expected = "the device has no GPIO chip `/dev/gpiochip4711`";
    assert!(state.text.contains(expected), "{}", state.text);
}

#[tokio::test]
async fn a_line_that_the_policy_does_not_name_is_not_used() {
    let (device, _folder) = device("").await;
    let state = device.get("/v3/door").await;
    assert_eq!(state.status, 500, "{}", state.text);
    let expected = "the policy does not name the line `relay` in `gpio` of the plugin `door-relay`";
    assert!(state.text.contains(expected), "{}", state.text);
}

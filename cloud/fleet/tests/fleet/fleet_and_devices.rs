//! Fleets, devices and releases.

use serde_json::{Value, json};

use crate::harness::{Api, Cloud, Person};

const FIRST: &str = "0123456789abcdef0123456789abcdef";
const SECOND: &str = "0123456789abcdef0123456789abcdee";

#[test]
fn fleets_are_made_listed_shown_and_deleted() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let message = ann.refused(4, &["create", "pump", "--type", "raspberry"]);
    assert!(
        message.contains("there is no device type `raspberry`"),
        "{message}"
    );
    assert!(message.contains("raspberrypi4-64"), "{message}");
    let made = ann.done(&["create", "pump", "--type", "raspberrypi4-64"]);
    assert!(made.starts_with("created the fleet admin/pump"), "{made}");
    let message = ann.refused(1, &["create", "pump", "--type", "raspberrypi4-64"]);
    assert!(
        message.contains("a fleet `pump` already exists"),
        "{message}"
    );
    let message = ann.refused(1, &["create", "p p", "--type", "raspberrypi4-64"]);
    assert!(
        message.contains("the cloud refused the request"),
        "{message}"
    );

    let listed = ann.json(&["fleets"]);
    assert_eq!(listed[0]["slug"], json!("admin/pump"));
    assert_eq!(listed[0]["device_type"], json!("raspberrypi4-64"));
    let id = listed[0]["id"].as_i64().expect("an id").to_string();
    for named in ["admin/pump", "ADMIN/pump", "pump", &id] {
        assert_eq!(
            ann.json(&["show", named])["slug"],
            json!("admin/pump"),
            "{named}"
        );
    }
    let table = ann.done(&["fleets"]);
    assert!(table.starts_with("SLUG "), "{table}");
    assert!(!table.contains('\u{1b}'), "{table}");

    let message = ann.refused(2, &["delete", "pump"]);
    assert!(message.contains("--yes"), "{message}");
    ann.done(&["delete", "pump", "--yes"]);
    let message = ann.refused(4, &["show", "pump"]);
    assert!(message.contains("there is no fleet `pump`"), "{message}");
}

#[test]
fn devices_are_found_by_uuid_name_and_id_and_ambiguous_names_are_refused() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    let id = api.device(fleet, "west", FIRST).to_string();
    api.device(fleet, "east", SECOND);
    for named in [FIRST, "west", &id] {
        assert_eq!(
            ann.json(&["device", "show", named])["uuid"],
            json!(FIRST),
            "{named}"
        );
    }
    let message = ann.refused(2, &["device", "show", "01234"]);
    assert!(
        message.contains(FIRST) && message.contains(SECOND),
        "{message}"
    );
    let message = ann.refused(4, &["device", "show", "north"]);
    assert!(message.contains("there is no device `north`"), "{message}");
    let message = ann.refused(4, &["device", "show", "it's & 100% 'x' or id gt 0"]);
    assert!(message.contains("there is no device"), "{message}");

    let message = ann.refused(2, &["device", "rename", "west", ""]);
    assert!(message.contains("the name is empty"), "{message}");
    ann.done(&["device", "rename", "west", "north"]);
    ann.done(&["device", "note", "north", "back room"]);
    let shown = ann.json(&["device", "show", "north"]);
    assert_eq!(shown["note"], json!("back room"));
    ann.done(&["device", "note", "north", ""]);
    assert_eq!(ann.json(&["device", "show", "north"])["note"], Value::Null);

    let other = ann.fleet("valve");
    ann.done(&["device", "move", "north", "valve"]);
    let names = |fleet: &str| {
        let devices = ann.json(&["devices", "--fleet", fleet]);
        let devices = devices.as_array().expect("devices").clone();
        devices
            .iter()
            .map(|device| device["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&other.to_string()), [json!("north")]);
    assert_eq!(names("pump"), [json!("east")]);
    assert_eq!(ann.json(&["devices"]).as_array().map(Vec::len), Some(2));

    let message = ann.refused(1, &["device", "ping", "north"]);
    assert!(message.contains("is not connected"), "{message}");

    ann.refused(2, &["device", "delete", "north"]);
    ann.done(&["device", "delete", "north", "--yes"]);
    ann.refused(4, &["device", "show", "north"]);
}

#[test]
fn plugin_fields_are_shown_and_do_not_control_the_terminal() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    let device = api.device(fleet, "west", FIRST);
    assert!(!ann.done(&["device", "show", "west"]).contains("PLUGIN"));
    let fields = json!({ "plugin_fields": { "tank-gauge": {
        "level": { "value": 63.5, "unit": "%" }, "door": { "value": "\u{1b}[2Jopen" },
    } } });
    api.report(device, FIRST, &fields);
    let shown = ann.done(&["device", "show", "west"]);
    let lines: Vec<Vec<&str>> = shown
        .lines()
        .skip_while(|line| !line.starts_with("PLUGIN"))
        .map(|line| line.split_whitespace().take(4).collect())
        .collect();
    assert_eq!(lines[0], ["PLUGIN", "FIELD", "VALUE", "CHANGED"]);
    assert_eq!(lines[1][..3], ["tank-gauge", "door", "[2Jopen"]);
    assert_eq!(lines[2], ["tank-gauge", "level", "63.5", "%"]);
    let json = ann.json(&["device", "show", "west"]);
    let level = &json["plugin_fields"][1];
    assert_eq!(
        (&level["value"], &level["type"], &level["unit"]),
        (&json!("63.5"), &json!("number"), &json!("%"))
    );
}

#[test]
fn devices_and_fleets_are_pinned_and_follow_again() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    let (one, two) = ("1111111111aaaaaaaaaa", "2222222222aaaaaaaaaa");
    api.release(fleet, one, "1.0.0");
    api.release(fleet, two, "2.0.0");
    api.device(fleet, "west", FIRST);
    assert_eq!(ann.json(&["show", "pump"])["commit"], json!(two));

    ann.done(&["pin", "pump", "1.0.0"]);
    let shown = ann.json(&["show", "pump"]);
    assert_eq!(
        (&shown["commit"], &shown["tracks_latest"]),
        (&json!(one), &json!(false))
    );
    ann.done(&["track", "pump"]);
    let shown = ann.json(&["show", "pump"]);
    assert_eq!(
        (&shown["commit"], &shown["tracks_latest"]),
        (&json!(two), &json!(true))
    );

    ann.done(&["pin", "west", &one[..7]]);
    assert_eq!(
        ann.json(&["device", "show", "west"])["pinned_commit"],
        json!(one)
    );
    ann.done(&["unpin", "west"]);
    assert_eq!(
        ann.json(&["device", "show", "west"])["pinned_commit"],
        Value::Null
    );
    let message = ann.refused(4, &["pin", "west", "3.0.0"]);
    assert!(message.contains("there is no release `3.0.0`"), "{message}");
    // A device and a fleet with the same name are distinguished.
    api.device(fleet, "pump", SECOND);
    let message = ann.refused(2, &["pin", "pump", "1.0.0"]);
    assert!(
        message.contains("fleet admin/pump") && message.contains(SECOND),
        "{message}"
    );
    ann.done(&["pin", "admin/pump", "1.0.0"]);
}

#[test]
fn releases_are_listed_noted_invalidated_and_made_final() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    let draft = api.create(
        "release",
        &json!({
            "belongs_to__application": fleet, "commit": "abcdef0123", "semver": "1.2.0", "status": "success",
            "source": "local", "composition": {}, "start_timestamp": 1, "is_final": false,
        }),
    );
    let listed = ann.json(&["releases", "--fleet", "pump"]);
    assert_eq!(listed[0]["final"], json!(false));
    // Its version has a number at its end; it can also be named by the version that it was deployed
    // as.
    let shown = ann.json(&["release", "show", "1.2.0"]);
    assert_eq!(shown["commit"], json!("abcdef0123"));
    assert_ne!(shown["version"], json!("1.2.0"));
    ann.done(&["release", "finalize", "abcdef0"]);
    ann.done(&["release", "note", "1.2.0", "--fleet", "pump", "first light"]);
    let shown = ann.json(&["release", "show", &draft.to_string()]);
    assert_eq!(shown["final"], json!(true));
    assert_eq!(shown["version"], json!("1.2.0"));
    assert_eq!(shown["note"], json!("first light"));
    assert_eq!(shown["target"], json!(true));
    ann.done(&["release", "invalidate", "abcdef0", "--reason", "leaks"]);
    let listed = ann.json(&["releases", "--fleet", "pump"]);
    assert_eq!(listed[0]["invalidated"], json!(true));
    assert_eq!(listed[0]["invalidation_reason"], json!("leaks"));
    assert!(
        ann.done(&["releases", "--fleet", "pump"])
            .contains("invalidated")
    );
}

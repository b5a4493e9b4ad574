//! First steps and less common commands: one test for each difference found in the comparison with the reference.

use serde_json::{Value, json};

use crate::harness::{Api, Cloud, Person};

const DEVICE: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn a_newcomer_gets_a_whole_configuration_for_devices() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let fleet = ann.fleet("pump");
    let output = ann.run(&["keys", "provisioning", "pump"]);
    assert!(
        output.err.contains("fleet config admin/pump"),
        "{}",
        output.err
    );
    let made: Value = serde_json::from_str(&ann.done(&["config", "pump"])).expect("JSON");
    assert_eq!(made["applicationId"], json!(fleet));
    assert_eq!(made["apiEndpoint"], json!(cloud.url));
    assert!(
        made["apiKey"].as_str().is_some_and(|key| key.len() >= 32),
        "{made}"
    );
    let file = ann.done(&[
        "config",
        "pump",
        "--output",
        "config.json",
        "--type",
        "raspberrypi3",
    ]);
    assert!(file.contains("wrote config.json"), "{file}");
    // Existing files are not overwritten.
    let message = ann.refused(1, &["config", "pump", "--output", "config.json"]);
    assert!(
        message.contains("config.json cannot be written"),
        "{message}"
    );
    ann.refused(4, &["config", "valve"]);
}

#[test]
fn kinds_of_boards_are_listed_and_a_wrong_one_says_where() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let listed = ann.json(&["device-types"]);
    let listed = listed.as_array().expect("a list");
    let board = listed
        .iter()
        .find(|it| it["slug"] == json!("raspberrypi4-64"));
    assert_eq!(board.expect("a board")["architecture"], json!("aarch64"));
    let message = ann.refused(4, &["create", "pump", "--type", "nope"]);
    let all = format!("`fleet device-types` lists all {}", listed.len());
    assert!(message.contains(&all), "{message}");
}

#[test]
fn wrong_arguments_are_reported_as_json_if_json_is_requested() {
    let nobody = Person::new();
    for wrong in [
        &["--json", "fleets", "--nope"][..],
        &["device", "rename", "west", "--json"],
        &["nope", "--json"],
    ] {
        let answer: Value = serde_json::from_str(&nobody.refused(2, wrong)).expect("JSON");
        assert!(
            answer["error"].as_str().is_some_and(|it| !it.is_empty()),
            "{answer}"
        );
        assert!(
            answer["hint"]
                .as_str()
                .is_some_and(|it| it.contains("--help")),
            "{answer}"
        );
    }
    assert!(
        nobody
            .refused(2, &["fleets", "--nope"])
            .starts_with("error: ")
    );
}

#[test]
fn configuration_is_recognized_by_its_name_and_an_error_states_the_prefix() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    ann.fleet("pump");
    let message = ann.refused(
        2,
        &["variable", "set", "X", "1", "--config", "--fleet", "pump"],
    );
    assert!(
        message.contains("such names begin with PLATFORM_"),
        "{message}"
    );
    ann.done(&[
        "variable",
        "set",
        "PLATFORM_HOST_CONFIG_x",
        "1",
        "--config",
        "--fleet",
        "pump",
    ]);
}

#[test]
fn a_bad_token_of_the_environment_is_named() {
    let cloud = Cloud::start();
    let ann = Person::new()
        .with("FLEET_URL", &cloud.url)
        .with("FLEET_TOKEN", "nothing");
    let message = ann.refused(3, &["fleets"]);
    assert!(message.contains("FLEET_TOKEN is set"), "{message}");
}

#[test]
fn a_key_without_a_name_says_so() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    ann.fleet("pump");
    ann.done(&["keys", "provisioning", "pump"]);
    let listed = ann.done(&["keys", "list", "--fleet", "pump"]);
    assert!(listed.contains("(no name)"), "{listed}");
}

#[test]
fn a_note_is_shown_before_it_is_removed_and_switching_off_asks() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    api.device(fleet, "west", DEVICE);
    ann.done(&["device", "note", "west", "back room"]);
    assert_eq!(ann.done(&["device", "note", "west"]).trim(), "back room");
    ann.done(&["device", "note", "west", ""]);
    assert_eq!(ann.json(&["device", "note", "west"])["note"], Value::Null);
    let message = ann.refused(2, &["device", "shutdown", "west"]);
    assert!(message.contains("--yes"), "{message}");
}

#[test]
fn fleets_releases_variables_and_devices_are_renamed_validated_and_put_out_of_use() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    api.device(fleet, "west", DEVICE);
    api.release(fleet, "1111111111aaaaaaaaaa", "1.0.0");
    let message = ann.refused(1, &["restart", "pump"]);
    assert!(
        message.contains("no device of the fleet admin/pump is connected"),
        "{message}"
    );

    ann.done(&["device", "deactivate", "west"]);
    assert_eq!(
        api.rows("device?$select=is_active")[0]["is_active"],
        json!(false)
    );
    ann.done(&["device", "activate", "west"]);
    assert_eq!(
        api.rows("device?$select=is_active")[0]["is_active"],
        json!(true)
    );

    ann.done(&["release", "invalidate", "1.0.0", "--reason", "broken"]);
    ann.done(&["release", "validate", "1.0.0"]);
    let release = &api.rows("release?$select=is_invalidated,invalidation_reason")[0];
    assert_eq!(release["is_invalidated"], json!(false), "{release}");
    assert_eq!(release["invalidation_reason"], Value::Null, "{release}");

    ann.done(&["variable", "set", "A", "1", "--fleet", "pump"]);
    ann.done(&["variable", "rename", "A", "B", "--fleet", "pump"]);
    let listed = ann.json(&["variables", "--fleet", "pump"]);
    assert_eq!(
        (&listed[0]["name"], &listed[0]["value"]),
        (&json!("B"), &json!("1"))
    );
    let message = ann.refused(4, &["variable", "rename", "A", "C", "--fleet", "pump"]);
    assert!(message.contains("has no variable `A`"), "{message}");

    ann.done(&["rename", "pump", "valve"]);
    assert_eq!(ann.json(&["show", "valve"])["slug"], json!("admin/valve"));
    ann.refused(4, &["show", "pump"]);
}

#[test]
fn fields_are_called_as_people_call_them_and_tags_and_sizes_have_one_shape() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    api.device(fleet, "west", DEVICE);
    let release = api.release(fleet, "1111111111aaaaaaaaaa", "1.0.0");
    let message = ann.refused(1, &["rename", "pump", "p p"]);
    assert!(message.contains("the name must be"), "{message}");
    let message = ann.refused(1, &["tag", "set", "a b", "1", "--fleet", "pump"]);
    assert!(message.contains("the key must be"), "{message}");
    for message in [
        ann.refused(1, &["create", "p", "--type", "raspberrypi4-64"]),
        ann.refused(1, &["device", "rename", "west", "a\nb"]),
        ann.refused(1, &["tag", "set", "a b", "1", "--device", "west"]),
    ] {
        for field in ["app_name", "device_name", "tag_key", "is_final"] {
            assert!(!message.contains(field), "{message}");
        }
    }
    let answer = ann.json(&["device", "rename", "west", "east"]);
    assert_eq!(answer["changed"], json!({ "name": "east" }));

    let expected = json!([{ "key": "place", "value": "roof" }]);
    for (owner, show) in [
        (["--device", "east"], &["device", "show", "east"][..]),
        (["--release", "1.0.0"], &["release", "show", "1.0.0"]),
        (["--fleet", "pump"], &["tags", "--fleet", "pump"]),
    ] {
        ann.done(&[&["tag", "set", "place", "roof"], &owner[..]].concat());
        let listed = ann.json(&[&["tags"], &owner[..]].concat());
        assert_eq!(listed, expected);
        let shown = ann.json(show);
        let tags = shown.get("tags").unwrap_or(&shown);
        assert_eq!(tags, &expected, "{show:?}");
    }

    let service = api.create(
        "service",
        &json!({ "application": fleet, "service_name": "main" }),
    );
    let image = api.create(
        "image",
        &json!({
            "is_a_build_of__service": service, "start_timestamp": "2026-01-01T00:00:00Z",
            "push_timestamp": "2026-01-01T00:00:01Z", "status": "success", "image_size": 1234,
        }),
    );
    api.create(
        "release_image",
        &json!({ "image": image, "is_part_of__release": release }),
    );
    let shown = ann.json(&["release", "show", "1.0.0"]);
    assert_eq!(shown["services"][0]["size"], json!(1234), "{shown}");
}

#[test]
fn a_release_shows_its_note_before_that_is_removed_and_notes_steer_no_terminal() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    api.release(fleet, "1111111111aaaaaaaaaa", "1.0.0");
    ann.done(&["release", "note", "1.0.0", "red\u{1b}[31m\u{9b}2J\u{202e}"]);
    assert_eq!(ann.done(&["release", "note", "1.0.0"]), "red[31m2J\n");
    let shown = ann.done(&["release", "note", "1.0.0", "--json"]);
    assert!(shown.contains("\\u009b2J\\u202e"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{202e}']));
    ann.done(&["release", "note", "1.0.0", ""]);
    assert_eq!(ann.json(&["release", "note", "1.0.0"])["note"], Value::Null);
}

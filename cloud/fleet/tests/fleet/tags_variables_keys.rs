//! Tags, variables and keys.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Api, Cloud, Person};

const DEVICE: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn tags_are_set_changed_and_removed_on_devices_fleets_and_releases() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    api.device(fleet, "west", DEVICE);
    api.release(fleet, "1111111111aaaaaaaaaa", "1.0.0");
    for owner in [
        ["--device", "west"],
        ["--fleet", "pump"],
        ["--release", "1.0.0"],
    ] {
        let of_owner = |command: &[&'static str]| [command, &owner].concat();
        for (key, value) in [("env", "prod"), ("env", "test"), ("it's 100%", "a b&c")] {
            // A key must not contain white space.
            let key = key.replace(' ', "");
            ann.done(&[&["tag", "set", &key, value][..], &owner].concat());
            let tags = ann.json(&of_owner(&["tags"]));
            let found = tags
                .as_array()
                .expect("tags")
                .iter()
                .find(|tag| tag["key"] == json!(key));
            assert_eq!(
                found.map(|tag| &tag["value"]),
                Some(&json!(value)),
                "{owner:?}"
            );
        }
        assert_eq!(
            ann.json(&of_owner(&["tags"])).as_array().map(Vec::len),
            Some(2)
        );
        ann.done(&of_owner(&["tag", "rm", "env"]));
        assert_eq!(
            ann.json(&of_owner(&["tags"])).as_array().map(Vec::len),
            Some(1)
        );
        let message = ann.refused(4, &of_owner(&["tag", "rm", "env"]));
        assert!(message.contains("has no tag `env`"), "{message}");
        ann.refused(1, &of_owner(&["tag", "set", "two words", "x"]));
    }
    ann.refused(2, &["tags"]);
    ann.refused(2, &["tags", "--device", "west", "--fleet", "pump"]);
}

#[test]
fn variables_are_of_fleets_devices_and_services_and_configuration_by_its_name() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    let service = api.create(
        "service",
        &json!({ "application": fleet, "service_name": "main" }),
    );
    let image = api.create(
        "image",
        &json!({
            "is_a_build_of__service": service, "status": "success", "start_timestamp": 1,
            "push_timestamp": 2,
        }),
    );
    let release = api.create(
        "release",
        &json!({
            "belongs_to__application": fleet, "commit": "abcdef0123", "status": "running",
            "source": "local", "composition": {}, "start_timestamp": 1,
        }),
    );
    api.create(
        "release_image",
        &json!({ "image": image, "is_part_of__release": release }),
    );
    api.device(fleet, "west", DEVICE);
    ann.refused(
        1,
        &[
            "variable",
            "set",
            "B=1",
            "--device",
            "west",
            "--service",
            "main",
        ],
    );
    let set = |path: &str, body: Value| api.change(path, &body);
    set(
        &format!("release({release})"),
        json!({ "status": "success" }),
    );

    for (set, of) in [
        (&["A", "fleet"][..], &["--fleet", "pump"][..]),
        (&["A=device"], &["--device", "west"]),
        (&["B=service"], &["--fleet", "pump", "--service", "main"]),
        (&["B=both"], &["--device", "west", "--service", "main"]),
        (&["PLATFORM_HOST_CONFIG_gpu_mem=16"], &["--fleet", "pump"]),
        (
            &["PLATFORM_SUPERVISOR_POLL_INTERVAL", "900000"],
            &["--device", "west"],
        ),
        (&["EMPTY="], &["--device", "west"]),
    ] {
        ann.done(&[&["variable", "set"], set, of].concat());
    }
    let answer = ann.json(&["variables", "--device", "west"]);
    let answer: Vec<_> = answer
        .as_array()
        .expect("variables")
        .iter()
        .map(|one| {
            let overridden = if one["overridden"].as_bool().expect("whether") {
                " (overridden)"
            } else {
                ""
            };
            format!(
                "{} {} {} {} {}{overridden}",
                one["kind"], one["name"], one["value"], one["of"], one["service"]
            )
            .replace('"', "")
        })
        .collect();
    assert_eq!(
        answer,
        [
            "config PLATFORM_HOST_CONFIG_gpu_mem 16 fleet null",
            "config PLATFORM_SUPERVISOR_POLL_INTERVAL 900000 device null",
            "environment A device device null",
            "environment A fleet fleet null (overridden)",
            "environment B both device main",
            "environment B service fleet main (overridden)",
            "environment EMPTY  device null",
        ]
    );
    assert_eq!(
        ann.json(&["vars", "--fleet", "pump"])
            .as_array()
            .map(Vec::len),
        Some(3)
    );

    ann.done(&["variable", "rm", "A", "--device", "west"]);
    let message = ann.refused(4, &["variable", "rm", "A", "--device", "west"]);
    assert!(
        message.contains("has no variable `A` of its own"),
        "{message}"
    );
    let message = ann.refused(
        4,
        &[
            "variable",
            "set",
            "A=1",
            "--fleet",
            "pump",
            "--service",
            "other",
        ],
    );
    assert!(message.contains("it has main"), "{message}");
    let message = ann.refused(1, &["variable", "set", "1A=1", "--fleet", "pump"]);
    assert!(
        message.contains("the cloud refused the request"),
        "{message}"
    );
    ann.refused(2, &["variable", "set", "A", "--fleet", "pump"]);
    ann.refused(
        2,
        &[
            "variable",
            "set",
            "PLATFORM_X=1",
            "--fleet",
            "pump",
            "--service",
            "main",
        ],
    );
}

#[test]
fn secret_variables_are_set_and_shown_by_nothing() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    ann.fleet("pump");
    const VALUE: &str = "k3ep-this";
    let of = ["--fleet", "pump"];
    let set = |more: &[&'static str]| [&["variable", "set"], more, &of[..]].concat();
    let output = ann.done(&set(&["TOKEN", VALUE, "--secret"]));
    assert!(output.contains("TOKEN=(secret)"), "{output}");
    let answer = ann.json(&set(&["OTHER=k3ep-this", "--secret"]));
    assert_eq!(
        answer,
        json!({ "name": "OTHER", "value": null, "secret": true, "kind": "environment" })
    );
    // It stays secret, and the output of a script does not reveal it.
    let output = ann.done(&set(&["TOKEN", VALUE]));
    assert!(!output.contains(VALUE), "{output}");
    let listed = ann.done(&["variables", "--fleet", "pump"]);
    assert!(
        listed.contains("(secret)") && !listed.contains(VALUE),
        "{listed}"
    );
    let listed = ann.json(&["variables", "--fleet", "pump"]);
    assert_eq!(
        (&listed[1]["value"], &listed[1]["secret"]),
        (&Value::Null, &json!(true))
    );
    let answer = ann.json(&set(&["TOKEN", "open", "--readable"]));
    assert_eq!(
        (&answer["value"], &answer["secret"]),
        (&json!("open"), &json!(false))
    );

    let mut piped = ann
        .command(&set(&["TOKEN", "--secret", "--stdin"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("fleet");
    let mut stdin = piped.stdin.take().expect("its input");
    writeln!(stdin, "{VALUE}").expect("a line");
    drop(stdin);
    let output = piped.wait_with_output().expect("its end");
    assert!(output.status.success(), "{output:?}");
    assert!(
        !String::from_utf8_lossy(&output.stdout).contains(VALUE),
        "{output:?}"
    );
    ann.refused(2, &set(&["A=1", "--secret", "--readable"]));
    ann.refused(2, &set(&["A=1", "--stdin"]));
    ann.refused(2, &set(&["A", "1", "--stdin"]));
    let message = ann.refused(
        1,
        &set(&["PLATFORM_SUPERVISOR_VPN_CONTROL=false", "--secret"]),
    );
    assert!(message.contains("cannot be secret"), "{message}");
}

#[test]
fn keys_are_made_listed_and_deleted() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    ann.fleet("pump");
    let ran = ann.run(&[
        "keys",
        "create",
        "ci",
        "--description",
        "builds",
        "--expires",
        "2099-01-31",
    ]);
    assert_eq!((ran.code, ran.out.trim().len()), (0, 32), "{}", ran.err);
    assert!(ran.err.contains("shown once"), "{}", ran.err);
    let listed = ann.json(&["keys", "list"]);
    assert_eq!(listed[0]["name"], json!("ci"));
    assert_eq!(listed[0]["expiry_date"], json!("2099-01-31T00:00:00.000Z"));
    let provisioning = ann.done(&["keys", "provisioning", "pump", "--name", "line 1"]);
    let joining = Person::new()
        .with("FLEET_URL", &cloud.url)
        .with("FLEET_TOKEN", provisioning.trim());
    assert_eq!(joining.json(&["whoami"])["slug"], json!("admin/pump"));
    ann.done(&["keys", "rm", "ci"]);
    assert_eq!(ann.json(&["keys", "list"]), json!([]));
    let message = ann.refused(4, &["keys", "rm", "ci"]);
    assert!(message.contains("there is no key `ci`"), "{message}");
    ann.refused(2, &["keys", "create", "x", "--expires", "tomorrow"]);
}

#[test]
fn configuration_is_recognized_by_the_prefixes_of_the_clouds_vendor() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cloud.toml");
    let names = "[branding]\nenv_prefix = \"ACME_\"\nolder_env_prefixes = [\"OLD_\"]\n";
    std::fs::write(&file, names).expect("a file");
    let cloud = Cloud::start_with(&["--config", file.to_str().expect("a path")]);
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    api.device(fleet, "west", DEVICE);
    for (name, kind) in [
        ("ACME_SUPERVISOR_POLL_INTERVAL", "config"),
        ("OLD_SUPERVISOR_LOG_CONTROL", "config"),
        ("PLATFORM_X", "environment"),
    ] {
        let set = ann.json(&["variable", "set", name, "1", "--device", "west"]);
        assert_eq!(set["kind"], kind, "{name}");
        ann.done(&["variable", "rm", name, "--device", "west"]);
    }
}

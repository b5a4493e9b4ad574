use serde_json::json;

use super::*;
use crate::{Branding, DeviceUuid};

const DEVICE: &str = "0123456789abcdef0123456789abcdef";

fn local(body: &Value) -> Result<TargetState, TargetErrors> {
    TargetState::from_local_json(
        body,
        &LocalDefaults {
            device_name: "bench".into(),
            branding: Branding::default(),
        },
    )
}

fn cloud(body: &Value) -> Result<TargetState, TargetErrors> {
    TargetState::from_cloud_json(
        body,
        &DEVICE.parse::<DeviceUuid>().unwrap(),
        &Branding::default(),
    )
}

fn local_sample() -> Value {
    json!({ "local": {
        "name": "device", "config": { "SUPERVISOR_POLL_INTERVAL": "600000", "HOST_CONFIG_gpu_mem": "" },
        "apps": { "12": {
            "name": "shop", "commit": "localrelease", "releaseId": "1",
            "services": { "3": {
                "environment": { "A": "b" }, "labels": { "io.platform.features.supervisor-api": "1" },
                "imageId": 5, "serviceName": "web", "serviceId": 3, "image": "nginx", "running": true,
                "network_mode": "host", "ports": ["80"]
            } },
            "volumes": { "data": {} }, "networks": { "back": { "internal": true } }
        } }
    } })
}

fn cloud_sample() -> Value {
    json!({
        DEVICE: { "name": "device", "config": { "PLATFORM_SUPERVISOR_DELTA": "1" }, "apps": {
            "a1b2": { "id": "12", "name": "shop", "class": "fleet", "releases": { "c0ffee": {
                "id": 1,
                "services": { "web": {
                    "id": 3, "image_id": "5", "image": "r.io/web@sha256:ab", "environment": {}, "labels": {},
                    "composition": { "image": "hub.io/web:1", "ports": ["80"] }
                } },
                "volumes": {}, "networks": {}
            } } },
            "b2": { "id": 13, "name": "os", "is_host": true }
        } },
        "another": "device, whatever it is"
    })
}

/// Returns `sample` with the value at `pointer` replaced, or removed if `value` is `None`.
fn with(mut sample: Value, pointer: &str, value: Option<Value>) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = sample.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => parent.insert(key.to_owned(), value),
        None => parent.remove(key),
    };
    sample
}

/// Returns the only problem of a state, as its line in the text.
fn line(result: Result<TargetState, TargetErrors>) -> String {
    let text = result.unwrap_err().to_string();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Invalid target state."));
    let line = lines.next().unwrap().to_owned();
    assert_eq!(lines.next(), None, "one problem alone: {text}");
    line
}

#[test]
fn a_local_target_is_read() {
    let state = local(&local_sample()).unwrap();
    let app = &state.apps[&"12".parse().unwrap()];
    let release = app.release.as_ref().unwrap();
    let web = &release.services[&"web".parse().unwrap()];
    assert_eq!(release.commit.as_str(), "localrelease");
    assert_eq!(web.image.as_str(), "nginx:latest");
    assert_eq!(web.id.0, 3);
    assert_eq!(
        web.composition.keys().collect::<Vec<_>>(),
        ["network_mode", "ports"],
        "every other key is a compose field"
    );
    assert_eq!(release.networks["back"]["internal"], json!(true));
}

#[test]
fn a_posted_target_is_returned_again() {
    let state = local(&local_sample()).unwrap();
    let shown = state.to_local_json(true);
    let app = &shown["local"]["apps"]["12"];
    let mut expected = local_sample()["local"]["apps"]["12"].clone();
    expected["services"]["3"]["image"] = json!("nginx:latest");
    assert_eq!(app, &expected);
    assert_eq!(
        shown["local"]["config"]["SUPERVISOR_POLL_INTERVAL"],
        json!("600000")
    );
    assert_eq!(
        shown["local"]["config"]["SUPERVISOR_VPN_CONTROL"],
        json!("true")
    );
    assert_eq!(
        shown["local"]["config"]["SUPERVISOR_LOCAL_MODE"],
        json!("true"),
        "posting the answer again must not leave local mode"
    );
    assert_eq!(local(&shown).unwrap().apps, state.apps);
}

#[test]
fn without_a_local_target_apps_are_empty() {
    let shown = TargetState::default().to_local_json(false);
    assert_eq!(shown["local"]["apps"], json!({}));
}

#[test]
fn missing_parts_of_a_local_target_fall_back() {
    for body in [json!({}), json!({ "local": {} })] {
        let state = local(&body).unwrap();
        assert_eq!(state.name, "bench");
        assert!(state.config.is_empty() && state.apps.is_empty());
    }
}

#[test]
fn an_app_without_commit_has_no_release() {
    for absent in [None, Some(Value::Null)] {
        let state = local(&with(local_sample(), "/local/apps/12/commit", absent)).unwrap();
        assert_eq!(state.apps[&"12".parse().unwrap()].release, None);
    }
}

#[test]
fn numbers_may_be_strings() {
    for (image_id, release_id) in [
        (json!("5"), json!(1)),
        (json!(5), json!("1")),
        (json!(5.0), json!("0001")),
    ] {
        let body = with(
            local_sample(),
            "/local/apps/12/services/3/imageId",
            Some(image_id),
        );
        let body = with(body, "/local/apps/12/releaseId", Some(release_id));
        assert_eq!(local(&body), local(&local_sample()));
    }
}

#[test]
fn each_problem_of_a_local_target_names_path_and_value() {
    let service = "/local/apps/12/services/3";
    for (pointer, value, expected) in [
        (
            format!("{service}/imageId"),
            Some(json!("x")),
            "`local.apps.12.services.3.imageId`: expected an integer of at least 0, as a number or a string of digits, found `\"x\"`",
        ),
        (
            format!("{service}/imageId"),
            Some(json!(-1)),
            "`local.apps.12.services.3.imageId`: expected an integer of at least 0, as a number or a string of digits, found `-1`",
        ),
        (
            format!("{service}/labels"),
            None,
            "`local.apps.12.services.3.labels`: expected a map, but it is missing",
        ),
        (
            format!("{service}/environment"),
            None,
            "`local.apps.12.services.3.environment`: expected a map, but it is missing",
        ),
        (
            format!("{service}/environment/1A"),
            Some(json!("")),
            "`local.apps.12.services.3.environment.1A`: expected a variable name (`[A-Za-z_][A-Za-z0-9_]*`), found `\"1A\"`",
        ),
        (
            format!("{service}/environment/A"),
            Some(json!(1)),
            "`local.apps.12.services.3.environment.A`: expected a string without NUL characters, found `1`",
        ),
        (
            format!("{service}/environment/A"),
            Some(json!("a\u{0}b")),
            "`local.apps.12.services.3.environment.A`: expected a string without NUL characters, found `\"a\u{fffd}b\"`",
        ),
        (
            format!("{service}/labels/a b"),
            Some(json!("")),
            "`local.apps.12.services.3.labels.a b`: expected a label name (printable ASCII without spaces, quotes and backticks), found `\"a b\"`",
        ),
        (
            format!("{service}/serviceName"),
            Some(json!("-web")),
            "`local.apps.12.services.3.serviceName`: expected a service name (letters, digits, `_`, `.` and `-`, beginning with a letter or digit), found `\"-web\"`",
        ),
        (
            format!("{service}/image"),
            Some(json!("two words")),
            "`local.apps.12.services.3.image`: expected an image reference of at most 255 characters without white space, found `\"two words\"`",
        ),
        (
            format!("{service}/running"),
            Some(json!([1, 2])),
            "`local.apps.12.services.3.running`: expected a boolean, found `a list of 2`",
        ),
        (
            "/local/apps/12/volumes/data".into(),
            Some(json!(null)),
            "`local.apps.12.volumes.data`: expected a map, found `null`",
        ),
        (
            "/local/apps/12/commit".into(),
            Some(json!("a/b")),
            "`local.apps.12.commit`: expected a commit (letters, digits, `_`, `.` and `-`), found `\"a/b\"`",
        ),
        (
            "/local/name".into(),
            Some(json!("two\nlines")),
            "`local.name`: expected a string of at most 255 characters on one line, found `\"two\u{fffd}lines\"`",
        ),
        (
            "/local/config/SUPERVISOR_POLL_INTERVAL".into(),
            Some(json!(600_000)),
            "`local.config.SUPERVISOR_POLL_INTERVAL`: expected a string without NUL characters, found `600000`",
        ),
    ] {
        assert_eq!(
            line(local(&with(local_sample(), &pointer, value))),
            expected
        );
    }
}

#[test]
fn all_problems_are_listed() {
    let body = with(local_sample(), "/local/name", Some(json!(1)));
    let body = with(body, "/local/apps/x", Some(json!({ "name": "other" })));
    let body = with(body, "/local/apps/12/releaseId", None);
    let errors = local(&body).unwrap_err();
    assert_eq!(
        errors
            .problems()
            .iter()
            .map(|problem| problem.path.as_str())
            .collect::<Vec<_>>(),
        ["local.name", "local.apps.12.releaseId", "local.apps.x"]
    );
}

#[test]
fn two_services_of_one_name_are_refused() {
    let mut body = local_sample();
    let twin = body["local"]["apps"]["12"]["services"]["3"].clone();
    body["local"]["apps"]["12"]["services"]["4"] = twin;
    assert_eq!(
        line(local(&body)),
        "`local.apps.12.services.4.serviceName`: expected a name that no other service of the app has, found `\"web\"`"
    );
}

#[test]
fn an_app_named_twice_in_other_digits_is_refused() {
    let mut body = local_sample();
    body["local"]["apps"]["012"] = json!({ "name": "twin" });
    assert_eq!(
        line(local(&body)),
        "`local.apps.012`: expected an app id that no other app has, found `\"012\"`"
    );
}

#[test]
fn hostile_states_are_bounded() {
    let many: Map<String, Value> = (0..100_000)
        .map(|id| (id.to_string(), json!({ "name": "x".repeat(300) })))
        .collect();
    let errors = local(&json!({ "local": { "apps": many } })).unwrap_err();
    assert_eq!(errors.problems().len(), 100);
    assert!(errors.to_string().len() < 50_000);
    assert!(
        errors
            .to_string()
            .ends_with(&format!("and {} more", MAX_APPS + 1 - 100))
    );

    let long = with(
        local_sample(),
        "/local/name",
        Some(json!("y".repeat(1_000_000))),
    );
    assert!(line(local(&long)).len() < 300);
    for wrong in [json!(null), json!([]), json!("x"), json!({ "local": null })] {
        assert!(local(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_cloud_target_is_read() {
    let state = cloud(&cloud_sample()).unwrap();
    assert_eq!(state.config["SUPERVISOR_DELTA"], "1");
    let shop = &state.apps[&"a1b2".parse().unwrap()];
    let release = shop.release.as_ref().unwrap();
    assert_eq!(
        (shop.id.0, release.id.0, release.commit.as_str()),
        (12, 1, "c0ffee")
    );
    let web = &release.services[&"web".parse().unwrap()];
    assert_eq!((web.id.0, web.image_id.0, web.running), (3, 5, true));
    assert_eq!(
        (web.image.as_str(), web.composition.get("image")),
        ("r.io/web@sha256:ab", None),
        "where the compose file had it from is of no use to the device"
    );
    let host = &state.apps[&"b2".parse().unwrap()];
    assert!(host.is_host && host.release.is_none());
}

#[test]
fn of_several_releases_the_first_is_used() {
    let mut body = cloud_sample();
    let releases = &mut body[DEVICE]["apps"]["a1b2"]["releases"];
    releases["aaaaaa"] = json!({ "id": 2 });
    let state = cloud(&body).unwrap();
    let release = state.apps[&"a1b2".parse().unwrap()]
        .release
        .clone()
        .unwrap();
    assert_eq!(release.commit.as_str(), "c0ffee");
}

#[test]
fn each_problem_of_a_cloud_target_names_path_and_value() {
    let app = format!("/{DEVICE}/apps/a1b2");
    for (pointer, value, path) in [
        (format!("/{DEVICE}"), None, ""),
        (format!("/{DEVICE}/name"), None, ".name"),
        (format!("/{DEVICE}/apps"), Some(json!([])), ".apps"),
        (format!("/{DEVICE}/config"), None, ".config"),
        (format!("{app}/id"), Some(json!("1.5")), ".apps.a1b2.id"),
        (format!("{app}/id"), Some(json!(13)), ".apps.b2.id"),
        (
            format!("{app}/class"),
            Some(json!("fleets")),
            ".apps.a1b2.class",
        ),
        (
            format!("{app}/releases/c0ffee/id"),
            None,
            ".apps.a1b2.releases.c0ffee.id",
        ),
        (
            format!("{app}/releases/c0ffee/services/web/composition"),
            Some(json!("ports")),
            ".apps.a1b2.releases.c0ffee.services.web.composition",
        ),
        (
            format!("{app}/releases/c0ffee/services/a b"),
            Some(
                cloud_sample()[DEVICE]["apps"]["a1b2"]["releases"]["c0ffee"]["services"]["web"]
                    .clone(),
            ),
            ".apps.a1b2.releases.c0ffee.services.a b",
        ),
    ] {
        let line = line(cloud(&with(cloud_sample(), &pointer, value)));
        assert!(
            line.starts_with(&format!("`{DEVICE}{path}`: expected ")),
            "{line}"
        );
    }
}

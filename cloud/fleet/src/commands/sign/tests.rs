use minisign::KeyPair;

use super::*;

const UUID: &str = "5f0ee0e1d1b84a1f9a6f5a7d3a1c9b20";
const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn app() -> TargetApp {
    let service = json!({
        "id": 3, "image_id": 4, "image": format!("registry/web@{DIGEST}"),
        "environment": { "GREETING": "hello" }, "labels": { "role": "web" },
        "composition": { "image": "registry/web", "command": ["serve"], "privileged": false },
    });
    let release = json!({ "id": 2, "services": { "web": service }, "volumes": { "data": {} } });
    let app = json!({ "id": 1, "name": "pump", "class": "fleet", "releases": { "c1": release } });
    let state = json!({ UUID: { "name": "pump", "config": {}, "apps": { UUID: app } } });
    let target = target(&state, UUID, &Branding::default()).unwrap();
    target.apps.into_values().next().unwrap()
}

#[test]
fn a_release_that_differs_from_the_compose_file_is_not_signed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("compose.yml");
    let same = "services:\n  web:\n    image: web\n    command: [serve]\n    privileged: false\nvolumes:\n  data: {}\n";
    for (text, difference) in [
        (same.to_owned(), None),
        (
            same.replace("false", "true"),
            Some("another `privileged` of the service `web`"),
        ),
        (
            same.replace("[serve]", "[serve, all]"),
            Some("another `command`"),
        ),
        (
            same.replace("    privileged: false\n", ""),
            Some("another `privileged`"),
        ),
        (
            same.replace("data: {}", "data: {}\n  more: {}"),
            Some("other `volumes`"),
        ),
        (
            same.replace("web:\n", "site:\n"),
            Some("a service `web` that the file does not have; no service `site`"),
        ),
    ] {
        std::fs::write(&path, &text).unwrap();
        let held = hold_to(&app(), &Composition::read(&path).unwrap());
        match (held, difference) {
            (Ok(()), None) => {}
            (Err(failure), Some(difference)) => {
                let failure = format!("{failure:?}");
                assert!(failure.contains(difference), "{failure}");
            }
            (held, _) => panic!("{text}: {held:?}"),
        }
    }
}

#[test]
fn the_signed_statement_is_shown_and_can_be_checked() {
    let app = app();
    let allowances = Allowances {
        version: 7,
        variables: [(Some("web".to_owned()), ["GREETING".to_owned()].into())].into(),
        ..Allowances::default()
    };
    let config = [("HOST_FIREWALL_MODE".to_owned(), "on".to_owned())].into();
    let statement = Statement::from_app(&app, &config, &allowances).unwrap();
    let shown = shown::in_words(&statement, "acme/pump", "c1");
    for part in [
        "version 7, without a time limit",
        DIGEST,
        "compose fields: command, privileged",
        "role=web",
        "variables whose values the cloud chooses: GREETING",
        "volumes: data",
        "HOST_FIREWALL_MODE=on",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let pair = KeyPair::generate_unencrypted_keypair().unwrap();
    let text = signed(&statement.to_text().unwrap(), &pair.sk).unwrap();
    let parts = SignedText::parse(&text).unwrap();
    let signature = minisign::SignatureBox::from_string(parts.signature).unwrap();
    minisign::verify(
        &pair.pk,
        &signature,
        std::io::Cursor::new(parts.statement),
        true,
        false,
        false,
    )
    .unwrap();
    assert_eq!(Statement::parse(parts.statement).unwrap(), statement);
}

#[test]
fn an_expiry_is_a_time_to_come() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    for (text, time) in [
        ("2030-01-01T00:00:00Z", Some("2030-01-01T00:00:00Z")),
        ("90d", Some("2026-04-01T00:00:00Z")),
        ("12h", Some("2026-01-01T12:00:00Z")),
        ("2020-01-01T00:00:00Z", None),
        ("-1d", None),
        ("0s", None),
        ("soon", None),
        ("", None),
    ] {
        let found = expiry(text, now).ok().map(|time| time.to_string());
        assert_eq!(found.as_deref(), time, "{text}");
    }
}

//! Signing in and out, and the stored session.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::harness::{Cloud, EMAIL, PASSWORD, Person};

#[test]
fn signing_in_is_kept_for_its_owner_alone_and_ends_with_logout() {
    let cloud = Cloud::start();
    let ann = Person::new();
    let message = ann.refused(3, &["fleets"]);
    assert!(
        message.contains("hint: sign in with `fleet login URL`"),
        "{message}"
    );

    ann.done(&[
        "login",
        &cloud.url,
        "--email",
        EMAIL,
        "--password",
        PASSWORD,
    ]);
    let file = ann.home.path().join(".config/fleet/config.toml");
    let mode = std::fs::metadata(&file)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let who = ann.json(&["whoami"]);
    assert_eq!(who["email"], json!(EMAIL));
    assert_eq!(who["url"], json!(cloud.url));
    assert!(ann.done(&["whoami"]).contains(EMAIL));
    assert_eq!(ann.json(&["fleets"]), json!([]));

    ann.done(&["logout"]);
    ann.refused(3, &["whoami"]);
    let text = std::fs::read_to_string(&file).expect("the file");
    assert!(
        text.contains(&cloud.url) && !text.contains("token"),
        "{text}"
    );
    // The address is still stored.
    ann.done(&["login", "--email", EMAIL, "--password", PASSWORD]);
    ann.done(&["whoami"]);
}

#[test]
fn a_wrong_password_an_unknown_key_and_a_wrong_address_keep_nothing() {
    let cloud = Cloud::start();
    let ann = Person::new();
    let message = ann.refused(
        3,
        &["login", &cloud.url, "--email", EMAIL, "--password", "wrong"],
    );
    assert!(message.contains("wrong password"), "{message}");
    let message = ann.refused(3, &["login", &cloud.url, "--token", "0123456789abcdef0123"]);
    assert!(message.contains("does not know that key"), "{message}");
    let message = ann.refused(2, &["login", "cloud.example", "--token", "k"]);
    assert!(
        message.contains("is not an address of a cloud"),
        "{message}"
    );
    let message = ann.refused(1, &["login", "http://127.0.0.1:1", "--token", "k"]);
    assert!(message.contains("cannot be reached"), "{message}");
    let message = ann.refused(2, &["login", &cloud.url, "--email", EMAIL]);
    assert!(message.contains("the password is missing"), "{message}");
    ann.refused(2, &["login"]);
    assert!(!ann.home.path().join(".config/fleet/config.toml").exists());
}

#[test]
fn a_key_signs_in_as_well_and_the_environment_goes_before_the_file() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let key = ann.done(&["keys", "create", "ci", "--expires", "2099-01-31"]);
    let key = key.trim();
    let program = Person::new()
        .with("FLEET_URL", &cloud.url)
        .with("FLEET_TOKEN", key);
    assert_eq!(program.json(&["whoami"])["email"], json!(EMAIL));
    // A key cannot create keys.
    let message = program.refused(3, &["keys", "create", "more"]);
    assert!(message.contains("fleet login"), "{message}");

    let other = Person::new();
    other.done(&["login", &cloud.url, "--token", key]);
    other.done(&["whoami"]);

    // The file's credential is not sent to a cloud that the environment names.
    let elsewhere = Person {
        home: other.home,
        environment: Vec::new(),
    }
    .with("FLEET_URL", "http://127.0.0.1:1");
    let message = elsewhere.refused(3, &["whoami"]);
    assert!(message.contains("which FLEET_URL names"), "{message}");
}

//! Names, keys and addresses follow the rules next to their fields (docs/spec/cloud.md#rule-tag-keys,
//! docs/spec/cloud.md#rule-variable-names).

use regex::Regex;
use resources::{Branding, Check};
use serde_json::json;

use super::values::{field, stored_text};

/// The fields that a rule applies to, values that it accepts unchanged, and values that it refuses.
const NAMES: &[(&str, &str, &[&str], &[&str])] = &[
    (
        "device_tag",
        "tag_key",
        &["env", "io.platforms", "Größe", "a'b", ":)", "io.platform"],
        &["", "a b", "a\tb", "\u{a0}", "io.platform.x", "io.legacy.x"],
    ),
    (
        "device_environment_variable",
        "name",
        &["A", "_a1", "PLATFORMS", "platform_x", "USERS"],
        &[
            "",
            "1A",
            "A-B",
            "A:B",
            "Ä",
            "PLATFORM_X",
            "LEGACY_X",
            "PLATFORM",
            "LEGACY",
            "USER",
        ],
    ),
    (
        "application_config_variable",
        "name",
        &[
            "PLATFORM_HOST_CONFIG_gpu_mem",
            "LEGACY_SUPERVISOR_POLL_INTERVAL",
            "PLATFORM_a:b",
        ],
        &[
            "",
            "SUPERVISOR_POLL_INTERVAL",
            "platform_x",
            "PLATFORM_a b",
            "PLATFORM_ä",
            "1PLATFORM_",
            ":PLATFORM_",
        ],
    ),
    (
        "image_environment_variable",
        "name",
        &["1 a", "PLATFORM_X"],
        &[""],
    ),
    (
        "device_environment_variable",
        "value",
        &["", "a b", "a\tb"],
        &["a\nb", "a\r"],
    ),
    (
        "service",
        "service_name",
        &["main", "a_b.c-1", "1"],
        &["", "-a", "a b", "a/b", "ä"],
    ),
    (
        "application",
        "app_name",
        &["pump", "P_1-x"],
        &["abc", "a b c", "a/bc", "pümp"],
    ),
    (
        "application",
        "uuid",
        &["5f0c4d4e9b7a4c8fa1b2c3d4e5f60718"],
        &[
            "5f0c4d4e9b7a1c8fa1b2c3d4e5f60718",
            "5f0c4d4e9b7a4c8fc1b2c3d4e5f60718",
            "5F0C4D4E9B7A4C8FA1B2C3D4E5F60718",
            "5f0c4d4e-9b7a-4c8f-a1b2-c3d4e5f60718",
            "5f0c4d4e9b7a4c8fa1b2c3d4e5f6071",
        ],
    ),
    (
        "device",
        "uuid",
        &[
            "0123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd",
        ],
        &[
            "",
            "0123456789abcdef0123456789abcde",
            "0123456789ABCDEF0123456789ABCDEF",
        ],
    ),
    (
        "device",
        "device_name",
        &["", "calm-river", "pump 1"],
        &["a\nb", "a\rb"],
    ),
    (
        "organization",
        "handle",
        &["acme", "a_1"],
        &["", "Acme", "a-b", "é"],
    ),
    (
        "release",
        "semver",
        &["0.0.0", "1.2.3-beta.1+linux.rev4"],
        &[
            "",
            "1.2",
            "v1.2.3",
            "1.2.3-",
            "01.2.3",
            "1.2.99999999999999999999",
        ],
    ),
];

#[test]
fn names_and_keys_follow_their_rules() {
    for (resource, name, good, bad) in NAMES {
        for text in *good {
            assert_eq!(
                stored_text(resource, name, &json!(text)),
                format!("{text:?}"),
                "{resource}.{name}"
            );
        }
        for text in *bad {
            assert_eq!(
                stored_text(resource, name, &json!(text)),
                "!",
                "{resource}.{name} = {text:?}"
            );
        }
    }
}

#[test]
fn names_of_people_and_processors_are_brought_into_one_form() {
    for (resource, name, given, kept) in [
        ("user", "username", "J. Doe", "\"j_doe\""),
        ("user", "username", "ANNA", "\"anna\""),
        ("user", "username", "Root", "!"),
        ("user", "username", "...", "!"),
        ("user", "email", "Anna@Example.COM", "\"anna@example.com\""),
        ("user", "email", "anna", "!"),
        ("user", "email", "anna@", "!"),
        ("user", "email", "an na@example.com", "!"),
        ("device", "cpu_id", "00A1", "\"00a1\""),
        ("device", "cpu_id", "é", "!"),
    ] {
        assert_eq!(stored_text(resource, name, &json!(given)), kept, "{given}");
    }
}

#[test]
fn prefixes_are_those_of_the_vendor() {
    let branding: Branding = toml::from_str(
        "env_prefix = 'ACME_'\nolder_env_prefixes = []\nlabel_namespace = 'com.acme'\nolder_label_namespaces = []",
    )
    .expect("a branding");
    let takes =
        |resource, name, given: &str| field(resource, name).take(&json!(given), &branding).is_ok();
    assert!(takes("device_config_variable", "name", "ACME_X"));
    assert!(!takes("device_config_variable", "name", "PLATFORM_X"));
    assert!(takes("device_environment_variable", "name", "PLATFORM_X"));
    assert!(!takes("device_environment_variable", "name", "ACME"));
    assert!(takes("device_tag", "tag_key", "io.platform.x"));
    assert!(!takes("device_tag", "tag_key", "com.acme.x"));
    let names: Vec<String> = Branding::default().variables("X").collect();
    assert_eq!(names, ["PLATFORM_X", "LEGACY_X"]);
    assert!(toml::from_str::<Branding>("prefix = 'X_'").is_err());
}

#[test]
fn interfaces_receive_the_checked_rules_for_names() {
    const LETTERS: [&str; 9] = ["a", "Z", "0", "_", ":", "-", ".", " ", "é"];
    let branding = Branding::default();
    for (check, prefix) in [
        (Check::EnvironmentName, ""),
        (Check::ConfigName, "PLATFORM_"),
        (Check::ConfigName, "PLATFORM_x"),
    ] {
        let pattern = check.wrong_pattern().expect("a pattern");
        // Browsers recognize only ASCII letters and digits.
        let wrong = Regex::new(
            &pattern
                .replace("\\d", "[0-9]")
                .replace("\\W", "[^A-Za-z0-9_]"),
        )
        .expect("a regular expression");
        for first in LETTERS {
            for second in LETTERS {
                let name = format!("{prefix}{first}{second}");
                let is_reserved = check.apply(&name, &branding).is_some();
                assert_eq!(is_reserved, !wrong.is_match(&name), "{check:?} {name}");
            }
        }
    }
}

#[test]
fn words_of_the_platform_are_nobodys_names() {
    let branding: Branding = toml::from_str(
        "env_prefix = 'ACME_'\nolder_env_prefixes = ['OLD_']\nlabel_namespace = 'com.acme'\n\
         older_label_namespaces = []\nos_organization = 'acme_os'",
    )
    .expect("a branding");
    let takes =
        |resource, name, given: &str| field(resource, name).take(&json!(given), &branding).is_ok();
    for (name, is_username, is_handle) in [
        ("acme_os", false, false),
        ("ACME_OS", false, false),
        ("Acme-OS", false, false),
        ("acme os", false, false),
        ("acme__os", false, false),
        ("_acme_os_", false, false),
        ("acmeos", false, false),
        ("acme", false, false),
        ("old", false, false),
        ("com_acme", false, false),
        ("com.acme", false, false),
        ("acme_oss", true, true),
        ("acme_1", true, true),
        ("platform_os", true, true),
        ("older", true, true),
    ] {
        assert_eq!(takes("user", "username", name), is_username, "{name}");
        assert_eq!(takes("organization", "handle", name), is_handle, "{name}");
    }
    let refused = field("organization", "handle").take(&json!("acme_os"), &branding);
    let refused = refused.expect_err("a reserved word").to_string();
    assert!(refused.contains("`acme_os`"), "{refused}");
}

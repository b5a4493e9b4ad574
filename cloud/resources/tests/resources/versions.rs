//! The differences of the older versions (docs/spec/cloud.md#older-versions).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use strum::VariantArray;

use expect_test::{expect, expect_file};
use proptest::prelude::*;
use resources::{
    Branding, Column, Field, Lookup, Method, Model, Resource, Step, TranslatedWrite, Version,
};
use serde_json::{Value, json};

/// `UPDATE_EXPECT=1` writes it again.
#[test]
fn each_version_differs_from_the_next_as_the_picture_shows() {
    let mut picture = String::new();
    for (older, newer) in [(Version::V6, Version::V7), (Version::V5, Version::V6)] {
        let _ = writeln!(picture, "{older} against {newer}");
        let older = lines(older.model());
        let newer = lines(newer.model());
        for gone in newer.difference(&older) {
            let _ = writeln!(picture, "- {gone}");
        }
        for new in older.difference(&newer) {
            let _ = writeln!(picture, "+ {new}");
        }
        picture.push('\n');
    }
    expect_file!["versions.txt"].assert_eq(&picture);
}

fn lines(model: &Model) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for resource in model.resources() {
        let name = resource.name;
        if let Some(only) = resource.only {
            // Apart from its own fields, it equals the resource whose rows it has.
            let whole = model.resource(resource.table).expect("its table");
            let own = resource
                .fields
                .iter()
                .filter(|it| whole.find_field(it.name).is_none());
            let own: Vec<&str> = own.map(|it| it.name).collect();
            lines.insert(format!("{name}: {} where {only} {own:?}", resource.table));
            continue;
        }
        for synonym in &resource.synonyms {
            lines.insert(format!("{name} is also {synonym}"));
        }
        for field in &resource.fields {
            lines.insert(format!("{name}.{} {}", field.name, described(field)));
        }
        for one in &resource.navigations {
            if one.step != Step::One(one.name) {
                lines.insert(format!(
                    "{name}.{} -> {} by {:?}",
                    one.name, one.to, one.step
                ));
            }
        }
        if !lines
            .iter()
            .any(|line| line.starts_with(&format!("{name}.")))
        {
            lines.insert(name.to_owned());
        }
    }
    lines
}

fn described(field: &Field) -> String {
    let secret = if field.secret { " write only" } else { "" };
    format!("{:?} in {:?}{secret}", field.kind, field.column)
}

#[test]
fn expressions_that_somebody_has_to_write_are_these() {
    let mut fields: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for &version in Version::VARIANTS {
        for resource in version.model().resources() {
            for field in resource.fields.iter().filter(|it| !it.secret) {
                if let Column::Computed(name) = field.column {
                    fields.entry(resource.table).or_default().insert(name);
                }
            }
        }
    }
    let fields: String = fields
        .into_iter()
        .map(|(table, names)| format!("{table}: {}\n", Vec::from_iter(names).join(", ")))
        .collect();
    expect![[r#"
        application: commit, device_type, user
        device: device_type, is_on__commit, overall_progress, overall_status, overall_status_v6, should_be_running__release
        release: is_final, is_for__device_type, raw_version, release_type, semver, version
        release_asset: asset
    "#]]
    .assert_eq(&fields);
}

#[test]
fn versions_are_named_and_only_the_current_two_are_strict_as_the_description_says() {
    for &version in Version::VARIANTS {
        assert_eq!(version.to_string().parse(), Ok(version));
        let shape = version.shape();
        let current = version == Version::V7;
        assert_eq!(
            (shape.lenient, shape.says_ok, shape.addressed),
            (!current, !current, !current)
        );
        assert_eq!(
            shape.conflict,
            if version < Version::V6 { 400 } else { 409 }
        );
    }
    for name in ["v0", "v8", "7", "V7", ""] {
        assert_eq!(name.parse::<Version>().ok(), None);
    }
}

fn resource(version: Version, name: &str) -> &'static Resource {
    version.model().resource(name).expect(name)
}

/// Translates a body of an older version to the names of version 7; an error if it is refused.
fn written(
    version: Version,
    method: Method,
    name: &str,
    body: Value,
) -> Result<TranslatedWrite, String> {
    let Value::Object(body) = body else {
        return Err("no body".into());
    };
    let resource = resource(version, name);
    let written = version.written(resource, method, body, &Branding::default());
    written.map_err(|error| error.to_string())
}

#[test]
fn bodies_are_read_in_the_names_of_their_version() {
    for (version, name, body, fields) in [
        (
            Version::V7,
            "device",
            json!({"should_be_running__release": 7}),
            json!({"should_be_running__release": 7}),
        ),
        (
            Version::V6,
            "device",
            json!({"should_be_running__release": 7}),
            json!({"is_pinned_on__release": 7}),
        ),
        (
            Version::V6,
            "device",
            json!({"is_pinned_on__release": 7, "note": "x"}),
            json!({"note": "x"}),
        ),
        (
            Version::V6,
            "device",
            json!({"should_be_managed_by__supervisor_release": 7}),
            json!({"should_be_managed_by__release": 7}),
        ),
        (
            Version::V6,
            "device",
            json!({"is_managed_by__device": null, "vpn_address": "x"}),
            json!({}),
        ),
        (
            Version::V6,
            "application",
            json!({"actor": 1, "unknown": 2}),
            json!({"actor": 1, "unknown": 2}),
        ),
        (
            Version::V6,
            "my_application",
            json!({"app_name": "pump"}),
            json!({"app_name": "pump"}),
        ),
        (
            Version::V6,
            "release",
            json!({"contract": "{\"a\":1}"}),
            json!({"contract": {"a": 1}}),
        ),
        (
            Version::V6,
            "release",
            json!({"contract": null}),
            json!({"contract": null}),
        ),
        (
            Version::V6,
            "release",
            json!({"semver": "1.2.3"}),
            json!({"semver": "1.2.3"}),
        ),
        (
            Version::V6,
            "release",
            json!({"release_type": "final"}),
            json!({"is_final": true}),
        ),
        (
            Version::V6,
            "release",
            json!({"release_type": "draft", "is_final": "false"}),
            json!({"is_final": false}),
        ),
        (
            Version::V5,
            "device",
            json!({"should_be_running__release": null}),
            json!({"is_pinned_on__release": null}),
        ),
    ] {
        let written = written(version, Method::Update, name, body.clone()).expect("a body");
        assert_eq!(
            Value::Object(written.fields),
            fields,
            "{version:?} {name} {body}"
        );
        assert_eq!(written.lookups, []);
    }
}

#[test]
fn bodies_that_an_older_version_refuses_are_refused() {
    for (version, name, body, message) in [
        (
            Version::V6,
            "device",
            json!({"is_managed_by__device": 7}),
            "`is_managed_by__device` must be null, and `7` is not",
        ),
        (
            Version::V6,
            "application",
            json!({"depends_on__application": 7}),
            "`depends_on__application` must be null, and `7` is not",
        ),
        (
            Version::V6,
            "release",
            json!({"is_final": true, "release_type": "draft"}),
            "`release_type` must be what `is_final` says, and `\"draft\"` is not",
        ),
        (
            Version::V6,
            "release",
            json!({"release_type": "beta"}),
            "`release_type` must be `final` or `draft`, and `\"beta\"` is not",
        ),
        (
            Version::V6,
            "application",
            json!({"device_type": 7}),
            "`device_type` must be text, of at most 255 characters, or null, and `7` is not",
        ),
    ] {
        assert_eq!(
            written(version, Method::Create, name, body),
            Err(message.into())
        );
    }
    assert!(
        written(
            Version::V6,
            Method::Create,
            "release",
            json!({"contract": "{"})
        )
        .is_err()
    );
}

#[test]
fn names_in_place_of_links_are_left_to_be_looked_up() {
    let lookups = |version, method, name, body| {
        let written = written(version, method, name, body).expect("a body");
        (Value::Object(written.fields), written.lookups)
    };
    let of_fleet = Lookup::DeviceType {
        field: "is_for__device_type",
        name: "nuc".into(),
    };
    assert_eq!(
        lookups(
            Version::V6,
            Method::Create,
            "application",
            json!({"device_type": "nuc", "organization": 2})
        ),
        (json!({"organization": 2}), vec![of_fleet.clone()])
    );
    assert_eq!(
        lookups(
            Version::V5,
            Method::Create,
            "application",
            json!({"device_type": "nuc"})
        ),
        (json!({}), vec![Lookup::OwnOrganization, of_fleet])
    );
    assert_eq!(
        lookups(
            Version::V5,
            Method::Create,
            "application",
            json!({"organization": null})
        ),
        (json!({}), vec![Lookup::OwnOrganization])
    );
    assert_eq!(
        lookups(
            Version::V5,
            Method::Update,
            "application",
            json!({"commit": "f7ca"})
        ),
        (
            json!({}),
            vec![Lookup::Release {
                field: "should_be_running__release",
                commit: Some("f7ca".into())
            }]
        )
    );
    assert_eq!(
        lookups(
            Version::V6,
            Method::Create,
            "device",
            json!({"device_type": null})
        ),
        (json!({}), vec![])
    );
}

#[test]
fn nothing_that_is_secret_becomes_readable_in_an_older_version() {
    for &version in Version::VARIANTS {
        for resource in version.model().resources() {
            let today = Version::V7
                .model()
                .resource(resource.table)
                .expect("its table");
            let secrets: Vec<Column> = today
                .fields
                .iter()
                .filter(|it| it.secret)
                .map(|it| it.column)
                .collect();
            for field in resource.fields.iter().filter(|it| !it.secret) {
                assert!(
                    !secrets.contains(&field.column),
                    "{version:?} {}.{}",
                    resource.name,
                    field.name
                );
            }
        }
    }
}

/// Generates a body with names that resources have, and others.
fn any_body() -> impl Strategy<Value = serde_json::Map<String, Value>> {
    let names = Version::V5.model().resources().iter();
    let names: Vec<&str> = names.flat_map(|it| &it.fields).map(|it| it.name).collect();
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!({"a": [1]})),
    ];
    let name = prop_oneof![
        prop::sample::select(names).prop_map(str::to_owned),
        any::<String>(),
    ];
    prop::collection::vec((name, value), 0..6).prop_map(|all| all.into_iter().collect())
}

proptest! {
    /// For any body in any version: the result has names of version 7 or names that no version has, and version 7 is
    /// left unchanged.
    #[test]
    fn written_bodies_are_translated_into_the_names_of_the_current_version(
        body in any_body(),
        version in prop::sample::select(Version::VARIANTS.to_vec()),
        pick in any::<prop::sample::Index>(),
        creates in any::<bool>(),
    ) {
        let method = if creates { Method::Create } else { Method::Update };
        let resource = pick.get(version.model().resources());
        let today = Version::V7.model().resource(resource.table).expect("its table");
        let written = version.written(resource, method, body.clone(), &Branding::default());
        let Ok(written) = written else { return Ok(()) };
        for name in written.fields.keys() {
            let unknown = resource.find_field(name).is_none();
            prop_assert!(unknown || today.find_field(name).is_some(), "{name}");
        }
        if version == Version::V7 {
            prop_assert_eq!(written.fields, body);
        }
    }
}

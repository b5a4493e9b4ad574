//! Which written values are accepted, and how they are stored (docs/spec/cloud.md#model-conventions,
//! docs/spec/cloud.md#device-report).

use proptest::prelude::*;
use resources::{Branding, Field, MAX_JSON_DEPTH, StoredValue, Type, v7};
use serde_json::{Value, json};

pub(super) fn field(resource: &str, name: &str) -> &'static Field {
    let resource = v7().resource(resource).expect(resource);
    resource.find_field(name).expect(name)
}

/// Formats the stored value as text, so that tables read well: `1` is a number, `"1"` a text, `!` an error.
pub(super) fn stored_text(resource: &str, name: &str, given: &Value) -> String {
    match field(resource, name).take(given, &Branding::default()) {
        Ok(value) => shown(&value),
        Err(_) => "!".into(),
    }
}

fn shown(value: &StoredValue) -> String {
    match value {
        StoredValue::Null => "null".into(),
        StoredValue::Integer(number) => number.to_string(),
        StoredValue::Boolean(is) => is.to_string(),
        StoredValue::Text(text) => format!("{text:?}"),
    }
}

fn check(resource: &str, name: &str, table: &[(Value, &str)]) {
    for (given, expected) in table {
        assert_eq!(
            stored_text(resource, name, given),
            *expected,
            "{resource}.{name} = {given}"
        );
    }
}

#[test]
fn booleans_are_accepted_in_each_form_that_clients_write() {
    check(
        "application",
        "should_track_latest_release",
        &[
            (json!(true), "true"),
            (json!(false), "false"),
            (json!(1), "true"),
            (json!(0), "false"),
            (json!("true"), "true"),
            (json!("false"), "false"),
            (json!("1"), "true"),
            (json!("0"), "false"),
            (json!(2), "!"),
            (json!("True"), "!"),
            (json!(""), "!"),
            (json!(null), "!"),
            (json!([]), "!"),
        ],
    );
}

#[test]
fn links_are_numbers_digits_references_or_null_where_they_can_be() {
    let table = [
        (json!(7), "7"),
        (json!("7"), "7"),
        (json!(7.0), "7"),
        (json!({"__id": 7}), "7"),
        (json!({"__id": "7"}), "7"),
        (json!(null), "null"),
        (json!(0), "!"),
        (json!(-7), "!"),
        (json!(7.5), "!"),
        (json!("+7"), "!"),
        (json!(" 7"), "!"),
        (json!("seven"), "!"),
        (json!({"id": 7}), "!"),
        (json!([7]), "!"),
        (json!(true), "!"),
    ];
    check("device", "is_pinned_on__release", &table);
    check(
        "device",
        "is_of__device_type",
        &[(json!(7), "7"), (json!(null), "!")],
    );
}

#[test]
fn whole_numbers_are_of_64_bits_and_big_ones_may_be_text() {
    let table = [
        (json!(7), "7"),
        (json!(-7), "-7"),
        (json!("123456789012345"), "123456789012345"),
        (json!(i64::MAX), "9223372036854775807"),
        (json!(u64::MAX), "!"),
        (json!("9223372036854775808"), "!"),
        (json!(1e300), "!"),
        (json!("-"), "!"),
        (json!(""), "!"),
        (json!(null), "null"),
        (json!(false), "!"),
    ];
    check("image", "image_size", &table);
    check("device", "memory_usage", &table);
}

#[test]
fn times_are_text_in_iso_8601_or_milliseconds() {
    check(
        "device",
        "is_locked_until__date",
        &[
            (json!("1970-01-01T00:00:01.500Z"), "1500"),
            (json!("1970-01-01T02:00:00+02:00"), "0"),
            (json!("1970-01-01T00:00:00.0019Z"), "1"),
            (json!("1970-01-01T00:00:01"), "1000"),
            (json!("1970-01-02"), "86400000"),
            (json!(1_794_000_000_000_i64), "1794000000000"),
            (json!(1500.75), "1500"),
            (json!(-1), "-1"),
            (json!("9999-12-31T23:59:59.999Z"), "253402300799999"),
            (json!(253_402_300_800_000_i64), "!"),
            (json!("-000001-01-01T00:00:00Z"), "!"),
            (json!(1e300), "!"),
            (json!("tomorrow"), "!"),
            (json!(""), "!"),
            (json!(" ".repeat(1000)), "!"),
            (json!("2026-02-30T00:00:00Z"), "!"),
            (json!(true), "!"),
            (json!(null), "null"),
        ],
    );
}

#[test]
fn texts_are_held_to_their_length_in_characters() {
    let of = |text: &str, times: usize| json!(text.repeat(times));
    check(
        "device_tag",
        "value",
        &[(json!(""), "\"\""), (json!(12), "!"), (json!(null), "!")],
    );
    for (resource, name, max) in [
        ("application_tag", "value", 1000),
        ("device_tag", "value", 10_000),
        ("device_environment_variable", "value", 100_000),
        ("image_label", "value", 300),
        ("api_key", "name", 50),
        ("api_key", "description", 150),
        ("device", "note", 1_000_000),
        ("release", "known_issue_list", 1000),
    ] {
        assert_ne!(
            stored_text(resource, name, &of("é", max)),
            "!",
            "{resource}.{name}"
        );
        assert_eq!(
            stored_text(resource, name, &of("a", max + 1)),
            "!",
            "{resource}.{name}"
        );
    }
    check(
        "user__has__public_key",
        "title",
        &[(json!(""), "!"), (json!("a\0b"), "!")],
    );
}

#[test]
fn words_must_be_spelled_exactly() {
    check(
        "image_install",
        "status",
        &[
            (json!("Downloading"), "\"Downloading\""),
            (json!("Handing over"), "\"Handing over\""),
            (json!("deleted"), "\"deleted\""),
            (json!("downloading"), "!"),
            (json!(null), "!"),
        ],
    );
    check(
        "device",
        "os_variant",
        &[(json!(null), "null"), (json!(""), "!")],
    );
}

#[test]
fn objects_are_kept_in_their_shortest_form_and_in_the_order_of_their_keys() {
    let nested = |levels: usize| (1..levels).fold(json!([]), |inner, _| json!([inner]));
    check(
        "release",
        "contract",
        &[
            (
                json!({"b": 1, "a": [true, null]}),
                r#""{\"b\":1,\"a\":[true,null]}""#,
            ),
            (json!([]), "\"[]\""),
            (json!(null), "null"),
            (json!("{}"), "!"),
            (json!(1), "!"),
            (json!({"a": "x".repeat(1_000_000)}), "!"),
            (nested(MAX_JSON_DEPTH + 1), "!"),
        ],
    );
    assert_ne!(
        stored_text("release", "contract", &nested(MAX_JSON_DEPTH)),
        "!"
    );
}

#[test]
fn errors_state_the_field_the_value_and_the_accepted_values() {
    let error = |resource, name, given: Value| {
        let error = field(resource, name).take(&given, &Branding::default());
        error.expect_err("refused").to_string()
    };
    assert_eq!(
        error("device_tag", "tag_key", json!("io.platform.x")),
        "`tag_key` must be a key without white space that does not begin with `io.platform.` or `io.legacy.`, of 1 to 100 characters, and `\"io.platform.x\"` is not"
    );
    assert_eq!(
        error("device", "is_pinned_on__release", json!("one")),
        "`is_pinned_on__release` must be the number of a row of `release`, or null, and `\"one\"` is not"
    );
    assert_eq!(
        error("application", "is_public", json!(null)),
        "`is_public` must be true or false, and `null` is not"
    );
    assert_eq!(
        error("release", "phase", json!({})),
        "`phase` must be `next`, `current`, `sunset` or `end-of-life`, or null, and an object is not"
    );
    assert!(error("device", "note", json!("a".repeat(2_000_000))).len() < 200);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Fractions that read as they were written.
        any::<i32>().prop_map(|it| json!(f64::from(it) / 4.0)),
        "[0-9a-zA-Z:. +TZ-]{0,30}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{0,4}", inner, 0..4)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    /// For any value written to any field: the stored value is within the limits of its type, writing it again changes
    /// nothing, and an error fits on a line.
    #[test]
    fn stored_values_are_within_their_limits_and_stable(given in any_json(), pick in any::<prop::sample::Index>()) {
        let fields: Vec<&Field> = v7().resources().iter().flat_map(|it| &it.fields).collect();
        let field = *pick.get(&fields);
        let branding = Branding::default();
        let again = match field.take(&given, &branding) {
            Err(error) => {
                prop_assert!(error.given.chars().count() < 700, "{error}");
                return Ok(());
            }
            Ok(StoredValue::Null) => {
                prop_assert!(field.nullable);
                return Ok(());
            }
            Ok(StoredValue::Integer(number)) => json!(number),
            Ok(StoredValue::Boolean(is)) => json!(is),
            Ok(StoredValue::Text(text)) => match field.kind {
                Type::Text { min, max } => {
                    prop_assert!((min..=max).contains(&text.chars().count()));
                    json!(text)
                }
                Type::Json { max } => {
                    prop_assert!(text.len() <= max);
                    serde_json::from_str(&text).expect("JSON")
                }
                _ => json!(text),
            },
        };
        let once = field.take(&given, &branding);
        prop_assert_eq!(field.take(&again, &branding), once);
    }
}

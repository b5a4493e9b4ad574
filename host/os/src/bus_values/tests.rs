use super::*;

fn round_trip(signature: &str, values: &Value) -> Result<Value, String> {
    let structure = arguments(signature, &values.to_string())?;
    let structure = structure.ok_or("there are no arguments")?;
    let values = structure.fields().iter().map(json_of);
    values.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

#[test]
fn values_of_every_type_come_back_as_they_were_given() {
    for (signature, values) in [
        ("s", json!(["kitchen"])),
        (
            "ybnqiuxtd",
            json!([
                255,
                true,
                -5,
                5,
                -6,
                6,
                -7,
                18_446_744_073_709_551_615_u64,
                1.5
            ]),
        ),
        ("og", json!(["/org/acme", "a{sv}"])),
        ("as", json!([["a", "b"]])),
        ("ay", json!([[1, 2, 3]])),
        ("as", json!([[]])),
        ("a{ss}", json!([{ "a": "b" }])),
        ("a{us}", json!([[[7, "b"]]])),
        ("(si)s", json!([["a", 1], "b"])),
        ("(ss)", json!([["a", "b"]])),
        ("v", json!([{ "type": "as", "data": ["x"] }])),
        ("a{sv}", json!([{ "on": { "type": "b", "data": true } }])),
        (
            "aa{sv}",
            json!([[{ "x": { "type": "(uu)", "data": [1, 2] } }]]),
        ),
    ] {
        assert_eq!(round_trip(signature, &values), Ok(values), "{signature}");
    }
    assert_eq!(arguments("", "[]"), Ok(None));
}

#[test]
fn arguments_that_do_not_match_their_type_are_named() {
    for (signature, given, expected) in [
        ("s", "[1]", "argument 1: `1` is not a text"),
        ("ss", "[\"a\"]", "there are 1 arguments, and `ss` has 2"),
        (
            "",
            "[1]",
            "there are 1 arguments, and the signature is empty",
        ),
        (
            "y",
            "[256]",
            "argument 1: `256` is not a whole number of that size",
        ),
        (
            "u",
            "[-1]",
            "argument 1: `-1` is not a whole number of that size",
        ),
        (
            "i",
            "[1.5]",
            "argument 1: `1.5` is not a whole number of that size",
        ),
        ("b", "[0]", "argument 1: `0` is neither true nor false"),
        ("o", "[\"x\"]", "argument 1: `\"x\"` is not a path"),
        ("s", "[\"a\\u0000b\"]", "argument 1: a text has a zero byte"),
        (
            "v",
            "[1]",
            "argument 1: `1` is not a variant: {\"type\": SIGNATURE, \"data\": VALUE}",
        ),
        (
            "v",
            "[{\"type\":\"\",\"data\":1}]",
            "argument 1: `` is not the type of a variant",
        ),
        (
            "v",
            "[{\"type\":\"u\"}]",
            "argument 1: a variant has exactly a `type` and a `data`",
        ),
        ("a{ss}", "[1]", "argument 1: `1` is not a dictionary"),
        (
            "(ss)",
            "[[\"a\"]]",
            "argument 1: `[\"a\"]` is not an array of 2 members",
        ),
        (
            "h",
            "[1]",
            "argument 1: a value of the type `h` cannot be sent",
        ),
        ("z", "[1]", "`z` is not a signature of D-Bus"),
        ("s)(s", "[1]", "`s)(s` is not a signature of D-Bus"),
        ("s", "{}", "the arguments are not a JSON array"),
    ] {
        assert_eq!(
            arguments(signature, given).map(drop),
            Err(expected.to_owned()),
            "{signature} {given}"
        );
    }
    let error = arguments("s", "nonsense").unwrap_err();
    assert!(error.starts_with("the arguments are not JSON"), "{error}");
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    assert!(arguments("s", &deep).is_err());
}

use futures::FutureExt;
use serde::Deserialize;

use super::*;
use crate::lenient;

#[derive(Debug, PartialEq, Deserialize)]
struct Order {
    name: String,
    items: Vec<Item>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Item {
    count: u32,
}

/// The body of a v1 action.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct Action {
    #[serde(deserialize_with = "lenient::int")]
    app_id: Option<i64>,
    #[serde(deserialize_with = "lenient::truthy")]
    force: bool,
}

fn take<T: FromRequest + 'static>(
    content_type: Option<&str>,
    body: &str,
) -> Result<T, (u16, String)> {
    let mut request = Request {
        body: body.into(),
        query: "count=2".to_owned(),
        params: vec![("id".to_owned(), "9".to_owned())],
        ..Request::default()
    };
    if let Some(content_type) = content_type {
        let value = content_type.as_bytes().to_vec();
        request.headers.0.push(("content-type".to_owned(), value));
    }
    T::from_request(&mut request)
        .now_or_never()
        .unwrap()
        .map_err(|error| (error.status(), error.message().to_owned()))
}

#[test]
fn path_and_query_come_from_their_places() {
    assert_eq!(take::<Path<u8>>(None, ""), Ok(Path(9)));
    assert_eq!(take::<Query<Item>>(None, ""), Ok(Query(Item { count: 2 })));
}

#[test]
fn a_json_body_is_accepted_with_and_without_its_type() {
    for kind in [
        None,
        Some("application/json"),
        Some("Application/JSON; charset=utf-8"),
        Some("application/vnd.x+json"),
    ] {
        let order = take::<Json<Order>>(kind, r#"{"name":"x","items":[{"count":1}]}"#);
        let items = vec![Item { count: 1 }];
        assert_eq!(
            order,
            Ok(Json(Order {
                name: "x".to_owned(),
                items
            }))
        );
    }
}

#[test]
fn errors_in_a_json_body_are_reported_with_their_place() {
    let json = Some("application/json");
    let table = [
        (json, "", 400, "the body is missing"),
        (Some("text/plain"), "{}", 415, "the body is `text/plain`"),
        (json, "{\"name\":", 400, "the body is not JSON: EOF"),
        (json, "{}", 400, "missing field `name`"),
        (
            json,
            r#"{"name":"x","items":[{"count":1},{"count":"2"}]}"#,
            400,
            "field `items[1].count` of the body: invalid type: string \"2\", expected u32",
        ),
        (json, r#"{"name":1}"#, 400, "field `name` of the body"),
        (
            json,
            r#"{"name":"x","items":[]} trailing"#,
            400,
            "the body is not JSON: trailing characters at line 1 column 25",
        ),
    ];
    for (kind, body, status, part) in table {
        let (found, message) = take::<Json<Order>>(kind, body).unwrap_err();
        assert_eq!(found, status, "{body}");
        assert!(message.contains(part), "{body}: {message}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(take::<Json<Order>>(json, &deep).unwrap_err().0, 400);
}

#[test]
fn a_long_value_that_does_not_fit_is_not_repeated_whole() {
    let long = "é".repeat(20_000);
    for body in [
        format!("\"{long}\""),
        format!("{{\"name\": \"a\", \"items\": \"{long}\"}}"),
        format!("{{\"name\": \"a\", \"items\": [{{\"count\": \"{long}\"}}]}}"),
    ] {
        let (status, message) = take::<Json<Order>>(None, &body).unwrap_err();
        assert_eq!(status, 400);
        assert!(
            message.chars().count() < 500,
            "{} characters",
            message.len()
        );
        assert!(
            message.contains("line 1") && message.contains("ééé…"),
            "{message}"
        );
    }
}

#[test]
fn fields_are_read_leniently_as_the_device_api_does() {
    let json = Some("application/json");
    let form = Some("application/x-www-form-urlencoded");
    let action = |app_id, force| Ok(Fields(Action { app_id, force }));
    let table = [
        (json, r#"{"appId":5,"force":true}"#, action(Some(5), true)),
        (
            json,
            r#"{"appId":"5.0","force":"ON"}"#,
            action(Some(5), true),
        ),
        (
            json,
            r#"{"appId":"5a","force":{"a":[1]}}"#,
            action(None, false),
        ),
        (json, r#"{"appId":1,"appId":2}"#, action(Some(2), false)),
        (json, "", action(None, false)),
        (json, "[1]", action(None, false)),
        (form, "appId=5&force=1", action(Some(5), true)),
        (form, "", action(None, false)),
        (Some("text/plain"), "appId=5", action(None, false)),
        (None, r#"{"appId":5}"#, action(None, false)),
    ];
    for (kind, body, expected) in table {
        assert_eq!(take::<Fields<Action>>(kind, body), expected, "{body}");
    }
    for body in ["null", "5", "\"x\"", "{", "[1", "{} {}"] {
        let (status, _) = take::<Fields<Action>>(json, body).unwrap_err();
        assert_eq!(status, 400, "{body}");
    }
}

#[test]
fn a_handler_may_see_what_was_wrong_with_an_argument() {
    let seen = take::<Result<Path<bool>, Error>>(None, "").unwrap();
    assert_eq!(seen.unwrap_err().status(), 400);
}

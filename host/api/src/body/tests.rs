use serde_json::json;

use super::*;

async fn object(request: Request) -> Result<Map<String, Value>, Failure> {
    let Fields(fields) = Fields::from_request(request, &()).await?;
    Ok(fields)
}

async fn parsed(content_type: &str, body: impl Into<Body>) -> Result<Value, (u16, String)> {
    let request = http::Request::builder()
        .header(CONTENT_TYPE, content_type)
        .body(body.into())
        .unwrap();
    match object(request).await {
        Ok(fields) => Ok(Value::Object(fields)),
        Err(Failure::Refused(status, message)) => Err((status.as_u16(), message)),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_and_not_a_form_reads_as_an_empty_object() {
    for (content_type, body) in [
        ("text/plain", "{\"force\":true}"),
        ("", "{"),
        ("application/json", ""),
        ("application/octet-stream", "null"),
        ("application/json", "[1]"),
    ] {
        assert_eq!(
            parsed(content_type, body).await,
            Ok(json!({})),
            "{content_type} {body}"
        );
    }
}

#[tokio::test]
async fn json_and_forms_are_read() {
    for (content_type, body, read) in [
        (
            "application/json",
            r#"{"force":true}"#,
            json!({"force": true}),
        ),
        ("Application/JSON; charset=utf-8", "{}", json!({})),
        ("application/vnd.x+json", r#"{"a":1}"#, json!({"a": 1})),
        (
            "application/x-www-form-urlencoded",
            "force=1&x=a%20b&x=c&x=d",
            json!({"force": "1", "x": ["a b", "c", "d"]}),
        ),
    ] {
        assert_eq!(parsed(content_type, body).await, Ok(read), "{body}");
    }
}

#[tokio::test]
async fn malformed_json_is_refused_with_the_place() {
    let deep = "[".repeat(SMALL_VALUES - 1);
    for body in [
        "{",
        "null",
        "1",
        "\"x\"",
        "true",
        " ",
        "{\"a\":}",
        "{}x",
        r#"{"a":"\ud800"}"#,
        &deep,
    ] {
        let (status, message) = parsed("application/json", body.to_owned())
            .await
            .unwrap_err();
        assert_eq!(status, 400, "{body:.20}");
        assert!(message.contains("at line 1 column "), "{message}");
    }
    let not_utf8 = parsed("application/json", vec![b'"', 0xff, b'"']).await;
    assert_eq!(not_utf8.unwrap_err().0, 400);
}

fn json_request(body: impl Into<Body>) -> Request {
    http::Request::builder()
        .header(CONTENT_TYPE, "application/json")
        .body(body.into())
        .unwrap()
}

fn status_of<T>(outcome: Result<T, Failure>) -> u16 {
    match outcome {
        Ok(_) => 200,
        Err(Failure::Refused(status, _)) => status.as_u16(),
        Err(other) => panic!("{other:?}"),
    }
}

/// Returns a body that does not announce its length.
fn streamed(length: usize) -> Body {
    let pieces = (0..length.div_ceil(1 << 10))
        .map(|_| Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 1 << 10])));
    Body::from_stream(futures::stream::iter(pieces))
}

#[tokio::test]
async fn bodies_of_actions_are_small_and_those_of_documents_ten_mebibytes() {
    let large = LargeBodies::new(None);
    let spaces = |length: usize| {
        let mut body = vec![b' '; length - 2];
        body.extend_from_slice(b"{}");
        body
    };
    for (length, action, whole) in [
        (SMALL_BODY, 200, 200),
        (SMALL_BODY + 1, 413, 200),
        (LARGE_BODY, 413, 200),
        (LARGE_BODY + 1, 413, 413),
    ] {
        let answered = object(json_request(spaces(length))).await;
        assert_eq!(status_of(answered), action, "{length}");
        let answered = Document::from_request(json_request(spaces(length)), &large).await;
        assert_eq!(status_of(answered), whole, "{length}");
    }
    // The same if the length is not announced.
    let answered = object(json_request(streamed(SMALL_BODY + 1))).await;
    assert_eq!(status_of(answered), 413);
    let answered = Document::from_request(json_request(streamed(LARGE_BODY + 1)), &large).await;
    assert_eq!(status_of(answered), 413);
}

#[test]
fn values_are_counted_outside_of_strings() {
    for (text, values) in [
        ("", 1),
        ("1", 1),
        ("[]", 2),
        ("[1,2]", 3),
        (r#"{"a,b":"[{,"}"#, 2),
        (r#"{"a\"":",","b\\":[]}"#, 4),
        (r#""\"#, 1),
    ] {
        assert_eq!(json_values(text.as_bytes()), values, "{text}");
    }
}

#[tokio::test]
async fn a_body_of_many_values_is_refused_before_it_is_parsed() {
    let large = LargeBodies::new(None);
    let bomb = |values: usize| format!("[{}0]", "0,".repeat(values - 2));
    let many = "[".to_owned() + &"{\"\":0},".repeat(1_400_000);
    for (body, action, whole) in [
        (bomb(SMALL_VALUES), 200, 200),
        (bomb(SMALL_VALUES + 1), 413, 200),
        (bomb(LARGE_VALUES), 413, 200),
        (bomb(LARGE_VALUES + 1), 413, 413),
        // Malformed as well, which only parsing would reveal.
        (many, 413, 413),
    ] {
        let answered = object(json_request(body.clone())).await;
        assert_eq!(status_of(answered), action, "{body:.20}");
        let answered = Document::from_request(json_request(body.clone()), &large).await;
        assert_eq!(status_of(answered), whole, "{body:.20}");
    }
    let fields = "a&".repeat(SMALL_VALUES);
    let answered = parsed("application/x-www-form-urlencoded", fields).await;
    assert_eq!(answered.unwrap_err().0, 413);
}

#[tokio::test]
async fn large_bodies_are_in_memory_one_at_a_time_and_small_ones_beside_them() {
    let large = LargeBodies::new(None);
    let spaces = || {
        let mut body = vec![b' '; SMALL_BODY];
        body.extend_from_slice(b"{}");
        json_request(body)
    };
    let first = Document::from_request(spaces(), &large).await.unwrap();
    assert!(first.turn.is_some());
    let small = Document::from_request(json_request("{}"), &large)
        .await
        .unwrap();
    assert!(small.turn.is_none());
    // A body that does not announce its length must also wait before more of it is read.
    for request in [spaces(), json_request(streamed(SMALL_BODY + 1))] {
        assert_eq!(
            status_of(Document::from_request(request, &large).await),
            503
        );
    }
    let mut second = Box::pin(Document::from_request(spaces(), &large));
    assert!(futures::poll!(second.as_mut()).is_pending());
    drop(first);
    assert!(second.await.unwrap().turn.is_some());
}

#[tokio::test]
async fn memory_is_given_back_after_a_large_body_and_not_after_each_small_one() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static RETURNED: AtomicUsize = AtomicUsize::new(0);
    let large = LargeBodies::new(Some(|| {
        RETURNED.fetch_add(1, Ordering::Relaxed);
    }));
    drop(
        Document::from_request(json_request("{}"), &large)
            .await
            .unwrap(),
    );
    assert_eq!(RETURNED.load(Ordering::Relaxed), 0);
    let bomb = format!("[{}", "0,".repeat(LARGE_VALUES));
    assert_eq!(
        status_of(Document::from_request(json_request(bomb), &large).await),
        413
    );
    assert_eq!(RETURNED.load(Ordering::Relaxed), 1);
}

//! Reads request bodies: bounded, in time and size, and as leniently as clients of this API are used to
//! (device behaviour 1.0). A body of another type, or none, reads as `{}`; one that claims to be JSON
//! must be JSON.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::BodyExt;
use serde_json::{Map, Value};

use crate::answer::Failure;
use crate::device::Request;

/// The largest body that a core endpoint reads, in bytes (device behaviour 1.0, "Body limit").
pub(crate) const MAX_BODY: usize = 10 << 20;
/// How long a client may take to send a body.
const SEND_WITHIN: Duration = Duration::from_secs(60);

/// The body as an object. An array, which the API takes at the top level as well, has no fields.
///
/// # Errors
/// 400 where it is malformed, 413 where it is too long, 408 where it does not arrive, 415 where it is
/// compressed.
pub(crate) async fn object(request: Request) -> Result<Map<String, Value>, Failure> {
    let form = match content_type(&request).as_deref() {
        Some(essence) if is_json(essence) => false,
        Some("application/x-www-form-urlencoded") => true,
        _ => return Ok(Map::new()),
    };
    refuse_encoding(&request)?;
    let bytes = read(request).await?;
    if bytes.is_empty() {
        Ok(Map::new())
    } else if form {
        Ok(parse_form(&bytes))
    } else {
        parse_json(&bytes)
    }
}

/// As [`object`], for what must not be taken for `{}`: anything but JSON is refused.
///
/// # Errors
/// As [`object`], and 415 where the body is of another type.
pub(crate) async fn json_object(request: Request) -> Result<Map<String, Value>, Failure> {
    match content_type(&request).as_deref() {
        Some(essence) if is_json(essence) => object(request).await,
        _ => Err(Failure::Refused(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body has to be JSON and say so: send it with `Content-Type: application/json`"
                .into(),
        )),
    }
}

fn is_json(essence: &str) -> bool {
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// The media type in lower case, without its parameters.
fn content_type(request: &Request) -> Option<String> {
    let value = request.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let (essence, _) = value.split_once(';').unwrap_or((value, ""));
    Some(essence.trim().to_ascii_lowercase())
}

fn refuse_encoding(request: &Request) -> Result<(), Failure> {
    match request.headers().get(CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            Err(Failure::Refused(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "compressed bodies are not supported: send it without `Content-Encoding`".into(),
            ))
        }
        _ => Ok(()),
    }
}

/// The whole body. One that says that it is too long is refused before it is read.
async fn read(request: Request) -> Result<Bytes, Failure> {
    let announced = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > MAX_BODY as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(SEND_WITHIN, collect(request.into_body())).await {
        Ok(collected) => collected,
        Err(_) => Err(Failure::Refused(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "the request body did not arrive within {} s",
                SEND_WITHIN.as_secs()
            ),
        )),
    }
}

async fn collect(mut body: Body) -> Result<Bytes, Failure> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| Failure::invalid("the request body ended before it was complete"))?;
        if let Ok(data) = frame.into_data() {
            if whole.len() + data.len() > MAX_BODY {
                return Err(too_large());
            }
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole.freeze())
}

fn too_large() -> Failure {
    Failure::Refused(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request body is larger than {} MiB", MAX_BODY >> 20),
    )
}

fn parse_json(bytes: &[u8]) -> Result<Map<String, Value>, Failure> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Array(_)) => Ok(Map::new()),
        Ok(_) => Err(Failure::invalid(
            "malformed JSON in the request body: the top level must be an object or an array, at line 1 column 1",
        )),
        Err(error) => Err(Failure::invalid(format!(
            "malformed JSON in the request body: {error}"
        ))),
    }
}

/// A form's fields as strings; a repeated field is an array of them.
fn parse_form(bytes: &[u8]) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(bytes) {
        let value = Value::String(value.into_owned());
        match fields.get_mut(name.as_ref()) {
            None => {
                fields.insert(name.into_owned(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let deep = "[".repeat(100_000);
        for body in [
            "{", "null", "1", "\"x\"", "true", " ", "{\"a\":}", "{}x", &deep,
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

    #[tokio::test]
    async fn a_body_over_ten_mebibytes_is_refused_whether_it_says_so_or_not() {
        let announced = parsed("application/json", vec![b' '; MAX_BODY + 1]).await;
        assert_eq!(announced.unwrap_err().0, 413);
        let pieces = (0..11).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 1 << 20])));
        let streamed = Body::from_stream(futures::stream::iter(pieces));
        assert_eq!(
            parsed("application/json", streamed).await.unwrap_err().0,
            413
        );
        let mut largest = vec![b' '; MAX_BODY - 2];
        largest.extend_from_slice(b"{}");
        assert_eq!(parsed("application/json", largest).await, Ok(json!({})));
    }
}

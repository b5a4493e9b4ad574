//! The part of a device's answer that the caller receives.
//!
//! Devices are not trusted: only headers that describe the body are passed on, and pages of a device get no rights in a
//! browser.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::answer::json as json_answer;

/// Maximum bytes of one device's answer in a list.
const IN_LIST: usize = 256 << 10;

/// Headers that are passed on.
const PASSED_ON: [HeaderName; 5] = [
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CACHE_CONTROL,
    header::ALLOW,
    header::RETRY_AFTER,
];

/// Returns the replacement for an answer in a format that is not passed on.
fn bad_answer() -> Value {
    json!({ "error": "Bad API response from supervisor" })
}

/// The format of a body.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// No body, or no stated format.
    Nothing,
    Json,
    /// Text, or the host's journal in its own format.
    Other,
    /// A format that supervisors never send.
    Bad,
}

fn kind(headers: &HeaderMap) -> Kind {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        return Kind::Nothing;
    };
    let kind = kind.to_str().unwrap_or_default();
    let essence = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => Kind::Json,
        "application/x-ndjson" | "application/octet-stream" => Kind::Other,
        text if text.starts_with("text/") => Kind::Other,
        _ => Kind::Bad,
    }
}

/// Passes on the answer of one device, as a stream.
pub(super) fn passed_on(answer: http::Response<Incoming>, method: &Method) -> Response {
    let (head, body) = answer.into_parts();
    let kind = kind(&head.headers);
    if kind == Kind::Bad {
        let text = bad_answer().to_string();
        return json_answer(StatusCode::INTERNAL_SERVER_ERROR, text);
    }
    let bare = kind == Kind::Nothing || *method == Method::HEAD;
    let mut response = if bare {
        head.status.into_response()
    } else {
        (head.status, Body::new(body)).into_response()
    };
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    for name in PASSED_ON {
        if let Some(value) = head.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    );
    response
}

/// The answer of one device, read to its end.
#[derive(Debug)]
pub struct CollectedAnswer {
    pub status: StatusCode,
    /// At most 256 KiB.
    pub body: Bytes,
    kind: Kind,
}

/// The answer of one of several devices.
#[derive(Debug)]
pub struct DeviceAnswer {
    /// The device's number.
    pub device: i64,
    /// Its answer, or why there is none.
    pub answer: Result<CollectedAnswer, String>,
}

/// Reads one device's answer to its end.
///
/// # Errors
/// The reason why the answer cannot be read.
pub(super) async fn collect(answer: http::Response<Incoming>) -> Result<CollectedAnswer, String> {
    let (head, body) = answer.into_parts();
    let kind = kind(&head.headers);
    let body = match kind {
        Kind::Bad | Kind::Nothing => Bytes::new(),
        Kind::Json | Kind::Other => {
            let body = Limited::new(body, IN_LIST).collect().await;
            body.map_err(|error| format!("cannot read the device's answer: {error}"))?
                .to_bytes()
        }
    };
    let status = match kind {
        Kind::Bad => StatusCode::INTERNAL_SERVER_ERROR,
        _ => head.status,
    };
    Ok(CollectedAnswer { status, body, kind })
}

/// Returns one device's answer, or why there is none, as an entry of a list.
pub(super) fn entry(answer: Result<CollectedAnswer, String>) -> Value {
    let bad = || json!({ "statusCode": 500, "body": bad_answer() });
    let CollectedAnswer { status, body, kind } = match answer {
        Ok(answer) => answer,
        Err(why) => return failed(&why),
    };
    let text = String::from_utf8_lossy(&body);
    let body = match kind {
        Kind::Bad => return bad(),
        Kind::Json => match serde_json::from_str(&text) {
            Ok(value) => value,
            Err(_) => return bad(),
        },
        Kind::Nothing | Kind::Other => Value::String(text.into_owned()),
    };
    json!({ "statusCode": status.as_u16(), "body": body })
}

/// Returns the entry of a device that did not answer.
fn failed(why: &str) -> Value {
    json!({ "statusCode": StatusCode::BAD_GATEWAY.as_u16(), "body": why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_are_passed_on_and_nothing_else() {
        for (value, found) in [
            (None, Kind::Nothing),
            (Some("application/json; charset=utf-8"), Kind::Json),
            (Some("Application/JSON"), Kind::Json),
            (Some("application/x-ndjson"), Kind::Other),
            (Some("text/event-stream"), Kind::Other),
            (Some("text/plain; charset=utf-8"), Kind::Other),
            (Some("application/octet-stream"), Kind::Other),
            (Some("image/png"), Kind::Bad),
            (Some("textual"), Kind::Bad),
            (Some(""), Kind::Bad),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(value));
            }
            assert_eq!(kind(&headers), found, "{value:?}");
        }
    }
}

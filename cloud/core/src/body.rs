//! Bodies of requests: limited in size, and JSON.

use std::error::Error;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::answer::Refusal;

/// Maximum number of values in a JSON body: if every byte were a value, a body of some megabytes would need a hundred
/// times as much memory.
const MAX_VALUES: usize = 100_000;

/// Why a body ends early.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("almost nothing of it arrived for {} seconds", .0.as_secs())]
    Slow(Duration),
    #[error(transparent)]
    Connection(#[from] hyper::Error),
}

/// Whether reading a body failed because it arrived too slowly.
fn came_too_slowly(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(BodyError::Slow(_)) = error.downcast_ref() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Reads a whole body.
///
/// # Errors
/// If it is longer than `most` bytes, or is cut off.
pub async fn bytes(body: Body, most: usize) -> Result<Bytes, Refusal> {
    match Limited::new(body, most).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge(most)),
        Err(error) if came_too_slowly(&*error) => Err(Refusal::TooSlow),
        Err(error) => Err(Refusal::Wrong(format!("the body cannot be read: {error}"))),
    }
}

/// Reads a body that must be a JSON object.
///
/// # Errors
/// As for [`bytes`]; if it is something else.
pub async fn object(
    headers: &HeaderMap,
    body: Body,
    most: usize,
) -> Result<Map<String, Value>, Refusal> {
    match typed::<Value>(headers, body, most).await? {
        Value::Object(object) => Ok(object),
        _ => Err(Refusal::Wrong("the body must be a JSON object".to_owned())),
    }
}

/// Reads a body that is JSON of a certain form, whatever its content type, or empty.
///
/// # Errors
/// As for [`bytes`]; if it is something else.
pub async fn optional<T: DeserializeOwned + Default>(
    body: Body,
    most: usize,
) -> Result<T, Refusal> {
    let bytes = bytes(body, most).await?;
    if bytes.is_empty() {
        Ok(T::default())
    } else {
        parsed(&bytes)
    }
}

/// Reads a body that must be JSON of a certain form.
///
/// # Errors
/// As for [`bytes`]; if it is something else.
pub async fn typed<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    most: usize,
) -> Result<T, Refusal> {
    if let Some(kind) = headers.get(header::CONTENT_TYPE) {
        let kind = kind.to_str().unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(Refusal::ContentType(
                "JSON (Content-Type: application/json)",
            ));
        }
        let is_utf8 = |charset: &str| charset.trim_matches('"').eq_ignore_ascii_case("utf-8");
        let parameters = kind.split(';').skip(1);
        for (name, value) in parameters.filter_map(|it| it.trim().split_once('=')) {
            if name.eq_ignore_ascii_case("charset") && !is_utf8(value) {
                return Err(Refusal::ContentType("JSON in UTF-8"));
            }
        }
    }
    let encoding = headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Refusal::ContentType(
            "sent as it is, without a Content-Encoding",
        ));
    }
    let bytes = bytes(body, most).await?;
    if bytes.is_empty() {
        return Err(Refusal::Wrong(
            "the body is empty; it must be JSON".to_owned(),
        ));
    }
    if values(&bytes) > MAX_VALUES {
        return Err(Refusal::Wrong(format!(
            "the body has more than {MAX_VALUES} values; send them in parts"
        )));
    }
    parsed(&bytes)
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(bytes)
        .map_err(|error| Refusal::Wrong(format!("the body is invalid: {error}")))
}

/// Counts the values in JSON, or a few more: each follows a bracket or a comma. Invalid JSON is detected later, by the
/// parser.
fn values(json: &[u8]) -> usize {
    let mut values = 1;
    let (mut quoted, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' | b',' if !quoted => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_body_are_counted_before_it_is_read() {
        for (json, most) in [
            (r#"{"a":1}"#, 2),
            (r#"{"a":[1,2,3],"b":{"c":null}}"#, 7),
            (r#"{"a":"[[[,,,{\\\"[[["}"#, 2),
            ("[[],[],[]]", 7),
            ("1", 1),
        ] {
            assert_eq!(values(json.as_bytes()), most, "{json}");
        }
    }
}

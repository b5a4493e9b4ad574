//! A session token in the body, as sent by old clients (docs/spec/cloud.md#credentials-body-token).

use axum::body::Body;
use axum::extract::Request;
use cloud_core::answer::Refusal;
use cloud_core::body;
use cloud_core::credential::carried;
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;

/// Maximum bytes of a body that is searched. Old clients send less, and callers without a credential must not occupy
/// more memory.
const MOST: usize = 64 << 10;

#[derive(Deserialize)]
struct BodyToken {
    #[serde(rename = "_token")]
    token: String,
}

/// Takes the token from the body's field `_token` if a request carries no other credential.
///
/// # Errors
/// If the body cannot be read.
pub(crate) async fn take(request: Request) -> Result<Request, Refusal> {
    if !may_carry(&request) {
        return Ok(request);
    }
    let (mut parts, body) = request.into_parts();
    let bytes = body::bytes(body, MOST).await?;
    let header = serde_json::from_slice(&bytes)
        .ok()
        .and_then(|BodyToken { token }| HeaderValue::try_from(format!("Bearer {token}")).ok());
    if let Some(header) = header {
        parts.headers.insert(header::AUTHORIZATION, header);
    }
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

fn may_carry(request: &Request) -> bool {
    let headers = request.headers();
    matches!(
        *request.method(),
        Method::POST | Method::PUT | Method::PATCH | Method::DELETE
    ) && is_short_json(headers)
        && carried(headers, request.uri().query()).is_none()
}

fn is_short_json(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let length = text(header::CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
    text(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json"))
        && length.is_some_and(|length| length <= MOST)
}

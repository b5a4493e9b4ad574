//! Weak ETags of complete answers.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use cloud_core::answer::json;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest as _, Sha256};

/// Returns the ETag of a document.
pub(crate) fn etag(document: &[u8]) -> HeaderValue {
    let hash = Sha256::digest(document);
    let tag = format!("W/\"{}\"", hex::encode(hash.get(..16).unwrap_or(&hash)));
    // Hexadecimal digits are valid in a header.
    HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("W/\"\""))
}

/// Returns JSON with its ETag; 304 if the client has it already.
pub(crate) fn tagged(document: impl Into<Bytes>, headers: &HeaderMap) -> Response {
    let document = document.into();
    let tag = etag(&document);
    with_etag(document, &tag, headers)
}

/// Returns the same for an existing ETag.
pub(crate) fn with_etag(
    document: impl Into<Body>,
    tag: &HeaderValue,
    headers: &HeaderMap,
) -> Response {
    let is_current = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim() == "*" || value.trim().as_bytes() == tag.as_bytes());
    let mut response = if is_current {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        json(StatusCode::OK, document)
    };
    response.headers_mut().insert(header::ETAG, tag.clone());
    response
}

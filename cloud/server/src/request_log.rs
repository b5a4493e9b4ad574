//! A number for each request, and a line in the log when it is answered.

use std::net::SocketAddr;
use std::time::Instant;

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use data::audit;
use http::{HeaderName, HeaderValue};
use tracing::Instrument as _;

use crate::cloud::Shared;
use crate::session::random_text;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Notes a request. The number that a proxy in front gave it is kept where it is one.
pub(crate) async fn note(
    State(_cloud): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = request
        .headers()
        .get(&REQUEST_ID)
        .filter(|id| id.len() <= 64 && id.as_bytes().iter().all(u8::is_ascii_graphic))
        .cloned()
        .or_else(|| HeaderValue::from_str(&random_text(8).ok()?).ok())
        .unwrap_or(HeaderValue::from_static("none"));
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let from = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map(|ConnectInfo(from)| *from);
    let address = from.map(|from| from.ip().to_canonical().to_string());
    let from = from.map(|from| from.to_string()).unwrap_or_default();
    let method = request.method().clone();
    // The query may have a key in it.
    let path = without_token(request.uri().path());
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let begun = Instant::now();
    let request = audit::from_address(address.unwrap_or_default(), next.run(request));
    let mut response = request.instrument(span.clone()).await;
    let status = response.status().as_u16();
    let milliseconds = begun.elapsed().as_millis();
    // Thousands of devices that ask and find nothing new are not worth a line each.
    let routine = method.is_safe() && status < 400;
    span.in_scope(|| match routine {
        true => tracing::debug!(%method, path, from, status, milliseconds, "answered"),
        false => tracing::info!(%method, path, from, status, milliseconds, "answered"),
    });
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// A path as the log may have it: whoever has the token of an invitation may accept it.
fn without_token(path: &str) -> String {
    const INVITATION: &str = "/invitation/";
    match path.find(INVITATION) {
        Some(at) => format!(
            "{}{INVITATION}{{token}}",
            path.get(..at).unwrap_or_default()
        ),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_tokens_of_invitations_are_not_in_the_log() {
        for (path, expected) in [
            (
                "/user/v1/invitation/0123abcd",
                "/user/v1/invitation/{token}",
            ),
            ("/org/v1/invitation/0123abcd/", "/org/v1/invitation/{token}"),
            (
                "//user/v1/invitation/0123abcd",
                "//user/v1/invitation/{token}",
            ),
            ("/device/v3/0123abcd/state", "/device/v3/0123abcd/state"),
        ] {
            assert_eq!(without_token(path), expected);
        }
    }
}

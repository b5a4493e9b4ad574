//! A number for each request, and a log line when it has been answered.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use data::audit;
use http::{HeaderName, HeaderValue};
use tracing::Instrument as _;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers a request and logs it. If a proxy in front has assigned a valid number, that is kept.
pub(crate) async fn note<F>(mut request: Request, answer: impl FnOnce(Request) -> F) -> Response
where
    F: Future<Output = Response>,
{
    let id = request
        .headers()
        .get(&REQUEST_ID)
        .filter(|id| id.len() <= 64 && id.as_bytes().iter().all(u8::is_ascii_graphic))
        .cloned()
        .unwrap_or_else(new_id);
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let from = from.map(|ConnectInfo(from)| *from);
    let method = request.method().clone();
    let uri = request.uri().clone();
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let begun = Instant::now();
    let answered = audit::from_address(from.map(|from| from.ip()), answer(request));
    let mut response = answered.instrument(span.clone()).await;
    let status = response.status().as_u16();
    let milliseconds = begun.elapsed().as_millis();
    // Thousands of devices that poll and find nothing new are not worth a line each.
    let routine = method.is_safe() && status < 400;
    // The query may contain a key.
    let path = without_token(uri.path());
    // As text, which the log escapes, since the caller chose it.
    let path = &*path;
    let from = || from.map(|from| from.to_string()).unwrap_or_default();
    span.in_scope(|| {
        if routine {
            tracing::debug!(%method, path, from = from(), status, milliseconds, "answered")
        } else {
            tracing::info!(%method, path, from = from(), status, milliseconds, "answered")
        }
    });
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Returns a number that is unique and cannot be guessed from another one, without a system call for each.
fn new_id() -> HeaderValue {
    static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let id = format!("{:016x}", HASHES.hash_one(count));
    HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("none"))
}

/// Removes the token of an invitation from a path for the log: anybody who has it may accept the invitation.
fn without_token(path: &str) -> Cow<'_, str> {
    const INVITATION: &str = "/invitation/";
    match path.split_once(INVITATION) {
        Some((before, _)) => format!("{before}{INVITATION}{{token}}").into(),
        None => path.into(),
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

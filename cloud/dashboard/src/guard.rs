//! Rules for every answer of the dashboard, and for every request that changes something.
//!
//! A browser attaches the session cookie to requests from any site. Another site's page still cannot change anything,
//! for three reasons: the cookie is `SameSite=Lax`, a changing request must come from a page of this very origin, and
//! the API ignores cookies.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cloud_core::answer::Refusal;
use cloud_core::cloud::{Cloud, SharedCloud};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use maud::html;

use super::page;
use super::page_error::{self, PageError, RefusalText};
use super::session_user::{self, IN_PLACE};

/// Everything comes from this origin, and no scripts are inline: a malicious name that got through the escaping would
/// still not be executed.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers of every answer, unless the answer sets them itself.
const HEADERS: [(HeaderName, &str); 8] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`: browsers would then hide the origin of forms, which is checked below.
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=()",
    ),
];

/// Checks a request, and adds the headers to its answer.
pub(super) async fn guard(
    State(cloud): State<SharedCloud>,
    request: Request,
    next: Next,
) -> Response {
    let in_place = request.headers().contains_key(IN_PLACE);
    let cookie = session_user::renewed_cookie(&cloud, request.headers()).await;
    let refused = !request.method().is_safe() && !from_here(&cloud, request.headers());
    let mut response = if refused {
        PageError(Refusal::Forbidden(
            "This request did not come from a page of the dashboard. Open the dashboard itself and try again."
                .to_owned(),
        ))
        .into_response()
    } else {
        next.run(request).await
    };
    if let Some(text) = response.extensions_mut().remove::<RefusalText>() {
        response = refusal_page(response, &text, in_place);
    }
    let headers = response.headers_mut();
    if let Some(cookie) = cookie {
        // Signing in and out set the cookie themselves.
        headers.entry(header::SET_COOKIE).or_insert(cookie);
    }
    for (name, value) in HEADERS {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Returns whether the request comes from a page of this origin. Browsers say so in `Sec-Fetch-Site` if they trust the
/// connection, and otherwise in `Origin`; a client that sends neither is not a browser, and can use the API.
fn from_here(cloud: &Cloud, headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return site == "same-origin";
    }
    let Some(origin) = text(header::ORIGIN) else {
        return false;
    };
    let Some((_, authority)) = origin.split_once("://") else {
        return false;
    };
    let public = cloud.configuration.public_url.as_deref();
    let public = public.and_then(|url| url.split_once("://"));
    let public = public.map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    text(header::HOST) == Some(authority) || public == Some(authority)
}

/// Shows the refusal at the form, or as a page of its own.
fn refusal_page(response: Response, text: &RefusalText, in_place: bool) -> Response {
    let status = response.status();
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let markup = if in_place {
        page_error::notice(&text.0)
    } else {
        page::bare(
            title(status),
            html! {
                h1 { (title(status)) }
                p.notice.bad role="alert" { (text.0) }
                p { a.button href="/dashboard" { "Back to the fleets" } }
            },
        )
    };
    let (new, body) = (status, markup).into_response().into_parts();
    parts.headers.extend(new.headers);
    Response::from_parts(parts, body)
}

fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        status if status.is_server_error() => "Something went wrong",
        _ => "That did not work",
    }
}

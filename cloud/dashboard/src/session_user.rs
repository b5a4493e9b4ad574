//! The signed-in user of the dashboard, identified by the cookie of their session.
//!
//! The cookie contains a session token, which is valid only for the dashboard.

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Redirect, Response};
use cloud_core::answer::Refusal;
use cloud_core::clock::now;
use cloud_core::cloud::{Cloud, SharedCloud};
use cloud_core::credential::{Credential, Identity, select};
use cloud_core::session::{LIFE, SessionClaims};
use data::query::Caller;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::page_error::{PageError, PageResult};
use super::state::DashboardState;

/// The session cookie if the dashboard is served without TLS.
const COOKIE: &str = "fleet_session";
/// The session cookie with TLS: browsers accept it only from this very host, and never without TLS.
const HOST_COOKIE: &str = "__Host-fleet_session";
/// The header that htmx sets on its requests.
pub(super) const IN_PLACE: HeaderName = HeaderName::from_static("hx-request");
/// The age in seconds at which a token is replaced.
const RENEWED: i64 = 24 * 60 * 60;

/// A signed-in user, and the cloud that they use.
#[derive(Clone)]
pub(crate) struct SessionUser {
    pub(crate) cloud: SharedCloud,
    pub(crate) identity: Identity,
    /// The user's name.
    pub(crate) name: String,
    /// The claims of the session.
    pub(crate) claims: SessionClaims,
    /// The request comes from a script, which puts the answer into the current page.
    pub(crate) in_place: bool,
}

impl SessionUser {
    /// Returns the caller whose rights determine the accessible rows.
    pub(crate) fn caller(&self) -> &Caller {
        &self.identity.caller
    }

    /// Returns whether the session is still valid: it ends when it expires, with a new password, and with the user.
    ///
    /// # Errors
    /// If the database fails.
    pub(crate) async fn still_there(&self) -> PageResult<bool> {
        match self.cloud.auth.identify_session(self.claims.clone()).await {
            Ok(_) => Ok(true),
            Err(Refusal::Unauthorized) => Ok(false),
            Err(error) => Err(PageError(error)),
        }
    }
}

impl FromRequestParts<DashboardState> for SessionUser {
    type Rejection = Response;

    /// Visitors who are not signed in are redirected to the sign-in page, and then back to the page that they
    /// requested.
    async fn from_request_parts(
        parts: &mut Parts,
        state: &DashboardState,
    ) -> Result<Self, Response> {
        match find_user(&state.cloud, &parts.headers).await {
            Ok(Some(user)) => match state.cloud.auth.charge(&user.identity, parts) {
                Ok(()) => Ok(user),
                Err(error) => Err(PageError(error).into_response()),
            },
            Ok(None) => Err(to_sign_in(parts)),
            Err(error) => Err(error.into_response()),
        }
    }
}

/// Returns the user of a request's session cookie, or `None` if there is no valid one.
///
/// # Errors
/// If the database fails.
pub(crate) async fn find_user(
    cloud: &SharedCloud,
    headers: &HeaderMap,
) -> PageResult<Option<SessionUser>> {
    let Some(token) = cookie(cloud, headers) else {
        return Ok(None);
    };
    // An API key is not a session, even in the cookie.
    let Some(Ok(claims)) = cloud.auth.sessions.read(token) else {
        return Ok(None);
    };
    let identity = match cloud.auth.identify_session(claims).await {
        Ok(identity) => identity,
        Err(Refusal::Unauthorized) => return Ok(None),
        Err(error) => return Err(PageError(error)),
    };
    let Credential::Session(claims) = identity.credential.clone() else {
        return Ok(None);
    };
    let name = cloud
        .database
        .row(&select("user", &["username"], "id", claims.id))
        .await?;
    let Some(name) = name else {
        return Ok(None);
    };
    Ok(Some(SessionUser {
        cloud: cloud.clone(),
        name: name.some_text(0)?,
        identity,
        claims,
        in_place: headers.contains_key(IN_PLACE),
    }))
}

/// Returns the name of the cookie, and its attributes for browsers.
fn cookie_name(cloud: &Cloud) -> (&'static str, &'static str) {
    let url = cloud.configuration.public_url.as_deref();
    if url.is_some_and(|url| url.starts_with("https://")) {
        (HOST_COOKIE, "; Path=/; HttpOnly; SameSite=Lax; Secure")
    } else {
        (COOKIE, "; Path=/; HttpOnly; SameSite=Lax")
    }
}

fn cookie<'a>(cloud: &Cloud, headers: &'a HeaderMap) -> Option<&'a str> {
    let (cookie, _) = cookie_name(cloud);
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == cookie)
        .map(|(_, value)| value)
}

/// Returns the header that stores a session in the browser.
///
/// # Errors
/// If the token cannot be part of a header.
pub(super) fn session_cookie(cloud: &Cloud, token: &str) -> PageResult<HeaderValue> {
    let (name, attributes) = cookie_name(cloud);
    let text = format!("{name}={token}; Max-Age={LIFE}{attributes}");
    HeaderValue::from_str(&text).map_err(|error| PageError(Refusal::Fault(error.into())))
}

/// Returns the header that extends the session in the browser by its full lifetime, if that is due: nobody is signed
/// out while working on the pages. The time at which the password was entered is unchanged, and a new password ends
/// this session like any other.
pub(super) async fn renewed_cookie(
    cloud: &SharedCloud,
    headers: &HeaderMap,
) -> Option<HeaderValue> {
    let Some(Ok(claims)) = cookie(cloud, headers).and_then(|token| cloud.auth.sessions.read(token))
    else {
        return None;
    };
    if now() / 1000 - claims.iat < RENEWED {
        return None;
    }
    // Without a session, or if the database fails, the cookie is left unchanged.
    let user = find_user(cloud, headers).await.ok().flatten()?;
    let token = cloud.auth.sessions.token(user.claims).ok()?;
    session_cookie(cloud, &token).ok()
}

/// Returns the header that deletes the cookie.
pub(super) fn expired_cookie(cloud: &Cloud) -> HeaderValue {
    let (name, attributes) = cookie_name(cloud);
    let text = format!("{name}=; Max-Age=0{attributes}");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("fleet_session=; Max-Age=0"))
}

/// Redirects to the sign-in page; the requested address is kept if it was a page.
fn to_sign_in(parts: &Parts) -> Response {
    let page = if parts.method.is_safe() {
        // This router sees only the path below `/dashboard`.
        let below = parts.uri.path_and_query().map_or("", |it| it.as_str());
        format!("/dashboard{}", below.strip_suffix('/').unwrap_or(below))
    } else {
        String::new()
    };
    let mut place = "/dashboard/sign-in".to_owned();
    if let Some(next) = local(&page).filter(|next| !next.ends_with("/live")) {
        let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        place.push_str(&format!("?next={next}"));
    }
    if parts.headers.contains_key(IN_PLACE) {
        return leave_for(&place);
    }
    let events = parts
        .headers
        .get(header::ACCEPT)
        .is_some_and(|accept| accept.as_bytes() == b"text/event-stream");
    if events {
        // The page's script then reloads the page, and is redirected to the sign-in page.
        StatusCode::UNAUTHORIZED.into_response()
    } else {
        Redirect::to(&place).into_response()
    }
}

/// Makes the script that sent the request go to another page.
pub(crate) fn leave_for(place: &str) -> Response {
    match HeaderValue::from_str(place) {
        Ok(place) => {
            let name = HeaderName::from_static("hx-redirect");
            (StatusCode::OK, [(name, place)]).into_response()
        }
        Err(_) => StatusCode::OK.into_response(),
    }
}

/// Returns an address if it is within the dashboard: a link to the sign-in page cannot lead people elsewhere.
pub(super) fn local(address: &str) -> Option<&str> {
    let rest = address.strip_prefix("/dashboard")?;
    let plain = address.len() <= 2000
        && address
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    (plain && (rest.is_empty() || rest.starts_with(['/', '?'])) && !address.contains("//"))
        .then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_dashboard_are_gone_back_to() {
        for address in [
            "/dashboard",
            "/dashboard/fleets/7?search=a%20b",
            "/dashboard?x",
        ] {
            assert_eq!(local(address), Some(address));
        }
        for address in [
            "",
            "/",
            "https://evil.example/dashboard",
            "//evil.example/dashboard",
            "/dashboard//evil.example",
            "/dashboard\\evil",
            "/dashboard.evil.example",
            "/dashboards",
            "/dashboard/\r\nset-cookie:x",
            "javascript:alert(1)",
        ] {
            assert_eq!(local(address), None, "{address}");
        }
    }
}

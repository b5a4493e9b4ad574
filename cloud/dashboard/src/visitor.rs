//! Who looks at the dashboard: a user, by the cookie of their session.
//!
//! The cookie holds a session token, which is good for the dashboard alone.

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

use super::problem::{PageError, PageResult};
use super::state::DashboardState;

/// The cookie of a session where the dashboard is served without TLS.
const COOKIE: &str = "fleet_session";
/// The same with TLS: browsers take it from this very host alone, and never without TLS.
const HOST_COOKIE: &str = "__Host-fleet_session";
/// Set by htmx on what it asks for.
pub(super) const IN_PLACE: HeaderName = HeaderName::from_static("hx-request");
/// A token that is as old as this is replaced, in seconds.
const RENEWED: i64 = 24 * 60 * 60;

/// A user who is signed in, and the cloud that they look at.
#[derive(Clone)]
pub(crate) struct SessionUser {
    pub(crate) cloud: SharedCloud,
    pub(crate) identity: Identity,
    /// What they are called.
    pub(crate) name: String,
    /// What their session says.
    pub(crate) claims: SessionClaims,
    /// A script asked, and puts the answer into the page that it is on.
    pub(crate) in_place: bool,
}

impl SessionUser {
    /// For the rows that they may reach.
    pub(crate) fn caller(&self) -> &Caller {
        &self.identity.caller
    }

    /// Whether the session is still good: it ends with its time, with a new password, and with the user.
    ///
    /// # Errors
    /// Where the database fails.
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

    /// Whoever is not signed in is sent to do so, and then back to the page that they asked for.
    async fn from_request_parts(
        parts: &mut Parts,
        state: &DashboardState,
    ) -> Result<Self, Response> {
        match of(&state.cloud, &parts.headers).await {
            Ok(Some(visitor)) => match state.cloud.auth.charge(&visitor.identity, parts) {
                Ok(()) => Ok(visitor),
                Err(error) => Err(PageError(error).into_response()),
            },
            Ok(None) => Err(to_sign_in(parts)),
            Err(error) => Err(error.into_response()),
        }
    }
}

/// Whose session the cookie of a request is; nobody's where there is none that is good.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn of(
    cloud: &SharedCloud,
    headers: &HeaderMap,
) -> PageResult<Option<SessionUser>> {
    let Some(token) = cookie(cloud, headers) else {
        return Ok(None);
    };
    // A key is no session, whoever puts it there.
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

/// The name of the cookie, and what browsers are told of it.
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

/// The header that keeps a session in the browser.
///
/// # Errors
/// Where the token is none that a header takes.
pub(super) fn session_cookie(cloud: &Cloud, token: &str) -> PageResult<HeaderValue> {
    let (name, attributes) = cookie_name(cloud);
    let text = format!("{name}={token}; Max-Age={LIFE}{attributes}");
    HeaderValue::from_str(&text).map_err(|error| PageError(Refusal::Fault(error.into())))
}

/// The header that keeps a session in the browser for as long again, where that is due: whoever works on the pages
/// is not signed out in the middle of it. When the password was given stays as it was, and a new password ends it
/// like any session.
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
    // Without one, or where the database fails, it is left as it is.
    let visitor = of(cloud, headers).await.ok().flatten()?;
    let token = cloud.auth.sessions.token(visitor.claims).ok()?;
    session_cookie(cloud, &token).ok()
}

/// The header that forgets it.
pub(super) fn expired_cookie(cloud: &Cloud) -> HeaderValue {
    let (name, attributes) = cookie_name(cloud);
    let text = format!("{name}=; Max-Age=0{attributes}");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("fleet_session=; Max-Age=0"))
}

/// To where one signs in; what was asked for is kept where it was a page.
fn to_sign_in(parts: &Parts) -> Response {
    let page = if parts.method.is_safe() {
        // Below `/dashboard`, which this router does not see.
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
        // The page's script looks at the page again, and so comes to the sign-in.
        StatusCode::UNAUTHORIZED.into_response()
    } else {
        Redirect::to(&place).into_response()
    }
}

/// Has the script that asked go to another page.
pub(crate) fn leave_for(place: &str) -> Response {
    match HeaderValue::from_str(place) {
        Ok(place) => {
            let name = HeaderName::from_static("hx-redirect");
            (StatusCode::OK, [(name, place)]).into_response()
        }
        Err(_) => StatusCode::OK.into_response(),
    }
}

/// An address within the dashboard, where it is one: nobody is led elsewhere by a link to the sign-in.
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

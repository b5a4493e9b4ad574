//! Signing in, and staying signed in.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;

use super::verification::{Claim, Verified, verified};
use crate::answer::Refusal;
use crate::body;
use crate::cloud::{Cloud, Shared, now};
use crate::credential::{Credential, Identity};

#[derive(Deserialize)]
struct Login {
    username: String,
    password: String,
}

/// `POST /login_`: a token for a name (or e-mail address) and a password.
pub(crate) async fn login(
    State(cloud): State<Shared>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let guest = Identity::guest();
    cloud.charge(&guest, &parts)?;
    let given: Login = body::typed(&parts.headers, body, cloud.longest_body(&guest)).await?;
    let token = signed_in(&cloud, &given.username, given.password, from.ip()).await?;
    Ok(text(token))
}

/// The token of whoever has this name (or e-mail address) and this password.
///
/// # Errors
/// As [`verified`].
pub(crate) async fn signed_in(
    cloud: &Cloud,
    username: &str,
    password: String,
    from: IpAddr,
) -> Result<String, Refusal> {
    let Verified { user, secret } = verified(cloud, Claim::Name(username), password, from).await?;
    token(cloud, user, &secret, now())
}

/// `/user/v1/refresh-token`: a token that is good from now on; with the password, one as after signing in.
pub(crate) async fn refresh(
    State(cloud): State<Shared>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, Refusal> {
    #[derive(Default, Deserialize)]
    struct Given {
        password: Option<String>,
    }
    let (parts, body) = request.into_parts();
    let identity = cloud.admit(&parts).await?;
    let Credential::Session(claims) = identity.credential else {
        return Err(Refusal::Unauthorized);
    };
    let bytes = body::bytes(body, cloud.configuration.limits.body).await?;
    let given: Given = match bytes.is_empty() {
        true => Given::default(),
        false => serde_json::from_slice(&bytes)
            .map_err(|error| Refusal::Wrong(format!("the body is not right: {error}")))?,
    };
    let auth_time = match given.password {
        None => claims.auth_time,
        Some(password) => {
            verified(&cloud, Claim::User(claims.id), password, from.ip()).await?;
            now()
        }
    };
    token(&cloud, claims.id, &claims.secret, auth_time).map(text)
}

/// A token of a user who gave the password at `auth_time` (milliseconds).
///
/// # Errors
/// Where it cannot be signed.
pub(crate) fn token(
    cloud: &Cloud,
    user: i64,
    secret: &str,
    auth_time: i64,
) -> Result<String, Refusal> {
    cloud
        .sessions
        .token(user, secret, auth_time)
        .map_err(Refusal::Fault)
}

/// The answer with a token.
pub(crate) fn text(token: String) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], token).into_response()
}

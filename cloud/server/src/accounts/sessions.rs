//! Signing in, and staying signed in.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use resources::Check;
use sea_query::{Alias, Expr, ExprTrait, Query};
use serde::Deserialize;

use crate::answer::Refusal;
use crate::cloud::{Cloud, Shared, now};
use crate::credential::{Credential, select};
use crate::{body, password};

/// Characters of a name or password; more is nobody's.
const MOST: usize = 1000;

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
    let given: Login = body::typed(&parts.headers, body, cloud.configuration.limits.body).await?;
    let token = signed_in(&cloud, &given.username, given.password, from.ip()).await?;
    Ok(text(token))
}

/// The token of whoever has this name (or e-mail address) and this password.
///
/// # Errors
/// 401 where nobody has; 429 where that was tried too often.
pub(crate) async fn signed_in(
    cloud: &Cloud,
    username: &str,
    password: String,
    from: IpAddr,
) -> Result<String, Refusal> {
    cloud
        .limits
        .login(username, from)
        .map_err(Refusal::TooMany)?;
    if username.len() > MOST || password.len() > MOST {
        return Err(Refusal::Unauthorized);
    }
    // Names and addresses are kept in one form (1.11); what has none is nobody's.
    let (field, form) = match username.contains('@') {
        true => ("email", Check::Email),
        false => ("username", Check::Username),
    };
    let name = form.of(username, &cloud.configuration.branding);
    let statement = Query::select()
        .columns(["id", "password", "jwt_secret"].map(Alias::new))
        .from(Alias::new("user"))
        .and_where(Expr::col(Alias::new(field)).eq(name.unwrap_or_default().as_ref()))
        .take();
    let user = cloud.database.row(&statement).await?;
    let hash = match &user {
        Some(user) => user.text(1)?,
        None => None,
    };
    let is = password::is(password, hash).await.map_err(Refusal::Fault)?;
    let Some(user) = user.filter(|_| is) else {
        return Err(Refusal::Unauthorized);
    };
    cloud.limits.login_passed(username, from);
    let secret = user.text(2)?.unwrap_or_default();
    token(cloud, user.id(0)?, &secret, now())
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
    let identity = cloud.identify(&parts.headers, parts.uri.query()).await?;
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
            let payer = format!("refresh {}", claims.id);
            cloud
                .limits
                .login(&payer, from.ip())
                .map_err(Refusal::TooMany)?;
            let row = cloud
                .database
                .row(&select("user", &["password"], "id", claims.id))
                .await?;
            let hash = match row {
                Some(row) => row.text(0)?,
                None => None,
            };
            if !password::is(password, hash).await.map_err(Refusal::Fault)? {
                return Err(Refusal::Unauthorized);
            }
            cloud.limits.login_passed(&payer, from.ip());
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

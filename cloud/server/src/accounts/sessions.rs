//! Signing in, staying signed in, and signing out, with the API.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use cloud_core::accounts::sessions::{SessionOrigin, SignInKind, end, signed_in};
use cloud_core::accounts::verification::{Claim, verified};
use cloud_core::answer::{Answer, Refusal};
use cloud_core::body;
use cloud_core::clock::now;
use cloud_core::cloud::{Cloud, SharedCloud};
use cloud_core::configuration::AuditSettings;
use cloud_core::credential::{Credential, Identity};
use cloud_core::session::SessionClaims;
use data::SystemPurpose;
use data::audit;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

/// Interval between removals of expired data.
const TIDY: Duration = Duration::from_secs(3600);

#[derive(Deserialize)]
struct Login {
    username: String,
    password: String,
}

/// `POST /login_`: returns a token for a name (or e-mail address) and a password.
pub(crate) async fn login(
    State(cloud): State<SharedCloud>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
) -> Answer {
    let (parts, body) = request.into_parts();
    let guest = Identity::guest();
    cloud.auth.charge(&guest, &parts)?;
    let login: Login = body::typed(&parts.headers, body, cloud.auth.longest_body(&guest)).await?;
    let beginning = SessionOrigin::new(&parts.headers, from, SignInKind::Api);
    let token = signed_in(&cloud, &login.username, login.password, from, beginning).await?;
    Ok(text(token))
}

/// `/user/v1/refresh-token`: returns a token that is valid from now on; if the password is given, the same as after
/// signing in. The end of the session does not change.
pub(crate) async fn refresh(
    State(cloud): State<SharedCloud>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
) -> Answer {
    #[derive(Default, Deserialize)]
    struct RefreshRequest {
        password: Option<String>,
    }
    let (parts, body) = request.into_parts();
    let mut claims = require_session(&cloud, &parts).await?;
    let refresh: RefreshRequest = body::optional(body, cloud.configuration.limits.body).await?;
    if let Some(password) = refresh.password {
        verified(&cloud, Claim::User(claims.id), password, from.ip()).await?;
        claims.auth_time = now();
    }
    let token = cloud.auth.sessions.token(claims).map_err(Refusal::Fault)?;
    Ok(text(token))
}

/// `POST /user/v1/sign-out`: ends the session of the request.
pub(crate) async fn sign_out(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    let claims = require_session(&cloud, &parts).await?;
    end(&cloud, &claims).await?;
    Ok(StatusCode::OK.into_response())
}

/// Returns the session of the request.
///
/// # Errors
/// 401 if the credential is of another kind; 429.
async fn require_session(cloud: &Cloud, parts: &Parts) -> Result<SessionClaims, Refusal> {
    match cloud.auth.admit(parts).await?.credential {
        Credential::Session(claims) => Ok(claims),
        Credential::Nothing | Credential::Key(_) | Credential::TunnelServer => {
            Err(Refusal::Unauthorized)
        }
    }
}

/// Removes expired sessions and old audit events, until `stop`.
pub(crate) async fn tidying(cloud: SharedCloud, stop: CancellationToken) {
    let mut times = interval(TIDY);
    while stop.run_until_cancelled(times.tick()).await.is_some() {
        let over = SystemPurpose::Accounts
            .sql("DELETE FROM user_session WHERE expires_at <= ?")
            .with(now());
        if let Err(error) = cloud.database.execute(&over).await {
            tracing::warn!(%error, "sessions that are over were not deleted; they are tried again in an hour");
        }
        let AuditSettings { days, rows } = cloud.configuration.audit;
        let before = now() - i64::from(days.get()) * 24 * 60 * 60 * 1000;
        if let Err(error) = audit::tidy(&cloud.database, before, rows.get().into()).await {
            tracing::warn!(%error, "old audit events were not deleted; they are tried again in an hour");
        }
    }
}

/// Returns an answer with a token.
pub(crate) fn text(token: String) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], token).into_response()
}

//! Signing in, staying signed in, and signing out.
//!
//! Each session is a row (`user_session`): what a token says is good while its row is there. The row ends with the
//! session's time, by its user, and with the user's password.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use data::audit::{self, Author, Event};
use data::write::Writer;
use data::{SystemPurpose, Transaction};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use resources::Role;
use serde::Deserialize;
use serde_json::{Map, json};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::verification::{Claim, VerifiedUser, verified};
use crate::answer::Refusal;
use crate::body;
use crate::clock::now;
use crate::cloud::{Cloud, SharedCloud};
use crate::configuration::AuditSettings;
use crate::credential::{Credential, Identity};
use crate::session::SessionClaims;

/// Sessions of one user. Beyond it, those that were used least lately end.
const MOST: i64 = 100;
/// Characters of what a client calls itself.
const USER_AGENT: usize = 255;
/// Between two looks for what is over.
const TIDY: Duration = Duration::from_secs(3600);

#[derive(Deserialize)]
struct Login {
    username: String,
    password: String,
}

/// By which door somebody signs in. A session of one is none at the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignInKind {
    /// The token goes into headers.
    Api,
    /// The token is a cookie of the dashboard.
    Dashboard,
}

/// Where and how a session begins.
#[derive(Debug, Clone)]
pub(crate) struct SessionOrigin {
    address: String,
    user_agent: Option<String>,
    door: SignInKind,
}

impl SessionOrigin {
    pub(crate) fn of(headers: &HeaderMap, from: SocketAddr, door: SignInKind) -> Self {
        let agent = headers
            .get(header::USER_AGENT)
            .map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        SessionOrigin {
            address: from.ip().to_canonical().to_string(),
            user_agent: agent.map(|agent| agent.chars().take(USER_AGENT).collect()),
            door,
        }
    }
}

/// `POST /login_`: a token for a name (or e-mail address) and a password.
pub(crate) async fn login(
    State(cloud): State<SharedCloud>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let guest = Identity::guest();
    cloud.auth.charge(&guest, &parts)?;
    let given: Login = body::typed(&parts.headers, body, cloud.auth.longest_body(&guest)).await?;
    let beginning = SessionOrigin::of(&parts.headers, from, SignInKind::Api);
    let token = signed_in(&cloud, &given.username, given.password, from, beginning).await?;
    Ok(text(token))
}

/// The token of a new session of whoever has this name (or e-mail address) and this password.
///
/// # Errors
/// As [`verified`].
pub(crate) async fn signed_in(
    cloud: &Cloud,
    username: &str,
    password: String,
    from: SocketAddr,
    beginning: SessionOrigin,
) -> Result<String, Refusal> {
    let user = verified(cloud, Claim::Name(username), password, from.ip()).await?;
    let mut transaction = cloud.database.begin().await?;
    let token = begin(cloud, &mut transaction, &user, beginning).await?;
    transaction.commit().await?;
    Ok(token)
}

/// Begins a session of a user who just gave the password; its token.
///
/// # Errors
/// Where the database fails, or the token cannot be signed.
pub(crate) async fn begin(
    cloud: &Cloud,
    transaction: &mut Transaction,
    user: &VerifiedUser,
    beginning: SessionOrigin,
) -> Result<String, Refusal> {
    let now = now();
    let life =
        Duration::from_secs(24 * 60 * 60) * cloud.configuration.credentials.session_days.get();
    let end = now + i64::try_from(life.as_millis()).unwrap_or(i64::MAX / 2);
    let mut row = Map::new();
    for (name, value) in [
        ("user", json!(user.user)),
        ("last_used_at", json!(now)),
        ("expires_at", json!(end)),
        ("address", json!(beginning.address)),
        ("user_agent", json!(beginning.user_agent)),
        (
            "is_of_dashboard",
            json!(beginning.door == SignInKind::Dashboard),
        ),
    ] {
        row.insert(name.to_owned(), value);
    }
    let mut writer = Writer::platform(
        SystemPurpose::Accounts,
        transaction,
        &cloud.environment,
        now,
    );
    let session = writer.create("user_session", &row).await?;
    let forget = SystemPurpose::Accounts.sql(
        "DELETE FROM user_session WHERE id IN (SELECT id FROM user_session WHERE \"user\" = ? AND id <> ? \
         ORDER BY last_used_at DESC, id DESC LIMIT 1000 OFFSET ?)",
    );
    let forget = forget.with(user.user).with(session).with(MOST - 1);
    transaction.execute(&forget).await?;
    let author = Author {
        role: Role::User,
        actor: None,
        user: Some(user.user),
        credential: "session",
        credential_id: Some(session),
    };
    let event = Event {
        verb: "sign-in",
        resource: "user",
        ids: &[user.user],
        fields: None,
    };
    audit::note(transaction, Some(&author), event, now).await?;
    let claims = SessionClaims {
        id: user.user,
        session,
        secret: user.secret.clone(),
        auth_time: now,
        end: end / 1000,
        dashboard: beginning.door == SignInKind::Dashboard,
        iat: 0,
        exp: 0,
    };
    cloud.auth.sessions.token(claims).map_err(Refusal::Fault)
}

/// `/user/v1/refresh-token`: a token that is good from now on; with the password, one as after signing in. The
/// session ends when it would have.
pub(crate) async fn refresh(
    State(cloud): State<SharedCloud>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, Refusal> {
    #[derive(Default, Deserialize)]
    struct RefreshRequest {
        password: Option<String>,
    }
    let (parts, body) = request.into_parts();
    let mut claims = of_session(&cloud, &parts).await?;
    let bytes = body::bytes(body, cloud.configuration.limits.body).await?;
    let given: RefreshRequest = if bytes.is_empty() {
        RefreshRequest::default()
    } else {
        serde_json::from_slice(&bytes)
            .map_err(|error| Refusal::Wrong(format!("the body is not right: {error}")))?
    };
    if let Some(password) = given.password {
        verified(&cloud, Claim::User(claims.id), password, from.ip()).await?;
        claims.auth_time = now();
    }
    let token = cloud.auth.sessions.token(claims).map_err(Refusal::Fault)?;
    Ok(text(token))
}

/// `POST /user/v1/sign-out`: ends the session that the request is made by.
pub(crate) async fn sign_out(
    State(cloud): State<SharedCloud>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let claims = of_session(&cloud, &parts).await?;
    end(&cloud, &claims).await?;
    Ok(StatusCode::OK.into_response())
}

/// Ends a session.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn end(cloud: &Cloud, claims: &SessionClaims) -> Result<(), Refusal> {
    let mut transaction = cloud.database.begin().await?;
    let mut writer = Writer::platform(
        SystemPurpose::Accounts,
        &mut transaction,
        &cloud.environment,
        now(),
    );
    writer.remove("user_session", &[claims.session]).await?;
    Ok(transaction.commit().await?)
}

/// The session that a request is made by.
///
/// # Errors
/// 401 where it is made by anything else; 429.
async fn of_session(cloud: &Cloud, parts: &Parts) -> Result<SessionClaims, Refusal> {
    match cloud.auth.admit(parts).await?.credential {
        Credential::Session(claims) => Ok(claims),
        Credential::Nothing | Credential::Key(_) | Credential::TunnelServer => {
            Err(Refusal::Unauthorized)
        }
    }
}

/// Forgets sessions that are over and old audit events, until it is told to stop.
pub(crate) async fn tidying(cloud: Arc<Cloud>, stop: CancellationToken) {
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

/// The answer with a token.
pub(crate) fn text(token: String) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], token).into_response()
}

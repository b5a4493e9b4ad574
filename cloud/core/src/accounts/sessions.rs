//! Signing in, staying signed in, and signing out.
//!
//! Each session is a row (`user_session`): a token is valid only while its row exists. The row is deleted when the
//! session expires, when the user ends the session, and when the user's password changes.

use std::net::SocketAddr;
use std::time::Duration;

use data::audit::{self, Author, Event};
use data::write::row;
use data::{SystemPurpose, Transaction};
use http::{HeaderMap, header};
use resources::Role;
use serde_json::json;

use super::verification::{Claim, VerifiedUser, verified};
use crate::answer::Refusal;
use crate::clock::now;
use crate::cloud::Cloud;
use crate::session::SessionClaims;

/// Maximum number of sessions of one user. Beyond it, the least recently used ones end.
const MOST: i64 = 100;
/// Maximum number of characters of a client's name for itself.
const USER_AGENT: usize = 255;
/// How a user signs in. A session of one kind is not valid for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInKind {
    /// The token is sent in headers.
    Api,
    /// The token is a cookie of the dashboard.
    Dashboard,
}

/// From where and how a session was started.
#[derive(Debug, Clone)]
pub struct SessionOrigin {
    address: String,
    user_agent: Option<String>,
    door: SignInKind,
}

impl SessionOrigin {
    pub fn new(headers: &HeaderMap, from: SocketAddr, door: SignInKind) -> Self {
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

/// Returns the token of a new session of the user with this name (or e-mail address) and password.
///
/// # Errors
/// As for [`verified`].
pub async fn signed_in(
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

/// Starts a session of a user who has just entered the password, and returns its token.
///
/// # Errors
/// If the database fails, or the token cannot be signed.
pub async fn begin(
    cloud: &Cloud,
    transaction: &mut Transaction,
    user: &VerifiedUser,
    beginning: SessionOrigin,
) -> Result<String, Refusal> {
    let now = now();
    let life =
        Duration::from_secs(24 * 60 * 60) * cloud.configuration.credentials.session_days.get();
    let end = now + i64::try_from(life.as_millis()).unwrap_or(i64::MAX / 2);
    let row = row(json!({
        "user": user.user, "last_used_at": now, "expires_at": end, "address": beginning.address,
        "user_agent": beginning.user_agent,
        "is_of_dashboard": beginning.door == SignInKind::Dashboard,
    }));
    let mut writer = cloud.own_writer(transaction, SystemPurpose::Accounts);
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

/// Ends a session.
///
/// # Errors
/// If the database fails.
pub async fn end(cloud: &Cloud, claims: &SessionClaims) -> Result<(), Refusal> {
    let mut transaction = cloud.database.begin().await?;
    let mut writer = cloud.own_writer(&mut transaction, SystemPurpose::Accounts);
    writer.remove("user_session", &[claims.session]).await?;
    Ok(transaction.commit().await?)
}

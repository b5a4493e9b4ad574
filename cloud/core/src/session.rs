//! Session tokens: signed, and valid for as long as the row of the session exists and the token contains the user's
//! current secret (docs/spec/cloud.md#credentials-session).

use anyhow::{Context as _, Result};
use data::{Database, Keyring, setting};
use jsonwebtoken::{DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};

use crate::clock::now;
use crate::random::random_text;

/// How long a token is valid, in seconds: a week, or the rest of its session.
pub const LIFE: i64 = 7 * 24 * 60 * 60;
/// How long a sign-in counts as recent, in milliseconds: 20 minutes.
const FRESH: i64 = 20 * 60 * 1000;
/// The name under which the signing secret is stored; all replicas share it.
pub const SECRET: &str = "session-signing-secret";

/// The content of a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionClaims {
    /// The user.
    pub id: i64,
    /// The row of the session.
    pub session: i64,
    /// The user's secret at that time; a new secret ends all sessions.
    #[serde(rename = "jwt_secret")]
    pub secret: String,
    /// When the password was entered, in milliseconds.
    pub auth_time: i64,
    /// When the session ends at the latest, in seconds.
    pub end: i64,
    /// Whether the token is a cookie of the dashboard, not a token of the API.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dashboard: bool,
    /// When the token was created, in seconds.
    pub iat: i64,
    /// When the token expires, in seconds.
    pub exp: i64,
}

impl SessionClaims {
    /// Whether the password was entered a short time ago.
    pub fn fresh(&self) -> bool {
        now() - self.auth_time < FRESH
    }
}

/// Creates and checks tokens.
pub struct Sessions {
    sign: EncodingKey,
    check: DecodingKey,
}

impl Sessions {
    /// Uses the secret of this database, which is created if there is none.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn load(database: &Database, keyring: &Keyring) -> Result<Self> {
        // If several replicas start at once, the secret of one is stored, and all use it.
        let made = random_text(32)?;
        let secret = setting::read_or_write_secret(database, keyring, SECRET, &made).await?;
        Ok(Sessions {
            sign: EncodingKey::from_secret(secret.as_bytes()),
            check: DecodingKey::from_secret(secret.as_bytes()),
        })
    }

    /// Creates a token with this content, valid from now on.
    ///
    /// # Errors
    /// If it cannot be signed.
    pub fn token(&self, claims: SessionClaims) -> Result<String> {
        let issued = now() / 1000;
        let claims = SessionClaims {
            iat: issued,
            exp: claims.end.min(issued + LIFE),
            ..claims
        };
        encode(&Header::default(), &claims, &self.sign).context("a session token cannot be signed")
    }

    /// Returns the content of a token if it is one of ours and still valid; `None` if it is not a token at all, and so
    /// perhaps a key.
    pub fn read(&self, token: &str) -> Option<Result<SessionClaims, InvalidToken>> {
        if token.bytes().filter(|byte| *byte == b'.').count() != 2 {
            return None;
        }
        let decoded = decode::<SessionClaims>(token, &self.check, &Validation::default());
        Some(decoded.map(|data| data.claims).map_err(|_| InvalidToken))
    }
}

/// The token is not valid, or no longer valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidToken;

#[cfg(test)]
mod tests {
    use data::Options;
    use data::testing::on_both_at;

    use super::*;

    #[tokio::test]
    async fn first_starts_of_several_replicas_agree_on_the_secret() {
        on_both_at(|url, _| async move {
            let options = Options::default().with_connections(2);
            let open = (0..8).map(|_| Database::open(&url, &options));
            let open = futures::future::try_join_all(open).await;
            let databases = open.expect("a database");
            let keyring = Keyring::default();
            // Opened first, so that all of them search for the secret before it exists.
            let replicas = futures::future::try_join_all(
                databases.iter().map(|it| Sessions::load(it, &keyring)),
            )
            .await;
            let replicas = replicas.expect("a secret");
            for replica in &replicas {
                let claims = SessionClaims {
                    id: 7,
                    session: 1,
                    secret: "secret".to_owned(),
                    auth_time: now(),
                    end: now() / 1000 + 60,
                    dashboard: false,
                    iat: 0,
                    exp: 0,
                };
                let token = replica.token(claims).expect("a token");
                for other in &replicas {
                    let read = other.read(&token).expect("a token");
                    assert_eq!(read.expect("good at every replica").id, 7);
                }
            }
        })
        .await;
    }
}

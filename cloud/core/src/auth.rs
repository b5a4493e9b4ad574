//! Who may make a request, and how often: identifies credentials, and counts each request for its caller
//! (docs/spec/cloud.md#credentials).

use data::audit::{self, Author};
use data::{Database, SystemPurpose};
use futures::FutureExt as _;
use http::HeaderMap;
use http::request::Parts;
use resources::Role;
use sha2::{Digest, Sha256};

use crate::answer::Refusal;
use crate::bus::Bus;
use crate::charge::payer;
use crate::clock::now;
use crate::credential::{Credential, Identity, Keys, carried};
use crate::limits::RateLimits;
use crate::session::{InvalidToken, SessionClaims, Sessions};

/// Minimum interval between two recorded uses of a session, in milliseconds.
const USED: i64 = 5 * 60 * 1000;

/// Maximum bytes of a body sent without a credential: no known caller is accountable for more.
const BODY_OF_A_GUEST: usize = 64 << 10;

/// Identifies credentials and counts requests.
pub struct Auth {
    pub database: Database,
    pub bus: Bus,
    pub sessions: Sessions,
    pub keys: Keys,
    pub limits: RateLimits,
    /// The key of tunnel servers, if one is configured.
    pub tunnel_server_key: Option<String>,
    /// Maximum bytes of the body of a request outside the data API.
    pub longest_body: usize,
}

impl Auth {
    /// Identifies the caller of a request.
    ///
    /// # Errors
    /// If the credential is not valid (any more), or the database fails.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Result<Identity, Refusal> {
        match carried(headers, query) {
            None => Ok(Identity::guest()),
            // Boxed for the compiler, as statements are (cloud/data/src/connection.rs).
            Some(credential) => self.identify_by(&credential).boxed().await,
        }
    }

    /// Identifies the holder of a credential.
    ///
    /// # Errors
    /// As for [`Auth::identify`].
    pub async fn identify_by(&self, credential: &str) -> Result<Identity, Refusal> {
        match self.sessions.read(credential) {
            // A cookie is for pages of this origin: copied out of a browser, it gives access to nothing else.
            Some(Ok(claims)) if claims.dashboard => Err(Refusal::Unauthorized),
            Some(Ok(claims)) => self.identify_session(claims).await,
            Some(Err(InvalidToken)) => Err(Refusal::Unauthorized),
            None if self.is_tunnel_server(credential) => Ok(Identity::tunnel_server()),
            None => {
                let hash = Sha256::digest(credential.as_bytes()).into();
                self.identify_key(hash).await
            }
        }
    }

    async fn identify_key(&self, hash: [u8; 32]) -> Result<Identity, Refusal> {
        let remember = self.bus.receives_all();
        let identity = self.keys.find(&self.database, hash, remember).await?;
        if let Credential::Key(key) = &identity.credential {
            audit::made_by(Author {
                role: identity.role(),
                actor: identity.actor(),
                user: identity.user(),
                credential: "key",
                credential_id: Some(key.id),
            });
        }
        Ok(identity)
    }

    /// Evaluates the credential of an earlier request again.
    ///
    /// # Errors
    /// As for [`Auth::identify`].
    pub(crate) async fn identify_again(&self, identity: &Identity) -> Result<Identity, Refusal> {
        match &identity.credential {
            Credential::Nothing | Credential::TunnelServer => Ok(identity.clone()),
            Credential::Session(claims) if claims.exp <= now() / 1000 => Err(Refusal::Unauthorized),
            Credential::Session(claims) => self.identify_session(claims.clone()).await,
            Credential::Key(key) => self.identify_key(key.hash).await,
        }
    }

    /// Compares hashes, so the time taken reveals nothing about the key.
    fn is_tunnel_server(&self, credential: &str) -> bool {
        let key = self.tunnel_server_key.as_deref();
        key.is_some_and(|key| Sha256::digest(key) == Sha256::digest(credential))
    }

    /// Identifies the user of a session by its token.
    ///
    /// # Errors
    /// 401 if the session has ended; an error if the database fails.
    pub async fn identify_session(&self, claims: SessionClaims) -> Result<Identity, Refusal> {
        let find = SystemPurpose::Credentials.sql(
            "SELECT u.actor, u.jwt_secret, s.last_used_at, s.expires_at FROM user_session AS s \
             JOIN \"user\" AS u ON u.id = s.\"user\" WHERE s.id = ? AND u.id = ?",
        );
        let find = find.with(claims.session).with(claims.id);
        let Some(row) = self.database.row(&find).await? else {
            return Err(Refusal::Unauthorized);
        };
        let now = now();
        if row.text(1)?.as_deref() != Some(claims.secret.as_str()) || row.id(3)? <= now {
            return Err(Refusal::Unauthorized);
        }
        if now - row.id(2)? >= USED {
            self.note_use(claims.session, now);
        }
        audit::made_by(Author {
            role: Role::User,
            actor: Some(row.id(0)?),
            user: Some(claims.id),
            credential: "session",
            credential_id: Some(claims.session),
        });
        Ok(Identity::from_session(row.id(0)?, claims))
    }

    /// Records the use of a session, while the request continues.
    fn note_use(&self, session: i64, now: i64) {
        let database = self.database.clone();
        let note = SystemPurpose::Credentials
            .sql("UPDATE user_session SET last_used_at = ? WHERE id = ? AND last_used_at < ?");
        let note = note.with(now).with(session).with(now - USED + 1);
        tokio::spawn(async move {
            if let Err(error) = database.execute(&note).await {
                tracing::debug!(%error, "the use of a session was not noted");
            }
        });
    }

    /// Identifies the caller and counts the request: for its actor, or for its network if it has no credential or an
    /// invalid one.
    ///
    /// # Errors
    /// 401 and 429.
    pub async fn admit(&self, parts: &Parts) -> Result<Identity, Refusal> {
        let identity = self.identify(&parts.headers, parts.uri.query()).await;
        self.count(identity, parts)
    }

    /// Counts a request whose credential was checked; refused requests count as much as answered ones.
    ///
    /// # Errors
    /// 429 after too many requests; otherwise the refusal itself.
    pub fn count(
        &self,
        identity: Result<Identity, Refusal>,
        parts: &Parts,
    ) -> Result<Identity, Refusal> {
        match &identity {
            Ok(identity) => self.charge(identity, parts)?,
            Err(_) => self.charge(&Identity::guest(), parts)?,
        }
        identity
    }

    /// Counts a request.
    ///
    /// # Errors
    /// 429 after too many requests.
    pub fn charge(&self, identity: &Identity, parts: &Parts) -> Result<(), Refusal> {
        let payer = payer(identity, parts);
        self.limits.request(&payer).map_err(Refusal::TooMany)
    }

    /// As [`Auth::admit`], for endpoints that accept only keys.
    ///
    /// # Errors
    /// 401 and 429.
    pub async fn admit_key(&self, parts: &Parts) -> Result<Identity, Refusal> {
        let identity = self.admit(parts).await?;
        if identity.is_key() {
            Ok(identity)
        } else {
            Err(Refusal::Unauthorized)
        }
    }

    /// Returns the maximum bytes of the body of a request outside the data API.
    pub fn longest_body(&self, identity: &Identity) -> usize {
        let most = self.longest_body;
        match identity.credential {
            Credential::Nothing => most.min(BODY_OF_A_GUEST),
            Credential::Session(_) | Credential::Key(_) | Credential::TunnelServer => most,
        }
    }
}

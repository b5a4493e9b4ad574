//! Who makes a request: the credential that it carries, and what that makes of its holder (cloud behaviour
//! 3.1 and 3.2).
//!
//! A key in the query wins over the header. What does not decode as a token is tried as a key. A credential
//! that is not good is refused, rather than taken for nobody's (section 0).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use data::audit::{self, Author};
use data::query::Caller;
use data::{Database, Effect, SystemPurpose, SystemStatement};
use http::{HeaderMap, header};
use resources::{KeyLimits, KeyScope, Role};
use sea_query::{Alias, Expr, ExprTrait, Query, SelectStatement};
use sha2::{Digest, Sha256};

use crate::answer::Refusal;
use crate::cloud::{Cloud, now};
use crate::session::{Claims, Expired};

/// Who makes a request.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// For the rows that it may reach.
    pub(crate) caller: Caller,
    /// What it carried.
    pub(crate) credential: Credential,
}

/// What clients look for where they have to sign in anew (cloud behaviour 3.1).
pub(crate) const STALE: &str = "Fresh authentication token required";

/// What a request carried.
#[derive(Debug, Clone)]
pub(crate) enum Credential {
    /// Nothing.
    Nothing,
    /// A session token.
    Session(Claims),
    /// A key.
    Key(KeyRef),
    /// The key of tunnel servers, which is configured.
    TunnelServer,
}

/// Which key a request carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyRef {
    /// Its row.
    pub(crate) id: i64,
    /// What is kept of it.
    hash: [u8; 32],
}

impl Identity {
    /// Somebody without a credential.
    pub(crate) fn guest() -> Self {
        Identity {
            caller: Caller::guest(),
            credential: Credential::Nothing,
        }
    }

    /// The role that the credential gives.
    pub(crate) fn role(&self) -> Role {
        self.caller.role().unwrap_or(Role::Guest)
    }

    /// The actor that it stands for.
    pub(crate) fn actor(&self) -> Option<i64> {
        self.caller.actor()
    }

    /// The user that it stands for.
    pub(crate) fn user(&self) -> Option<i64> {
        self.caller.user()
    }

    /// That it is a key, whoever's.
    pub(crate) fn is_key(&self) -> bool {
        matches!(
            self.credential,
            Credential::Key(_) | Credential::TunnelServer
        )
    }
}

/// The credential of a request: `apikey` of the query, or the bearer token.
pub(crate) fn carried(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let in_query = query.and_then(|query| {
        form_urlencoded::parse(query.as_bytes())
            .find(|(name, _)| name == "apikey")
            .map(|(_, value)| value.into_owned())
    });
    in_query.or_else(|| {
        let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        let bearer = scheme.eq_ignore_ascii_case("bearer");
        bearer.then(|| token.trim().to_owned())
    })
}

impl Cloud {
    /// Who makes a request.
    ///
    /// # Errors
    /// Where the credential is not good (any more), or the database fails.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Result<Identity, Refusal> {
        match carried(headers, query) {
            None => Ok(Identity::guest()),
            Some(credential) => self.identify_by(&credential).await,
        }
    }

    /// Whose credential this is.
    ///
    /// # Errors
    /// As [`Cloud::identify`].
    pub(crate) async fn identify_by(&self, credential: &str) -> Result<Identity, Refusal> {
        match self.sessions.read(credential) {
            // A cookie is for pages of this origin: taken out of a browser, it opens nothing else.
            Some(Ok(claims)) if claims.dashboard => Err(Refusal::Unauthorized),
            Some(Ok(claims)) => self.identify_session(claims).await,
            Some(Err(Expired)) => Err(Refusal::Unauthorized),
            None if self.is_tunnel_server(credential) => Ok(Identity {
                caller: Caller::Holder {
                    role: Role::TunnelServer,
                    actor: None,
                    user: None,
                },
                credential: Credential::TunnelServer,
            }),
            None => {
                let hash = Sha256::digest(credential.as_bytes()).into();
                self.identify_key(hash).await
            }
        }
    }

    async fn identify_key(&self, hash: [u8; 32]) -> Result<Identity, Refusal> {
        let remember = self.bus.hears_all();
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

    /// What the credential of an earlier request makes of its holder now.
    ///
    /// # Errors
    /// As [`Cloud::identify`].
    pub(crate) async fn identify_again(&self, identity: &Identity) -> Result<Identity, Refusal> {
        match &identity.credential {
            Credential::Nothing | Credential::TunnelServer => Ok(identity.clone()),
            Credential::Session(claims) if claims.exp <= now() / 1000 => Err(Refusal::Unauthorized),
            Credential::Session(claims) => self.identify_session(claims.clone()).await,
            Credential::Key(key) => self.identify_key(key.hash).await,
        }
    }

    /// Compared by hashes: how long that takes tells nothing of the key.
    fn is_tunnel_server(&self, credential: &str) -> bool {
        let key = self.configuration.tunnel_server_key.as_deref();
        key.is_some_and(|key| Sha256::digest(key) == Sha256::digest(credential))
    }

    /// Whose session this is, as its token says.
    ///
    /// # Errors
    /// 401 where it has ended; where the database fails.
    pub(crate) async fn identify_session(&self, claims: Claims) -> Result<Identity, Refusal> {
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
        Ok(Identity {
            caller: Caller::Holder {
                role: Role::User,
                actor: Some(row.id(0)?),
                user: Some(claims.id),
            },
            credential: Credential::Session(claims),
        })
    }
}

/// How long after its last use a session is noted as used again, in milliseconds.
const USED: i64 = 5 * 60 * 1000;

impl Cloud {
    /// Notes that a session is used, while the request goes on.
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
}

/// The same of a key.
const KEY_USED: i64 = 60 * 60 * 1000;

/// Notes that a key is used, while the request goes on.
fn note_key(database: &Database, key: i64) {
    let database = database.clone();
    let note = SystemPurpose::Credentials
        .sql("UPDATE api_key SET last_used_at = ? WHERE id = ?")
        .with(now())
        .with(key);
    tokio::spawn(async move {
        if let Err(error) = database.execute(&note).await {
            tracing::debug!(%error, "the use of a key was not noted");
        }
    });
}

/// How long what a key is is remembered.
const REMEMBERED: Duration = Duration::from_secs(300);
/// Keys that are remembered.
const MOST: usize = 200_000;

/// Keys, as they were last found.
#[derive(Default)]
pub(crate) struct Keys {
    found: Mutex<HashMap<[u8; 32], (Known, Instant)>>,
    /// How often something was forgotten: what was looked up before is not remembered after.
    forgotten: AtomicU64,
}

#[derive(Clone)]
struct Known {
    identity: Identity,
    /// Milliseconds since the epoch.
    expires: Option<i64>,
}

impl Keys {
    /// Whose key this is; the database is asked in any case where nothing may be `remembered`.
    async fn find(
        &self,
        database: &Database,
        hash: [u8; 32],
        remember: bool,
    ) -> Result<Identity, Refusal> {
        let forgotten = self.forgotten.load(Ordering::SeqCst);
        let remembered = {
            let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            found
                .get(&hash)
                .filter(|(_, since)| remember && since.elapsed() < REMEMBERED)
                .map(|(known, _)| known.clone())
        };
        let known = match remembered {
            Some(known) => known,
            None => {
                let known = look_up(database, &hash)
                    .await?
                    .ok_or(Refusal::Unauthorized)?;
                let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                if found.len() >= MOST {
                    found.clear();
                }
                if self.forgotten.load(Ordering::SeqCst) == forgotten {
                    found.insert(hash, (known.clone(), Instant::now()));
                }
                known
            }
        };
        match known.expires {
            Some(expires) if expires <= now() => Err(Refusal::Unauthorized),
            _ => Ok(known.identity),
        }
    }

    /// Forgets what may have changed.
    pub(crate) fn heed(&self, effects: &[Effect]) {
        let changed: Vec<i64> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::ActorsChanged(actors) => Some(actors.as_slice()),
                _ => None,
            })
            .flatten()
            .copied()
            .collect();
        if !changed.is_empty() {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            self.forgotten.fetch_add(1, Ordering::SeqCst);
            found.retain(|_, (known, _)| {
                known
                    .identity
                    .actor()
                    .is_none_or(|actor| !changed.contains(&actor))
            });
        }
    }

    /// Forgets all of them, since any may have changed.
    pub(crate) fn forget_all(&self) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        found.clear();
    }
}

/// The hash by which a key is kept.
pub(crate) fn key_hash(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}

async fn look_up(database: &Database, hash: &[u8; 32]) -> Result<Option<Known>, Refusal> {
    let key = Alias::new("api_key");
    let user = Alias::new("user");
    let statement = Query::select()
        .columns([
            (key.clone(), Alias::new("is_of__actor")),
            (key.clone(), Alias::new("role")),
            (key.clone(), Alias::new("expiry_date")),
            (user.clone(), Alias::new("id")),
            (key.clone(), Alias::new("id")),
            (key.clone(), Alias::new("scope")),
            (key.clone(), Alias::new("is_limited_to__application")),
            (key.clone(), Alias::new("last_used_at")),
        ])
        .from(key.clone())
        .left_join(
            user.clone(),
            Expr::col((user, Alias::new("actor")))
                .equals((key.clone(), Alias::new("is_of__actor"))),
        )
        .and_where(Expr::col((key, Alias::new("key_hash"))).eq(hex::encode(hash)))
        .take();
    let statement = SystemPurpose::Credentials.statement(statement);
    let Some(row) = database.row(&statement).await? else {
        return Ok(None);
    };
    let role = row.some_text(1)?;
    let Some(role) = Role::ALL.into_iter().find(|one| one.word() == role) else {
        return Ok(None);
    };
    let (actor, user, id) = (row.number(0)?, row.number(3)?, row.id(4)?);
    let scope = match row.text(5)? {
        None => None,
        // What a newer version limits it to is not known here: it is not good for anything.
        Some(word) => match KeyScope::named(&word) {
            None => return Ok(None),
            known => known,
        },
    };
    let limits = KeyLimits {
        scope,
        fleet: row.number(6)?,
    };
    if role != Role::DeviceKey && now() - row.number(7)?.unwrap_or_default() >= KEY_USED {
        note_key(database, id);
    }
    Ok(Some(Known {
        identity: Identity {
            caller: match role != Role::UserKey || limits == KeyLimits::default() {
                true => Caller::Holder { role, actor, user },
                false => Caller::LimitedKey {
                    actor,
                    user,
                    limits,
                },
            },
            credential: Credential::Key(KeyRef { id, hash: *hash }),
        },
        expires: row.number(2)?,
    }))
}

/// Fields of the row of a table whose `by` is this number: of whoever makes the request.
pub(crate) fn select(
    table: &'static str,
    fields: &[&'static str],
    by: &'static str,
    number: i64,
) -> SystemStatement<SelectStatement> {
    let select = Query::select()
        .columns(fields.iter().map(|field| Alias::new(*field)))
        .from(Alias::new(table))
        .and_where(Expr::col(Alias::new(by)).eq(number))
        .take();
    SystemPurpose::Credentials.statement(select)
}

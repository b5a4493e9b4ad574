//! The caller of a request: its credential, and the rights of the credential's holder (docs/spec/cloud.md#credentials).
//!
//! A key in the query takes precedence over the header. A credential that does not decode as a token is tried as a key.
//! An invalid credential is refused, not treated as a missing one (docs/spec/cloud.md#credentials-transport).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use data::query::Caller;
use data::{Database, Effect, SystemPurpose, SystemStatement};
use http::{HeaderMap, header};
use parking_lot::Mutex;
use resources::{KeyLimits, Role};
use sea_query::{Alias, Expr, ExprTrait, Query, SelectStatement};
use sha2::{Digest, Sha256};

use crate::answer::Refusal;
use crate::clock::now;
use crate::session::SessionClaims;

/// The caller of a request.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Determines the rows that it may access.
    pub caller: Caller,
    /// The credential of the request.
    pub credential: Credential,
}

/// The message by which clients recognize that they have to sign in again (docs/spec/cloud.md#credentials-session).
pub const STALE: &str = "Fresh authentication token required";

/// The credential of a request.
#[derive(Debug, Clone)]
pub enum Credential {
    /// No credential.
    Nothing,
    /// A session token.
    Session(SessionClaims),
    /// A key.
    Key(KeyRef),
    /// The configured key of tunnel servers.
    TunnelServer,
}

/// Identifies the key of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRef {
    /// The id of its row.
    pub id: i64,
    /// The stored hash.
    pub hash: [u8; 32],
}

impl Identity {
    /// Returns a caller without a credential.
    pub fn guest() -> Self {
        Identity {
            caller: Caller::guest(),
            credential: Credential::Nothing,
        }
    }

    /// Returns the tunnel server that uses the configured key.
    pub fn tunnel_server() -> Self {
        Identity {
            caller: Caller::Holder {
                role: Role::TunnelServer,
                actor: None,
                user: None,
            },
            credential: Credential::TunnelServer,
        }
    }

    /// Returns the user of a valid session, with the user's actor.
    pub fn from_session(actor: i64, claims: SessionClaims) -> Self {
        Identity {
            caller: Caller::Holder {
                role: Role::User,
                actor: Some(actor),
                user: Some(claims.id),
            },
            credential: Credential::Session(claims),
        }
    }

    /// Returns the role that the credential gives.
    pub fn role(&self) -> Role {
        self.caller.role().unwrap_or(Role::Guest)
    }

    /// Returns the actor that the credential represents.
    pub fn actor(&self) -> Option<i64> {
        self.caller.actor()
    }

    /// Returns the user that the credential represents.
    pub fn user(&self) -> Option<i64> {
        self.caller.user()
    }

    /// Whether the credential is a key, of any holder.
    pub fn is_key(&self) -> bool {
        matches!(
            self.credential,
            Credential::Key(_) | Credential::TunnelServer
        )
    }
}

/// Returns the credential of a request: `apikey` of the query, or the bearer token.
pub fn carried(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
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

/// Minimum interval between two recorded uses of a key, in milliseconds.
const KEY_USED: i64 = 60 * 60 * 1000;

/// Records the use of a key, while the request continues.
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

/// How long the properties of a key are cached.
const REMEMBERED: Duration = Duration::from_secs(300);
/// Maximum number of cached keys.
const MOST: usize = 200_000;

/// A cache of keys and their holders.
#[derive(Default)]
pub struct Keys {
    cached: Mutex<HashMap<[u8; 32], (CachedKey, Instant)>>,
    /// How often entries were removed: a result that was looked up before a removal is not cached after it.
    forgotten: AtomicU64,
}

#[derive(Clone)]
struct CachedKey {
    identity: Identity,
    /// Milliseconds since the epoch.
    expires: Option<i64>,
}

impl Keys {
    /// Returns the holder of a key; reads the database in any case unless `remember` is set.
    pub async fn find(
        &self,
        database: &Database,
        hash: [u8; 32],
        remember: bool,
    ) -> Result<Identity, Refusal> {
        let forgotten = self.forgotten.load(Ordering::SeqCst);
        let cached = self.cached.lock().get(&hash).cloned();
        let key = match cached {
            Some((key, since)) if remember && since.elapsed() < REMEMBERED => key,
            _ => {
                let key = look_up(database, &hash).await?;
                let key = key.ok_or(Refusal::Unauthorized)?;
                let mut cached = self.cached.lock();
                if cached.len() >= MOST {
                    cached.clear();
                }
                if self.forgotten.load(Ordering::SeqCst) == forgotten {
                    cached.insert(hash, (key.clone(), Instant::now()));
                }
                key
            }
        };
        match key.expires {
            Some(expires) if expires <= now() => Err(Refusal::Unauthorized),
            _ => Ok(key.identity),
        }
    }

    /// Removes entries that may have changed.
    pub fn invalidate(&self, effects: &[Effect]) {
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
            let mut cached = self.cached.lock();
            self.forgotten.fetch_add(1, Ordering::SeqCst);
            cached.retain(|_, (key, _)| {
                key.identity
                    .actor()
                    .is_none_or(|actor| !changed.contains(&actor))
            });
        }
    }

    /// Removes all entries, since any may have changed.
    pub fn forget_all(&self) {
        let mut cached = self.cached.lock();
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        cached.clear();
    }
}

/// Returns the stored hash of a key.
pub fn key_hash(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}

async fn look_up(database: &Database, hash: &[u8; 32]) -> Result<Option<CachedKey>, Refusal> {
    let select = SystemPurpose::Credentials.sql(
        "SELECT k.is_of__actor, k.role, k.expiry_date, u.id, k.id, k.scope, k.is_limited_to__application, k.last_used_at \
         FROM api_key AS k LEFT JOIN \"user\" AS u ON u.actor = k.is_of__actor WHERE k.key_hash = ?",
    );
    let select = select.with(hex::encode(hash));
    let Some(row) = database.row(&select).await? else {
        return Ok(None);
    };
    let role = row.some_text(1)?;
    let Some(role) = role.parse::<Role>().ok() else {
        return Ok(None);
    };
    let (actor, user, id) = (row.number(0)?, row.number(3)?, row.id(4)?);
    let scope = match row.text(5)? {
        None => None,
        // The key has a limit of a newer version, which is unknown here: the key is not valid for anything.
        Some(word) => match word.parse() {
            Err(_) => return Ok(None),
            Ok(scope) => Some(scope),
        },
    };
    let limits = KeyLimits {
        scope,
        fleet: row.number(6)?,
    };
    if role != Role::DeviceKey && now() - row.number(7)?.unwrap_or_default() >= KEY_USED {
        note_key(database, id);
    }
    Ok(Some(CachedKey {
        identity: Identity {
            caller: if role != Role::UserKey || limits == KeyLimits::default() {
                Caller::Holder { role, actor, user }
            } else {
                Caller::LimitedKey {
                    actor,
                    user,
                    limits,
                }
            },
            credential: Credential::Key(KeyRef { id, hash: *hash }),
        },
        expires: row.number(2)?,
    }))
}

/// Selects fields from the rows of a table whose column `by` has this number, with the purpose of credentials.
pub fn select(
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

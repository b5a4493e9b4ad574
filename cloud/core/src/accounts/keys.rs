//! Creating keys of users, fleets and devices. A key is shown once, when it is created; only its hash is stored.

use std::collections::BTreeSet;

use data::SystemPurpose;
use data::write::{WriteError, Writer, row};
use resources::{Action, KeyLimits, Role};
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::clock::now;
use crate::cloud::Cloud;
use crate::credential::{Credential, Identity, STALE, key_hash};

/// Minimum number of different characters in a key chosen by a person: generated keys have more.
const DIFFERENT: usize = 8;

/// Returns the actor of the user who has just signed in, and who may therefore create keys of their own.
///
/// # Errors
/// 401 if the sign-in was too long ago, or the credential is of another kind.
pub fn require_user(identity: &Identity) -> Result<i64, Refusal> {
    let Credential::Session(claims) = &identity.credential else {
        return Err(Refusal::Unauthorized);
    };
    if !claims.fresh() {
        return Err(Refusal::UnauthorizedSaying(STALE));
    }
    identity.actor().ok_or(Refusal::Unauthorized)
}

/// Returns the actor of a fleet (`application`) or `device` for which this credential may create keys.
///
/// # Errors
/// 401 if it may not create keys for it, or cannot even see it.
pub async fn find_permitted_actor(
    cloud: &Cloud,
    identity: &Identity,
    resource: &'static str,
    id: i64,
) -> Result<i64, Refusal> {
    let action = match resource {
        "application" => Action::CreateProvisioningKey,
        _ => Action::CreateDeviceKey,
    };
    let right = cloud.right(&identity.caller, resource, id, action);
    let right = right.await?.ok_or(Refusal::Unauthorized)?;
    let statement = right.sql(match resource {
        "application" => "SELECT actor FROM application WHERE id = ?",
        _ => "SELECT actor FROM device WHERE id = ?",
    });
    let actor = cloud.database.id(&statement).await?;
    actor.ok_or(Refusal::Unauthorized)
}

/// Stores a key in a transaction of its own.
///
/// # Errors
/// As for [`create`].
pub async fn store_key(
    cloud: &Cloud,
    actor: i64,
    role: Role,
    key: &str,
    mut more: KeyDescription,
) -> Result<(), Refusal> {
    let undated = more.expiry_date.as_ref().is_none_or(Value::is_null);
    if let (Some(days), Role::UserKey, true) =
        (cloud.configuration.credentials.key_days, role, undated)
    {
        let end = now() + i64::from(days.get()) * 24 * 60 * 60 * 1000;
        more.expiry_date = Some(json!(end));
    }
    let mut transaction = cloud.database.begin().await?;
    let mut writer = cloud.own_writer(&mut transaction, SystemPurpose::Keys);
    create(&mut writer, actor, role, key, more).await?;
    transaction.commit().await?;
    Ok(())
}

/// A key as described by the person who creates it.
#[derive(Debug, Default)]
pub struct KeyDescription {
    pub name: Option<String>,
    pub description: Option<String>,
    pub expiry_date: Option<Value>,
    /// The limits of a user's key.
    pub limits: KeyLimits,
}

/// Inserts a key into the database.
///
/// # Errors
/// If the key exists already, or its description is invalid.
pub async fn create(
    writer: &mut Writer<'_>,
    actor: i64,
    role: Role,
    key: &str,
    more: KeyDescription,
) -> Result<i64, WriteError> {
    let mut row = row(json!({
        "is_of__actor": actor, "key_hash": key_hash(key), "role": <&str>::from(role),
    }));
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            row.insert(name.to_owned(), value);
        }
    };
    set("name", more.name.map(Value::String));
    set("description", more.description.map(Value::String));
    set("expiry_date", more.expiry_date);
    set(
        "scope",
        more.limits.scope.map(|scope| json!(<&str>::from(scope))),
    );
    set(
        "is_limited_to__application",
        more.limits.fleet.map(Value::from),
    );
    writer.create("api_key", &row).await
}

/// Checks a key chosen by a person: it must be too long to guess, and can be sent in a header unchanged.
pub fn chosen(key: String) -> Result<String, Refusal> {
    let fits = (16..=128).contains(&key.len());
    if !fits || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Refusal::Wrong(
            "a key has 16 to 128 characters, none of them white space".to_owned(),
        ));
    }
    let different: BTreeSet<u8> = key.bytes().collect();
    if different.len() >= DIFFERENT {
        Ok(key)
    } else {
        Err(Refusal::Wrong(format!(
            "a key has at least {DIFFERENT} different characters; leave it out, and the cloud creates one"
        )))
    }
}

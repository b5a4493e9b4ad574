//! Making keys: of users, fleets and devices. A key is shown once, when it is made; its hash is kept.

use std::collections::BTreeSet;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use data::SystemPurpose;
use data::query::Caller;
use data::write::Writer;
use http::StatusCode;
use resources::{Action, KeyLimits, KeyScope, Method, Role};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::answer::{Refusal, json as json_answer};
use crate::body;
use crate::clock::now;
use crate::cloud::{Cloud, SharedCloud};
use crate::credential::{Credential, Identity, STALE, key_hash};
use crate::random::random_text;

/// Different characters of a key that somebody chose: what is made up has more.
const DIFFERENT: usize = 8;

/// What is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KeyRequest {
    name: Option<String>,
    description: Option<String>,
    /// Null, where that was given.
    #[serde(deserialize_with = "even_null")]
    expiry_date: Option<Value>,
    api_key: Option<String>,
    actor_type: Option<String>,
    actor_type_id: Option<Value>,
    /// What a key of a user is for, if not for everything.
    scope: Option<String>,
    /// The fleet that a key of a user is limited to.
    application_id: Option<i64>,
    roles: Option<Vec<String>>,
}

/// `POST /api-key/user/full`: a named key of the user who just signed in.
pub(crate) async fn user(
    State(cloud): State<SharedCloud>,
    request: Request,
) -> Result<Response, Refusal> {
    let (identity, given) = read(&cloud, request).await?;
    if given.name.as_deref().is_none_or(str::is_empty) {
        return Err(Refusal::Wrong("a key of a user needs a `name`".to_owned()));
    }
    let actor = of_user(&identity)?;
    made(&cloud, &identity, actor, Role::UserKey, given).await
}

/// The actor of the user who just signed in, and so may make keys of their own.
///
/// # Errors
/// 401 where that is a while ago, or it is another credential.
pub(crate) fn of_user(identity: &Identity) -> Result<i64, Refusal> {
    let Credential::Session(claims) = &identity.credential else {
        return Err(Refusal::Unauthorized);
    };
    if !claims.fresh() {
        return Err(Refusal::UnauthorizedSaying(STALE));
    }
    identity.actor().ok_or(Refusal::Unauthorized)
}

/// `POST /api-key/application/:id/provisioning`: a key that makes devices of a fleet.
pub(crate) async fn provisioning(
    State(cloud): State<SharedCloud>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (identity, given) = read(&cloud, request).await?;
    let actor = permitted(&cloud, &identity, "application", number(&id)?).await?;
    made(&cloud, &identity, actor, Role::ProvisioningKey, given).await
}

/// `POST /api-key/device/:id/device-key`: a key of a device.
pub(crate) async fn device(
    State(cloud): State<SharedCloud>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (identity, given) = read(&cloud, request).await?;
    let actor = permitted(&cloud, &identity, "device", number(&id)?).await?;
    made(&cloud, &identity, actor, Role::DeviceKey, given).await
}

/// `POST /api-key/v2`: any of these, which says until when it is good, if only `null`.
pub(crate) async fn dated(
    State(cloud): State<SharedCloud>,
    request: Request,
) -> Result<Response, Refusal> {
    let (identity, given) = read(&cloud, request).await?;
    if given.expiry_date.is_none() {
        return Err(Refusal::Wrong(
            "`expiryDate` must say until when the key is valid; `null` means for ever".to_owned(),
        ));
    }
    any(&cloud, &identity, given).await
}

/// `POST /api-key/v1`: any of these.
pub(crate) async fn undated(
    State(cloud): State<SharedCloud>,
    request: Request,
) -> Result<Response, Refusal> {
    let (identity, given) = read(&cloud, request).await?;
    any(&cloud, &identity, given).await
}

async fn any(cloud: &Cloud, identity: &Identity, given: KeyRequest) -> Result<Response, Refusal> {
    let role = match given.roles.as_deref() {
        Some([role]) => role.clone(),
        _ => {
            return Err(Refusal::Wrong(
                "`roles` must be one role, in an array".to_owned(),
            ));
        }
    };
    if role.starts_with("named-") && given.name.as_deref().is_none_or(str::is_empty) {
        return Err(Refusal::Wrong(format!(
            "a key with the role `{role}` needs a `name`"
        )));
    }
    let id = match &given.actor_type_id {
        Some(Value::Number(id)) => id.as_i64(),
        Some(Value::String(id)) => id.parse().ok(),
        _ => None,
    };
    let id = id.ok_or_else(|| Refusal::Wrong("`actorTypeId` must be a whole number".to_owned()))?;
    let (role, actor) = match (given.actor_type.as_deref(), role.as_str()) {
        (Some("user"), "named-user-api-key") => {
            if identity.user() != Some(id) {
                return Err(Refusal::Unauthorized);
            }
            (Role::UserKey, of_user(identity)?)
        }
        (Some("application"), "provisioning-api-key") => {
            let actor = permitted(cloud, identity, "application", id).await?;
            (Role::ProvisioningKey, actor)
        }
        (Some("device"), "device-api-key") => {
            let actor = permitted(cloud, identity, "device", id).await?;
            (Role::DeviceKey, actor)
        }
        (kind, role) => {
            return Err(Refusal::Wrong(format!(
                "a key of `{}` cannot have the role `{role}`",
                kind.unwrap_or_default()
            )));
        }
    };
    made(cloud, identity, actor, role, given).await
}

/// A value that is there, be it null.
fn even_null<'a, D: Deserializer<'a>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

async fn read(cloud: &Cloud, request: Request) -> Result<(Identity, KeyRequest), Refusal> {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    if identity.actor().is_none() {
        return Err(Refusal::Unauthorized);
    }
    let bytes = body::bytes(body, cloud.configuration.limits.body).await?;
    let given = if bytes.is_empty() {
        KeyRequest::default()
    } else {
        serde_json::from_slice(&bytes)
            .map_err(|error| Refusal::Wrong(format!("the body is not right: {error}")))?
    };
    Ok((identity, given))
}

fn number(id: &str) -> Result<i64, Refusal> {
    id.parse().map_err(|_| {
        Refusal::Wrong(format!(
            "`{}` is not the id of a record",
            id.chars().take(40).collect::<String>()
        ))
    })
}

/// The actor of a fleet (`application`) or `device` that this credential may make keys of.
///
/// # Errors
/// 401 where it may not, or may not even see it.
pub(crate) async fn permitted(
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
    let row = cloud.database.row(&statement).await?;
    match row {
        Some(row) => Ok(row.id(0)?),
        None => Err(Refusal::Unauthorized),
    }
}

async fn made(
    cloud: &Cloud,
    identity: &Identity,
    actor: i64,
    role: Role,
    given: KeyRequest,
) -> Result<Response, Refusal> {
    let limits = limits(cloud, identity, role, &given).await?;
    let key = match given.api_key {
        Some(key) => chosen(key)?,
        None => random_text(16).map_err(Refusal::Fault)?,
    };
    let more = KeyDescription {
        name: given.name,
        description: given.description,
        expiry_date: given.expiry_date,
        limits,
    };
    kept(cloud, actor, role, &key, more).await?;
    Ok(json_answer(StatusCode::OK, Value::String(key).to_string()))
}

/// What a key is to be limited to.
///
/// # Errors
/// 400 where it is a key of no user, a scope that there is not, or a fleet that its user does not see.
async fn limits(
    cloud: &Cloud,
    identity: &Identity,
    role: Role,
    given: &KeyRequest,
) -> Result<KeyLimits, Refusal> {
    let scope = match given.scope.as_deref() {
        None => None,
        Some(word) => Some(KeyScope::named(word).ok_or_else(|| {
            let words: Vec<&str> = KeyScope::ALL.iter().map(|scope| scope.word()).collect();
            Refusal::Wrong(format!(
                "`{}` is not a scope; the scopes are {}",
                word.chars().take(40).collect::<String>(),
                words.join(", ")
            ))
        })?),
    };
    let limits = KeyLimits {
        scope,
        fleet: given.application_id,
    };
    if role != Role::UserKey && limits != KeyLimits::default() {
        return Err(Refusal::Wrong(
            "only keys of users have a `scope` or an `applicationId`".to_owned(),
        ));
    }
    if let Some(fleet) = limits.fleet {
        let right = cloud.right(&identity.caller, "application", fleet, Method::Read);
        if right.await?.is_none() {
            return Err(Refusal::Wrong(format!("there is no fleet {fleet}")));
        }
    }
    Ok(limits)
}

/// Puts a key into the database, in a transaction of its own.
///
/// # Errors
/// As [`create`].
pub(crate) async fn kept(
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
    let caller = Caller::Platform(SystemPurpose::Keys);
    let mut writer = Writer::new(&mut transaction, cloud.setting(&caller), &cloud.environment);
    create(&mut writer, actor, role, key, more).await?;
    transaction.commit().await?;
    Ok(())
}

/// What people say of a key.
#[derive(Debug, Default)]
pub(crate) struct KeyDescription {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) expiry_date: Option<Value>,
    /// Of a key of a user.
    pub(crate) limits: KeyLimits,
}

/// Puts a key into the database.
///
/// # Errors
/// Where it is taken, or something that is said of it is not right.
pub(crate) async fn create(
    writer: &mut Writer<'_>,
    actor: i64,
    role: Role,
    key: &str,
    more: KeyDescription,
) -> Result<i64, Refusal> {
    let mut row = Map::new();
    let mut say = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            row.insert(name.to_owned(), value);
        }
    };
    say("is_of__actor", Some(json!(actor)));
    say("key_hash", Some(json!(key_hash(key))));
    say("role", Some(json!(role.word())));
    say("name", more.name.map(Value::String));
    say("description", more.description.map(Value::String));
    say("expiry_date", more.expiry_date);
    say("scope", more.limits.scope.map(|scope| json!(scope.word())));
    say(
        "is_limited_to__application",
        more.limits.fleet.map(Value::from),
    );
    Ok(writer.create("api_key", &row).await?)
}

/// A key that somebody chose: long enough that nobody guesses it, and sent in a header as it is.
pub(crate) fn chosen(key: String) -> Result<String, Refusal> {
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

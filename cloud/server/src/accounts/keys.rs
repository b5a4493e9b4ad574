//! `/api-key/…`: creating keys of users, fleets and devices. A key is shown once, when it is created.

use axum::extract::{Path, Request, State};
use cloud_core::accounts::keys::{
    KeyDescription, chosen, find_permitted_actor, require_user, store_key,
};
use cloud_core::answer::{Answer, Refusal, ok};
use cloud_core::body;
use cloud_core::cloud::{Cloud, SharedCloud};
use cloud_core::credential::Identity;
use cloud_core::random::random_text;
use resources::{KeyLimits, KeyScope, Method, Role};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use strum::VariantNames;

/// The requested key.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KeyRequest {
    name: Option<String>,
    description: Option<String>,
    /// Null if null was given.
    #[serde(deserialize_with = "even_null")]
    expiry_date: Option<Value>,
    api_key: Option<String>,
    actor_type: Option<String>,
    actor_type_id: Option<Value>,
    /// The scope of a user's key, if it is limited.
    scope: Option<String>,
    /// The fleet that a key of a user is limited to.
    application_id: Option<i64>,
    roles: Option<Vec<String>>,
}

/// `POST /api-key/user/full`: creates a named key of a user who has just signed in.
pub(crate) async fn user(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (identity, key_request) = read(&cloud, request).await?;
    if key_request.name.as_deref().is_none_or(str::is_empty) {
        return Err(Refusal::Wrong("a key of a user needs a `name`".to_owned()));
    }
    let actor = require_user(&identity)?;
    made(&cloud, &identity, actor, Role::UserKey, key_request).await
}

/// `POST /api-key/application/:id/provisioning`: creates a key that creates devices of a fleet.
pub(crate) async fn provisioning(
    State(cloud): State<SharedCloud>,
    Path(id): Path<String>,
    request: Request,
) -> Answer {
    let (identity, key_request) = read(&cloud, request).await?;
    let actor = find_permitted_actor(&cloud, &identity, "application", number(&id)?).await?;
    made(&cloud, &identity, actor, Role::ProvisioningKey, key_request).await
}

/// `POST /api-key/device/:id/device-key`: creates a key of a device.
pub(crate) async fn device(
    State(cloud): State<SharedCloud>,
    Path(id): Path<String>,
    request: Request,
) -> Answer {
    let (identity, key_request) = read(&cloud, request).await?;
    let actor = find_permitted_actor(&cloud, &identity, "device", number(&id)?).await?;
    made(&cloud, &identity, actor, Role::DeviceKey, key_request).await
}

/// `POST /api-key/v2`: creates a key of any kind; the expiry date is required, but may be `null`.
pub(crate) async fn dated(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (identity, key_request) = read(&cloud, request).await?;
    if key_request.expiry_date.is_none() {
        return Err(Refusal::Wrong(
            "`expiryDate` must say until when the key is valid; `null` means that it does not expire".to_owned(),
        ));
    }
    any(&cloud, &identity, key_request).await
}

/// `POST /api-key/v1`: creates a key of any kind.
pub(crate) async fn undated(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (identity, key_request) = read(&cloud, request).await?;
    any(&cloud, &identity, key_request).await
}

async fn any(cloud: &Cloud, identity: &Identity, key_request: KeyRequest) -> Answer {
    let role = match key_request.roles.as_deref() {
        Some([role]) => role.clone(),
        _ => {
            return Err(Refusal::Wrong(
                "`roles` must be one role, in an array".to_owned(),
            ));
        }
    };
    if role.starts_with("named-") && key_request.name.as_deref().is_none_or(str::is_empty) {
        return Err(Refusal::Wrong(format!(
            "a key with the role `{role}` needs a `name`"
        )));
    }
    let id = match &key_request.actor_type_id {
        Some(Value::Number(id)) => id.as_i64(),
        Some(Value::String(id)) => id.parse().ok(),
        _ => None,
    };
    let id = id.ok_or_else(|| Refusal::Wrong("`actorTypeId` must be a whole number".to_owned()))?;
    let (role, actor) = match (key_request.actor_type.as_deref(), role.as_str()) {
        (Some("user"), "named-user-api-key") => {
            if identity.user() != Some(id) {
                return Err(Refusal::Unauthorized);
            }
            (Role::UserKey, require_user(identity)?)
        }
        (Some("application"), "provisioning-api-key") => {
            let actor = find_permitted_actor(cloud, identity, "application", id).await?;
            (Role::ProvisioningKey, actor)
        }
        (Some("device"), "device-api-key") => {
            let actor = find_permitted_actor(cloud, identity, "device", id).await?;
            (Role::DeviceKey, actor)
        }
        (kind, role) => {
            return Err(Refusal::Wrong(format!(
                "a key of `{}` cannot have the role `{role}`",
                kind.unwrap_or_default()
            )));
        }
    };
    made(cloud, identity, actor, role, key_request).await
}

/// Deserializes a value that is present, even if it is null.
fn even_null<'a, D: Deserializer<'a>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

async fn read(cloud: &Cloud, request: Request) -> Result<(Identity, KeyRequest), Refusal> {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    if identity.actor().is_none() {
        return Err(Refusal::Unauthorized);
    }
    let request = body::optional(body, cloud.configuration.limits.body).await?;
    Ok((identity, request))
}

fn number(id: &str) -> Result<i64, Refusal> {
    id.parse().map_err(|_| {
        Refusal::Wrong(format!(
            "`{}` is not the id of a record",
            id.chars().take(40).collect::<String>()
        ))
    })
}

async fn made(
    cloud: &Cloud,
    identity: &Identity,
    actor: i64,
    role: Role,
    key_request: KeyRequest,
) -> Answer {
    let limits = limits(cloud, identity, role, &key_request).await?;
    let key = match key_request.api_key {
        Some(key) => chosen(key)?,
        None => random_text(16).map_err(Refusal::Fault)?,
    };
    let more = KeyDescription {
        name: key_request.name,
        description: key_request.description,
        expiry_date: key_request.expiry_date,
        limits,
    };
    store_key(cloud, actor, role, &key, more).await?;
    Ok(ok(&Value::String(key)))
}

/// Returns the limits of a requested key.
///
/// # Errors
/// 400 if the key is not one of a user, the scope does not exist, or the user does not see the fleet.
async fn limits(
    cloud: &Cloud,
    identity: &Identity,
    role: Role,
    key_request: &KeyRequest,
) -> Result<KeyLimits, Refusal> {
    let scope = match key_request.scope.as_deref() {
        None => None,
        Some(word) => Some(word.parse().map_err(|_| {
            Refusal::Wrong(format!(
                "`{}` is not a scope; the scopes are {}",
                word.chars().take(40).collect::<String>(),
                KeyScope::VARIANTS.join(", ")
            ))
        })?),
    };
    let limits = KeyLimits {
        scope,
        fleet: key_request.application_id,
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

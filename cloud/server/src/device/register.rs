//! `POST /device/register`: creates a device with its actor, its key and what follows from its fleet, all or nothing
//! (docs/spec/cloud.md#device-register).

use axum::extract::{Request, State};
use axum::response::IntoResponse as _;
use cloud_core::accounts::keys::{self, KeyDescription};
use cloud_core::answer::{Answer, Refusal, json as json_answer};
use cloud_core::body;
use cloud_core::cloud::{Cloud, SharedCloud};
use cloud_core::credential::Identity;
use cloud_core::random::random_text;
use data::write::{WriteError, retried, row};
use data::{SystemPurpose, Transaction};
use http::{StatusCode, header};
use resources::{Method, Role};
use serde_json::{Map, Value, json};

/// The properties that a device states, in addition to its identity.
const STATED_PROPERTIES: [&str; 4] = [
    "supervisor_version",
    "os_version",
    "os_variant",
    "mac_address",
];

/// Older supervisors compare this text.
const UUID_TAKEN: &str = "\"uuid\" must be unique.";
const KEY_TAKEN: &str = "\"api_key\" must be unique.";

/// `POST /device/register`
pub(crate) async fn register(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit_key(&parts).await?;
    let body = body::object(&parts.headers, body, cloud.configuration.limits.body).await?;
    let registration = RegistrationRequest::read(&body)?;
    let outcome = retried(|| once(&cloud, &identity, &registration));
    Ok(match outcome.await? {
        Registration::Made(id) => {
            let made = json!({ "id": id, "uuid": registration.uuid, "api_key": registration.key });
            json_answer(StatusCode::CREATED, made.to_string())
        }
        Registration::Conflict(text) => {
            let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
            (StatusCode::CONFLICT, plain, text).into_response()
        }
    })
}

/// The device to create.
struct RegistrationRequest {
    fleet: i64,
    device_type: String,
    uuid: String,
    key: String,
    fields: Map<String, Value>,
}

impl RegistrationRequest {
    fn read(body: &Map<String, Value>) -> Result<Self, Refusal> {
        let text = |name: &str| match body.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Refusal::Wrong(format!("`{name}` must be text"))),
        };
        let required =
            |name: &str| text(name)?.ok_or_else(|| Refusal::Wrong(format!("`{name}` is required")));
        let fleet = match body.get("application") {
            None | Some(Value::Null) => {
                return Err(Refusal::Wrong("`application` is required".to_owned()));
            }
            Some(Value::Number(number)) => number.as_i64(),
            Some(Value::String(digits)) => digits.parse().ok(),
            Some(_) => None,
        };
        let fleet = fleet.filter(|fleet| *fleet > 0).ok_or_else(|| {
            Refusal::Wrong("`application` must be the number of a fleet".to_owned())
        })?;
        let key = match text("api_key")? {
            Some(key) => keys::chosen(key)?,
            None => random_text(16).map_err(Refusal::Fault)?,
        };
        let mut fields = Map::new();
        for name in STATED_PROPERTIES {
            if let Some(value) = text(name)? {
                fields.insert(name.to_owned(), value.into());
            }
        }
        Ok(RegistrationRequest {
            fleet,
            device_type: required("device_type")?,
            uuid: required("uuid")?,
            key,
            fields,
        })
    }
}

enum Registration {
    Made(i64),
    /// 409, with the message that devices look for.
    Conflict(&'static str),
}

async fn once(
    cloud: &Cloud,
    identity: &Identity,
    registration: &RegistrationRequest,
) -> Result<Registration, WriteError> {
    let mut transaction = cloud.database.begin().await?;
    // Callers without rights on the fleet must not learn which uuids exist.
    if !may_add_to(cloud, &mut transaction, identity, registration.fleet).await? {
        return Err(WriteError::NoRights);
    }
    let device_type = SystemPurpose::Catalogue
        .sql("SELECT device_type FROM device_type_alias WHERE is_referenced_by__alias = ?")
        .with(registration.device_type.as_str());
    let Some(device_type) = transaction.id(&device_type).await? else {
        let slug: String = registration.device_type.chars().take(100).collect();
        let missing = format!("there is no device type `{slug}`");
        return Err(WriteError::NotFound(missing));
    };
    let existing = SystemPurpose::Registration
        .sql("SELECT id FROM device WHERE uuid = ?")
        .with(registration.uuid.as_str());
    if transaction.id(&existing).await?.is_some() {
        return Ok(Registration::Conflict(UUID_TAKEN));
    }
    let mut device = row(json!({
        "uuid": registration.uuid, "belongs_to__application": registration.fleet,
        "is_of__device_type": device_type,
    }));
    device.extend(registration.fields.clone());
    let mut writer = cloud.own_writer(&mut transaction, SystemPurpose::Registration);
    let id = match writer.create("device", &device).await {
        Ok(id) => id,
        // Another request registered it after the check.
        Err(WriteError::Conflict(_)) => return Ok(Registration::Conflict(UUID_TAKEN)),
        Err(error) => return Err(error),
    };
    let actor = SystemPurpose::Registration
        .sql("SELECT actor FROM device WHERE id = ?")
        .with(id);
    let actor = writer.transaction().id(&actor).await?.unwrap_or_default();
    let described = KeyDescription {
        name: Some("device key".to_owned()),
        ..KeyDescription::default()
    };
    let role = Role::DeviceKey;
    match keys::create(&mut writer, actor, role, &registration.key, described).await {
        Ok(_) => {}
        Err(WriteError::Conflict(_)) => return Ok(Registration::Conflict(KEY_TAKEN)),
        Err(error) => return Err(error),
    }
    let setting = cloud.setting(&identity.caller);
    let right = transaction.right(&setting, "device", id, Method::Create);
    right.await?.ok_or(WriteError::NoRights)?;
    transaction.commit().await?;
    Ok(Registration::Made(id))
}

/// Whether a key may create devices in a fleet, as far as is known before one is created.
async fn may_add_to(
    cloud: &Cloud,
    transaction: &mut Transaction,
    identity: &Identity,
    fleet: i64,
) -> Result<bool, WriteError> {
    if identity.role() == Role::ProvisioningKey {
        let own = SystemPurpose::Registration
            .sql("SELECT id FROM application WHERE id = ? AND actor = ?")
            .with(fleet)
            .with(identity.actor().unwrap_or_default());
        return Ok(transaction.id(&own).await?.is_some());
    }
    let setting = cloud.setting(&identity.caller);
    let right = transaction.right(&setting, "application", fleet, Method::Update);
    Ok(right.await?.is_some())
}

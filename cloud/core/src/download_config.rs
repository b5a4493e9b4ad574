//! The `config.json` with which devices join a fleet.

use data::SystemPurpose;
use http::HeaderMap;
use resources::{Action, Role};
use serde_json::{Map, Value, json};

use crate::accounts::keys::{self, KeyDescription};
use crate::answer::Refusal;
use crate::cloud::Cloud;
use crate::credential::Identity;
use crate::public_url::public_url;
use crate::random::random_text;

/// The wireless network of the device, if one is given.
const NETWORK: [&str; 2] = ["wifiSsid", "wifiKey"];

/// Creates the `config.json` for a fleet (`appId`), with a key of its own, for a caller who may create keys of the
/// fleet.
///
/// # Errors
/// 400 if the request is invalid; 401 if the caller may not create keys of the fleet.
pub async fn made(
    cloud: &Cloud,
    identity: &Identity,
    headers: &HeaderMap,
    options: &Map<String, Value>,
) -> Result<Value, Refusal> {
    let fleet = match options.get("appId") {
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(digits)) => digits.parse().ok(),
        _ => None,
    };
    let fleet =
        fleet.ok_or_else(|| Refusal::Wrong("`appId` must be the number of a fleet".to_owned()))?;
    let action = Action::CreateProvisioningKey;
    let right = cloud.right(&identity.caller, "application", fleet, action);
    let right = right.await?.ok_or(Refusal::Unauthorized)?;
    let device_type = text(options, "deviceType")?;
    let about = right.sql(
        "SELECT a.actor, a.app_name, t.slug FROM application AS a \
         JOIN device_type AS t ON t.id = a.is_for__device_type WHERE a.id = ?",
    );
    let row = cloud.database.row(&about).await?;
    let row = row.ok_or(Refusal::Unauthorized)?;
    let device_type = match device_type {
        None => row.some_text(2)?,
        Some(slug) => {
            let alias = SystemPurpose::Catalogue.sql(
                "SELECT t.slug FROM device_type AS t JOIN device_type_alias AS l ON l.device_type = t.id \
                 WHERE l.is_referenced_by__alias = ?",
            );
            match cloud.database.row(&alias.with(slug)).await? {
                Some(row) => row.some_text(0)?,
                None => {
                    let slug: String = slug.chars().take(100).collect();
                    return Err(Refusal::Missing(format!(
                        "there is no device type `{slug}`"
                    )));
                }
            }
        }
    };
    let key = random_text(16).map_err(Refusal::Fault)?;
    let mut transaction = cloud.database.begin().await?;
    let mut writer = cloud.own_writer(&mut transaction, SystemPurpose::Keys);
    let described = KeyDescription {
        name: text(options, "provisioningKeyName")?.map(str::to_owned),
        description: Some("made with a config.json".to_owned()),
        expiry_date: options.get("provisioningKeyExpiryDate").cloned(),
        ..KeyDescription::default()
    };
    keys::create(
        &mut writer,
        row.id(0)?,
        Role::ProvisioningKey,
        &key,
        described,
    )
    .await?;
    transaction.commit().await?;
    let mut made = json!({
        "applicationId": fleet,
        "applicationName": row.some_text(1)?,
        "deviceType": device_type,
        "apiEndpoint": public_url(cloud, headers),
        "apiKey": key,
        "appUpdatePollInterval": minutes(options)?,
        "listenPort": 48484,
        "developmentMode": is_true(options.get("developmentMode")),
    });
    if let Some(registry) = &cloud.configuration.registry {
        made["registryEndpoint"] = json!(registry);
    }
    for name in NETWORK {
        if let Some(value) = text(options, name)? {
            made[name] = json!(value);
        }
    }
    Ok(made)
}

fn text<'a>(options: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Refusal> {
    match options.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::Wrong(format!("`{name}` must be text"))),
    }
}

/// `appUpdatePollInterval` is given in minutes and written in milliseconds.
fn minutes(options: &Map<String, Value>) -> Result<u64, Refusal> {
    let minutes = match options.get("appUpdatePollInterval") {
        None | Some(Value::Null) => Some(10),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(digits)) => digits.parse().ok(),
        Some(_) => None,
    };
    let minutes = minutes.filter(|minutes| *minutes <= 24 * 60);
    let minutes = minutes.ok_or_else(|| {
        Refusal::Wrong("`appUpdatePollInterval` must be minutes, at most those of a day".to_owned())
    })?;
    Ok(minutes.max(10) * 60_000)
}

fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::String(word)) => word == "true",
        _ => false,
    }
}

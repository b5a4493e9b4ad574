//! `sign`: signs a release with a key that the cloud does not have. The statement describes what the cloud wants
//! devices to run, so it is shown first, and compared with the compose file if there is one.

mod shown;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{Span, Timestamp};
use minisign::{PublicKey, SecretKey};
use model::{Branding, TargetApp, TargetState};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use signed_targets::{Allowances, MOST_BYTES, SignedText, SigningError, Statement};

use crate::arguments::sign::Sign;
use crate::ask;
use crate::cloud::Cloud;
use crate::commands::{releases, signing_key, variables};
use crate::deploy::compose::Composition;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// The cloud's placeholder for a secret.
const MASK: &str = "(secret)";

#[derive(Deserialize)]
struct FleetIdentity {
    uuid: String,
    slug: String,
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, sign: Sign) -> Result<()> {
    let now = Timestamp::now();
    let allowances = allowances(&sign, now)?;
    let compose = sign.compose.as_deref().map(Composition::read).transpose()?;
    let release = releases::found(cloud, &sign.release).await?;
    let path = format!("application({})", release.fleet.id);
    let fleet: Option<FleetIdentity> = cloud.row(&path, "$select=uuid,slug").await?;
    let fleet = fleet.ok_or_else(|| Failure::not_found("the release has no fleet"))?;
    let address = format!(
        "/device/v3/fleet/{}/state/?releaseUuid={}",
        fleet.uuid, release.commit
    );
    let state: Value = cloud.get(&address).await?;
    // The cloud's vendor chooses the prefix of settings, which the vendor's devices use as well.
    let mut prefixes = variables::prefixes(cloud).await?.into_iter();
    let branding = Branding {
        env_prefix: prefixes.next().unwrap_or_default(),
        aliases: prefixes.collect(),
        ..Branding::default()
    };
    let target = target(&state, &fleet.uuid, &branding)?;
    let app = target
        .apps
        .values()
        .find(|app| app.uuid.as_str() == fleet.uuid);
    let app = app.ok_or_else(|| Failure::failed("the cloud's answer lacks the fleet's app"))?;
    if let Some(composition) = &compose {
        hold_to(app, composition)?;
    }
    let statement =
        Statement::from_app(app, &target.config, &allowances).map_err(signing_failure)?;
    if let Some((name, _)) = statement.settings.iter().find(|(_, value)| *value == MASK) {
        return Err(Failure::usage(format!(
            "the setting `{name}` is secret, so its value cannot be signed"
        ))
        .hint(format!(
            "`--setting {name}` lets the cloud set it to any value"
        )));
    }
    let text = statement
        .to_text()
        .map_err(|error| Failure::failed("the statement cannot be written").because(error))?;
    output.note(shown::in_words(&statement, &fleet.slug, &release.name()));
    ask::confirmed("sign this", sign.yes)?;
    let key = signing_key::read(&sign.key, sign.password)?;
    let signed = signed(&text, &key)?;
    match &sign.output {
        Some(file) => {
            std::fs::write(file, &signed).map_err(|error| Failure::unwritable(file, error))?;
        }
        None => {
            let body = json!({ "signed_statement": signed });
            let path = format!("release({})", release.id);
            cloud.change(&path, &body).await?;
        }
    }
    let expires = statement.expires_ms.map(shown::time);
    output.done(
        format!("the release {} is signed", release.name()),
        &json!({
            "release": release.commit, "version": statement.version, "expires": expires,
            "public_key": public_key(&key)?, "statement": statement,
        }),
    );
    Ok(())
}

/// Parses the state that the cloud sends to devices of the fleet.
fn target(state: &Value, fleet: &str, branding: &Branding) -> Result<TargetState> {
    let failed = || Failure::failed("the cloud's answer is not a target that devices would accept");
    // The state of any device of a fleet has the fleet's uuid as its key.
    let uuid = fleet.parse().map_err(|error| failed().because(error))?;
    TargetState::from_cloud_json(state, &uuid, branding).map_err(|error| failed().because(error))
}

fn allowances(sign: &Sign, now: Timestamp) -> Result<Allowances> {
    let mut variables: BTreeMap<Option<String>, BTreeSet<String>> = BTreeMap::new();
    for variable in &sign.variables {
        let (service, name) = match variable.split_once('/') {
            Some((service, name)) => (Some(service.to_owned()), name),
            None => (None, variable.as_str()),
        };
        variables
            .entry(service)
            .or_default()
            .insert(name.to_owned());
    }
    let expires = sign.expires.as_deref();
    let expires = expires.map(|text| expiry(text, now)).transpose()?;
    Ok(Allowances {
        version: sign.version.unwrap_or_else(|| milliseconds(now)),
        expires_ms: expires.map(milliseconds),
        variables,
        open_settings: sign.settings.iter().cloned().collect(),
    })
}

/// Parses a time, or a duration from now.
fn expiry(text: &str, now: Timestamp) -> Result<Timestamp> {
    let wrong = || {
        Failure::usage(format!("`{text}` is not a time in the future"))
            .hint("give one such as 2030-01-01T00:00:00Z, or how long from now: 90d, 12h")
    };
    let time = match text.parse::<Timestamp>() {
        Ok(time) => time,
        Err(_) => {
            let span: Span = text.parse().map_err(|error| wrong().because(error))?;
            // Days always have 24 hours: no time zone is involved.
            let length = span
                .to_duration(jiff::SpanRelativeTo::days_are_24_hours())
                .map_err(|error| wrong().because(error))?;
            now.checked_add(length)
                .map_err(|error| wrong().because(error))?
        }
    };
    if time > now { Ok(time) } else { Err(wrong()) }
}

fn milliseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).unwrap_or_default()
}

fn signing_failure(reasons: Vec<SigningError>) -> Failure {
    let hint = reasons.iter().find_map(|reason| match reason {
        SigningError::Variable { service, variable } => Some(format!(
            "`--variable {service}/{variable}` lets the cloud set it to any value; to sign its value, put it under `environment` in the compose file"
        )),
        SigningError::NoDigest { .. } => Some("`fleet deploy` makes the cloud name images by digest".to_owned()),
        SigningError::NoRelease => None,
    });
    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    let failure = Failure::usage(format!("nothing was signed: {}", reasons.join("; ")));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Checks that the cloud has exactly what the compose file says.
fn hold_to(app: &TargetApp, composition: &Composition) -> Result<()> {
    let Some(release) = &app.release else {
        return Ok(());
    };
    let empty = Map::new();
    let part = |name: &str| {
        let part = composition.value.get(name);
        part.and_then(Value::as_object).unwrap_or(&empty)
    };
    let mut differences = Vec::new();
    let services = part("services");
    for (name, service) in &release.services {
        match services.get(name.as_str()).and_then(Value::as_object) {
            None => differences.push(format!("a service `{name}` that the file does not have")),
            Some(fields) => {
                let own = ["image", "build"];
                let own_fields = fields
                    .iter()
                    .filter(|(name, _)| !own.contains(&name.as_str()));
                let own_fields: BTreeMap<&String, &Value> = own_fields.collect();
                let has: BTreeMap<&String, &Value> = service.composition.iter().collect();
                let names: BTreeSet<&&String> = own_fields.keys().chain(has.keys()).collect();
                let other = names
                    .into_iter()
                    .filter(|name| own_fields.get(**name) != has.get(**name));
                differences.extend(
                    other.map(|field| format!("another `{field}` of the service `{name}`")),
                );
            }
        }
    }
    for name in services.keys() {
        if !release.services.keys().any(|other| other.as_str() == name) {
            differences.push(format!("no service `{name}`"));
        }
    }
    for (what, has) in [
        ("volumes", &release.volumes),
        ("networks", &release.networks),
    ] {
        let own: BTreeMap<String, Map<String, Value>> = part(what)
            .iter()
            .map(|(name, value)| (name.clone(), value.as_object().cloned().unwrap_or_default()))
            .collect();
        if own != *has {
            differences.push(format!("other `{what}`"));
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "nothing was signed: unlike the compose file, the cloud has {}",
        differences.join("; ")
    )))
}

fn signed(statement: &str, key: &SecretKey) -> Result<String> {
    let failed = |error| Failure::failed("the statement cannot be signed").because(error);
    let public = PublicKey::from_secret_key(key).map_err(failed)?;
    let signature = minisign::sign(
        Some(&public),
        key,
        statement.as_bytes(),
        None,
        Some("what a release is, signed by the owner of its fleet"),
    );
    let signature = signature.map_err(failed)?.into_string();
    let text = SignedText {
        signature: &signature,
        statement,
    }
    .join();
    if text.len() > MOST_BYTES {
        Err(Failure::failed(format!(
            "the release is too large to be signed: {} bytes, and devices accept {MOST_BYTES}",
            text.len()
        )))
    } else {
        Ok(text)
    }
}

/// Returns the public key in the format of devices' policies.
fn public_key(key: &SecretKey) -> Result<String> {
    let public = PublicKey::from_secret_key(key);
    let public =
        public.map_err(|error| Failure::failed("the key cannot be used").because(error))?;
    Ok(public.to_base64())
}

#[cfg(test)]
mod tests;

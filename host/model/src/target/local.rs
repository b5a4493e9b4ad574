//! The target of `POST` and `GET /v2/local/target-state` (docs/spec/device.md#target-local).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fields::{Field, Record};
use super::{
    AppClass, MAX_APPS, MAX_PER_RELEASE, Path, Problems, TargetApp, TargetErrors, TargetRelease,
    TargetService, TargetState,
};
use crate::{AppId, AppUuid, Branding, ReleaseId, config_variables};

/// The values that apply if a local target does not set them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalDefaults {
    /// The device's current name.
    pub device_name: String,
    /// The branding, with the prefixes that variables of the target may have.
    pub branding: Branding,
}

/// Keys of a service that are not compose fields.
const SERVICE_KEYS: [&str; 8] = [
    "imageId",
    "serviceName",
    "image",
    "environment",
    "labels",
    "running",
    "serviceId",
    "contract",
];

impl TargetState {
    /// Parses a body `{ "local": { name, config, apps } }`.
    ///
    /// # Errors
    /// [`TargetErrors`] with every problem; then nothing of the state is usable.
    pub fn from_local_json(
        body: &Value,
        defaults: &LocalDefaults,
    ) -> Result<TargetState, TargetErrors> {
        let mut problems = Problems::default();
        let mut field = Field {
            path: Path::root("local"),
            value: None,
        };
        match body {
            Value::Object(body) => field.value = body.get("local"),
            other => {
                problems.expected(&Path::root("body"), other, "a map with the key `local`");
            }
        }
        let empty = Record {
            field,
            entries: &Map::new(),
        };
        let local = field.optional_record(&mut problems).unwrap_or(empty);
        let name = local.get("name");
        let config = local.get("config");
        let prefixes = config_variables::prefixes(&defaults.branding);
        let state = TargetState {
            name: match name.value {
                None => defaults.device_name.clone(),
                Some(_) => name.short_text(&mut problems).unwrap_or_default(),
            },
            config: match config.value {
                None => BTreeMap::new(),
                Some(_) => config.config(&mut problems, &prefixes),
            },
            apps: apps(&mut problems, local.get("apps")),
        };
        problems.into_result(state)
    }

    /// Returns the value of `state` in the answer of `GET /v2/local/target-state`: `{ "local": …
    /// }`, with the configuration completed with its defaults. If no local target was set, the
    /// state has no apps.
    ///
    /// `local_mode` is whether local mode is on: clients change the answer and post it again, so
    /// reporting the default there would switch the mode off.
    #[must_use]
    pub fn to_local_json(&self, local_mode: bool) -> Value {
        let mut config = config_variables::with_defaults(&self.config);
        config.insert("SUPERVISOR_LOCAL_MODE".into(), local_mode.to_string());
        let apps: Map<String, Value> = self
            .apps
            .values()
            .map(|app| (app.id.to_string(), app_to_json(app)))
            .collect();
        json!({ "local": { "name": self.name, "config": config, "apps": apps } })
    }
}

fn apps(problems: &mut Problems, field: Field<'_>) -> BTreeMap<AppUuid, TargetApp> {
    let mut apps = BTreeMap::new();
    let Some(record) = field.optional_record(problems) else {
        return apps;
    };
    for key in record.keys(problems, MAX_APPS) {
        let field = record.get(key);
        let key = Value::from(key.as_str());
        let Some(app) = app(problems, field, &key) else {
            continue;
        };
        if apps.insert(app.uuid.clone(), app).is_some() {
            problems.expected(&field.path, &key, "an app id that no other app has");
        }
    }
    apps
}

fn app(problems: &mut Problems, field: Field<'_>, key: &Value) -> Option<TargetApp> {
    let id = number_of(problems, field, key).map(AppId);
    let app = field.record(problems)?;
    let name = app.get("name").short_text(problems);
    let release = release(problems, &app);
    let id = id?;
    Some(TargetApp {
        id,
        // A number in digits is always a valid uuid here.
        uuid: id.to_string().parse().ok()?,
        name: name?,
        class: AppClass::Fleet,
        is_host: false,
        release,
    })
}

/// Returns the key of a field, which must be a number.
fn number_of(problems: &mut Problems, field: Field<'_>, key: &Value) -> Option<u64> {
    let key = Field {
        path: field.path,
        value: Some(key),
    };
    key.number(problems)
}

/// Reads the release. An app without a commit has none, whatever else it contains.
fn release(problems: &mut Problems, app: &Record<'_>) -> Option<TargetRelease> {
    let commit = app.get("commit");
    commit.value.filter(|commit| !commit.is_null())?;
    let commit = commit.parsed(problems, "a commit (letters, digits, `_`, `.` and `-`)");
    let id = app.get("releaseId").number(problems);
    let volumes = app.get("volumes").definitions(problems);
    let networks = app.get("networks").definitions(problems);
    let mut services = BTreeMap::new();
    if let Some(record) = app.get("services").optional_record(problems) {
        for key in record.keys(problems, MAX_PER_RELEASE) {
            let field = record.get(key);
            let Some(service) = service(problems, field) else {
                continue;
            };
            let name = Value::from(service.name.as_str());
            if services.insert(service.name.clone(), service).is_some() {
                problems.expected(
                    &field.path.at("serviceName"),
                    &name,
                    "a name that no other service of the app has",
                );
            }
        }
    }
    Some(TargetRelease {
        id: ReleaseId(id?),
        commit: commit?,
        services,
        volumes,
        networks,
        signed_statement: None,
    })
}

fn service(problems: &mut Problems, field: Field<'_>) -> Option<TargetService> {
    let record = field.record(problems)?;
    let id = number_of(problems, field, &Value::from(field.path.key()));
    let name = record.get("serviceName").parsed(
        problems,
        "a service name (letters, digits, `_`, `.` and `-`, beginning with a letter or digit)",
    );
    let service = record.service(problems, name, id, "imageId");
    let entries = record.entries.iter();
    let composition = entries
        .filter(|(key, _)| !SERVICE_KEYS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()));
    Some(TargetService {
        composition: composition.collect(),
        ..service?
    })
}

fn app_to_json(app: &TargetApp) -> Value {
    let Some(release) = &app.release else {
        return json!({ "name": app.name, "services": {}, "volumes": {}, "networks": {} });
    };
    let services = release.services.values();
    let services: Map<String, Value> = services
        .map(|service| (service.id.to_string(), service_to_json(service)))
        .collect();
    json!({
        "name": app.name,
        "commit": release.commit,
        "releaseId": release.id.to_string(),
        "services": services,
        "volumes": release.volumes,
        "networks": release.networks,
    })
}

fn service_to_json(service: &TargetService) -> Value {
    // Compose fields first: if a composition names one of our keys too, ours takes effect.
    let mut json = service.composition.clone();
    json.insert("environment".into(), json!(service.environment));
    json.insert("labels".into(), json!(service.labels));
    json.insert("imageId".into(), json!(service.image_id));
    json.insert("serviceName".into(), json!(service.name));
    json.insert("serviceId".into(), json!(service.id));
    json.insert("image".into(), json!(service.image));
    json.insert("running".into(), json!(service.running));
    if let Some(contract) = &service.contract {
        json.insert("contract".into(), contract.clone());
    }
    json.into()
}

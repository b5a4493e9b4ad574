//! The target of `POST` and `GET /v2/local/target-state` (docs/spec/device.md#target-local).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    AppClass, MAX_APPS, MAX_PER_RELEASE, Path, Problems, TargetApp, TargetErrors, TargetRelease,
    TargetService, TargetState, fields,
};
use crate::{AppId, AppUuid, Branding, ImageId, ReleaseId, ServiceId, config_variables};

/// The values that apply if a local target does not set them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalDefaults {
    /// The device's current name.
    pub device_name: String,
    /// The names, whose prefixes variables of the target may have.
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
    /// [`TargetErrors`] with every problem; nothing of the state is usable then.
    pub fn from_local_json(
        body: &Value,
        defaults: &LocalDefaults,
    ) -> Result<TargetState, TargetErrors> {
        let mut problems = Problems::default();
        let root = Path::root("local");
        let empty = Map::new();
        let local = match body {
            Value::Object(body) => match body.get("local") {
                None => &empty,
                some => fields::record(&mut problems, &root, some).unwrap_or(&empty),
            },
            other => {
                problems.expected(&Path::root("body"), other, "a map with the key `local`");
                &empty
            }
        };
        let state = TargetState {
            name: match local.get("name") {
                None => defaults.device_name.clone(),
                some => {
                    fields::short_text(&mut problems, &root.at("name"), some).unwrap_or_default()
                }
            },
            config: match local.get("config") {
                None => BTreeMap::new(),
                some => fields::config(
                    &mut problems,
                    &root.at("config"),
                    some,
                    &config_variables::prefixes(&defaults.branding),
                ),
            },
            apps: apps(&mut problems, &root.at("apps"), local.get("apps")),
        };
        problems.into_result(state)
    }

    /// The value of `state` in the answer of `GET /v2/local/target-state`: `{ "local": … }`, with the
    /// configuration filled up with its defaults. A state without apps is the answer if no local
    /// target was set.
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

fn apps(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
) -> BTreeMap<AppUuid, TargetApp> {
    let Some(entries) = fields::optional_record(problems, path, value) else {
        return BTreeMap::new();
    };
    fields::within(problems, path, value, entries.len(), MAX_APPS);
    let mut apps = BTreeMap::new();
    for (key, value) in entries.iter().take(MAX_APPS) {
        let at = path.at(key);
        let key = Value::String(key.clone());
        let id = fields::number(problems, &at, Some(&key)).map(AppId);
        let Some(entry) = fields::record(problems, &at, Some(value)) else {
            continue;
        };
        let name = fields::short_text(problems, &at.at("name"), entry.get("name"));
        let release = release(problems, &at, entry);
        let (Some(id), Some(name)) = (id, name) else {
            continue;
        };
        // A number in digits is always a valid uuid here.
        let Ok(uuid) = id.to_string().parse::<AppUuid>() else {
            continue;
        };
        let app = TargetApp {
            id,
            uuid: uuid.clone(),
            name,
            class: AppClass::Fleet,
            is_host: false,
            release,
        };
        if apps.insert(uuid, app).is_some() {
            problems.expected(&at, &key, "an app id that no other app has");
        }
    }
    apps
}

/// An app without a commit has no release, whatever else it names.
fn release(
    problems: &mut Problems,
    path: &Path<'_>,
    app: &Map<String, Value>,
) -> Option<TargetRelease> {
    let commit = app.get("commit").filter(|commit| !commit.is_null())?;
    let commit = fields::parsed(
        problems,
        &path.at("commit"),
        Some(commit),
        "a commit (letters, digits, `_`, `.` and `-`)",
    );
    let id = fields::number(problems, &path.at("releaseId"), app.get("releaseId"));
    let volumes = fields::definitions(problems, &path.at("volumes"), app.get("volumes"));
    let networks = fields::definitions(problems, &path.at("networks"), app.get("networks"));
    let mut services = BTreeMap::new();
    let at_services = path.at("services");
    if let Some(entries) = fields::optional_record(problems, &at_services, app.get("services")) {
        fields::within(
            problems,
            &at_services,
            app.get("services"),
            entries.len(),
            MAX_PER_RELEASE,
        );
        for (key, value) in entries.iter().take(MAX_PER_RELEASE) {
            let at = at_services.at(key);
            let Some(service) = service(problems, &at, key, value) else {
                continue;
            };
            let name = Value::String(service.name.to_string());
            if services.insert(service.name.clone(), service).is_some() {
                problems.expected(
                    &at.at("serviceName"),
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

fn service(
    problems: &mut Problems,
    path: &Path<'_>,
    key: &str,
    value: &Value,
) -> Option<TargetService> {
    let entry = fields::record(problems, path, Some(value))?;
    let id = fields::number(problems, path, Some(&Value::String(key.to_owned())));
    let name = fields::parsed(
        problems,
        &path.at("serviceName"),
        entry.get("serviceName"),
        "a service name (letters, digits, `_`, `.` and `-`, beginning with a letter or digit)",
    );
    let image_id = fields::number(problems, &path.at("imageId"), entry.get("imageId"));
    let image = fields::image(problems, &path.at("image"), entry.get("image"));
    let environment =
        fields::environment(problems, &path.at("environment"), entry.get("environment"));
    let labels = fields::labels(problems, &path.at("labels"), entry.get("labels"));
    let running = fields::flag(problems, &path.at("running"), entry.get("running"), true);
    let composition = entry
        .iter()
        .filter(|(key, _)| !SERVICE_KEYS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Some(TargetService {
        name: name?,
        id: ServiceId(id?),
        image_id: ImageId(image_id?),
        image: image?,
        running,
        environment,
        labels,
        contract: entry.get("contract").cloned(),
        composition,
    })
}

fn app_to_json(app: &TargetApp) -> Value {
    let mut json = Map::new();
    json.insert("name".into(), json!(app.name));
    if let Some(release) = &app.release {
        json.insert("commit".into(), json!(release.commit));
        json.insert("releaseId".into(), json!(release.id.to_string()));
        let services: Map<String, Value> = release
            .services
            .values()
            .map(|service| (service.id.to_string(), service_to_json(service)))
            .collect();
        json.insert("services".into(), services.into());
        json.insert("volumes".into(), json!(release.volumes));
        json.insert("networks".into(), json!(release.networks));
    } else {
        for empty in ["services", "volumes", "networks"] {
            json.insert(empty.into(), json!({}));
        }
    }
    json.into()
}

fn service_to_json(service: &TargetService) -> Value {
    // Compose fields first: if a composition names one of our keys too, ours is the value in force.
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

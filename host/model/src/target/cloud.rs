//! The target that the cloud answers a poll with (docs/spec/device.md#target-cloud).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    AppClass, MAX_APPS, MAX_PER_RELEASE, Path, Problems, TargetApp, TargetErrors, TargetRelease,
    TargetService, TargetState, fields,
};
use crate::{
    AppId, AppUuid, Branding, DeviceUuid, ImageId, ReleaseId, ServiceId, ServiceName,
    config_variables,
};

impl TargetState {
    /// Parses the part of a version 3 target state that is about `device`; other devices in it are
    /// ignored.
    ///
    /// # Errors
    /// [`TargetErrors`] with every problem; nothing of the state is usable then.
    pub fn from_cloud_json(
        body: &Value,
        device: &DeviceUuid,
        branding: &Branding,
    ) -> Result<TargetState, TargetErrors> {
        let mut problems = Problems::default();
        let root = Path::root(device.as_str());
        let empty = Map::new();
        let entry = match body {
            Value::Object(devices) => {
                fields::record(&mut problems, &root, devices.get(device.as_str()))
            }
            other => {
                problems.expected(&Path::root("body"), other, "a map of devices");
                None
            }
        };
        // Without an entry there is one problem to tell, not one for each field that it would have.
        let Some(entry) = entry else {
            return problems.into_result(TargetState::default());
        };
        let apps_at = root.at("apps");
        let apps = fields::record(&mut problems, &apps_at, entry.get("apps")).unwrap_or(&empty);
        fields::within(
            &mut problems,
            &apps_at,
            entry.get("apps"),
            apps.len(),
            MAX_APPS,
        );
        let state = TargetState {
            name: fields::short_text(&mut problems, &root.at("name"), entry.get("name"))
                .unwrap_or_default(),
            config: fields::config(
                &mut problems,
                &root.at("config"),
                entry.get("config"),
                &config_variables::prefixes(branding),
            ),
            apps: parse_apps(&mut problems, &apps_at, apps),
        };
        problems.into_result(state)
    }
}

fn parse_apps(
    problems: &mut Problems,
    path: &Path<'_>,
    entries: &Map<String, Value>,
) -> BTreeMap<AppUuid, TargetApp> {
    let mut apps = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for (key, value) in entries.iter().take(MAX_APPS) {
        let at = path.at(key);
        let uuid: Option<AppUuid> = fields::name_key(problems, &at, key);
        let Some(entry) = fields::record(problems, &at, Some(value)) else {
            continue;
        };
        let id = fields::number(problems, &at.at("id"), entry.get("id")).map(AppId);
        // Lock folders and volumes are named for the number, so two apps cannot share it.
        if let Some(id) = id
            && !ids.insert(id)
            && let Some(value) = entry.get("id")
        {
            problems.expected(&at.at("id"), value, "an app id that no other app has");
        }
        let name = fields::short_text(problems, &at.at("name"), entry.get("name"));
        let class = class(problems, &at.at("class"), entry.get("class"));
        let is_host = fields::flag(problems, &at.at("is_host"), entry.get("is_host"), false);
        let release = first_release(problems, &at.at("releases"), entry.get("releases"));
        let (Some(uuid), Some(id), Some(name)) = (uuid, id, name) else {
            continue;
        };
        apps.insert(
            uuid.clone(),
            TargetApp {
                id,
                uuid,
                name,
                class,
                is_host,
                release,
            },
        );
    }
    apps
}

fn class(problems: &mut Problems, path: &Path<'_>, value: Option<&Value>) -> AppClass {
    match value {
        None | Some(Value::Null) => AppClass::Fleet,
        Some(Value::String(text)) if text == "fleet" => AppClass::Fleet,
        Some(Value::String(text)) if text == "app" => AppClass::App,
        Some(Value::String(text)) if text == "block" => AppClass::Block,
        Some(other) => {
            problems.expected(path, other, "`fleet`, `app` or `block`");
            AppClass::Fleet
        }
    }
}

/// Of several releases the first key is used, and the others are not looked at.
fn first_release(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
) -> Option<TargetRelease> {
    let entries = fields::optional_record(problems, path, value)?;
    let (key, value) = entries.iter().next()?;
    let at = path.at(key);
    let commit = fields::name_key(problems, &at, key);
    let entry = fields::record(problems, &at, Some(value))?;
    let id = fields::number(problems, &at.at("id"), entry.get("id"));
    let volumes = fields::definitions(problems, &at.at("volumes"), entry.get("volumes"));
    let networks = fields::definitions(problems, &at.at("networks"), entry.get("networks"));
    let services = services(problems, &at.at("services"), entry.get("services"));
    let signed_statement = match entry.get("signed_statement") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => {
            problems.expected(&at.at("signed_statement"), other, "a string");
            None
        }
    };
    Some(TargetRelease {
        id: ReleaseId(id?),
        commit: commit?,
        services,
        volumes,
        networks,
        signed_statement,
    })
}

fn services(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
) -> BTreeMap<ServiceName, TargetService> {
    let Some(entries) = fields::optional_record(problems, path, value) else {
        return BTreeMap::new();
    };
    fields::within(problems, path, value, entries.len(), MAX_PER_RELEASE);
    let mut services = BTreeMap::new();
    for (key, value) in entries.iter().take(MAX_PER_RELEASE) {
        if let Some(service) = service(problems, &path.at(key), key, value) {
            services.insert(service.name.clone(), service);
        }
    }
    services
}

fn service(
    problems: &mut Problems,
    path: &Path<'_>,
    key: &str,
    value: &Value,
) -> Option<TargetService> {
    let name = fields::name_key(problems, path, key);
    let entry = fields::record(problems, path, Some(value))?;
    let id = fields::number(problems, &path.at("id"), entry.get("id"));
    let image_id = fields::number(problems, &path.at("image_id"), entry.get("image_id"));
    let image = fields::image(problems, &path.at("image"), entry.get("image"));
    let environment =
        fields::environment(problems, &path.at("environment"), entry.get("environment"));
    let labels = fields::labels(problems, &path.at("labels"), entry.get("labels"));
    let running = fields::flag(problems, &path.at("running"), entry.get("running"), true);
    let mut composition = match entry.get("composition") {
        None | Some(Value::Null) => Map::new(),
        some => fields::record(problems, &path.at("composition"), some)
            .cloned()
            .unwrap_or_default(),
    };
    // The compose file's own reference; the device pulls the one of the release.
    composition.remove("image");
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

//! The target in the cloud's answer to a poll (docs/spec/device.md#target-cloud).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::fields::Field;
use super::{
    AppClass, MAX_APPS, MAX_PER_RELEASE, Path, Problems, TargetApp, TargetErrors, TargetRelease,
    TargetService, TargetState,
};
use crate::{AppId, Branding, DeviceUuid, ReleaseId, ServiceName, config_variables};

impl TargetState {
    /// Parses the part of a version 3 target state that concerns `device`; other devices in it are
    /// ignored.
    ///
    /// # Errors
    /// [`TargetErrors`] with every problem; then nothing of the state is usable.
    pub fn from_cloud_json(
        body: &Value,
        device: &DeviceUuid,
        branding: &Branding,
    ) -> Result<TargetState, TargetErrors> {
        let mut problems = Problems::default();
        let device = match body {
            Value::Object(devices) => {
                let device = Field {
                    path: Path::root(device.as_str()),
                    value: devices.get(device.as_str()),
                };
                device.record(&mut problems)
            }
            other => {
                problems.expected(&Path::root("body"), other, "a map of devices");
                None
            }
        };
        // Without an entry, one problem is reported, not one for each of its fields.
        let Some(device) = device else {
            return problems.into_result(TargetState::default());
        };
        let apps = device.get("apps").record(&mut problems);
        let uuids = apps.as_ref().map(|apps| apps.keys(&mut problems, MAX_APPS));
        let name = device.get("name").short_text(&mut problems);
        let prefixes = config_variables::prefixes(branding);
        let config = device.get("config").config(&mut problems, &prefixes);
        let mut state = TargetState {
            name: name.unwrap_or_default(),
            config,
            apps: BTreeMap::new(),
        };
        let mut ids = BTreeSet::new();
        if let (Some(apps), Some(uuids)) = (&apps, uuids) {
            for uuid in uuids {
                if let Some(app) = app(&mut problems, apps.get(uuid), &mut ids) {
                    state.apps.insert(app.uuid.clone(), app);
                }
            }
        }
        problems.into_result(state)
    }
}

fn app(problems: &mut Problems, field: Field<'_>, ids: &mut BTreeSet<AppId>) -> Option<TargetApp> {
    let uuid = field.name(problems);
    let app = field.record(problems)?;
    let id_field = app.get("id");
    let id = id_field.number(problems).map(AppId);
    // Lock folders and volumes are named after the number, so two apps cannot share it.
    if let Some(id) = id
        && !ids.insert(id)
        && let Some(value) = id_field.value
    {
        problems.expected(&id_field.path, value, "an app id that no other app has");
    }
    let name = app.get("name").short_text(problems);
    let class = class(problems, app.get("class"));
    let is_host = app.get("is_host").flag(problems, false);
    let release = first_release(problems, app.get("releases"));
    Some(TargetApp {
        id: id?,
        uuid: uuid?,
        name: name?,
        class,
        is_host,
        release,
    })
}

fn class(problems: &mut Problems, field: Field<'_>) -> AppClass {
    match field.value {
        None | Some(Value::Null) => AppClass::Fleet,
        Some(Value::String(text)) if text == "fleet" => AppClass::Fleet,
        Some(Value::String(text)) if text == "app" => AppClass::App,
        Some(Value::String(text)) if text == "block" => AppClass::Block,
        Some(other) => {
            problems.expected(&field.path, other, "`fleet`, `app` or `block`");
            AppClass::Fleet
        }
    }
}

/// Returns the release. If there are several, the first key is used, and the others are ignored.
fn first_release(problems: &mut Problems, field: Field<'_>) -> Option<TargetRelease> {
    let releases = field.optional_record(problems)?;
    let first = releases.get(releases.entries.keys().next()?);
    let commit = first.name(problems);
    let release = first.record(problems)?;
    let id = release.get("id").number(problems);
    let volumes = release.get("volumes").definitions(problems);
    let networks = release.get("networks").definitions(problems);
    let services = services(problems, release.get("services"));
    let statement = release.get("signed_statement");
    let signed_statement = match statement.value {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => {
            problems.expected(&statement.path, other, "a string");
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

fn services(problems: &mut Problems, field: Field<'_>) -> BTreeMap<ServiceName, TargetService> {
    let mut services = BTreeMap::new();
    if let Some(record) = field.optional_record(problems) {
        for name in record.keys(problems, MAX_PER_RELEASE) {
            if let Some(service) = service(problems, record.get(name)) {
                services.insert(service.name.clone(), service);
            }
        }
    }
    services
}

fn service(problems: &mut Problems, field: Field<'_>) -> Option<TargetService> {
    let name = field.name(problems);
    let record = field.record(problems)?;
    let id = record.get("id").number(problems);
    let service = record.service(problems, name, id, "image_id");
    let composition = record.get("composition");
    let mut composition = match composition.value {
        None | Some(Value::Null) => Map::new(),
        Some(_) => composition
            .record(problems)
            .map_or_else(Map::new, |composition| composition.entries.clone()),
    };
    // The compose file's own reference; the device pulls the release's.
    composition.remove("image");
    Some(TargetService {
        composition,
        ..service?
    })
}

//! Builds the document of a target state from its rows: the same rows result in the same bytes
//! (docs/spec/cloud.md#device-state-etag).

use std::collections::BTreeMap;

use resources::Branding;
use serde_json::{Map, Value, json};

use super::rows::{AppRole, Level, Rows, StateApp, StateImage};

/// The default and shortest interval of a device's polls, in milliseconds (docs/spec/cloud.md#device-state).
pub(crate) const POLL: i64 = 600_000;
/// The longest interval: the maximum for timers of devices.
const LONGEST_POLL: i64 = i32::MAX as i64;
const POLL_NAME: &str = "SUPERVISOR_POLL_INTERVAL";

/// Deeper levels of a composition or contract are left out: a device's parser accepts 128 levels, some of which the
/// surrounding document needs.
const DEEPEST: usize = 64;

impl Rows {
    /// `GET /device/v3/:uuid/state`
    pub(crate) fn document(&self, branding: &Branding) -> Value {
        let inside = json!({
            "name": self.name, "config": self.config(branding), "apps": self.apps(branding),
        });
        Value::Object(Map::from_iter([(self.uuid.clone(), inside)]))
    }

    /// `GET /device/v2/:uuid/state`: only the fleet's app, by numbers.
    pub(crate) fn v2_document(&self, branding: &Branding) -> Value {
        let mut apps = Map::new();
        if let Some(app) = self.apps.get(&AppRole::Fleet) {
            let mut object = json!({ "name": app.name });
            let composition = Composition::from_app(app);
            if let Some(release) = &app.release {
                object["commit"] = json!(release.commit);
                object["releaseId"] = json!(release.id);
                let mut services = Map::new();
                for (name, image) in &app.images {
                    let mut service = composition.service(name).unwrap_or_default();
                    let about = json!({
                        "imageId": image.id, "serviceName": name, "image": image.reference(), "running": true,
                        "environment": self.environment(app, image),
                        "labels": self.labels_of(AppRole::Fleet, image, branding),
                    });
                    if let Value::Object(about) = about {
                        service.extend(about);
                    }
                    if let Some(contract) = image.contract() {
                        service.insert("contract".to_owned(), contract);
                    }
                    services.insert(image.service.to_string(), Value::Object(service));
                }
                object["services"] = Value::Object(services);
            }
            for (name, part) in composition.shared() {
                object[name] = part;
            }
            apps.insert(app.id.to_string(), object);
        }
        json!({
            "local": { "name": self.name, "config": self.config(branding), "apps": apps },
            "dependent": { "apps": {}, "devices": {} },
        })
    }

    /// Returns the poll interval, in milliseconds.
    pub(crate) fn poll_interval(&self, branding: &Branding) -> i64 {
        let interval = self.settings(branding).remove(POLL_NAME);
        let interval = interval.and_then(|text| text.trim().parse::<i64>().ok());
        interval.unwrap_or(POLL).clamp(POLL, LONGEST_POLL)
    }

    /// Returns configuration variables by their names without a prefix: those of the device take precedence over those
    /// of its fleet, the current prefix over older ones.
    fn settings(&self, branding: &Branding) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        for level in [Level::Fleet, Level::Device] {
            let prefixes: Vec<&str> = branding.env_prefixes().collect();
            for prefix in prefixes.into_iter().rev() {
                for (name, value) in self.variables.get(&(level, None)).into_iter().flatten() {
                    if let Some(bare) = name.strip_prefix(prefix) {
                        settings.insert(bare.to_owned(), value.clone());
                    }
                }
            }
        }
        settings
    }

    fn config(&self, branding: &Branding) -> Map<String, Value> {
        let mut settings = self.settings(branding);
        // These are for user interfaces, and for very old devices.
        settings.retain(|name, _| !name.starts_with("UI") && name != "HOST_LOG_TO_DISPLAY");
        let poll = self.poll_interval(branding).to_string();
        settings.insert(POLL_NAME.to_owned(), poll);
        let mut config = BTreeMap::new();
        for prefix in written(branding.env_prefixes(), branding) {
            for (name, value) in &settings {
                config.insert(format!("{prefix}{name}"), json!(value));
            }
        }
        config.into_iter().collect()
    }

    fn apps(&self, branding: &Branding) -> Map<String, Value> {
        let mut apps = BTreeMap::new();
        for (part, app) in &self.apps {
            // Devices run any app that is a fleet: the one that manages them is not, whatever its row says.
            let class = match part {
                AppRole::Supervisor => "app",
                AppRole::System | AppRole::Fleet => app.class.as_str(),
            };
            let mut object = json!({
                "id": app.id, "name": app.name, "is_host": app.is_host, "class": class,
            });
            if let Some(release) = &app.release {
                let inside = self.release(*part, app, release.id, branding);
                object["releases"] =
                    Value::Object(Map::from_iter([(release.commit.clone(), inside)]));
            }
            apps.insert(app.uuid.clone(), object);
        }
        apps.into_iter().collect()
    }

    fn release(&self, part: AppRole, app: &StateApp, id: i64, branding: &Branding) -> Value {
        let composition = Composition::from_app(app);
        let mut release = json!({ "id": id });
        let mut services = Map::new();
        for (name, image) in &app.images {
            let mut service = json!({
                "id": image.service, "image_id": image.id, "image": image.reference(),
                "environment": self.environment(app, image),
                "labels": self.labels_of(part, image, branding),
            });
            if let Some(contract) = image.contract() {
                service["contract"] = contract;
            }
            if let Some(fields) = composition.service(name) {
                service["composition"] = Value::Object(fields);
            }
            services.insert(name.clone(), service);
        }
        if !services.is_empty() {
            release["services"] = Value::Object(services);
        }
        for (name, shared) in composition.shared() {
            release[name] = shared;
        }
        let signed = app.release.as_ref();
        if let Some(text) = signed.and_then(|release| release.signed_statement.as_ref()) {
            release["signed_statement"] = json!(text);
        }
        release
    }

    fn environment(&self, app: &StateApp, image: &StateImage) -> Map<String, Value> {
        let levels = [
            (Level::Image, Some(image.release_image)),
            (Level::Fleet, Some(app.id)),
            (Level::Service, Some(image.service)),
            (Level::Device, Some(0)),
            (Level::DeviceService, Some(image.service)),
        ];
        merged(levels.iter().filter_map(|level| self.variables.get(level)))
    }

    fn labels_of(
        &self,
        part: AppRole,
        image: &StateImage,
        branding: &Branding,
    ) -> Map<String, Value> {
        let levels = [
            (Level::Image, Some(image.release_image)),
            (Level::Service, Some(image.service)),
        ];
        let mut labels = merged(levels.iter().filter_map(|level| self.labels.get(level)));
        let mut unless_there = |name: &str, value: &str| {
            for namespace in written(branding.label_namespaces(), branding) {
                let name = format!("{namespace}.{name}");
                if !labels.contains_key(&name) {
                    labels.insert(name, json!(value));
                }
            }
        };
        match part {
            AppRole::Supervisor => {}
            AppRole::System => unless_there("image.store", "root"),
            AppRole::Fleet => {
                let settings = self.settings(branding);
                for (setting, label) in [
                    ("SUPERVISOR_UPDATE_STRATEGY", "update.strategy"),
                    ("SUPERVISOR_HANDOVER_TIMEOUT", "update.handover-timeout"),
                ] {
                    // A label counts under any of its names.
                    let there = branding.label_namespaces().any(|namespace| {
                        let name = format!("{namespace}.{label}");
                        let mut own = levels.iter().filter_map(|level| self.labels.get(level));
                        own.any(|labels| labels.contains_key(&name))
                    });
                    if let (Some(value), false) = (settings.get(setting), there) {
                        unless_there(label, value);
                    }
                }
            }
        }
        let sorted: BTreeMap<String, Value> = labels.into_iter().collect();
        sorted.into_iter().collect()
    }
}

/// Returns the current name, and the older ones that are also sent to devices.
fn written<'a>(
    names: impl Iterator<Item = &'a str>,
    branding: &'a Branding,
) -> impl Iterator<Item = &'a str> {
    names
        .enumerate()
        .filter(|(at, name)| *at == 0 || branding.written.iter().any(|one| one == name))
        .map(|(_, name)| name)
}

/// Merges levels in the order of names; later levels take precedence.
fn merged<'a>(levels: impl Iterator<Item = &'a BTreeMap<String, String>>) -> Map<String, Value> {
    let all: BTreeMap<&String, &String> = levels.flatten().collect();
    all.into_iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect()
}

impl StateImage {
    /// Returns the reference by which a device pulls the image.
    fn reference(&self) -> String {
        let reference = match self.hash.as_deref() {
            None | Some("") => self.location.clone(),
            Some(hash) => format!("{}@{hash}", self.location),
        };
        reference.to_lowercase()
    }

    fn contract(&self) -> Option<Value> {
        let contract: Value = serde_json::from_str(self.contract.as_deref()?).ok()?;
        (!contract.is_null() && is_flat_enough(&contract, DEEPEST)).then_some(contract)
    }
}

/// A composition built by a user, whose content is not validated.
struct Composition(Map<String, Value>);

impl Composition {
    fn from_app(app: &StateApp) -> Self {
        let text = app
            .release
            .as_ref()
            .map(|release| release.composition.as_str());
        Composition(match text.map(serde_json::from_str) {
            Some(Ok(Value::Object(parts))) => parts,
            _ => Map::new(),
        })
    }

    /// Returns the definition of a service, without the parts that only builds need.
    fn service(&self, name: &str) -> Option<Map<String, Value>> {
        let service = self.0.get("services")?.get(name)?;
        let mut fields = service
            .as_object()
            .filter(|_| is_flat_enough(service, DEEPEST))?
            .clone();
        fields.shift_remove("build");
        Some(fields)
    }

    /// Returns networks and volumes.
    fn shared(&self) -> impl Iterator<Item = (&'static str, Value)> {
        ["networks", "volumes"].into_iter().filter_map(|name| {
            let part = self.0.get(name)?;
            (part.is_object() && is_flat_enough(part, DEEPEST)).then(|| (name, part.clone()))
        })
    }
}

fn is_flat_enough(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Array(values) => values.iter().all(|value| is_flat_enough(value, below)),
        Value::Object(fields) => fields.values().all(|value| is_flat_enough(value, below)),
        _ => true,
    }
}

//! The part of a target that a simulated device reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Branding, Settings, config_variables};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// The target of one or more devices. Devices of one release share it.
#[derive(Debug, PartialEq)]
pub(crate) struct Target {
    /// By the app's uuid: the commit, and the image of each service.
    apps: BTreeMap<String, (String, BTreeMap<String, String>)>,
    /// The settings of its variables.
    pub(crate) settings: Settings,
}

impl Target {
    /// Reads a device's part of a cloud's target; `None` if it is missing or cannot be read.
    pub(crate) fn read(whole: &Value, uuid: &str) -> Option<Self> {
        let device = whole.get(uuid)?.as_object()?;
        let mut apps = BTreeMap::new();
        for (app, value) in device.get("apps")?.as_object()? {
            let Some(releases) = value.get("releases") else {
                continue;
            };
            for (commit, release) in releases.as_object()? {
                let services = release.get("services").and_then(Value::as_object);
                let images = services.into_iter().flatten().map(|(name, service)| {
                    let image = service.get("image").and_then(Value::as_str);
                    (name.clone(), image.unwrap_or_default().to_owned())
                });
                apps.insert(app.clone(), (commit.clone(), images.collect()));
            }
        }
        let given = device.get("config").and_then(Value::as_object);
        let given = given.into_iter().flatten().filter_map(|(name, value)| {
            let value = value.as_str()?;
            Some((name.clone(), value.to_owned()))
        });
        let prefixes = config_variables::prefixes(&Branding::default());
        let variables = config_variables::retain_known(given.collect(), &prefixes);
        Some(Target {
            apps,
            settings: Settings::from_variables(&variables),
        })
    }

    /// Returns the commits of the releases that should run.
    pub(crate) fn commits(&self) -> impl Iterator<Item = &str> {
        self.apps.values().map(|(commit, _)| commit.as_str())
    }

    /// Returns `apps` of a report, of a device that is done or still applying it.
    pub(crate) fn apps_report(&self, done: bool) -> Map<String, Value> {
        let (update, state) = if done {
            ("done", "Running")
        } else {
            ("downloading", "Downloading")
        };
        let apps = self.apps.iter().map(|(app, (commit, images))| {
            let services = images.iter().map(|(name, image)| {
                let mut service = json!({ "image": image, "status": state });
                if !done {
                    service["download_progress"] = 0.into();
                }
                (name.clone(), service)
            });
            let services: Map<String, Value> = services.collect();
            let release = json!({ "update_status": update, "services": services });
            let mut entry = json!({ "releases": { commit.as_str(): release } });
            if done {
                entry["release_uuid"] = commit.as_str().into();
            }
            (app.clone(), entry)
        });
        apps.collect()
    }
}

/// The targets of all devices, without duplicates.
#[derive(Default)]
pub(crate) struct Targets(Mutex<Vec<Arc<Target>>>);

impl Targets {
    /// Returns the target, or an equal one that another device has.
    pub(crate) fn shared(&self, target: Target) -> Arc<Target> {
        let mut held = self.0.lock();
        held.retain(|other| Arc::strong_count(other) > 1);
        if let Some(same) = held.iter().find(|other| ***other == target) {
            return same.clone();
        }
        let target = Arc::new(target);
        held.push(target.clone());
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0123456789abcdef0123456789abcdef";

    fn target() -> Value {
        json!({ UUID: { "name": "x", "config": { "PLATFORM_SUPERVISOR_POLL_INTERVAL": "600000" }, "apps": {
            "app": { "id": 1, "name": "pump", "is_host": false, "class": "fleet", "releases": {
                "c1": { "id": 5, "services": { "main": { "id": 3, "image_id": 9, "image": "r/a@sha256:1" } } },
            } },
            "empty": { "id": 2, "name": "none", "is_host": false, "class": "fleet" },
        } } })
    }

    #[test]
    fn a_completed_target_is_reported_as_it_was_given() {
        let read = Target::read(&target(), UUID).unwrap();
        assert_eq!(read.settings.poll_interval.as_secs(), 600);
        assert_eq!(
            Value::Object(read.apps_report(true)),
            json!({ "app": { "release_uuid": "c1", "releases": { "c1": { "update_status": "done",
                "services": { "main": { "image": "r/a@sha256:1", "status": "Running" } } } } } })
        );
        let coming = Value::Object(read.apps_report(false));
        assert_eq!(coming["app"]["release_uuid"], Value::Null);
        assert_eq!(
            coming["app"]["releases"]["c1"]["update_status"],
            "downloading"
        );
        assert_eq!(Target::read(&target(), "another"), None);
    }

    #[test]
    fn devices_of_one_release_share_what_it_is() {
        let targets = Targets::default();
        let one = targets.shared(Target::read(&target(), UUID).unwrap());
        let other = targets.shared(Target::read(&target(), UUID).unwrap());
        assert!(Arc::ptr_eq(&one, &other));
    }
}

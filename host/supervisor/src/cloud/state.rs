//! The device's state as reported to the cloud (docs/spec/device.md#report-fields): built from the reconciler's status
//! and the facts of the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloud_link::{PLUGIN_FIELDS, StateSource};
use futures::FutureExt;
use futures::future::BoxFuture;
use model::{
    AppId, AppStatus, AppUuid, Commit, DeviceStatus, ImageRef, ImageState, ImageStatus,
    RefusedTarget, ReleaseState, ServiceName,
};
use parking_lot::Mutex;
use reconcile::{EffectiveSettings, Reconciler, SigningState};
use serde_json::{Map, Value, json};
use store::Store;
use tokio::sync::watch;

use super::CloudContext;
use crate::facts::{DeviceFacts, Readings, Sensors};
use crate::plugin_fields::PluginFields;

/// The reported state, and when it may have changed.
pub(crate) struct DeviceState {
    reconciler: Reconciler,
    facts: Arc<DeviceFacts>,
    store: Store,
    os_version: Option<String>,
    os_variant: Option<String>,
    supervisor_version: String,
    allow_unpinned: bool,
    plugin_fields: PluginFields,
    sensors: Mutex<Sensors>,
    watches: tokio::sync::Mutex<StateWatches>,
}

/// The status of a device that accepts any file as a plugin; the cloud keeps 50 characters.
const DEVELOPER_MODE: &str = "Developer mode: plugins are not pinned";
/// The status of a device that accepts only signed targets.
const SIGNED_TARGETS: &str = "Idle (accepts only signed targets)";
/// The status of such a device after it has refused the last target.
const REFUSED_TARGET: &str = "Refused a target that is not signed: see logs";

/// The status if a release was not healthy.
const WENT_BACK: &str = "Went back from an unhealthy release: see logs";
/// The status if a version of the operating system was not healthy, or did not boot.
const REJECTED_OS: &str = "Rejected an operating system: see logs";

/// Signals of changes.
struct StateWatches {
    status: watch::Receiver<Arc<DeviceStatus>>,
    settings: watch::Receiver<Arc<EffectiveSettings>>,
    signing: watch::Receiver<Arc<SigningState>>,
}

impl DeviceState {
    pub(crate) fn new(around: &CloudContext<'_>) -> Self {
        let CloudContext {
            configuration,
            reconciler,
            board,
            ..
        } = around;
        let mut variant = board.variant.clone();
        if variant.is_none()
            && let Ok(Some(develops)) = around.host.config_json.get("developmentMode")
        {
            let name = if model::truthy(&develops) {
                "dev"
            } else {
                "prod"
            };
            variant = Some(name.to_owned());
        }
        DeviceState {
            reconciler: (*reconciler).clone(),
            facts: around.facts.clone(),
            store: around.store.clone(),
            os_version: board.os_version.clone(),
            os_variant: variant,
            supervisor_version: configuration.branding.api_level.clone(),
            allow_unpinned: configuration.allow_unpinned,
            plugin_fields: around.plugin_fields.clone(),
            sensors: Mutex::new(Sensors::new(
                &configuration.host_root,
                &configuration.state_dir,
            )),
            watches: tokio::sync::Mutex::new(StateWatches {
                status: reconciler.watch(),
                settings: reconciler.effective_settings(),
                signing: reconciler.signing(),
            }),
        }
    }

    fn draw(&self) -> Map<String, Value> {
        let facts = self.facts.now();
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        let signing = self.reconciler.signing().borrow().clone();
        let device = self.reconciler.status();
        let has_gone_back = device
            .apps
            .values()
            .any(|app| app.rejected_release.is_some());
        let status = match &*signing {
            SigningState {
                refused: Some(_), ..
            } => REFUSED_TARGET,
            _ if has_gone_back => WENT_BACK,
            _ if device.rejected_os.is_some() => REJECTED_OS,
            _ if self.allow_unpinned => DEVELOPER_MODE,
            SigningState {
                is_required: true, ..
            } => SIGNED_TARGETS,
            SigningState { .. } => "Idle",
        };
        put("status", status.into());
        put("provisioning_progress", Value::Null);
        put("provisioning_state", "".into());
        put("os_version", self.os_version.clone().into());
        put("os_variant", self.os_variant.clone().into());
        put("supervisor_version", self.supervisor_version.clone().into());
        put("ip_address", facts.ip_address.clone().into());
        put("mac_address", facts.mac_address.clone().into());
        put("api_port", facts.api_port.into());
        if let Ok(key) = self.store.global_key() {
            put("api_secret", key.reveal().into());
        }
        let measures = self
            .reconciler
            .effective_settings()
            .borrow()
            .settings
            .hardware_metrics;
        let readings = measures.then(|| {
            let mut sensors = self.sensors.lock();
            sensors.read()
        });
        for (name, value) in measured(readings) {
            put(name, value);
        }
        if let Some(fields) = self.plugin_fields.report() {
            put(PLUGIN_FIELDS, fields);
        }
        if !self.reconciler.local_mode() {
            put("logs_channel", Value::Null);
            let in_target = self.reconciler.apps_of_the_cloud();
            let mut apps = apps(&device, &in_target);
            if let Some(refused) = &signing.refused {
                reject(&mut apps, refused);
            }
            put("apps", apps);
        }
        fields
    }
}

impl StateSource for DeviceState {
    fn report(&self) -> BoxFuture<'_, Map<String, Value>> {
        async {
            // Changes from here on are a reason for another check.
            {
                let mut watches = self.watches.lock().await;
                watches.status.borrow_and_update();
                watches.settings.borrow_and_update();
                watches.signing.borrow_and_update();
            }
            // Files of the kernel, whose contents are generated when they are read.
            tokio::task::block_in_place(|| self.draw())
        }
        .boxed()
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        async {
            let mut watches = self.watches.lock().await;
            let StateWatches {
                status,
                settings,
                signing,
            } = &mut *watches;
            tokio::select! {
                changed = status.changed() => if changed.is_err() { std::future::pending().await },
                changed = settings.changed() => if changed.is_err() { std::future::pending().await },
                changed = signing.changed() => if changed.is_err() { std::future::pending().await },
            }
        }
        .boxed()
    }
}

/// Returns each measure; all are null if they are not required, so that the cloud does not keep showing the last ones.
fn measured(readings: Option<Readings>) -> Vec<(&'static str, Value)> {
    let is_undervolted = readings.as_ref().map(|readings| readings.is_undervolted);
    let of = readings.unwrap_or_default();
    let first = |pair: Option<(u64, u64)>| Value::from(pair.map(|pair| pair.0));
    let second = |pair: Option<(u64, u64)>| Value::from(pair.map(|pair| pair.1));
    vec![
        ("cpu_usage", of.cpu_usage.into()),
        ("cpu_temp", of.cpu_temp.into()),
        ("cpu_id", of.cpu_id.into()),
        ("is_undervolted", is_undervolted.into()),
        ("memory_usage", first(of.memory)),
        ("memory_total", second(of.memory)),
        ("storage_usage", first(of.storage)),
        ("storage_total", second(of.storage)),
        ("storage_block_device", of.storage_block_device.into()),
    ]
}

/// Returns the apps in the cloud's target, each with its releases: the one in the target, and those that have
/// containers.
fn apps(status: &DeviceStatus, in_target: &[(AppId, AppUuid)]) -> Value {
    let apps = in_target.iter().filter_map(|(_, uuid)| {
        let app = status.apps.get(uuid)?;
        Some((uuid.to_string(), app_of(status, app)))
    });
    Value::Object(apps.collect())
}

/// Adds the releases of a refused target. One that runs already is reported as running.
fn reject(apps: &mut Value, refused: &RefusedTarget) {
    let Some(apps) = apps.as_object_mut() else {
        return;
    };
    for (uuid, commit) in &refused.releases {
        let app = apps.entry(uuid.as_str());
        let app = app.or_insert_with(|| json!({ "releases": {} }));
        if let Some(releases) = app["releases"].as_object_mut() {
            let release = releases.entry(commit.as_str());
            release.or_insert_with(|| Release::new(ReleaseState::Rejected).report());
        }
    }
}

/// The reported properties of a release.
struct Release {
    state: ReleaseState,
    services: Map<String, Value>,
}

impl Release {
    fn new(state: ReleaseState) -> Self {
        Release {
            state,
            services: Map::new(),
        }
    }

    fn add(&mut self, name: &ServiceName, image: &ImageRef, status: &str, progress: Option<u8>) {
        let mut report = json!({ "image": image.to_string(), "status": status });
        if let Some(progress) = progress {
            report["download_progress"] = progress.into();
        }
        self.services.insert(name.to_string(), report);
    }

    fn report(self) -> Value {
        json!({ "update_status": self.state, "services": self.services })
    }
}

fn app_of(status: &DeviceStatus, app: &AppStatus) -> Value {
    let mut releases: BTreeMap<&Commit, Release> = BTreeMap::new();
    let target = app.target_commit.as_ref();
    if let Some(commit) = target {
        releases.insert(commit, Release::new(app.state));
    }
    for service in &app.services {
        let of_target = target.filter(|_| service.in_target);
        let Some(commit) = service.commit.as_ref().or(of_target) else {
            continue;
        };
        let release = releases.entry(commit);
        let release = release.or_insert_with(|| Release::new(ReleaseState::Done));
        let (state, progress) = (service.state.into(), service.download_progress);
        release.add(&service.name, &service.image, state, progress);
    }
    if let Some(commit) = target
        && let Some(release) = releases.get_mut(commit)
    {
        for image in coming(status, app, commit) {
            let (state, progress) = (image.state.into(), image.download_progress);
            release.add(&image.service, &image.name, state, progress);
        }
        if release.state == ReleaseState::Rejected {
            release.services.clear();
        }
    }
    if let Some(rejected) = &app.rejected_release {
        let release = releases.entry(&rejected.commit);
        release.or_insert_with(|| Release::new(ReleaseState::Aborted));
    }
    let releases = releases.into_iter();
    let releases: Map<String, Value> = releases
        .map(|(commit, release)| (commit.to_string(), release.report()))
        .collect();
    let mut report = json!({ "releases": releases });
    if let Some(commit) = &app.commit {
        report["release_uuid"] = commit.as_str().into();
    }
    report
}

/// Returns the images of the target's release for which the service still has an older container.
fn coming<'a>(
    status: &'a DeviceStatus,
    app: &'a AppStatus,
    target: &'a Commit,
) -> impl Iterator<Item = &'a ImageStatus> {
    status.images.iter().filter(move |image| {
        let containers = || app.services.iter().filter(|of| of.name == image.service);
        image.app_id == app.id
            && image.state != ImageState::Deleting
            && containers().any(|of| of.in_target)
            && containers().all(|of| of.image != image.name && of.commit.as_ref() != Some(target))
    })
}

#[cfg(test)]
mod tests {
    use cloud_link::METRICS;
    use model::{ImageId, ReleaseId, ServiceId, ServiceState, ServiceStatus};

    use super::*;

    const APP: &str = "5f0ee0e1d1b84a1f9a6f5a7d3a1c9b20";

    fn service(
        name: &str,
        commit: Option<&str>,
        image: &str,
        state: ServiceState,
    ) -> ServiceStatus {
        ServiceStatus {
            name: name.parse().unwrap(),
            id: ServiceId(1),
            image_id: ImageId(1),
            release: ReleaseId(1),
            commit: commit.map(|commit| commit.parse().unwrap()),
            image: image.parse().unwrap(),
            state,
            download_progress: (state == ServiceState::Downloading).then_some(30),
            container: None,
            created_at_ms: None,
            in_target: true,
        }
    }

    fn status(state: ReleaseState, services: Vec<ServiceStatus>) -> DeviceStatus {
        let app = AppStatus {
            id: AppId(4),
            name: "pump".into(),
            commit: Some("c1".parse().unwrap()),
            target_commit: Some("c2".parse().unwrap()),
            target_release: Some(ReleaseId(2)),
            state,
            services,
            rejected_release: None,
        };
        DeviceStatus {
            apps: [(APP.parse().unwrap(), app)].into(),
            images: vec![ImageStatus {
                name: "r/a:2".parse().unwrap(),
                app_id: AppId(4),
                service: "a".parse().unwrap(),
                image_id: ImageId(2),
                engine_id: None,
                state: ImageState::Downloading,
                download_progress: Some(40),
            }],
            ..DeviceStatus::default()
        }
    }

    fn app_report(status: &DeviceStatus) -> Value {
        apps(status, &[(AppId(4), APP.parse().unwrap())])[APP].take()
    }

    #[test]
    fn both_releases_are_told_while_one_takes_the_place_of_the_other() {
        let services = vec![
            service("a", Some("c1"), "r/a:1", ServiceState::Running),
            service("b", Some("c2"), "r/b:2", ServiceState::Running),
            service("c", None, "r/c:2", ServiceState::Downloading),
        ];
        assert_eq!(
            app_report(&status(ReleaseState::Downloading, services)),
            json!({
                "release_uuid": "c1",
                "releases": {
                    "c1": { "update_status": "done", "services": {
                        "a": { "image": "r/a:1", "status": "Running" },
                    }},
                    "c2": { "update_status": "downloading", "services": {
                        "b": { "image": "r/b:2", "status": "Running" },
                        "c": { "image": "r/c:2", "status": "Downloading", "download_progress": 30 },
                        "a": { "image": "r/a:2", "status": "Downloading", "download_progress": 40 },
                    }},
                },
            })
        );
    }

    #[test]
    fn a_release_that_runs_is_told_alone_and_a_rejected_one_without_services() {
        let running = vec![service("a", Some("c2"), "r/a:2", ServiceState::Running)];
        let done = app_report(&status(ReleaseState::Done, running));
        let expected = json!({ "c2": { "update_status": "done", "services": {
            "a": { "image": "r/a:2", "status": "Running" },
        }}});
        assert_eq!(done["releases"], expected);
        let before = vec![service("a", Some("c1"), "r/a:1", ServiceState::Running)];
        let rejected = app_report(&status(ReleaseState::Rejected, before));
        let expected = json!({ "update_status": "rejected", "services": {} });
        assert_eq!(rejected["releases"]["c2"], expected);
        assert_eq!(
            rejected["releases"]["c1"]["services"]["a"]["status"],
            "Running"
        );
    }

    #[test]
    fn a_release_that_was_not_healthy_is_told_beside_the_one_that_runs() {
        let running = vec![service("a", Some("c2"), "r/a:2", ServiceState::Running)];
        let mut status = status(ReleaseState::Done, running);
        for app in status.apps.values_mut() {
            app.rejected_release = Some(model::RejectedRelease {
                commit: "c3".parse().unwrap(),
                reason: "it fails".to_owned(),
            });
        }
        let releases = app_report(&status)["releases"].take();
        let expected = json!({ "update_status": "aborted", "services": {} });
        assert_eq!(releases["c3"], expected);
        assert_eq!(releases["c2"]["update_status"], "done");
    }

    #[test]
    fn apps_that_the_target_does_not_have_are_not_told() {
        let status = status(ReleaseState::Done, Vec::new());
        assert_eq!(apps(&status, &[]), json!({}));
    }

    #[test]
    fn without_measures_each_of_them_is_null() {
        let none = measured(None);
        let names: Vec<&str> = measured(Some(Readings::default()))
            .iter()
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(none.len(), METRICS.len());
        assert!(
            none.iter()
                .all(|(name, value)| value.is_null() && names.contains(name))
        );
    }
}

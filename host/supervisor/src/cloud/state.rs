//! The device's state as reported to the cloud (docs/spec/device.md#report-fields): built from the reconciler's status
//! and the facts of the host.

mod app_reports;

use std::sync::Arc;

use cloud_link::{PLUGIN_FIELDS, StateSource};
use futures::FutureExt;
use futures::future::BoxFuture;
use model::DeviceStatus;
use parking_lot::Mutex;
use reconcile::{EffectiveSettings, Reconciler, SigningState};
use serde_json::{Map, Value};
use store::Store;
use tokio::sync::watch;

use super::CloudContext;
use crate::facts::{DeviceFacts, Readings, Sensors};
use crate::plugin_fields::PluginFields;
use app_reports::{apps, reject};

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
    pub(crate) fn new(context: &CloudContext<'_>) -> Self {
        let CloudContext {
            configuration,
            reconciler,
            board,
            ..
        } = context;
        let mut variant = board.variant.clone();
        if variant.is_none()
            && let Ok(Some(develops)) = context.host.config_json.get("developmentMode")
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
            facts: context.facts.clone(),
            store: context.store.clone(),
            os_version: board.os_version.clone(),
            os_variant: variant,
            supervisor_version: configuration.branding.api_level.clone(),
            allow_unpinned: configuration.allow_unpinned,
            plugin_fields: context.plugin_fields.clone(),
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

#[cfg(test)]
mod tests {
    use cloud_link::METRICS;

    use super::*;

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

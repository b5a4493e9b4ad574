//! The report of one plugin (`GET /v3/plugins`).

use std::path::Path;

use device_types::{PluginAbout, PluginReport, RouteReport};
use plugin_manifest::PluginMetadata;

use super::entry::{Entry, UnservedContent};
use crate::limits;
use crate::pins::Pin;

fn about(about: &PluginMetadata) -> PluginAbout {
    let PluginMetadata {
        description,
        vendor,
        licence,
        homepage,
    } = about.clone();
    PluginAbout {
        description,
        vendor,
        licence,
        homepage,
    }
}

/// Returns the name of the plugin, or that of its file if no manifest can be read.
pub(super) fn name(file: &Path, entry: &Entry) -> String {
    let stem = || file.file_stem().unwrap_or_default().to_string_lossy();
    match entry.manifest() {
        Some(manifest) => manifest.name.clone(),
        None => stem().into_owned(),
    }
}

pub(super) fn report(file: &Path, entry: &Entry) -> PluginReport {
    let (serving, other) = (entry.serving.as_ref(), entry.other.as_ref());
    let manifest = entry.manifest();
    let digest = serving.map(|plugin| &plugin.digest);
    let digest = digest.or(other.map(|other| &other.digest));
    let counters = serving.map(|plugin| plugin.counters.read());
    let (calls, failures, last_error) = counters.unwrap_or_default();
    let grants = serving.map(|plugin| &plugin.context.grants);
    let pin = grants.map(|grants| &grants.pin);
    PluginReport {
        unpinned: pin == Some(&Pin::None),
        signed_by: match pin {
            Some(Pin::Key(name)) => Some(name.clone()),
            _ => None,
        },
        name: name(file, entry),
        file: file.display().to_string(),
        version: manifest.map(|manifest| manifest.version.to_string()),
        about: manifest.map_or_else(PluginAbout::default, |manifest| about(&manifest.about)),
        interface: manifest.map(|manifest| manifest.interface.to_string()),
        digest: digest.cloned().unwrap_or_default(),
        state: entry.state(),
        refused: other.and_then(UnservedContent::refused).map(str::to_owned),
        refused_digest: other
            .filter(|other| other.refused().is_some() && !other.digest.is_empty())
            .map(|other| other.digest.clone()),
        routes: manifest
            .iter()
            .flat_map(|manifest| &manifest.routes)
            .map(|route| RouteReport {
                method: route.method.to_string(),
                path: route.pattern.to_string(),
            })
            .collect(),
        provides: manifest
            .iter()
            .flat_map(|manifest| &manifest.provides)
            .map(<&str>::from)
            .collect(),
        events: manifest
            .iter()
            .flat_map(|manifest| manifest.event_kinds())
            .map(<&str>::from)
            .collect(),
        actions: manifest
            .iter()
            .flat_map(|manifest| &manifest.actions)
            .cloned()
            .collect(),
        grants: grants
            .iter()
            .flat_map(|grants| &grants.grants)
            .map(<&str>::from)
            .collect(),
        limits: serving.map(|plugin| limits::report(&plugin.limits, plugin.at_once)),
        fields: serving.map_or_else(Vec::new, |plugin| plugin.context.fields.all()),
        calls,
        failures,
        last_error,
    }
}

//! The text of a manifest: its form in TOML, read and written.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;
use serde::{Deserialize, Serialize};

use super::{INTERFACE, Manifest, ManifestError, Need, invalid};
use crate::pattern::Pattern;
use crate::route::{Route, parse_method};
use crate::{Action, EventKind, PluginMetadata, WrittenLimits};

/// The text of a manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestToml {
    name: String,
    version: Version,
    interface: Version,
    // Not flattened: serde then accepts unknown fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vendor: Option<String>,
    #[serde(default, alias = "license", skip_serializing_if = "Option::is_none")]
    licence: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    provides: Vec<Action>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    events: BTreeSet<EventKind>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    actions: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    boards: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    limits: WrittenLimits,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    schedules: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    capabilities: Vec<Need>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    routes: Vec<RouteToml>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteToml {
    method: String,
    path: String,
}

fn is_default(limits: &WrittenLimits) -> bool {
    *limits == WrittenLimits::default()
}

impl Manifest {
    /// Parses and checks the text of a manifest.
    ///
    /// # Errors
    /// If it contains something that is not allowed, or lacks something that is required.
    pub fn parse(text: &str) -> Result<Manifest, ManifestError> {
        let parse = |error| ManifestError::Parse(Box::new(error));
        // First only the version: a newer manifest may have other fields that are not known here.
        let table: toml::Table = toml::from_str(text).map_err(parse)?;
        if let Some(Ok(interface)) = table
            .get("interface")
            .and_then(toml::Value::as_str)
            .map(Version::parse)
        {
            check_interface(&interface)?;
        }
        let written: ManifestToml = toml::from_str(text).map_err(parse)?;
        let mut routes = Vec::new();
        for route in &written.routes {
            let pattern = Pattern::parse(&route.path)?;
            let method = parse_method(&route.method)
                .map_err(|error| invalid(format_args!("the route `{}`: {error}", route.path)))?;
            routes.push(Route { method, pattern });
        }
        let mut schedules = BTreeMap::new();
        for (name, schedule) in written.schedules {
            let schedule = schedule.parse().map_err(invalid)?;
            schedules.insert(name, schedule);
        }
        let manifest = Manifest {
            name: written.name,
            version: written.version,
            interface: written.interface,
            about: PluginMetadata {
                description: written.description,
                vendor: written.vendor,
                licence: written.licence,
                homepage: written.homepage,
            },
            routes,
            base_path: written
                .base_path
                .as_deref()
                .map(Pattern::parse)
                .transpose()?,
            provides: written.provides,
            events: written.events,
            schedules,
            actions: written.actions,
            capabilities: written.capabilities,
            boards: written.boards,
            limits: written.limits,
            openapi: None,
        };
        manifest.check()?;
        Ok(manifest)
    }

    /// Writes the text that [`Manifest::parse`] reads.
    ///
    /// # Errors
    /// If TOML cannot express it, which does not happen with parsed manifests.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let about = self.about.clone();
        let schedules = self.schedules.iter();
        let schedules = schedules.map(|(name, schedule)| (name.clone(), schedule.to_string()));
        let routes = self.routes.iter().map(|route| RouteToml {
            method: route.method.to_string(),
            path: route.pattern.to_string(),
        });
        toml::to_string(&ManifestToml {
            name: self.name.clone(),
            version: self.version.clone(),
            interface: self.interface.clone(),
            description: about.description,
            vendor: about.vendor,
            licence: about.licence,
            homepage: about.homepage,
            base_path: self.base_path.as_ref().map(Pattern::to_string),
            provides: self.provides.clone(),
            events: self.events.clone(),
            schedules: schedules.collect(),
            actions: self.actions.clone(),
            boards: self.boards.clone(),
            limits: self.limits.clone(),
            capabilities: self.capabilities.clone(),
            routes: routes.collect(),
        })
    }
}

fn check_interface(interface: &Version) -> Result<(), ManifestError> {
    if interface.major != INTERFACE.major {
        return Err(ManifestError::Invalid(format!(
            "it was built for version {interface} of `platform:supervisor`, which this supervisor ({INTERFACE}) does not serve"
        )));
    }
    if interface.minor > INTERFACE.minor {
        return Err(ManifestError::Invalid(format!(
            "it needs version {interface} of `platform:supervisor`, and this supervisor has {INTERFACE}: update the supervisor"
        )));
    }
    Ok(())
}

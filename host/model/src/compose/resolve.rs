//! Resolves a whole target state, app by app.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::api_keys::{ApiKeys, KeyError};
use super::attachments::DEFAULT_NETWORK;
use super::facts::DeviceFacts;
use super::findings::Findings;
use super::reader::Reader;
use super::service::service;
use super::service_context::ServiceContext;
use super::{dependencies, networks, volumes};
use crate::target::{Path, Problems};
use crate::{
    AppClass, AppUuid, DesiredApp, DesiredHost, DesiredService, DesiredState, NetworkMode,
    ServiceName, TargetApp, TargetErrors, TargetState,
};

/// A target state, resolved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResolvedTarget {
    /// All apps. One that was refused has [`crate::DesiredApp::rejected`] set and contains nothing: what runs of it is
    /// left unchanged.
    pub desired: DesiredState,
    /// Warnings about ignored fields and values, one sentence each, in the order of apps and services.
    pub warnings: Vec<String>,
    /// The reasons why apps were refused.
    pub rejected: BTreeMap<AppUuid, TargetErrors>,
}

impl ResolvedTarget {
    /// Returns all problems of all apps, for callers that accept a target completely or not at all.
    #[must_use]
    pub fn problems(&self) -> Option<TargetErrors> {
        TargetErrors::joined(self.rejected.values().cloned())
    }
}

/// Resolves `target` for this device.
///
/// # Errors
/// [`KeyError`] if a service's API key can be neither read nor created.
pub fn resolve(
    target: &TargetState,
    facts: &DeviceFacts,
    keys: &dyn ApiKeys,
) -> Result<ResolvedTarget, KeyError> {
    let mut findings = Findings::default();
    let mut resolved = ResolvedTarget::default();
    let mut container_names = BTreeMap::new();
    for (uuid, app) in &target.apps {
        let mut problems = Problems::default();
        let not_ours = is_not_ours(app, facts);
        if !not_ours && poses_as_supervisor(app, target) {
            let at = Path::root("apps");
            problems.expected(
                &at.at(uuid.as_str()).at("class"),
                &Value::from("fleet"),
                "`app`, because it has the name of a supervisor and is beside a fleet",
            );
        }
        let desired = resolve_app(app, not_ours, facts, keys, &mut findings, &mut problems)?;
        check_container_names(&desired, &mut container_names, &mut problems);
        let desired = match problems.into_result(desired) {
            Ok(desired) => desired,
            Err(errors) => {
                resolved.rejected.insert(uuid.clone(), errors);
                DesiredApp {
                    rejected: true,
                    ..empty(app, not_ours)
                }
            }
        };
        resolved.desired.apps.insert(uuid.clone(), desired);
    }
    resolved.desired.host = Some(DesiredHost::from_variables(&target.config));
    resolved.warnings = findings.into_warnings();
    Ok(resolved)
}

/// Returns whether the app is shown and never run: the host's operating system, and the supervisor itself.
#[must_use]
pub fn is_not_ours(app: &TargetApp, facts: &DeviceFacts) -> bool {
    app.is_host || is_supervisors_own(app, facts)
}

/// Returns whether the app is the supervisor itself. A cloud names the apps with its supervisors' releases after the
/// architecture, `aarch64-supervisor`, and they are not fleets (docs/spec/cloud.md#rule-supervisor-release).
fn is_supervisors_own(app: &TargetApp, facts: &DeviceFacts) -> bool {
    let named = facts.host.own_app.as_ref() == Some(&app.uuid);
    named || (app.class == AppClass::App && app.name.ends_with("-supervisor"))
}

/// Returns whether an app is a second fleet, next to the device's own, with a supervisor's name: its services would run
/// with everything that they request. The name of a single fleet does not matter.
fn poses_as_supervisor(app: &TargetApp, target: &TargetState) -> bool {
    let is_fleet = |one: &TargetApp| one.class == AppClass::Fleet && !one.is_host;
    let fleets = target.apps.values().filter(|one| is_fleet(one)).count();
    is_fleet(app) && fleets > 1 && app.name.ends_with("-supervisor")
}

fn empty(app: &TargetApp, not_ours: bool) -> DesiredApp {
    DesiredApp {
        id: app.id,
        uuid: app.uuid.clone(),
        name: app.name.clone(),
        commit: app.release.as_ref().map(|release| release.commit.clone()),
        release: app.release.as_ref().map(|release| release.id),
        not_ours,
        rejected: false,
        services: BTreeMap::new(),
        volumes: BTreeMap::new(),
        networks: BTreeMap::new(),
    }
}

fn resolve_app(
    app: &TargetApp,
    not_ours: bool,
    facts: &DeviceFacts,
    keys: &dyn ApiKeys,
    findings: &mut Findings,
    problems: &mut Problems,
) -> Result<DesiredApp, KeyError> {
    let mut desired = empty(app, not_ours);
    // The contents of such an app are run by others, so its fields do not concern us.
    let Some(release) = app.release.as_ref().filter(|_| !not_ours) else {
        return Ok(desired);
    };
    let root = Path::root("apps");
    let path = root.at(app.uuid.as_str());
    let mut named_volumes = BTreeSet::new();
    let mut named_networks = BTreeSet::new();
    let services = path.at("services");
    for (name, target) in &release.services {
        let place = ServiceContext {
            app,
            release,
            service: target,
            facts,
            keys,
        };
        let owner = format!("service `{name}`");
        let (at, fields) = (services.at(name.as_str()), &target.composition);
        let reader = reader(&owner, at, fields, findings, problems);
        let read = service(reader, place)?;
        named_volumes.extend(read.volumes);
        named_networks.extend(read.networks);
        desired.services.insert(name.clone(), read.service);
    }
    check_dependencies(&mut desired.services, &services, findings, problems);

    let networks = path.at("networks");
    for (name, definition) in &release.networks {
        let owner = format!("network `{name}`");
        let reader = reader(&owner, networks.at(name), definition, findings, problems);
        let network = networks::network(reader, name, app, facts);
        desired.networks.insert(name.clone(), network);
    }
    let only_host = !desired.services.is_empty()
        && desired
            .services
            .values()
            .all(|service| service.config.network_mode == NetworkMode::Host);
    let added = networks::undefined(&desired.networks, &named_networks, only_host, app, facts);
    for name in added.keys().filter(|name| *name != DEFAULT_NETWORK) {
        findings.warn(format!(
            "network `{name}` is not defined in the release: it is created with defaults"
        ));
    }
    desired.networks.extend(added);

    let volumes = path.at("volumes");
    for (name, definition) in &release.volumes {
        let owner = format!("volume `{name}`");
        let reader = reader(&owner, volumes.at(name), definition, findings, problems);
        let volume = volumes::volume(reader, name, app, facts);
        desired.volumes.insert(name.clone(), volume);
    }
    named_volumes.retain(|name| !desired.volumes.contains_key(name));
    for name in named_volumes {
        findings.warn(format!(
            "volume `{name}` is not defined in the release: it is created with defaults"
        ));
        let volume = volumes::undefined(&name, app, facts);
        desired.volumes.insert(name, volume);
    }
    Ok(desired)
}

fn reader<'a>(
    owner: &'a str,
    path: Path<'a>,
    fields: &'a Map<String, Value>,
    findings: &'a mut Findings,
    problems: &'a mut Problems,
) -> Reader<'a> {
    refuse_nul(&path, fields, problems);
    Reader::new(owner, path, fields, findings, problems)
}

/// Refuses duplicate container names. The name does not contain the app (docs/spec/device.md#container-identity), and
/// an engine allows only one container of a name: of two apps that need the same name the second is refused, rather
/// than tried again and again.
fn check_container_names(
    app: &DesiredApp,
    container_names: &mut BTreeMap<String, AppUuid>,
    problems: &mut Problems,
) {
    let root = Path::root("apps");
    let services = root.at(app.uuid.as_str());
    let services = services.at("services");
    for (name, service) in &app.services {
        let container = service.container_name();
        match container_names.get(&container) {
            Some(other) => problems.expected(
                &services.at(name.as_str()),
                &Value::String(container),
                format!(
                    "an image id, release or commit with which its container's name differs from one of app {other}"
                ),
            ),
            None => {
                container_names.insert(container, app.uuid.clone());
            }
        }
    }
}

/// Checks dependencies: one on a missing service is dropped, one whose network is shared is a problem, and so is a
/// circle.
fn check_dependencies(
    services: &mut BTreeMap<ServiceName, DesiredService>,
    path: &Path<'_>,
    findings: &mut Findings,
    problems: &mut Problems,
) {
    let names: BTreeSet<ServiceName> = services.keys().cloned().collect();
    for (name, service) in services.iter_mut() {
        if let NetworkMode::Service(other) = &service.config.network_mode
            && !names.contains(other)
        {
            problems.expected(
                &path.at(name.as_str()).at("network_mode"),
                &Value::String(format!("service:{other}")),
                "the name of a service of the same release",
            );
        }
        service.depends_on.retain(|other| {
            let exists = names.contains(other);
            if !exists {
                findings.warn(format!(
                    "service `{name}`: `depends_on` names `{other}`, which the release does not have, and was ignored"
                ));
            }
            exists
        });
    }
    let dependencies = services
        .iter()
        .map(|(name, service)| (name.clone(), service.depends_on.clone()))
        .collect();
    if let Some(name) = dependencies::circle(&dependencies) {
        let on = services[name]
            .depends_on
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        problems.expected(
            &path.at(name.as_str()).at("depends_on"),
            &Value::String(on),
            "services that do not wait for each other in a circle",
        );
    }
}

/// Refuses NUL characters: engines pass texts to calls that end them at a NUL, so the text in use would differ from the
/// text in the target.
fn refuse_nul(path: &Path<'_>, fields: &Map<String, Value>, problems: &mut Problems) {
    const EXPECTED: &str = "texts without NUL characters";
    fn has_nul(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(items) => items.iter().any(has_nul),
            Value::Object(entries) => entries
                .iter()
                .any(|(key, value)| key.contains('\0') || has_nul(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    for (field, value) in fields {
        if field.contains('\0') || has_nul(value) {
            problems.expected(&path.at(field), value, EXPECTED);
        }
    }
}

//! The variables of each service (docs/spec/device.md#service-environment).

use std::collections::BTreeMap;

use super::service_context::ServiceContext;
use crate::Branding;

/// Adds the variables that every service gets, under the branding's prefix and under each alias. A variable that the
/// user set remains unchanged.
pub(super) fn fill_in(environment: &mut BTreeMap<String, String>, place: ServiceContext<'_>) {
    let ServiceContext {
        app,
        service,
        facts,
        ..
    } = place;
    let folder = facts.branding.service_folder();
    let values = [
        ("APP_UUID", app.uuid.to_string()),
        ("APP_NAME", app.name.clone()),
        ("SERVICE_NAME", service.name.to_string()),
        ("DEVICE_UUID", facts.uuid.to_string()),
        ("DEVICE_TYPE", facts.device_type.clone()),
        ("DEVICE_ARCH", facts.arch.clone()),
        ("HOST_OS_VERSION", facts.os_version.clone()),
        ("APP_LOCK_PATH", format!("{folder}/updates.lock")),
        (
            "SERVICE_HANDOVER_COMPLETE_PATH",
            format!("{folder}/handover-complete"),
        ),
    ];
    for (name, value) in values {
        default(environment, &facts.branding, name, &value);
    }
    for prefix in prefixes(&facts.branding) {
        let bare = prefix.trim_end_matches('_');
        if !bare.is_empty() {
            environment.entry(bare.to_owned()).or_insert("1".into());
        }
    }
    environment.entry("USER".into()).or_insert("root".into());
}

/// Sets a variable unless the user set it.
pub(super) fn default(
    environment: &mut BTreeMap<String, String>,
    branding: &Branding,
    name: &str,
    value: &str,
) {
    for prefix in prefixes(branding) {
        environment
            .entry(format!("{prefix}{name}"))
            .or_insert_with(|| value.to_owned());
    }
}

/// Sets a variable, replacing the user's value.
pub(super) fn force(
    environment: &mut BTreeMap<String, String>,
    branding: &Branding,
    name: &str,
    value: &str,
) {
    for prefix in prefixes(branding) {
        environment.insert(format!("{prefix}{name}"), value.to_owned());
    }
}

fn prefixes(branding: &Branding) -> impl Iterator<Item = &str> {
    std::iter::once(branding.env_prefix.as_str()).chain(branding.aliases.iter().map(String::as_str))
}

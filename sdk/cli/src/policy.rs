//! A policy that grants a plugin everything that it asks for.

use plugin_manifest::Manifest;

/// Returns the policy with which authors try a plugin out: everything that it asks for, and `more` lines of its section
/// for resources that the policy has to name, such as files.
pub(crate) fn that_grants_all(manifest: &Manifest, more: toml::Table) -> String {
    let mut section = toml::Table::new();
    let needs = manifest.capabilities.iter();
    let grants: Vec<toml::Value> = needs.map(|need| need.name.to_string().into()).collect();
    section.insert("grants".to_owned(), grants.into());
    let events = manifest.event_kinds();
    if !events.is_empty() {
        let events: Vec<toml::Value> = events.iter().map(|kind| kind.to_string().into()).collect();
        section.insert("events".to_owned(), events.into());
    }
    let limits: toml::Table = manifest
        .limits
        .written()
        .map(|limit| (limit.range.key.to_owned(), i64::from(limit.value).into()))
        .collect();
    if !limits.is_empty() {
        section.insert("limits".to_owned(), limits.into());
    }
    section.extend(more);
    let mut plugins = toml::Table::new();
    plugins.insert(manifest.name.clone(), section.into());
    let mut policy = toml::Table::new();
    policy.insert("plugins".to_owned(), plugins.into());
    policy.to_string()
}

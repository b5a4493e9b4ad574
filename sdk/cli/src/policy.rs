//! A policy that grants a plugin everything that it asks for.

use plugin_manifest::{Manifest, is_of_stock_plugins};

/// Returns the policy with which authors try a plugin out: everything that an owner can grant to the file with this
/// digest, or without one to a stock plugin; and `more` lines of its section for resources that the policy has to name,
/// such as files.
pub(crate) fn that_grants_all(
    manifest: &Manifest,
    digest: Option<&str>,
    more: toml::Table,
) -> String {
    let mut section = toml::Table::new();
    if let Some(digest) = digest {
        section.insert("sha256".to_owned(), strings([digest]));
    }
    let routes = manifest.routes.iter().map(|route| &route.pattern);
    // A policy with one of these is invalid.
    let routes = routes.filter(|pattern| !is_of_stock_plugins(pattern));
    let actions = manifest.provides.iter();
    let actions = actions.filter(|action| action.has_one_provider());
    for (key, values) in [
        ("routes", strings(routes)),
        ("provides", strings(actions)),
        ("events", strings(manifest.event_kinds())),
        (
            "grants",
            strings(manifest.capabilities.iter().map(|need| need.name)),
        ),
    ] {
        section.insert(key.to_owned(), values);
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

fn strings(values: impl IntoIterator<Item = impl ToString>) -> toml::Value {
    let values = values.into_iter().map(|value| value.to_string().into());
    toml::Value::Array(values.collect())
}

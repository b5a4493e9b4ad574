//! Merges lines into the text of a policy, which keeps its comments and its order.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

/// Returns the policy, extended with the contents of `section`, and the additions: list values and keys that are
/// missing. Everything else in the policy stays unchanged. Both must be valid TOML.
pub(crate) fn extended(policy: &str, section: &str) -> (String, String) {
    let (Ok(mut policy), Ok(section)) = (
        policy.parse::<DocumentMut>(),
        section.parse::<DocumentMut>(),
    ) else {
        return (policy.to_owned(), String::new());
    };
    let added = add(policy.as_table_mut(), section.as_table());
    let added = DocumentMut::from(added);
    (policy.to_string(), added.to_string())
}

/// Returns a policy with the digest added to the section of the plugin, and that section. Both are TOML.
pub(crate) fn with_digest(policy: &str, plugin: &str, digest: &str) -> (String, String) {
    let addition = format!("[plugins.{plugin}]\nsha256 = [\"{digest}\"]\n");
    let (merged, added) = extended(policy, &addition);
    let section = merged_section(&merged, &added, plugin);
    (merged, section)
}

/// Returns the section of the plugin in the policy `merged`, with its comments, after the keys of makers that were
/// `added` for it.
pub(crate) fn merged_section(merged: &str, added: &str, plugin: &str) -> String {
    let table = |text: &str, name: &str| {
        let document: DocumentMut = text.parse().ok()?;
        document.get(name).cloned()
    };
    let mut section = Table::new();
    section.set_implicit(true);
    if let Some(keys) = table(added, "keys") {
        section.insert("keys", keys);
    }
    let plugins = table(merged, "plugins");
    if let Some(item) = plugins.as_ref().and_then(|plugins| plugins.get(plugin)) {
        let mut plugins = Table::new();
        plugins.set_implicit(true);
        plugins.insert(plugin, item.clone());
        section.insert("plugins", Item::Table(plugins));
    }
    let text = DocumentMut::from(section).to_string();
    format!("{}\n", text.trim())
}

/// Adds what is in `given` and missing in `table`, and returns it.
fn add(table: &mut dyn TableLike, given: &dyn TableLike) -> Table {
    let mut added = Table::new();
    // It only gets a header if it has keys of its own.
    added.set_implicit(true);
    for (key, item) in given.iter() {
        let Some(present) = table.get_mut(key) else {
            table.insert(key, item.clone());
            added.insert(key, item.clone());
            continue;
        };
        if let (Some(list), Some(values)) = (present.as_array_mut(), item.as_array()) {
            let mut missing = Array::new();
            for value in values {
                if !list.iter().any(|present| covers(present, value)) {
                    // The spacing follows its new place.
                    let mut value = value.clone();
                    value.decor_mut().clear();
                    list.push(value.clone());
                    missing.push(value);
                }
            }
            if !missing.is_empty() {
                added.insert(key, Item::Value(missing.into()));
            }
        } else if let (Some(table), Some(given)) =
            (present.as_table_like_mut(), item.as_table_like())
        {
            let inner = add(table, given);
            if !inner.is_empty() {
                added.insert(key, Item::Table(inner));
            }
        }
    }
    added
}

/// Returns whether a list value covers another: it is equal, or it covers the beginning (`/v3/rails/*`).
fn covers(present: &Value, value: &Value) -> bool {
    match (present.as_str(), value.as_str()) {
        (Some(present), Some(value)) => {
            let all_below = present.strip_suffix('*').filter(|root| root.ends_with('/'));
            present == value || all_below.is_some_and(|root| value.starts_with(root))
        }
        _ => false,
    }
}

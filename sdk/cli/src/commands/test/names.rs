//! Lists of names for people.

use std::fmt::Display;

/// Lists the names that something has.
pub(super) fn quoted(names: impl Iterator<Item = impl Display>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        format!("only {}", names.join(", "))
    }
}

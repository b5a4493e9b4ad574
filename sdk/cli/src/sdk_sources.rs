//! The sources of the Rust SDK. A project in Rust receives a copy of them: the SDK is not in any registry, and a
//! project that contains it builds in the same way on every machine.

use std::path::Path;

use anyhow::{Context as _, Result};
use include_dir::{Dir, include_dir};
use toml::{Table, Value};

use crate::files::{write_file, write_folder};
use crate::world::WIT;

/// The crates of the SDK by their folder below `sdk`, each with its sources.
static CRATES: &[(&str, &str, Dir)] = &[
    (
        "",
        include_str!("../../Cargo.toml"),
        include_dir!("$CARGO_MANIFEST_DIR/../src"),
    ),
    (
        "values",
        include_str!("../../values/Cargo.toml"),
        include_dir!("$CARGO_MANIFEST_DIR/../values/src"),
    ),
    (
        "lenient",
        include_str!("../../lenient/Cargo.toml"),
        include_dir!("$CARGO_MANIFEST_DIR/../lenient/src"),
    ),
    (
        "macros",
        include_str!("../../macros/Cargo.toml"),
        include_dir!("$CARGO_MANIFEST_DIR/../macros/src"),
    ),
    (
        "manifest",
        include_str!("../../manifest/Cargo.toml"),
        include_dir!("$CARGO_MANIFEST_DIR/../manifest/src"),
    ),
    (
        "testing",
        include_str!("../../testing/Cargo.toml"),
        include_dir!("$CARGO_MANIFEST_DIR/../testing/src"),
    ),
];
/// The versions of the crates' dependencies.
const WORKSPACE: &str = include_str!("../../../Cargo.toml");

/// Writes the SDK into `folder`, as a separate workspace.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let workspace: Table = WORKSPACE.parse().context("the workspace's Cargo.toml")?;
    let mut crates = Vec::new();
    for (name, cargo, sources) in CRATES {
        let place = folder.join("sdk").join(name);
        let mut cargo: Table = cargo.parse().context("a Cargo.toml of the SDK")?;
        // The tests of the SDK are not copied.
        cargo.remove("dev-dependencies");
        cargo.remove("test");
        write_file(&place.join("Cargo.toml"), cargo.to_string().as_bytes())?;
        write_folder(&place.join("src"), sources)?;
        crates.push(cargo);
    }
    write_folder(&folder.join("wit"), &WIT)?;
    let root = workspace_of(&workspace, &crates);
    write_file(&folder.join("Cargo.toml"), root.to_string().as_bytes())
}

/// Returns the workspace of the SDK's crates, with the dependencies of the repository's workspace that they use.
fn workspace_of(repository: &Table, crates: &[Table]) -> Table {
    let part = |name: &str| {
        let parts = repository.get("workspace").and_then(Value::as_table);
        parts.and_then(|parts| parts.get(name)).cloned()
    };
    let mut dependencies = Table::new();
    if let Some(Value::Table(all)) = part("dependencies") {
        let tables = ["dependencies", "build-dependencies"];
        let used = crates
            .iter()
            .flat_map(|cargo| tables.iter().filter_map(|table| cargo.get(*table)))
            .filter_map(Value::as_table)
            .flat_map(Table::keys);
        for name in used {
            if let Some(dependency) = all.get(name) {
                dependencies.insert(name.clone(), dependency.clone());
            }
        }
    }
    let members: Vec<Value> = CRATES
        .iter()
        .map(|(name, _, _)| format!("sdk/{name}").trim_end_matches('/').into())
        .collect();
    let mut workspace = Table::new();
    workspace.insert("resolver".to_owned(), "3".into());
    workspace.insert("members".to_owned(), members.into());
    for name in ["package", "lints"] {
        if let Some(value) = part(name) {
            workspace.insert(name.to_owned(), value);
        }
    }
    workspace.insert("dependencies".to_owned(), dependencies.into());
    let mut root = Table::new();
    root.insert("workspace".to_owned(), workspace.into());
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With other versions or features, a build would compile such a crate twice.
    #[test]
    fn the_template_depends_on_the_crates_of_the_sdk_as_the_sdk_does() {
        let template: Table = include_str!("../templates/rust/Cargo.toml.template")
            .parse()
            .unwrap();
        let workspace: Table = WORKSPACE.parse().unwrap();
        let sdk: Table = CRATES[0].1.parse().unwrap();
        for name in ["serde", "serde_json"] {
            assert!(sdk["dependencies"].get(name).is_some(), "{name}");
            let ours = &workspace["workspace"]["dependencies"][name]["version"];
            let dependency = &template["dependencies"][name];
            let version = dependency.get("version").unwrap_or(dependency);
            assert_eq!(version, ours, "{name}");
        }
    }
}

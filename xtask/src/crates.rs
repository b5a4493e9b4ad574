//! The crates of the repository, by what they are for.

use std::fs;

use anyhow::{Context as _, Result};

use crate::cargo;

/// Returns the names of the crates in one folder of the repository, which are their folders' names.
pub(crate) fn crates_in(folder: &str) -> Result<Vec<String>> {
    let path = cargo::repository().join(folder);
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).with_context(|| format!("failed to list `{folder}`"))? {
        let entry = entry?;
        let manifest = entry.path().join("Cargo.toml");
        // A crate with its own workspace is built by other tools.
        let is_ours = |text: String| !text.contains("\n[workspace]");
        if fs::read_to_string(manifest).is_ok_and(is_ours) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the crates that tests load but releases do not contain: examples, and components that misbehave on purpose.
pub(crate) fn guest_crates() -> Result<Vec<String>> {
    let mut guests = crates_in("examples")?;
    guests.extend(
        crates_in("tests")?
            .into_iter()
            .filter(|name| name.ends_with("guests")),
    );
    Ok(guests)
}

/// Returns all packages that can run on this machine, except for `omitted`, as arguments of cargo: programs, the SDK
/// and plugins, but not the components that only test programs load. A single invocation lets them share their
/// dependencies.
pub(crate) fn packages_of_this_machine(omitted: &[&str]) -> Result<Vec<String>> {
    let plugins = plugin_crates()?;
    let guests = guest_crates()?;
    let components = guests.into_iter().filter(|guest| !plugins.contains(guest));
    let omitted = omitted.iter().map(|package| (*package).to_owned());
    let mut arguments = vec!["--workspace".to_owned()];
    for package in components.chain(omitted) {
        arguments.extend(["--exclude".to_owned(), package]);
    }
    Ok(arguments)
}

/// Returns the crates of plugins, including the examples: those that use the SDK.
fn plugin_crates() -> Result<Vec<String>> {
    let mut crates = crates_in("plugins")?;
    for example in crates_in("examples")? {
        let manifest = cargo::repository()
            .join("examples")
            .join(&example)
            .join("Cargo.toml");
        if fs::read_to_string(manifest)?.contains("supervisor-sdk") {
            crates.push(example);
        }
    }
    Ok(crates)
}

/// Returns the file name of a component: cargo changes hyphens in a library's name to underscores, but not in a
/// program's.
pub(crate) fn component_file(package: &str) -> String {
    format!("{}.wasm", package.replace('-', "_"))
}

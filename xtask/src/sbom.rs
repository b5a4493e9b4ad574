//! The list of the programs' dependencies (a CycloneDX 1.5 "software bill of materials"), next to them in the layout as
//! `sbom.cdx.json`.
//!
//! It is generated only from `cargo metadata` and `Cargo.lock`, and contains neither times nor random numbers: the same
//! lock file results in the same bytes. Cargo reports the dependencies for the combined features of all programs, so
//! the list may contain a crate that one program does not use; none is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cargo::{self, WASM_TARGET};
use crate::crates::crates_in;

/// The name of the file in the layout.
pub(crate) const FILE: &str = "sbom.cdx.json";
/// The programs of the layout, by their crates.
pub(crate) const PROGRAMS: [&str; 6] = [
    "fleet",
    "fleet-cloud",
    "supervisor",
    "supervisor-compile",
    "supervisor-plugin",
    "supervisor-wasm",
];

/// Writes the list into a folder.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let plugins = crates_in("plugins")?;
    let host = Graph::load(&host_target()?)?;
    let components = Graph::load(WASM_TARGET)?;
    let checksums = checksums(&cargo::repository().join("Cargo.lock"))?;
    let mut inventory = Inventory::default();
    inventory.take(&host, PROGRAMS.iter().copied())?;
    inventory.take(&components, plugins.iter().map(String::as_str))?;
    let text = serde_json::to_string_pretty(&inventory.document(&checksums))?;
    let file = folder.join(FILE);
    fs::write(&file, text + "\n").with_context(|| format!("failed to write `{}`", file.display()))
}

/// Returns the target that programs are built for: this machine's.
fn host_target() -> Result<String> {
    let output = std::process::Command::new("rustc")
        .args(["--print", "host-tuple"])
        .output()
        .context("failed to start `rustc`; install it from https://rustup.rs")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Cargo's information about packages for one target.
struct Graph {
    /// Packages by their ids.
    packages: BTreeMap<String, Value>,
    /// The dependencies of each: the id, and whether it is needed at run time rather than for the build.
    needs: BTreeMap<String, Vec<(String, bool)>>,
}

impl Graph {
    fn load(target: &str) -> Result<Self> {
        let output = cargo::cargo(["metadata", "--format-version=1", "--locked"])
            .args(["--filter-platform", target])
            .output()
            .context("failed to start `cargo metadata`")?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            bail!("`cargo metadata` failed: {}", why.trim());
        }
        let metadata = serde_json::from_slice(&output.stdout)
            .context("failed to read what `cargo metadata` printed")?;
        Ok(Graph::from(&metadata))
    }

    fn from(metadata: &Value) -> Self {
        let packages = items(&metadata["packages"]).map(|it| (text(&it["id"]), it.clone()));
        let packages: BTreeMap<String, Value> = packages.collect();
        let mut needs = BTreeMap::new();
        for node in items(&metadata["resolve"]["nodes"]) {
            let of_node = items(&node["deps"]).filter_map(|need| {
                let kinds = || items(&need["dep_kinds"]).map(|it| it["kind"].as_str());
                // Dependencies of tests are neither in a program nor used to build one.
                let counts = kinds().any(|kind| kind != Some("dev"));
                let id = text(&need["pkg"]);
                let runs = kinds().any(|kind| kind.is_none());
                let is_macro = packages.get(&id).is_some_and(is_macro);
                counts.then_some((id, runs && !is_macro))
            });
            needs.insert(text(&node["id"]), of_node.collect());
        }
        Graph { packages, needs }
    }

    /// Returns the id of one of our own crates.
    fn own(&self, name: &str) -> Result<&str> {
        let mut own = self
            .packages
            .iter()
            .filter(|(_, it)| it["source"].is_null());
        match own.find(|(_, it)| it["name"] == name) {
            Some((id, _)) => Ok(id),
            None => bail!("the workspace has no crate `{name}`"),
        }
    }
}

fn is_macro(package: &Value) -> bool {
    let kinds = items(&package["targets"]).flat_map(|target| items(&target["kind"]));
    kinds.into_iter().any(|kind| kind == "proc-macro")
}

/// The dependencies of programs, for several targets.
#[derive(Default)]
struct Inventory {
    /// By their references in the document.
    components: BTreeMap<String, Component>,
    programs: BTreeSet<String>,
}

struct Component {
    package: Value,
    /// Whether it is in a program, rather than used to build one.
    runs: bool,
    needs: BTreeSet<String>,
}

impl Inventory {
    /// Adds programs and everything that they need.
    fn take<'a>(&mut self, graph: &Graph, programs: impl Iterator<Item = &'a str>) -> Result<()> {
        for program in programs {
            let id = graph.own(program)?;
            self.programs.insert(reference(&graph.packages[id]));
            let mut ahead = vec![(id.to_owned(), true)];
            let mut visited = BTreeSet::new();
            while let Some((id, runs)) = ahead.pop() {
                if !visited.insert((id.clone(), runs)) {
                    continue;
                }
                let package = &graph.packages[&id];
                let component = self.components.entry(reference(package));
                let component = component.or_insert_with(|| Component {
                    package: package.clone(),
                    runs: false,
                    needs: BTreeSet::new(),
                });
                component.runs |= runs;
                for (need, to_run) in graph.needs.get(&id).into_iter().flatten() {
                    component.needs.insert(reference(&graph.packages[need]));
                    ahead.push((need.clone(), runs && *to_run));
                }
            }
        }
        Ok(())
    }

    fn document(&self, checksums: &BTreeMap<(String, String), String>) -> Value {
        let described = self.components.iter().map(|(reference, it)| {
            let is_program = self.programs.contains(reference);
            described(reference, it, is_program, checksums)
        });
        let needs = self.components.iter();
        let needs = needs.map(|(reference, it)| json!({ "ref": reference, "dependsOn": it.needs }));
        let whole = "device-supervisor";
        let top = json!({ "ref": whole, "dependsOn": self.programs });
        json!({
            "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "lifecycles": [{ "phase": "build" }],
                "tools": { "components": [{ "type": "application", "name": "cargo xtask", "version": env!("CARGO_PKG_VERSION") }] },
                "component": {
                    "type": "application", "bom-ref": whole, "name": whole, "version": env!("CARGO_PKG_VERSION"),
                    "licenses": [{ "expression": "Apache-2.0" }],
                },
            },
            "components": described.collect::<Vec<_>>(),
            "dependencies": std::iter::once(top).chain(needs).collect::<Vec<_>>(),
        })
    }
}

fn described(
    reference: &str,
    component: &Component,
    is_program: bool,
    checksums: &BTreeMap<(String, String), String>,
) -> Value {
    let package = &component.package;
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut described = json!({
        "type": if is_program { "application" } else { "library" },
        "bom-ref": reference,
        "name": name,
        "version": version,
        // Some are only used to build the programs: macros, and dependencies of build scripts.
        "scope": if component.runs { "required" } else { "excluded" },
    });
    if let Some(license) = package["license"].as_str() {
        // Older crates separate alternatives by a slash.
        let alternatives = license.split('/').map(str::trim).collect::<Vec<_>>();
        described["licenses"] = json!([{ "expression": alternatives.join(" OR ") }]);
    }
    if !package["source"].is_null() {
        described["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
    }
    if let Some(checksum) = checksums.get(&(name, version)) {
        described["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = package["repository"].as_str() {
        described["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    described
}

/// Returns the name of a package in the document.
fn reference(package: &Value) -> String {
    format!("{}@{}", text(&package["name"]), text(&package["version"]))
}

/// Returns the digests of the downloaded packages, by name and version.
fn checksums(lock: &Path) -> Result<BTreeMap<(String, String), String>> {
    let written =
        fs::read_to_string(lock).with_context(|| format!("failed to read `{}`", lock.display()))?;
    let lock: toml::Table = toml::from_str(&written)
        .with_context(|| format!("failed to parse `{}`", lock.display()))?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let found = packages.into_iter().flatten().filter_map(|package| {
        let field = |name: &str| package.get(name)?.as_str().map(str::to_owned);
        Some(((field("name")?, field("version")?), field("checksum")?))
    });
    Ok(found.collect())
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;

//! The world that a plugin's bindings are made from: the interfaces of `wit/`, of which it imports only those that its
//! manifest asks for. Outside Rust, everything that a world imports ends up in the component, and a device refuses what
//! the manifest does not ask for.

use std::path::Path;

use anyhow::Result;
use include_dir::{Dir, include_dir};
use plugin_manifest::{Action, Manifest};

use crate::sdk_sources::write_file;

/// The interfaces, as every plugin is built against them.
pub(crate) static WIT: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../wit");
/// The name of the world.
pub(crate) const WORLD: &str = "plugin";

/// What every plugin may import without asking.
const ALWAYS: [&str; 4] = ["log", "config", "timer", "caller"];

/// Writes the interfaces and the plugin's world into `folder`.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write(folder: &Path, manifest: &Manifest) -> Result<()> {
    for file in WIT.files() {
        if file
            .path()
            .extension()
            .is_some_and(|extension| extension == "wit")
        {
            write_file(&folder.join(file.path()), file.contents())?;
        }
    }
    write_file(&folder.join("plugin.wit"), text(manifest).as_bytes())
}

/// The text of the world.
fn text(manifest: &Manifest) -> String {
    let mut lines = vec![format!("world {WORLD} {{")];
    let ours = manifest
        .capabilities
        .iter()
        .flat_map(|need| need.name.imports());
    let ours = ours.filter_map(|import| import.strip_prefix("platform:supervisor/"));
    for interface in ALWAYS.into_iter().chain(ours) {
        lines.push(format!("    import {interface};"));
    }
    if !manifest.routes.is_empty() {
        lines.push("    export handler;".to_owned());
    }
    for action in &manifest.provides {
        if *action == Action::Identify {
            lines.push("    import identify-window;".to_owned());
        }
        lines.push(format!("    export {action};"));
    }
    lines.push("}\n".to_owned());
    lines.join("\n")
}

/// Whether the plugin uses an interface of WASI: where it uses none, those that its language's runtime imports are
/// replaced by stubs.
pub(crate) fn uses_wasi(manifest: &Manifest) -> bool {
    let mut imports = manifest
        .capabilities
        .iter()
        .flat_map(|need| need.name.imports());
    imports.any(|import| import.starts_with("wasi:"))
}

#[cfg(test)]
mod tests {
    use plugin_manifest::Project;

    use super::*;

    #[test]
    fn a_world_imports_what_the_manifest_asks_for_and_nothing_else() {
        let project = |more: &str| {
            let text = format!("name = \"a\"\nversion = \"0.1.0\"\n{more}");
            Project::parse(&text).unwrap().manifest
        };
        let manifest = project(
            "[capabilities]\nstore = \"x\"\nclock = \"x\"\n[routes]\n\"GET /v3/a\" = \"a\"\n[provides]\nidentify = \"b\"\n",
        );
        assert_eq!(
            text(&manifest),
            "world plugin {\n    import log;\n    import config;\n    import timer;\n    import caller;\n    import store;\n    \
             export handler;\n    import identify-window;\n    export identify;\n}\n"
        );
        assert!(uses_wasi(&manifest));
        assert!(!uses_wasi(&project("[routes]\n\"GET /v3/a\" = \"a\"\n")));
    }
}

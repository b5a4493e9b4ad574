//! The world that a plugin's bindings are generated from: the interfaces of `wit/`, of which it imports only those that
//! the manifest asks for. Except in Rust, everything that a world imports ends up in the component, and a device
//! refuses imports that the manifest does not ask for.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use include_dir::{Dir, File, include_dir};
use plugin_manifest::{Action, Capability, Manifest};
use wit_parser::{Resolve, WorldId};

use crate::files::write_file;

/// The interfaces that every plugin is built against.
pub(crate) static WIT: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../wit");
/// The name of the world.
pub(crate) const WORLD: &str = "plugin";

/// A part of WASI that the SDK of JavaScript uses, whose engine imports it only for itself, or not at all.
pub(crate) struct WasiPart {
    interfaces: &'static [&'static str],
    /// The packages with these interfaces and their types: names of files, and texts. They have only the functions that the
    /// SDK calls.
    packages: &'static [(&'static str, &'static str)],
}

/// Random numbers.
pub(crate) const RANDOM: WasiPart = WasiPart {
    interfaces: &["wasi:random/random@0.2.6"],
    packages: &[("random.wit", include_str!("world/random.wit"))],
};
/// Files of the host. They have times, in a type of the clock's.
pub(crate) const FILES: WasiPart = WasiPart {
    interfaces: &[
        "wasi:filesystem/types@0.2.6",
        "wasi:filesystem/preopens@0.2.6",
    ],
    packages: &[
        ("clocks.wit", include_str!("world/clocks.wit")),
        ("filesystem.wit", include_str!("world/filesystem.wit")),
    ],
};

/// The interfaces that every plugin may import without asking.
const ALWAYS: [&str; 4] = ["log", "config", "timer", "caller"];

/// How `wit/` writes an asynchronous function, and how it would write the same function if it were synchronous.
const ASYNC_FUNCTIONS: [(&str, &str); 2] = [
    (": async func(", ": func("),
    (": static async func(", ": static func("),
];

/// A world in the form that generators of bindings expect.
pub(crate) struct World {
    pub(crate) resolve: Resolve,
    pub(crate) id: WorldId,
}

/// Writes the interfaces and the plugin's world into `folder`, and reads them.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn load(folder: &Path, manifest: &Manifest) -> Result<World> {
    write(folder, manifest)?;
    read(folder)
}

/// Reads the interfaces and the plugin's world from `folder`.
fn read(folder: &Path) -> Result<World> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve
        .push_dir(folder)
        .with_context(|| format!("cannot read the interfaces in `{}`", folder.display()))?;
    let id = resolve.select_world(&[package], Some(WORLD))?;
    Ok(World { resolve, id })
}

/// Writes the interfaces and the plugin's world into `folder`.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write(folder: &Path, manifest: &Manifest) -> Result<()> {
    for file in interfaces() {
        write_file(&folder.join(file.path()), file.contents())?;
    }
    write_file(&folder.join("plugin.wit"), text(manifest).as_bytes())
}

/// Like [`write`], with synchronous imports only, whatever they are on a device.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write_without_async_imports(folder: &Path, manifest: &Manifest) -> Result<()> {
    write(folder, manifest)?;
    let exported = exports(manifest);
    for file in interfaces() {
        // Each file contains one interface and is named after it.
        let name = file.path().file_stem().unwrap_or_default();
        let text = file.contents_utf8().unwrap_or_default();
        if exported.iter().all(|export| name != export.as_str()) {
            let mut text = text.to_owned();
            for (asynchronous, synchronous) in ASYNC_FUNCTIONS {
                text = text.replace(asynchronous, synchronous);
            }
            write_file(&folder.join(file.path()), text.as_bytes())?;
        }
    }
    Ok(())
}

/// Adds a part of WASI to the imports of the world in `folder`.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn import_wasi(folder: &Path, part: &WasiPart) -> Result<()> {
    let world = folder.join("plugin.wit");
    let text = std::fs::read_to_string(&world)
        .with_context(|| format!("cannot read `{}`", world.display()))?;
    let begin = format!("world {WORLD} {{\n");
    let mut with_imports = begin.clone();
    for interface in part.interfaces {
        let _ = writeln!(with_imports, "    import {interface};");
    }
    write_file(&world, text.replacen(&begin, &with_imports, 1).as_bytes())?;
    for (name, package) in part.packages {
        write_file(&folder.join("deps").join(name), package.as_bytes())?;
    }
    Ok(())
}

fn interfaces() -> impl Iterator<Item = &'static File<'static>> {
    WIT.files().filter(|file| {
        let extension = file.path().extension();
        extension.is_some_and(|extension| extension == "wit")
    })
}

/// Returns the interfaces that the plugin exports. `handler` is always among them, because the SDKs are written against
/// its types; the host does not call it in a plugin without routes.
fn exports(manifest: &Manifest) -> Vec<String> {
    let actions = manifest.provides.iter().map(Action::to_string);
    std::iter::once("handler".to_owned())
        .chain(actions)
        .collect()
}

/// Returns the text of the world.
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
    if manifest.provides.contains(&Action::Identify) {
        lines.push("    import identify-window;".to_owned());
    }
    let exports = exports(manifest);
    lines.extend(exports.iter().map(|name| format!("    export {name};")));
    lines.push("}\n".to_owned());
    lines.join("\n")
}

/// Returns whether the plugin uses an interface of WASI: if it does not, all of those that its language's runtime imports
/// are replaced by stubs.
pub(crate) fn uses_wasi(manifest: &Manifest) -> bool {
    let mut needs = manifest.capabilities.iter();
    needs.any(|need| is_part_of_wasi(need.name))
}

/// Returns whether a capability gives access to a part of WASI.
fn is_part_of_wasi(capability: Capability) -> bool {
    let mut imports = capability.imports().iter();
    // One of our interfaces does the same as `wasi:http`, and these languages use it instead.
    imports.any(|import| import.starts_with("wasi:") && !import.starts_with("wasi:http/"))
}

#[cfg(test)]
mod tests {
    use plugin_manifest::Project;

    use super::*;
    use crate::languages::async_imports;

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
             import identify-window;\n    export handler;\n    export identify;\n}\n"
        );
        assert!(uses_wasi(&manifest));
        // The SDKs need the handler's types, even if there are no routes.
        assert_eq!(
            text(&project("[actions]\nset = \"a\"\n")),
            "world plugin {\n    import log;\n    import config;\n    import timer;\n    import caller;\n    export handler;\n    \
             export action-provider;\n}\n"
        );
        assert!(!uses_wasi(&project("[routes]\n\"GET /v3/a\" = \"a\"\n")));
    }

    #[test]
    fn parts_of_wasi_are_imported_in_addition_to_what_the_manifest_asks_for() {
        let text = "name = \"a\"\nversion = \"0.1.0\"\n[routes]\n\"GET /v3/a\" = \"a\"\n";
        let manifest = Project::parse(text).unwrap().manifest;
        let folder = tempfile::tempdir().unwrap();
        write_without_async_imports(folder.path(), &manifest).unwrap();
        for part in [RANDOM, FILES] {
            import_wasi(folder.path(), &part).unwrap();
        }
        let World { resolve, id } = read(folder.path()).unwrap();
        let imports = resolve.worlds[id].imports.keys();
        let imports: Vec<String> = imports.map(|key| resolve.name_world_key(key)).collect();
        for expected in [
            "platform:supervisor/log@1.4.0",
            "wasi:clocks/wall-clock@0.2.6",
            "wasi:filesystem/preopens@0.2.6",
            "wasi:filesystem/types@0.2.6",
            "wasi:random/random@0.2.6",
        ] {
            let found = imports.iter().filter(|import| *import == expected);
            assert_eq!(found.count(), 1, "{expected} in {imports:?}");
        }
        // A device refuses imports that no capability allows.
        let allowed = [Capability::Files, Capability::Random].map(Capability::imports);
        for import in imports.iter().filter(|import| import.starts_with("wasi:")) {
            let interface = import.split('@').next().unwrap();
            assert!(allowed.concat().contains(&interface), "{interface}");
        }
    }

    #[test]
    fn without_async_imports_no_capability_has_an_asynchronous_function() {
        let mut text = "name = \"a\"\nversion = \"0.1.0\"\n[capabilities]\n".to_owned();
        for capability in Capability::all() {
            if capability.is_for_manifests() {
                text += &format!("{capability} = \"x\"\n");
            }
        }
        text += "[routes]\n\"GET /v3/a\" = \"a\"\n";
        let manifest = Project::parse(&text).unwrap().manifest;
        let folder = tempfile::tempdir().unwrap();
        let on_a_device = load(&folder.path().join("device"), &manifest).unwrap();
        let functions = async_imports::list(&on_a_device.resolve, on_a_device.id);
        for (interface, function) in [
            ("serial", "[static]port.open"),
            ("serial", "[method]port.read"),
            ("update-lock", "[static]lock.acquire-all"),
            ("store", "get"),
        ] {
            let interface = format!("platform:supervisor/{interface}@1.4.0");
            assert!(functions.contains(&(interface, function.to_owned())));
        }

        let synchronous = folder.path().join("synchronous");
        write_without_async_imports(&synchronous, &manifest).unwrap();
        let world = read(&synchronous).unwrap();
        let left = async_imports::list(&world.resolve, world.id);
        assert!(left.is_empty(), "{left:?}");
    }
}

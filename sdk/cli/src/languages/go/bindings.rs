//! The packages that a build generates from `wit/`, and what the generator leaves out: a text for each error, and one name
//! for the streams of bodies.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use wit_bindgen_core::Files;
use wit_bindgen_go::Format;
use wit_parser::{Resolve, Type, TypeDefKind, TypeId, TypeOwner, Variant, WorldId, WorldItem};

use crate::files::write_file;
use crate::world::World;

/// The packages of the interfaces that a plugin imports; each is in a folder below this one.
const IMPORTS: &str = "imports";
/// The function of a generated package that makes a stream of bytes.
const MAKE_STREAM: &str = "func MakeStreamU8(";

/// Writes the bindings of a world into the SDK's folder, with imports and exports separated.
///
/// # Errors
/// The generator does not support the world, or a file cannot be written.
pub(super) fn write(sdk: &Path, world: &mut World) -> Result<()> {
    let options = wit_bindgen_go::Opts {
        format: Format::False,
        pkg_name: Some("supervisor/imports".to_owned()),
        export_pkg_name: Some("supervisor/exports".to_owned()),
        ..Default::default()
    };
    let mut files = Files::default();
    options
        .build()
        .generate(&mut world.resolve, world.id, &mut files)
        .context("failed to write the bindings")?;
    // Removes packages of interfaces that the plugin no longer asks for.
    for folder in [IMPORTS, "exports/wit_exports"] {
        let _ = std::fs::remove_dir_all(sdk.join(folder));
    }
    let exports = ["wit_exports/", "export_"];
    let is_export = |name: &str| exports.iter().any(|prefix| name.starts_with(prefix));
    for (name, content) in files.iter() {
        let folder = if is_export(name) { "exports" } else { IMPORTS };
        write_file(&sdk.join(folder).join(name), content)?;
    }
    let imports = sdk.join(IMPORTS);
    for (package, text) in error_texts(&world.resolve, world.id) {
        write_file(
            &imports.join(package).join("error_texts.go"),
            text.as_bytes(),
        )?;
    }
    let package = package_with_streams(&files).context("no package of the bindings has streams")?;
    write_file(
        &imports.join("body_stream/body_stream.go"),
        body_stream(package).as_bytes(),
    )
}

/// Returns the generated package with the function that makes streams. The first interface with a stream has it: `handler`
/// or `journal`.
fn package_with_streams(files: &Files) -> Option<&str> {
    let mut found = files.iter().filter(|(_, content)| {
        content
            .windows(MAKE_STREAM.len())
            .any(|part| part == MAKE_STREAM.as_bytes())
    });
    found.next()?.0.split('/').next()
}

/// Returns the package by which the SDK makes streams.
fn body_stream(package: &str) -> String {
    format!(
        "// Package body_stream makes streams for the bodies of answers. Written by `supervisor-plugin build`.\n\
         package body_stream\n\nimport bindings \"supervisor/imports/{package}\"\n\n\
         // Make returns both ends of a stream.\nvar Make = bindings.MakeStreamU8\n"
    )
}

/// Returns files that make the errors of imported functions errors of Go, each with the name of its package. Without them,
/// `%v` would print the fields of a generated type.
fn error_texts(resolve: &Resolve, world: WorldId) -> Vec<(String, String)> {
    let mut types: Vec<TypeId> = Vec::new();
    for item in resolve.worlds[world].imports.values() {
        let WorldItem::Interface { id, .. } = item else {
            continue;
        };
        for function in resolve.interfaces[*id].functions.values() {
            let error = error_type(resolve, function.result);
            types.extend(error.filter(|id| !types.contains(id)));
        }
    }
    let files = types.into_iter().filter_map(|id| {
        let definition = &resolve.types[id];
        let (TypeDefKind::Variant(variant), TypeOwner::Interface(owner)) =
            (&definition.kind, definition.owner)
        else {
            return None;
        };
        let name = camel_case(definition.name.as_deref()?);
        let package = package_name(resolve.interfaces[owner].name.as_deref()?);
        let text = error_text(resolve, &package, &name, variant);
        Some((package, text))
    });
    files.collect()
}

/// Returns the type of a function's error, of which each interface has at most one.
fn error_type(resolve: &Resolve, result: Option<Type>) -> Option<TypeId> {
    let Type::Id(id) = result? else {
        return None;
    };
    let TypeDefKind::Result(result) = &resolve.types[id].kind else {
        return None;
    };
    let Type::Id(mut error) = result.err? else {
        return None;
    };
    // An interface may use the type of another one.
    while let TypeDefKind::Type(Type::Id(original)) = resolve.types[error].kind {
        error = original;
    }
    Some(error)
}

/// Returns the method that makes a variant an error of Go.
fn error_text(resolve: &Resolve, package: &str, name: &str, variant: &Variant) -> String {
    let mut cases = String::new();
    for case in &variant.cases {
        let camel = camel_case(&case.name);
        let text = match case.ty {
            // The interface describes the case in a sentence.
            None => format!("{:?}", message(case.docs.contents.as_deref(), &case.name)),
            Some(payload) => payload_text(resolve, payload, &format!("self.{camel}()")),
        };
        let _ = writeln!(cases, "\tcase {name}{camel}:\n\t\treturn {text}");
    }
    format!(
        "// Written by `supervisor-plugin build`.\npackage {package}\n\n\
         // Error returns the text of the case.\nfunc (self {name}) Error() string {{\n\tswitch self.Tag() {{\n{cases}\t}}\n\
         \tpanic(\"tag mismatch\")\n}}\n"
    )
}

/// Returns an expression for the text of a case's data: a text, or a record of texts.
fn payload_text(resolve: &Resolve, payload: Type, value: &str) -> String {
    let Type::Id(id) = payload else {
        return value.to_owned();
    };
    match &resolve.types[id].kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter();
            let fields = fields.map(|field| format!("{value}.{}", camel_case(&field.name)));
            fields.collect::<Vec<_>>().join(" + \": \" + ")
        }
        _ => value.to_owned(),
    }
}

/// Returns the message of a case without data: the first sentence of its description, in the form of an error.
fn message(description: Option<&str>, name: &str) -> String {
    let sentence = description.unwrap_or_default().split('.').next();
    let sentence = sentence.unwrap_or_default().replace('\n', " ");
    let mut chars = sentence.trim().chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => name.replace('-', " "),
    }
}

/// Returns the name of the generated package of an interface.
fn package_name(interface: &str) -> String {
    format!("platform_supervisor_{}", interface.replace('-', "_"))
}

/// Returns a name of `wit/` as the generator writes it in Go.
fn camel_case(name: &str) -> String {
    let mut camel = String::new();
    for word in name.split('-') {
        let mut chars = word.chars();
        camel.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(chars.as_str());
    }
    camel
}

#[cfg(test)]
mod tests {
    use plugin_manifest::{Capability, Project};

    use super::*;
    use crate::world;

    /// Writes the bindings of a plugin that asks for these capabilities.
    fn written(capabilities: impl IntoIterator<Item = Capability>) -> tempfile::TempDir {
        let mut text = "name = \"a\"\nversion = \"0.1.0\"\n[capabilities]\n".to_owned();
        for capability in capabilities {
            text += &format!("{capability} = \"x\"\n");
        }
        text += "[routes]\n\"GET /v3/a\" = \"a\"\n";
        let manifest = Project::parse(&text).unwrap().manifest;
        let folder = tempfile::tempdir().unwrap();
        let mut world = world::load(&folder.path().join("wit"), &manifest).unwrap();
        write(&folder.path().join("supervisor"), &mut world).unwrap();
        folder
    }

    fn read(folder: &tempfile::TempDir, name: &str) -> String {
        let path = folder.path().join("supervisor/imports").join(name);
        std::fs::read_to_string(path).unwrap()
    }

    /// Each text is for people, so it contains neither the number of the case nor the name of its type.
    #[test]
    fn the_errors_of_every_capability_have_a_text() {
        let all = Capability::all().iter().copied();
        let folder = written(all.filter(|capability| capability.is_for_manifests()));
        for (package, expected) in [
            (
                "gpio",
                "func (self GpioError) Error() string {\n\tswitch self.Tag() {\n\tcase GpioErrorNotGranted:\n\t\treturn \
                 self.NotGranted()\n",
            ),
            (
                "cloud",
                "\tcase CloudErrorUnmanaged:\n\t\treturn \"the device has no cloud\"\n",
            ),
            (
                "dbus",
                "\tcase DbusErrorRefused:\n\t\treturn self.Refused().Name + \": \" + self.Refused().Message\n",
            ),
            ("proxy_types", "func (self ProxyError) Error() string {\n"),
        ] {
            let file = format!("platform_supervisor_{package}/error_texts.go");
            let text = read(&folder, &file);
            assert!(text.contains(expected), "{text}");
        }
        // The type is called and its cases are named as the generator writes them.
        let generated = read(&folder, "platform_supervisor_cloud/wit_bindings.go");
        for name in ["type CloudError struct", "CloudErrorUnmanaged uint8"] {
            assert!(generated.contains(name), "{generated}");
        }
    }

    #[test]
    fn bodies_have_streams_whichever_interface_is_the_first_with_one() {
        for (capability, package) in [
            (Capability::Store, "platform_supervisor_handler"),
            (Capability::Journal, "platform_supervisor_journal"),
        ] {
            let folder = written([capability]);
            let text = read(&folder, "body_stream/body_stream.go");
            let expected = format!("import bindings \"supervisor/imports/{package}\"\n");
            assert!(text.contains(&expected), "{text}");
        }
    }

    #[test]
    fn a_case_without_data_has_a_message() {
        for (description, expected) in [
            (
                Some("The device has\nno cloud. Not yet."),
                "the device has no cloud",
            ),
            (Some("Éteint."), "éteint"),
            (Some(""), "not found"),
            (None, "not found"),
        ] {
            assert_eq!(message(description, "not-found"), expected);
        }
    }
}

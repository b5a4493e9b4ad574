//! The initial files of a new project, in each language.

use std::borrow::Cow;
use std::path::Path;

use anyhow::{Context as _, Result};
use include_dir::{Dir, include_dir};
use plugin_manifest::Language;

use crate::device_file::DEVICE;
use crate::files::write_file;
use crate::sdk_sources;

/// Files that every project has.
static COMMON: Dir = include_dir!("$CARGO_MANIFEST_DIR/templates/common");
static C: Dir = include_dir!("$CARGO_MANIFEST_DIR/templates/c");
static GO: Dir = include_dir!("$CARGO_MANIFEST_DIR/templates/go");
static JAVASCRIPT: Dir = include_dir!("$CARGO_MANIFEST_DIR/templates/javascript");
static PYTHON: Dir = include_dir!("$CARGO_MANIFEST_DIR/templates/python");
static RUST: Dir = include_dir!("$CARGO_MANIFEST_DIR/templates/rust");
static TYPESCRIPT: Dir = include_dir!("$CARGO_MANIFEST_DIR/templates/typescript");

/// The placeholder for the plugin's name in the templates.
const NAME: &str = "PLUGIN_NAME";
/// The placeholder for the name of the plugin's crate.
const CRATE: &str = "CRATE_NAME";

/// Writes a new project into `folder`, which exists and is empty.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write(folder: &Path, name: &str, language: Language) -> Result<()> {
    write_template(folder, &COMMON, name)?;
    let template = match language {
        Language::Rust => &RUST,
        Language::C => &C,
        Language::Go => &GO,
        Language::JavaScript => &JAVASCRIPT,
        Language::TypeScript => &TYPESCRIPT,
        Language::Python => &PYTHON,
        // It is built already.
        Language::Component => return Ok(()),
    };
    write_template(folder, template, name)?;
    if language == Language::Rust {
        sdk_sources::write(&folder.join("supervisor-sdk"))?;
    }
    Ok(())
}

/// Writes the device file, for a project of another kind.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_device(folder: &Path, name: &str) -> Result<()> {
    let file = COMMON.get_file(DEVICE).context("no template of a device")?;
    write_file(
        &folder.join(DEVICE),
        text_of(file.contents(), name).as_bytes(),
    )
}

/// Returns the text of a template for the plugin of this name.
fn text_of(template: &[u8], name: &str) -> String {
    let text = String::from_utf8_lossy(template);
    text.replace(NAME, name).replace(CRATE, &crate_name(name))
}

/// Returns the name of a plugin's crate: the plugin's, but cargo refuses names that begin with a digit.
fn crate_name(plugin: &str) -> Cow<'_, str> {
    if plugin.starts_with(|char: char| char.is_ascii_digit()) {
        format!("plugin-{plugin}").into()
    } else {
        plugin.into()
    }
}

/// Writes the files of a template. `Cargo.toml`, `go.mod` and `.gitignore` have other names in it, because cargo, Go
/// and git would use them as their own.
fn write_template(folder: &Path, template: &Dir, name: &str) -> Result<()> {
    for file in template.files() {
        let path = file.path().to_string_lossy();
        let path = path.trim_end_matches(".template");
        let text = text_of(file.contents(), name);
        write_file(&folder.join(path), text.as_bytes())?;
    }
    for inner in template.dirs() {
        write_template(folder, inner, name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_file::DeviceFile;

    /// Returns the device file of a new project as it is, and with all of its examples.
    fn device_files() -> (String, String) {
        let template = COMMON.get_file(DEVICE).unwrap();
        let text = text_of(template.contents(), "rails");
        let with_examples = text.lines().map(|line| match line.strip_prefix('#') {
            Some(example) if !example.starts_with(' ') => format!("{example}\n"),
            _ => format!("{line}\n"),
        });
        let with_examples = with_examples.collect();
        (text, with_examples)
    }

    #[test]
    fn the_crate_of_a_plugin_whose_name_begins_with_a_digit_has_a_name_that_cargo_accepts() {
        for (plugin, expected) in [("rails", "rails"), ("3v3", "plugin-3v3")] {
            let folder = tempfile::tempdir().unwrap();
            write(folder.path(), plugin, Language::Rust).unwrap();
            let table = |file: &str| {
                let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
                text.parse::<toml::Table>().unwrap()
            };
            let cargo = table("Cargo.toml");
            assert_eq!(cargo["package"]["name"].as_str(), Some(expected));
            assert_eq!(table("plugin.toml")["name"].as_str(), Some(plugin));
        }
    }

    #[test]
    fn the_device_file_of_a_new_project_has_no_effect_and_its_examples_are_valid() {
        let (text, with_examples) = device_files();
        let table: toml::Table = text.parse().unwrap();
        assert!(table.is_empty(), "{table:?}");
        let table: toml::Table = with_examples.parse().unwrap();
        let file = tempfile::tempdir().unwrap();
        let path = file.path().join(DEVICE);
        std::fs::write(&path, &with_examples).unwrap();
        let device = DeviceFile::read(&path).unwrap();
        device.host("rails", file.path()).unwrap();
        // Each kind of thing that a device can have is shown, except for a journal.
        for part in [
            "serial",
            "device",
            "leds",
            "units",
            "files",
            "cloud",
            "http",
            "api",
            "actions",
            "identify",
            "proxy_redirector",
            "dbus",
            "gpio",
            "i2c",
            "config",
            "policy",
        ] {
            assert!(table.contains_key(part), "{part}");
        }
    }
}

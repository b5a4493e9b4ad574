//! The initial files of a new project, in each language.

use std::path::Path;

use anyhow::Result;
use include_dir::{Dir, include_dir};
use plugin_manifest::Language;

use crate::sdk_sources::{self, write_file};

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

/// Writes the files of a template. `Cargo.toml`, `go.mod` and `.gitignore` have other names in it, because cargo, Go
/// and git would use them as their own.
fn write_template(folder: &Path, template: &Dir, name: &str) -> Result<()> {
    for file in template.files() {
        let path = file.path().to_string_lossy();
        let path = path.trim_end_matches(".template");
        let text = String::from_utf8_lossy(file.contents()).replace(NAME, name);
        write_file(&folder.join(path), text.as_bytes())?;
    }
    for inner in template.dirs() {
        write_template(folder, inner, name)?;
    }
    Ok(())
}

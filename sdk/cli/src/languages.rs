//! The build of a project in each language.

pub(crate) mod async_imports;
mod c;
mod capability_use;
pub(crate) mod component;
mod core_module;
mod entry_functions;
mod go;
mod inputs;
mod javascript;
mod last_build;
mod python;
mod rust;
mod source_functions;
mod syntax_tree;
mod typed_actions;
mod wasi_stubs;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use plugin_manifest::{DESCRIPTION, Language, Manifest, SECTION, append_section};
use plugins::{signature_place, signed_content};

use self::last_build::LastBuild;
use crate::component_imports::imports;
use crate::output::Output;
use crate::producers;
use crate::project::ProjectFolder;

/// The component of a project, next to `plugin.toml`.
pub(crate) struct BuiltComponent {
    pub(crate) file: PathBuf,
    /// Whether it is that of the last build, because nothing has changed since.
    pub(crate) is_unchanged: bool,
    /// Whether the former component was signed, and this one is not.
    has_lost_signature: bool,
}

impl BuiltComponent {
    /// Says that the component must be signed again, for a caller that does not sign it.
    pub(crate) fn note_lost_signature(&self, output: &Output) {
        if self.has_lost_signature {
            output.note("its content has changed, so it is no longer signed: sign it again");
        }
    }
}

/// When a project is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildMode {
    /// Unless nothing that determines the component has changed since the last build. Languages whose compilers are fast,
    /// and make the same component of the same sources, are always built: their compilers know best what has changed.
    IfChanged,
    Always,
}

/// Builds the component, checks it and puts it next to `plugin.toml`.
///
/// # Errors
/// A tool of the language is missing or fails; it has printed the reason.
pub(crate) fn build(
    project: &ProjectFolder,
    mode: BuildMode,
    output: &Output,
) -> Result<BuiltComponent> {
    let started = Instant::now();
    let (name, language) = (project.name(), project.language());
    output.note(&format!("building {name} ({language})"));
    let mut last = LastBuild::load(project, mode, output);
    // The SDKs of the other languages are in this tool.
    let mut sdk_version = Some(producers::SDK_VERSION.to_owned());
    let built = match language {
        Language::Rust => {
            let built = rust::build(project, output)?;
            sdk_version = built.sdk_version;
            Some(built.file)
        }
        Language::C => Some(c::build(project, output)?),
        Language::Go => Some(go::build(project, output)?),
        Language::JavaScript => javascript::build(project, "src/plugin.js", &mut last, output)?,
        Language::TypeScript => javascript::build(project, "src/plugin.ts", &mut last, output)?,
        Language::Python => python::build(project, &mut last, output)?,
        Language::Component => {
            sdk_version = None;
            Some(component::build(project, output)?)
        }
    };
    let component = project.component();
    let Some(built) = built else {
        let signed = if is_signed(&component) {
            ", so it stays signed"
        } else {
            ""
        };
        output.note(&format!(
            "{name} has not changed since the last build{signed}"
        ));
        return Ok(BuiltComponent {
            file: component,
            is_unchanged: true,
            has_lost_signature: false,
        });
    };
    let mut wasm =
        std::fs::read(&built).with_context(|| format!("cannot read `{}`", built.display()))?;
    // `plugin!` of the Rust SDK writes these sections itself.
    if language != Language::Rust {
        add_sections(project, &mut wasm)?;
    }
    if let Some(version) = sdk_version {
        producers::record_sdk(&mut wasm, &version)
            .context("failed to record the version of the SDK in what the compiler has written")?;
    }
    let manifest = Manifest::from_wasm(&wasm).with_context(|| {
        format!(
            "what was built of `{}` is not a plugin",
            project.path.display()
        )
    })?;
    let in_file = &project.project.manifest;
    ensure!(
        (&manifest.name, &manifest.version) == (&in_file.name, &in_file.version),
        "the component is `{} {}`, and plugin.toml says `{} {}`: does `src/lib.rs` contain `plugin! {{}}` of the SDK that is \
         in this project?",
        manifest.name,
        manifest.version,
        in_file.name,
        in_file.version
    );
    // In other languages the sources have been compared before the build.
    if language == Language::Rust {
        for warning in capability_use::warnings(&manifest, &imports(&wasm)) {
            output.note(&format!("warning: {warning}"));
        }
    }
    let signature = put(&component, &wasm)?;
    last.remember(&wasm);
    let seconds = started.elapsed().as_secs_f64();
    let signed = match signature {
        FormerSignature::Kept => "; its content is the same, so it stays signed",
        FormerSignature::Lost | FormerSignature::None => "",
    };
    output.note(&format!("built {name} in {seconds:.1} s{signed}"));
    Ok(BuiltComponent {
        file: component,
        is_unchanged: false,
        has_lost_signature: signature == FormerSignature::Lost,
    })
}

/// What became of the signature of a component that is built again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormerSignature {
    /// There was none.
    None,
    /// The content is the same.
    Kept,
    /// It is for another content.
    Lost,
}

/// Puts the built component next to `plugin.toml`. A file with the same content is kept with its signature.
fn put(component: &Path, wasm: &[u8]) -> Result<FormerSignature> {
    let before = std::fs::read(component).unwrap_or_default();
    let is_signed = signature_place(component, &before).is_some();
    let signature = |changed| {
        if is_signed {
            changed
        } else {
            FormerSignature::None
        }
    };
    if signed_content(&before) == wasm {
        return Ok(signature(FormerSignature::Kept));
    }
    // In one step, because another program may be loading it.
    let new = component.with_extension("wasm.new");
    std::fs::write(&new, wasm)
        .and_then(|()| std::fs::rename(&new, component))
        .with_context(|| format!("cannot write `{}`", component.display()))?;
    Ok(signature(FormerSignature::Lost))
}

/// Returns whether a file is signed, validly or not.
fn is_signed(component: &Path) -> bool {
    let wasm = std::fs::read(component).unwrap_or_default();
    signature_place(component, &wasm).is_some()
}

/// Adds the manifest, and the description of the routes if there is one.
fn add_sections(project: &ProjectFolder, wasm: &mut Vec<u8>) -> Result<()> {
    let manifest = project.project.manifest.to_toml()?;
    append_section(wasm, SECTION, manifest.as_bytes());
    if let Some(file) = &project.project.openapi {
        let file = project.path.join(file);
        let description =
            std::fs::read(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
        append_section(wasm, DESCRIPTION, &description);
    }
    Ok(())
}

/// Returns whether a text can be the name of a function.
fn is_identifier(name: &str, language: Language) -> bool {
    let has_dollar = matches!(language, Language::JavaScript | Language::TypeScript);
    let begins = |char: char| char.is_alphabetic() || char == '_' || (has_dollar && char == '$');
    name.starts_with(begins) && name.chars().all(|char| begins(char) || char.is_numeric())
}

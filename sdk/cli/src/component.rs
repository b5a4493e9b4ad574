//! The component that a command works with: a file, or what the project is built to.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use plugin_manifest::Manifest;

use crate::arguments::ComponentArguments;
use crate::languages;
use crate::output::Output;
use crate::project::ProjectFolder;

/// The largest component that is read, in bytes: as large as a device takes.
pub(crate) const MOST: u64 = 64 << 20;

/// A component with its manifest.
pub(crate) struct Component {
    pub(crate) file: PathBuf,
    pub(crate) wasm: Vec<u8>,
    pub(crate) manifest: Manifest,
}

impl Component {
    /// Reads the file that the arguments name, or builds the project and reads what came of it.
    ///
    /// # Errors
    /// It cannot be built or read, or is no plugin; in the words in which a device says so.
    pub(crate) fn of(arguments: &ComponentArguments, output: &Output) -> Result<Component> {
        match &arguments.file {
            Some(file) => Component::read(file.clone()),
            None => {
                let project = ProjectFolder::open(&arguments.project.project)?;
                Component::read(languages::build(&project, output)?)
            }
        }
    }

    /// Reads the file that the arguments name, or what the project was built to; builds it if it was not.
    ///
    /// # Errors
    /// As [`Component::of`].
    pub(crate) fn as_it_is(arguments: &ComponentArguments, output: &Output) -> Result<Component> {
        if arguments.file.is_none() {
            let project = ProjectFolder::open(&arguments.project.project)?;
            let built = project.component();
            if built.is_file() {
                return Component::read(built);
            }
        }
        Component::of(arguments, output)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no plugin.
    pub(crate) fn read(file: PathBuf) -> Result<Component> {
        let unreadable = || format!("cannot read `{}`", file.display());
        let length = std::fs::metadata(&file).with_context(unreadable)?.len();
        anyhow::ensure!(
            length <= MOST,
            "`{}` has {length} bytes, more than the {MOST} that a device takes",
            file.display()
        );
        let wasm = std::fs::read(&file).with_context(unreadable)?;
        let manifest =
            Manifest::of(&wasm).with_context(|| format!("`{}` is not a plugin", file.display()))?;
        Ok(Component {
            file,
            wasm,
            manifest,
        })
    }

    /// One that is in memory alone, with the file name that its own name suggests.
    ///
    /// # Errors
    /// It is not a plugin.
    pub(crate) fn in_memory(wasm: Vec<u8>) -> Result<Component> {
        let manifest = Manifest::of(&wasm).context("it is not a plugin")?;
        Ok(Component {
            // The characters that a plugin's name may have cannot lead to another folder.
            file: PathBuf::from(format!("{}.wasm", manifest.name)),
            wasm,
            manifest,
        })
    }

    /// The interfaces that it imports, sorted.
    pub(crate) fn imports(&self) -> Vec<String> {
        imports(&self.wasm)
    }
}

/// The interfaces that a component imports, sorted.
pub(crate) fn imports(wasm: &[u8]) -> Vec<String> {
    let mut imports = Vec::new();
    let mut depth = 0_u32;
    for payload in wasmparser::Parser::new(0).parse_all(wasm).flatten() {
        match payload {
            wasmparser::Payload::ModuleSection { .. }
            | wasmparser::Payload::ComponentSection { .. } => depth += 1,
            wasmparser::Payload::End(_) => depth = depth.saturating_sub(1),
            wasmparser::Payload::ComponentImportSection(section) if depth == 0 => {
                let names = section.into_iter().flatten();
                imports.extend(names.map(|import| import.name.name.to_owned()));
            }
            _ => {}
        }
    }
    imports.sort();
    imports
}

//! The component that a command works with: a file, or the result of building the project.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use plugin_manifest::Manifest;

use crate::arguments::ComponentArguments;
use crate::component_imports::imports;
use crate::languages::{self, BuildMode};
use crate::output::Output;
use crate::project::{LARGEST_COMPONENT, ProjectFolder};

fn is_same_file(one: &Path, other: &Path) -> bool {
    let absolute = |path: &Path| path.canonicalize().ok();
    absolute(one).is_some_and(|one| absolute(other) == Some(one))
}

/// A component with its manifest.
pub(crate) struct Component {
    pub(crate) file: PathBuf,
    pub(crate) wasm: Vec<u8>,
    pub(crate) manifest: Manifest,
    /// Whether it is the build of a project, and not a file of somebody else.
    pub(crate) is_of_project: bool,
}

impl Component {
    /// Reads the file that the arguments name, or builds the project and reads the result.
    ///
    /// # Errors
    /// It cannot be built or read, or is not a plugin; the message is the same as on a device.
    pub(crate) fn load(arguments: &ComponentArguments, output: &Output) -> Result<Component> {
        match &arguments.file {
            Some(file) => {
                let component = Component::read(file.clone())?;
                let project = ProjectFolder::open(&arguments.project.project);
                let is_of_project =
                    project.is_ok_and(|project| is_same_file(&project.component(), file));
                Ok(Component {
                    is_of_project,
                    ..component
                })
            }
            None => {
                let project = ProjectFolder::open(&arguments.project.project)?;
                let built = languages::build(&project, BuildMode::IfChanged, output)?;
                built.note_lost_signature(output);
                Component::of_project(built.file)
            }
        }
    }

    /// Reads the file that the arguments name, or the existing build of the project; builds it if there is none.
    ///
    /// # Errors
    /// As [`Component::load`].
    pub(crate) fn as_it_is(arguments: &ComponentArguments, output: &Output) -> Result<Component> {
        if arguments.file.is_none() {
            let project = ProjectFolder::open(&arguments.project.project)?;
            let built = project.component();
            if built.is_file() {
                return Component::of_project(built);
            }
        }
        Component::load(arguments, output)
    }

    fn of_project(file: PathBuf) -> Result<Component> {
        Ok(Component {
            is_of_project: true,
            ..Component::read(file)?
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is not a plugin.
    pub(crate) fn read(file: PathBuf) -> Result<Component> {
        let unreadable = || format!("cannot read `{}`", file.display());
        let length = std::fs::metadata(&file).with_context(unreadable)?.len();
        anyhow::ensure!(
            length <= LARGEST_COMPONENT,
            "`{}` has {length} bytes, more than the {LARGEST_COMPONENT} that a device takes",
            file.display()
        );
        let wasm = std::fs::read(&file).with_context(unreadable)?;
        let manifest = Manifest::from_wasm(&wasm)
            .with_context(|| format!("`{}` is not a plugin", file.display()))?;
        Ok(Component {
            file,
            wasm,
            manifest,
            is_of_project: false,
        })
    }

    /// Creates a component that exists only in memory, with a file name derived from its own name.
    ///
    /// # Errors
    /// It is not a plugin.
    pub(crate) fn in_memory(wasm: Vec<u8>) -> Result<Component> {
        let manifest = Manifest::from_wasm(&wasm).context("it is not a plugin")?;
        Ok(Component {
            // The characters that are allowed in a plugin's name cannot lead to another folder.
            file: PathBuf::from(format!("{}.wasm", manifest.name)),
            wasm,
            manifest,
            is_of_project: false,
        })
    }

    /// Returns the interfaces that it imports, sorted.
    pub(crate) fn imports(&self) -> Vec<String> {
        imports(&self.wasm)
    }
}

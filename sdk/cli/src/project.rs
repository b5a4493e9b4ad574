//! The plugin that an author works on: a folder with `plugin.toml`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use plugin_manifest::{Action, Language, Project, Route};

/// The maximum size of a component, in bytes, which is what a device accepts.
pub(crate) const LARGEST_COMPONENT: u64 = 64 << 20;

/// A project and its folder.
pub(crate) struct ProjectFolder {
    /// An absolute path.
    pub(crate) path: PathBuf,
    /// The text of its `plugin.toml`.
    pub(crate) text: String,
    pub(crate) project: Project,
}

impl ProjectFolder {
    /// Reads the folder's `plugin.toml`.
    ///
    /// # Errors
    /// It does not exist, or no device would accept its declarations.
    pub(crate) fn open(folder: &Path) -> Result<ProjectFolder> {
        let path = folder
            .canonicalize()
            .with_context(|| format!("there is no folder `{}`", folder.display()))?;
        let file = path.join(Project::FILE);
        let text = std::fs::read_to_string(&file).with_context(|| {
            format!(
                "cannot read `{}`: run this in the folder of a plugin, name it with `--project FOLDER`, or create one \
                 with `supervisor-plugin new NAME`",
                file.display()
            )
        })?;
        let project = Project::parse(&text)?;
        Ok(ProjectFolder {
            path,
            text,
            project,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.project.manifest.name
    }

    pub(crate) fn language(&self) -> Language {
        self.project.build.language
    }

    /// Returns the main source file: the one that the project names, or the language's default, below the folder.
    ///
    /// # Errors
    /// It does not exist.
    pub(crate) fn source(&self, default: &str) -> Result<PathBuf> {
        let named = self.project.build.source.as_deref();
        let source = self.path.join(named.unwrap_or(default));
        let missing = || format!("there is no `{}`", source.display());
        ensure!(source.is_file(), missing());
        Ok(source)
    }

    /// Returns the routes, each with the function that answers it.
    pub(crate) fn routes(&self) -> impl Iterator<Item = (&Route, &str)> {
        let handlers = self.project.handlers.iter().map(String::as_str);
        self.project.manifest.routes.iter().zip(handlers)
    }

    /// Returns the function that provides an action.
    pub(crate) fn provider(&self, action: Action) -> Option<&str> {
        let providers = self.project.providers.iter().map(String::as_str);
        let mut provided = self.project.manifest.provides.iter().zip(providers);
        provided.find_map(|(provided, provider)| (*provided == action).then_some(provider))
    }

    /// Returns the plugin's own actions, each with the function that performs it.
    pub(crate) fn actions(&self) -> impl Iterator<Item = (&str, &str)> {
        let functions = self.project.action_functions.iter().map(String::as_str);
        let names = self.project.manifest.actions.iter().map(String::as_str);
        names.zip(functions)
    }

    /// Returns the path of the built component.
    pub(crate) fn component(&self) -> PathBuf {
        self.path.join(format!("{}.wasm", self.name()))
    }
}

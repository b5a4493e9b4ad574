//! The crate that calls the macro.

use std::path::PathBuf;

use plugin_manifest::Project;

/// The crate that calls the macro, as cargo describes it.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The folder of `Cargo.toml`.
    pub(crate) folder: PathBuf,
}

impl Package {
    /// Reads cargo's description of the crate that it compiles.
    ///
    /// # Errors
    /// The missing variable.
    pub(crate) fn from_env() -> Result<Package, String> {
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| {
                format!("the environment variable `{name}` is missing: build the plugin with cargo")
            })
        };
        Ok(Package {
            name: variable("CARGO_PKG_NAME")?,
            version: variable("CARGO_PKG_VERSION")?,
            folder: variable("CARGO_MANIFEST_DIR")?.into(),
        })
    }

    /// Reads `plugin.toml`, if the crate has one.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(crate) fn read_project(&self) -> Result<Option<String>, String> {
        match std::fs::read_to_string(self.folder.join(Project::FILE)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("failed to read `{}`: {error}", Project::FILE)),
        }
    }
}

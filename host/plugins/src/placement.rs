//! Where an owner's command puts the file of a plugin. Only the policy decides what the file may do there.

use std::fs;
use std::path::{Path, PathBuf};

use semver::Version;

use crate::file_with_signature::{ReplaceError, create, replace};
use crate::installed_plugins::InstalledPlugins;
use crate::signature;
use crate::source_file::{SourceError, SourceFile};
use crate::trust::{has_section, table};

/// Why a plugin was not put into a plugin folder. The folder is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    /// The signature beside the file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The plugin has the name of one that the layout ships with.
    #[error("`{0}` is a plugin that the device ships with: give yours another name")]
    Stock(String),
    /// The device has no folder for plugins, or it does not exist.
    #[error("there is no folder for plugins{}: create it, or name another one with --plugin-dir", named(.0.as_deref()))]
    NoFolder(Option<PathBuf>),
    /// The name under which the file would be stored is that of another file.
    #[error("`{}` exists already, but is not the plugin `{plugin}`: remove or rename it", file.display())]
    Occupied {
        /// The existing file.
        file: PathBuf,
        /// The plugin's name.
        plugin: String,
    },
    /// The plugin is in several files, none of which is loaded, or in another folder than the first.
    #[error(
        "the plugin `{plugin}` is in {} already: {}",
        listed(files),
        remedy(files, folder)
    )]
    Elsewhere {
        /// The plugin's name.
        plugin: String,
        /// The files that contain it.
        files: Vec<PathBuf>,
        /// The folder into which plugins are installed.
        folder: PathBuf,
    },
    /// The file, or the signature beside it, cannot be written.
    #[error("{0}")]
    Write(String),
}

fn named(folder: Option<&Path>) -> String {
    folder.map_or_else(String::new, |folder| format!(" `{}`", folder.display()))
}

/// Returns the paths for a sentence.
pub(crate) fn listed(files: &[PathBuf]) -> String {
    let files: Vec<_> = files
        .iter()
        .map(|file| format!("`{}`", file.display()))
        .collect();
    files.join(" and ")
}

fn remedy(files: &[PathBuf], folder: &Path) -> String {
    if files.iter().all(|file| file.parent() == Some(folder)) {
        return "none of them is loaded; remove all but one".to_owned();
    }
    format!("remove what is not in `{}`", folder.display())
}

/// Returns the folder into which the plugin in `source` is installed, the first of the `folders`. `stock_plugins` is the
/// layout's list.
///
/// # Errors
/// [`PlacementError::Stock`] or [`PlacementError::NoFolder`].
pub fn install_folder<'a>(
    source: &SourceFile,
    folders: &'a [PathBuf],
    stock_plugins: &Path,
) -> Result<&'a Path, PlacementError> {
    let name = &source.manifest.name;
    if has_section(&table(stock_plugins), name) {
        return Err(PlacementError::Stock(name.clone()));
    }
    let folder = folders.first().filter(|folder| folder.is_dir());
    let folder = folder.ok_or_else(|| PlacementError::NoFolder(folders.first().cloned()))?;
    Ok(folder)
}

/// The place for a plugin's file in a plugin folder.
#[derive(Debug)]
pub struct Placement<'a> {
    /// The file in the plugin folder.
    pub file: PathBuf,
    /// The version that it replaces, if any.
    pub previous: Option<Version>,
    wasm: &'a [u8],
    signature: Option<&'a [u8]>,
}

impl<'a> Placement<'a> {
    /// Finds the place of the plugin in `source`: the file in `folder`, its [`install_folder`], that contains this plugin
    /// already, or a new one named after it.
    ///
    /// # Errors
    /// [`PlacementError`].
    pub fn find(
        source: &'a SourceFile,
        folder: &Path,
        installed: &InstalledPlugins,
    ) -> Result<Placement<'a>, PlacementError> {
        let name = &source.manifest.name;
        let signature = source.signature_beside()?;
        let found = installed
            .iter()
            .filter(|other| other.manifest.name == *name);
        let found = found.map(|other| (other.file.clone(), other.manifest.version.clone()));
        let (file, previous) = place_in(folder, name, found.collect())?;
        Ok(Placement {
            file,
            previous,
            wasm: &source.wasm,
            signature,
        })
    }

    /// Writes the file and its signature: both are new afterwards, or both are unchanged.
    ///
    /// # Errors
    /// [`PlacementError::Write`].
    pub fn write(&self) -> Result<(), PlacementError> {
        let written = if self.previous.is_some() {
            replace(&self.file, self.wasm, self.signature)
        } else {
            self.create()
        };
        written.map_err(|error| PlacementError::Write(error.to_string()))
    }

    fn create(&self) -> Result<(), ReplaceError> {
        let beside = signature::file_beside(&self.file);
        // First, so that the file is never without it. One that exists belonged to a file that is gone.
        match self.signature {
            Some(text) => create(&beside, text)?,
            None => match fs::remove_file(&beside) {
                Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ReplaceError::Unchanged {
                        path: beside,
                        cause,
                    });
                }
                _ => {}
            },
        }
        create(&self.file, self.wasm).inspect_err(|_| {
            // Without its file, it means nothing.
            let _ = fs::remove_file(&beside);
        })
    }
}

/// Returns the file for the plugin `name` in `folder`, and the version that is there now; `found` are the files that
/// contain the plugin, with their versions.
///
/// # Errors
/// [`PlacementError::Occupied`] or [`PlacementError::Elsewhere`].
pub(crate) fn place_in<V>(
    folder: &Path,
    name: &str,
    mut found: Vec<(PathBuf, V)>,
) -> Result<(PathBuf, Option<V>), PlacementError> {
    match found.as_slice() {
        [] => {
            // The characters allowed in a name cannot lead to another folder.
            let file = folder.join(format!("{name}.wasm"));
            match file.symlink_metadata() {
                Ok(_) => Err(PlacementError::Occupied {
                    file,
                    plugin: name.to_owned(),
                }),
                Err(_) => Ok((file, None)),
            }
        }
        [(file, _)] if file.parent() == Some(folder) => {
            let (file, version) = found.remove(0);
            Ok((file, Some(version)))
        }
        _ => Err(PlacementError::Elsewhere {
            plugin: name.to_owned(),
            files: found.into_iter().map(|(file, _)| file).collect(),
            folder: folder.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests;

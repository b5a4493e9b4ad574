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
mod tests {
    use super::*;

    /// A file from a maker, and the device's plugin folders.
    struct Owner(tempfile::TempDir);

    impl Owner {
        fn new() -> Owner {
            let owner = Owner(tempfile::tempdir().unwrap());
            for folder in ["plugins", "more"] {
                fs::create_dir(owner.path(folder)).unwrap();
            }
            owner
        }

        fn path(&self, below: &str) -> PathBuf {
            self.0.path().join(below)
        }

        /// Writes the plugin `name` into a file.
        fn plugin(&self, below: &str, name: &str, version: &str) {
            let manifest = format!(
                "name = \"{name}\"\nversion = \"{version}\"\ninterface = \"1.0.0\"\n\
                 [[routes]]\nmethod = \"GET\"\npath = \"/v3/{name}\"\n"
            );
            let mut wasm = plugin_manifest::COMPONENT.to_vec();
            plugin_manifest::append_section(&mut wasm, crate::SECTION, manifest.as_bytes());
            fs::write(self.path(below), wasm).unwrap();
        }

        fn source(&self) -> SourceFile {
            SourceFile::read(&self.path("new.wasm")).unwrap()
        }

        /// Returns where `source` belongs.
        fn find<'a>(&self, source: &'a SourceFile) -> Result<Placement<'a>, PlacementError> {
            let folders = [self.path("plugins"), self.path("more")];
            let folder = install_folder(source, &folders, &self.path("stock.toml"))?;
            Placement::find(
                source,
                folder,
                &InstalledPlugins::read_with_keys(&folders, &[]),
            )
        }

        fn refusal(&self) -> String {
            self.find(&self.source()).unwrap_err().to_string()
        }

        fn is_installed_as(&self, below: &str) -> bool {
            fs::read(self.path(below)).unwrap() == fs::read(self.path("new.wasm")).unwrap()
        }
    }

    #[test]
    fn a_plugin_is_stored_under_its_name_or_in_the_file_that_it_replaces() {
        let owner = Owner::new();
        owner.plugin("new.wasm", "rails", "0.2.0");
        owner.plugin("plugins/other.wasm", "other", "1.0.0");
        fs::write(owner.path("plugins/broken.wasm"), "broken").unwrap();
        let source = owner.source();
        let place = owner.find(&source).unwrap();
        assert_eq!(place.file, owner.path("plugins/rails.wasm"));
        assert_eq!(place.previous, None);
        place.write().unwrap();
        assert!(owner.is_installed_as("plugins/rails.wasm"));

        fs::rename(
            owner.path("plugins/rails.wasm"),
            owner.path("plugins/00-rails.wasm"),
        )
        .unwrap();
        owner.plugin("new.wasm", "rails", "0.3.0");
        let source = owner.source();
        let place = owner.find(&source).unwrap();
        assert_eq!(place.file, owner.path("plugins/00-rails.wasm"));
        assert_eq!(place.previous, Some(Version::new(0, 2, 0)));
        place.write().unwrap();
        assert!(owner.is_installed_as("plugins/00-rails.wasm"));
    }

    #[test]
    fn a_signature_beside_the_file_goes_with_it() {
        let owner = Owner::new();
        let beside = owner.path("plugins/rails.wasm.minisig");
        for signature in [Some("by one"), None, Some("by two")] {
            owner.plugin("new.wasm", "rails", "0.2.0");
            let _ = fs::remove_file(owner.path("new.wasm.minisig"));
            if let Some(text) = signature {
                fs::write(owner.path("new.wasm.minisig"), text).unwrap();
            }
            owner.find(&owner.source()).unwrap().write().unwrap();
            let found = fs::read_to_string(&beside).ok();
            assert_eq!(found.as_deref(), signature);
        }
        // That of a file that is gone does not stay.
        fs::remove_file(owner.path("plugins/rails.wasm")).unwrap();
        fs::remove_file(owner.path("new.wasm.minisig")).unwrap();
        owner.find(&owner.source()).unwrap().write().unwrap();
        assert!(!beside.exists());
    }

    /// Somebody replaces the file between the checks and the installation.
    #[test]
    fn the_installed_file_is_the_one_that_was_read() {
        let owner = Owner::new();
        owner.plugin("new.wasm", "rails", "0.2.0");
        fs::write(owner.path("new.wasm.minisig"), "by one").unwrap();
        let checked = fs::read(owner.path("new.wasm")).unwrap();
        let source = owner.source();
        let place = owner.find(&source).unwrap();
        owner.plugin("new.wasm", "rails", "9.9.9");
        fs::write(owner.path("new.wasm.minisig"), "by another").unwrap();
        place.write().unwrap();
        let installed = |below: &str| fs::read(owner.path(below)).unwrap();
        assert_eq!(installed("plugins/rails.wasm"), checked);
        assert_eq!(installed("plugins/rails.wasm.minisig"), b"by one");
        assert_eq!(source.digest, compiled_code::digest(&checked));
    }

    #[test]
    fn nothing_is_written_where_the_plugin_would_not_be_loaded() {
        let owner = Owner::new();
        owner.plugin("new.wasm", "rails", "0.2.0");

        owner.plugin("plugins/rails.wasm", "other", "1.0.0");
        let error = owner.refusal();
        assert!(error.ends_with("plugins/rails.wasm` exists already, but is not the plugin `rails`: remove or rename it"), "{error}");
        fs::remove_file(owner.path("plugins/rails.wasm")).unwrap();

        owner.plugin("more/rails.wasm", "rails", "0.1.0");
        let error = owner.refusal();
        assert!(error.contains("more/rails.wasm` already"), "{error}");
        owner.plugin("plugins/one.wasm", "rails", "0.1.0");
        let error = owner.refusal();
        assert!(error.contains("` and `"), "{error}");
        assert!(
            error.contains("already: remove what is not in `"),
            "{error}"
        );
        fs::remove_file(owner.path("more/rails.wasm")).unwrap();
        owner.plugin("plugins/two.wasm", "rails", "0.1.0");
        let error = owner.refusal();
        assert!(
            error.ends_with("already: none of them is loaded; remove all but one"),
            "{error}"
        );

        fs::remove_dir_all(owner.path("plugins")).unwrap();
        let error = owner.refusal();
        assert!(
            error.contains("create it, or name another one with --plugin-dir"),
            "{error}"
        );
        let source = owner.source();
        let error = install_folder(&source, &[], Path::new("/nowhere"));
        let error = error.unwrap_err();
        assert!(matches!(error, PlacementError::NoFolder(None)), "{error}");

        fs::write(owner.path("stock.toml"), "[plugins.rails]\n").unwrap();
        let error = owner.refusal();
        assert!(
            error.starts_with("`rails` is a plugin that the device ships with"),
            "{error}"
        );

        fs::write(owner.path("new.wasm"), "text").unwrap();
        let error = SourceFile::read(&owner.path("new.wasm")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("it is not WebAssembly"), "{error}");
    }
}

//! The plugins that are in the plugin folders already, for a command that installs another one. Each file is read once,
//! and only what is compared with the new plugin stays in memory: a file may have 64 MiB.

use std::path::PathBuf;

use plugin_manifest::Manifest;
use signatures::PublicKey;

use crate::grant::PolicyAddition;
use crate::settled_file::plugin_files;
use crate::signature::Signatures;
use crate::source_file::SourceFile;

/// The plugins in the plugin folders. Files that are not plugins are left out: the supervisor reports them.
#[derive(Debug)]
pub struct InstalledPlugins(Vec<InstalledPlugin>);

/// A file in a plugin folder.
#[derive(Debug)]
pub(crate) struct InstalledPlugin {
    pub(crate) file: PathBuf,
    /// Why nothing may be loaded from it: who can write the file, or its folder.
    pub(crate) place: Option<String>,
    pub(crate) manifest: Manifest,
    /// SHA-256 of the file.
    pub(crate) digest: String,
    pub(crate) signatures: Signatures,
}

impl InstalledPlugins {
    /// Reads the plugins in `folders`, and checks their signatures with the keys of the policy that has the addition. A
    /// missing folder has none.
    #[must_use]
    pub fn read(folders: &[PathBuf], addition: &PolicyAddition) -> InstalledPlugins {
        let keys: Vec<_> = addition.policy().keys().public_keys().cloned().collect();
        InstalledPlugins::read_with_keys(folders, &keys)
    }

    /// Reads the plugins in `folders`, and checks their signatures with `keys`.
    pub(crate) fn read_with_keys(folders: &[PathBuf], keys: &[PublicKey]) -> InstalledPlugins {
        let listed = plugin_files(folders, |_| false).files.into_iter();
        let read = listed.filter_map(|(file, place)| {
            let source = SourceFile::read(&file).ok()?;
            let signatures = source.signatures(keys);
            let SourceFile {
                manifest, digest, ..
            } = source;
            Some(InstalledPlugin {
                file,
                place,
                manifest,
                digest,
                signatures,
            })
        });
        InstalledPlugins(read.collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &InstalledPlugin> {
        self.0.iter()
    }
}

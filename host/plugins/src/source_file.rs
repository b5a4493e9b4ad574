//! The file of a plugin that an owner grants or installs. It is read once: what the owner sees, what the policy pins and
//! what is put into the plugin folder are the same bytes, even if somebody replaces the file meanwhile.

use std::path::{Path, PathBuf};

use model::error_chain;
use plugin_manifest::Manifest;
use signatures::{KeyId, PublicKey};

use crate::settled_file::bytes;
use crate::signature::{self, Signatures};

/// Why a file is not a plugin that can be granted or installed.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is not a plugin that can be trusted: {reason}", file.display())]
pub struct SourceError {
    file: PathBuf,
    reason: String,
}

/// The file of a plugin, and the signature beside it.
#[derive(Debug)]
pub struct SourceFile {
    /// The file.
    pub path: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// SHA-256 of the file.
    pub digest: String,
    pub(crate) wasm: Vec<u8>,
    /// The signature in the file beside it, if there is one, or why that cannot be read.
    beside: Result<Option<Vec<u8>>, String>,
}

impl SourceFile {
    /// Reads the file, and the signature beside it if there is one.
    ///
    /// # Errors
    /// [`SourceError`]: the file cannot be read, is too large or has no usable manifest.
    pub fn read(path: &Path) -> Result<SourceFile, SourceError> {
        let failed = |reason| SourceError {
            file: path.to_owned(),
            reason,
        };
        let (_, wasm) = bytes(path).map_err(failed)?;
        let manifest = Manifest::from_wasm(&wasm).map_err(|error| failed(error_chain(&error)))?;
        let beside = signature::read(&signature::file_beside(path));
        Ok(SourceFile {
            path: path.to_owned(),
            manifest,
            digest: compiled_code::digest(&wasm),
            wasm,
            beside: beside.map_err(|error| error.to_string()),
        })
    }

    /// Returns the signature in the file beside it, if there is one.
    ///
    /// # Errors
    /// [`SourceError`]: it cannot be read.
    pub(crate) fn signature_beside(&self) -> Result<Option<&[u8]>, SourceError> {
        match &self.beside {
            Ok(text) => Ok(text.as_deref()),
            Err(error) => {
                let beside = signature::file_beside(&self.path);
                Err(SourceError {
                    file: self.path.clone(),
                    reason: format!("`{}` cannot be read: {error}", beside.display()),
                })
            }
        }
    }

    /// Writes a copy of the file into a folder, with the signature beside it if there is one.
    ///
    /// # Errors
    /// The folder does not take them.
    pub fn copy_into(&self, folder: &Path) -> std::io::Result<()> {
        let file = folder.join("component.wasm");
        if let Ok(Some(signature)) = &self.beside {
            std::fs::write(signature::file_beside(&file), signature)?;
        }
        std::fs::write(&file, &self.wasm)
    }

    /// Checks its signatures against `keys`.
    pub(crate) fn signatures(&self, keys: &[PublicKey]) -> Signatures {
        let beside = self.beside.as_ref().map(Option::as_deref);
        Signatures::check_both(&self.path, &self.wasm, beside, keys)
    }

    /// Returns the ids of the keys that made its signatures, according to these: whether they are valid is not checked.
    pub(crate) fn signing_keys(&self) -> Vec<KeyId> {
        let embedded = signature::last_section(&self.wasm).ok().flatten();
        let embedded = embedded.as_ref().map(|signed| signed.signature());
        let beside = self.beside.as_ref().ok().and_then(Option::as_deref);
        let texts = [beside, embedded].into_iter().flatten();
        let mut ids: Vec<_> = texts.filter_map(KeyId::of_signature).collect();
        ids.dedup();
        ids
    }
}

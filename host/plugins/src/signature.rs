//! Signatures of plugins' files. A signature is in minisign's format (Ed25519 over the BLAKE2b digest of the content),
//! and is in one of two places: in `NAME.wasm.minisig` next to the file, for the whole file; or in the file's last
//! section, `platform:minisig`, for everything before it. One in either place is enough.
//!
//! A signature of the file covers the manifest in it, and thereby the plugin's name and version.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plugin_manifest::append_section;
use signatures::PublicKey;
use wasmparser::{Parser, Payload};

/// The name of the section that contains a signature.
pub(crate) const SECTION: &str = "platform:minisig";
/// The largest signature including its comments, in bytes.
const SIZE: usize = 4 << 10;

/// The result of checking the signatures of one content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Signatures {
    /// Those of the given keys that have signed it.
    pub(crate) keys: Vec<PublicKey>,
    /// Why other signatures do not count, in words.
    pub(crate) problems: Vec<String>,
    /// The signature in the file next to it.
    pub(crate) beside: Option<SignatureBeside>,
}

/// A signature that was read from the file next to the one it signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignatureBeside {
    text: Arc<[u8]>,
    /// Whether it was made with one of the keys, for this content.
    is_valid: bool,
}

impl Signatures {
    /// Checks the signatures of the content `wasm` of `file` against `keys`. Reads the one beside the file.
    pub(crate) fn load(file: &Path, wasm: &[u8], keys: &[PublicKey]) -> Signatures {
        let read = read(&file_beside(file));
        let text = read.as_ref().map(Option::as_deref);
        Signatures::check_both(file, wasm, text, keys)
    }

    /// Checks the signatures of the content `wasm` of `file` against `keys`: the one in it, and `text`, that of the file
    /// beside it or why that cannot be read.
    pub(crate) fn check_both(
        file: &Path,
        wasm: &[u8],
        text: Result<Option<&[u8]>, impl Display>,
        keys: &[PublicKey],
    ) -> Signatures {
        let mut signatures = Signatures::default();
        let beside = file_beside(file);
        let place = format!("the signature `{}`", beside.display());
        match text {
            Ok(Some(text)) => {
                let is_valid = signatures.check(&place, wasm, text, keys);
                let text = text.into();
                signatures.beside = Some(SignatureBeside { text, is_valid });
            }
            Ok(None) => {}
            Err(error) => signatures
                .problems
                .push(format!("{place} cannot be read: {error}")),
        }
        let place = format!("the signature in its section `{SECTION}`");
        match last_section(wasm) {
            Ok(Some(signed)) => {
                signatures.check(&place, signed.content, signed.signature, keys);
            }
            Ok(None) => {}
            Err(reason) => signatures.problems.push(reason),
        }
        signatures
    }

    /// Adds the keys that were previously found to have signed the same content. A valid signature file takes
    /// precedence over an invalid one that replaced it: that one belongs to the next version, and has arrived before
    /// its file.
    pub(crate) fn remember(&mut self, before: &Signatures) {
        let is_valid = |signatures: &Signatures| {
            let beside = signatures.beside.as_ref();
            beside.is_some_and(|beside| beside.is_valid)
        };
        if is_valid(before) && !is_valid(self) {
            self.beside.clone_from(&before.beside);
        }
        for key in &before.keys {
            if !self.keys.contains(key) {
                self.keys.push(key.clone());
            }
        }
    }

    /// Returns whether there is a signature, valid or not.
    pub(crate) fn are_there(&self) -> bool {
        !self.keys.is_empty() || !self.problems.is_empty()
    }

    /// Returns the signature in the file next to it, if there was one when it was checked.
    pub(crate) fn text_beside(&self) -> Option<Arc<[u8]>> {
        self.beside.as_ref().map(|beside| Arc::clone(&beside.text))
    }

    /// Returns whether the signature `text` was made with one of the keys, and records that key.
    fn check(&mut self, place: &str, signed: &[u8], text: &[u8], keys: &[PublicKey]) -> bool {
        match signatures::signer(text, signed, keys) {
            Ok(key) => {
                if !self.keys.contains(key) {
                    self.keys.push(key.clone());
                }
                true
            }
            Err(problem) => {
                self.problems.push(format!("{place} {problem}"));
                false
            }
        }
    }
}

/// Returns where the signature of `file` is expected.
pub(crate) fn file_beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".minisig");
    name.into()
}

/// Reads the signature in the file at `path`; returns `None` if there is no such file.
pub(crate) fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let text = match secure_fs::read_beginning(path, SIZE as u64 + 1) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if text.len() > SIZE {
        let reason = format!("it has more than {SIZE} bytes");
        return Err(std::io::Error::new(ErrorKind::InvalidData, reason));
    }
    Ok(Some(text))
}

/// A file that contains its own signature.
pub(crate) struct SelfSignedFile<'a> {
    /// Everything before the section with the signature.
    content: &'a [u8],
    signature: &'a [u8],
}

impl<'a> SelfSignedFile<'a> {
    /// Returns everything before the signature.
    pub(crate) fn content(&self) -> &'a [u8] {
        self.content
    }

    /// Returns the text of the signature.
    pub(crate) fn signature(&self) -> &[u8] {
        self.signature
    }
}

/// Splits the file in two if its last section is a signature.
///
/// # Errors
/// If something follows the section, since it is then unclear what was signed.
pub(crate) fn last_section(wasm: &[u8]) -> Result<Option<SelfSignedFile<'_>>, String> {
    let mut text = None;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload {
            Ok(Payload::CustomSection(section)) if section.name() == SECTION => {
                text = Some(section.data());
            }
            Ok(_) => {}
            // Reading its manifest reports this.
            Err(_) => return Ok(None),
        }
    }
    let Some(text) = text else {
        return Ok(None);
    };
    if text.len() > SIZE {
        return Err(format!(
            "its section `{SECTION}` has more than {SIZE} bytes"
        ));
    }
    match wasm.strip_suffix(section(text).as_slice()) {
        Some(content) => Ok(Some(SelfSignedFile {
            content,
            signature: text,
        })),
        None => Err(format!("its section `{SECTION}` is not the last one")),
    }
}

/// Creates the section that contains the signature `text`.
pub(crate) fn section(text: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    append_section(&mut section, SECTION, text);
    section
}

#[cfg(test)]
pub(crate) mod tests;

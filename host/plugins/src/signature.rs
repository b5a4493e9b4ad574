//! Who has signed a plugin's file. A signature is minisign's (Ed25519 over the BLAKE2b digest of the content), and is
//! in one of two places: in `NAME.wasm.minisig` beside the file, over the whole of it; or in the file's last section,
//! `platform:minisig`, over all that is before it. One in either place is enough.
//!
//! What signs the file signs the manifest in it, and with that the plugin's name and version.

use std::ffi::OsString;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plugin_manifest::append_section;
use signatures::PublicKey;
use wasmparser::{Parser, Payload};

/// The name of the section that holds a signature.
pub(crate) const SECTION: &str = "platform:minisig";
/// The largest signature with its comments, in bytes.
const SIZE: usize = 4 << 10;

/// What the signatures of one content say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Signatures {
    /// The keys that have signed it, of those that were asked about.
    pub(crate) keys: Vec<PublicKey>,
    /// Why other signatures do not count, in words.
    pub(crate) problems: Vec<String>,
    /// The one in the file beside it.
    pub(crate) beside: Option<SignatureBeside>,
}

/// A signature as it was read from the file beside the one that it signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignatureBeside {
    text: Arc<[u8]>,
    /// Whether it is of one of the keys, and of this content.
    is_valid: bool,
}

impl Signatures {
    /// Checks those of the content `wasm` of `file` against `keys`.
    pub(crate) fn of(file: &Path, wasm: &[u8], keys: &[PublicKey]) -> Signatures {
        let mut signatures = Signatures::default();
        let beside = file_beside(file);
        let place = format!("the signature `{}`", beside.display());
        match read(&beside) {
            Ok(Some(text)) => {
                let is_valid = signatures.check(&place, wasm, &text, keys);
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

    /// Adds the keys that have signed the same content, as was found before. A valid signature beside it counts more than
    /// one that took its place and is not: that is the next version's, which has come before its file.
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

    /// Whether there is one, of whatever worth.
    pub(crate) fn are_there(&self) -> bool {
        !self.keys.is_empty() || !self.problems.is_empty()
    }

    /// The signature in the file beside it, if there was one when it was judged.
    pub(crate) fn text_beside(&self) -> Option<Arc<[u8]>> {
        self.beside.as_ref().map(|beside| Arc::clone(&beside.text))
    }

    /// Whether the signature `text` is of one of the keys, which it takes note of.
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

/// Where the signature of `file` is looked for.
pub(crate) fn file_beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".minisig");
    name.into()
}

/// The signature in the file at `path`; none where there is no such file.
pub(crate) fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(SIZE as u64 + 1).read_to_end(&mut text)?;
    if text.len() > SIZE {
        let reason = format!("it has more than {SIZE} bytes");
        return Err(std::io::Error::new(ErrorKind::InvalidData, reason));
    }
    Ok(Some(text))
}

/// A file that bears its own signature.
pub(crate) struct SelfSignedFile<'a> {
    /// What is before the section with the signature.
    content: &'a [u8],
    signature: &'a [u8],
}

impl<'a> SelfSignedFile<'a> {
    /// What is before the signature.
    pub(crate) fn content(&self) -> &'a [u8] {
        self.content
    }

    /// The text of the signature.
    pub(crate) fn signature(&self) -> &[u8] {
        self.signature
    }
}

/// The file in two parts, where its last section is a signature.
///
/// # Errors
/// Where something follows the section, so that nobody can tell what was signed.
pub(crate) fn last_section(wasm: &[u8]) -> Result<Option<SelfSignedFile<'_>>, String> {
    let mut text = None;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload {
            Ok(Payload::CustomSection(section)) if section.name() == SECTION => {
                text = Some(section.data());
            }
            Ok(_) => {}
            // Whoever reads its manifest says so.
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

/// The section that holds the signature `text`.
pub(crate) fn section(text: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    append_section(&mut section, SECTION, text);
    section
}

#[cfg(test)]
pub(crate) mod tests;

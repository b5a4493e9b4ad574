//! Putting a signature into the file that it signs, so that only one file has to be shipped.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use model::error_chain;
use signatures::Signature;

use crate::file_with_signature::replace_alone;
use crate::settled_file::bytes;
use crate::signature;
use plugin_manifest::Manifest;

/// Why the signature could not be put into the file.
#[derive(Debug, thiserror::Error)]
#[error("the signature was not put into `{file}`: {reason}")]
pub struct EmbedError {
    file: String,
    reason: String,
}

/// Moves the signature of the plugin in `file` from `FILE.minisig` to the file's end, where the host also looks for it.
/// The file is replaced in one step. Whose signature it is and whether it matches is not checked: that requires the
/// key.
///
/// # Errors
/// [`EmbedError`] if one of the two files cannot be read, is not valid, or cannot be written; the file is then
/// unchanged.
pub fn embed_signature(file: &Path) -> Result<(), EmbedError> {
    embed(file).map_err(EmbedError::from_reason(file))
}

/// Replaces the plugin in `file`, in one step, by `content` with its signature at the end. A signature beside the file
/// is removed.
///
/// # Errors
/// [`EmbedError`] if a file cannot be written.
pub fn write_signed(file: &Path, content: &[u8], signature: &str) -> Result<(), EmbedError> {
    write(file, content.to_vec(), signature.as_bytes()).map_err(EmbedError::from_reason(file))
}

impl EmbedError {
    /// For `map_err`: adds the file.
    fn from_reason(file: &Path) -> impl FnOnce(String) -> EmbedError {
        move |reason| EmbedError {
            file: file.display().to_string(),
            reason,
        }
    }
}

fn embed(file: &Path) -> Result<(), String> {
    let (_, wasm) = bytes(file)?;
    Manifest::from_wasm(&wasm).map_err(|error| error_chain(&error))?;
    let beside = signature::file_beside(file);
    let failed = |error: std::io::Error| format!("`{}`: {error}", beside.display());
    let Some(text) = signature::read(&beside).map_err(failed)? else {
        return Err(format!(
            "there is no `{}`: sign the file first, for example by `minisign -Sm {}`",
            beside.display(),
            file.display()
        ));
    };
    let is_signature = std::str::from_utf8(&text).is_ok_and(|text| Signature::decode(text).is_ok());
    if !is_signature {
        return Err(format!(
            "`{}` is not a minisign signature",
            beside.display()
        ));
    }
    write(file, wasm, &text)
}

/// Replaces `file` by a plugin with its signature at the end, and removes a signature beside it.
fn write(file: &Path, mut wasm: Vec<u8>, signature: &[u8]) -> Result<(), String> {
    wasm.extend(signature::section(signature));
    replace_alone(file, &wasm).map_err(|error| format!("it cannot be written: {error}"))?;
    let beside = signature::file_beside(file);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("`{}`: {error}", beside.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_signature_is_not_embedded_into_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wasm");
        let error = |expected: &str| {
            let error = embed_signature(&file).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        error("cannot be read");
        fs::write(&file, b"\0asm\x0d\0\x01\0").unwrap();
        error("no section `platform:manifest`");
        let plugin = signature::tests::plugin();
        fs::write(&file, &plugin).unwrap();
        error("sign the file first");
        fs::write(folder.path().join("a.wasm.minisig"), "a signature").unwrap();
        error("is not a minisign signature");
        assert_eq!(fs::read(&file).unwrap(), plugin);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

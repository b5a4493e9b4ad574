//! `pull`: fetches a component from a registry of images.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use plugins::embedded_signature;
use serde_json::json;

use crate::arguments::Pull;
use crate::output::{Output, size};
use crate::plugin_artifact::{self, PulledPlugin, key_id};

pub(crate) async fn run(arguments: &Pull, output: &Output) -> Result<ExitCode> {
    let reference = &arguments.reference;
    let name = plugin_artifact::reference(reference)?;
    let pulled = plugin_artifact::pull(&name).await;
    let PulledPlugin {
        component,
        signature,
        digest,
    } = pulled.with_context(|| format!("cannot pull `{reference}`"))?;
    let file = arguments.output.as_ref().unwrap_or(&component.file);
    let parts = [
        // The signature comes first, so that the component never exists without it.
        FilePart {
            path: file.with_added_extension("minisig"),
            content: signature.as_deref().map(str::as_bytes),
        },
        FilePart {
            path: file.clone(),
            content: Some(&component.wasm),
        },
    ];
    if !arguments.force {
        for part in &parts {
            part.refuse_another()?;
        }
    }
    for part in &parts {
        part.write()?;
    }
    let manifest = &component.manifest;
    let in_file = embedded_signature(&component.wasm);
    let in_file = in_file.and_then(|text| String::from_utf8(text).ok());
    let signers: Vec<String> = [in_file, signature]
        .iter()
        .flatten()
        .filter_map(|text| key_id(text))
        .collect();
    let signed = match signers.as_slice() {
        [] => "not signed".to_owned(),
        keys => format!(
            "claims to be signed with the key {}: `supervisor-plugin verify` checks that",
            keys.join(", ")
        ),
    };
    let sha256 = compiled_code::digest(&component.wasm);
    output.result(
        &format!(
            "pulled {} {} to {}  {}\n  digest     {digest}\n  file       sha256:{sha256}\n  signature  {signed}",
            manifest.name,
            manifest.version,
            file.display(),
            size(component.wasm.len() as u64),
        ),
        &json!({
            "file": file, "name": manifest.name, "version": manifest.version.to_string(), "digest": digest,
            "sha256": sha256, "bytes": component.wasm.len(), "signed_with": signers,
        }),
    );
    Ok(ExitCode::SUCCESS)
}

/// One of the two files that a plugin may consist of.
struct FilePart<'a> {
    path: PathBuf,
    /// `None` if no such file belongs to the plugin.
    content: Option<&'a [u8]>,
}

impl FilePart<'_> {
    /// Checks that no other file would be overwritten.
    ///
    /// # Errors
    /// Another file exists.
    fn refuse_another(&self) -> Result<()> {
        let unreadable = || format!("cannot read `{}`", self.path.display());
        let length = match fs::metadata(&self.path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).with_context(unreadable),
        };
        let is_same = match self.content {
            // Only with the same length is the existing file worth reading.
            Some(content) if length == content.len() as u64 => {
                fs::read(&self.path).with_context(unreadable)? == content
            }
            _ => false,
        };
        ensure!(
            is_same,
            "there is another file `{}`: remove it, give `--force` to replace it, or name another place with `--output`",
            self.path.display()
        );
        Ok(())
    }

    /// Puts the file in its place in one step.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&self) -> Result<()> {
        let unwritable = || format!("cannot write `{}`", self.path.display());
        let Some(content) = self.content else {
            // Removes the signature of a previous file, because a device would refuse the new file with it.
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(error).with_context(|| format!("cannot remove `{}`", self.path.display()))
                }
                _ => Ok(()),
            };
        };
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty());
        let mut file = tempfile::Builder::new()
            // Like other new files, limited by the umask.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .with_context(unwritable)?;
        file.write_all(content)
            .and_then(|()| file.as_file().sync_all())
            .with_context(unwritable)?;
        file.persist(&self.path).with_context(unwritable)?;
        Ok(())
    }
}

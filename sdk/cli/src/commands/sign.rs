//! `sign`: signs a component, so that devices whose policy names the key accept it.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use minisign::{SecretKey, SecretKeyBox};
use plugins::{SignaturePlace, signature_place, signed_content, write_signed};
use serde_json::json;

use crate::arguments::Sign;
use crate::component::Component;
use crate::output::Output;

/// The minimum length of the line with a secret key, in base64.
const SHORTEST: usize = 200;
/// The maximum length of a key file, in bytes.
const MOST: u64 = 4096;

pub(crate) fn run(arguments: Sign, output: &Output) -> Result<ExitCode> {
    let component = Component::read(arguments.file)?;
    let key = secret_key(&arguments.key, arguments.password)?;
    let public = sign(&component, &key, arguments.detached)?;
    let manifest = &component.manifest;
    let (name, version) = (&manifest.name, manifest.version.to_string());
    let place = if arguments.detached {
        format!("in {}", signature_file(&component.file).display())
    } else {
        "in the file".to_owned()
    };
    output.result(
        &format!("signed {name} {version} with the key {public}; the signature is {place}"),
        &json!({ "name": name, "version": version, "public_key": public, "detached": arguments.detached }),
    );
    Ok(ExitCode::SUCCESS)
}

/// Signs a component in its file or, if `detached`, in a file beside it, instead of any signature that is in that place.
/// Returns the public key, in base64. A file that cannot be written stays as it was.
///
/// # Errors
/// If a file cannot be written, or the component has a signature in its middle, or a signature in a place that a detached
/// one leaves unchanged.
pub(super) fn sign(component: &Component, key: &SecretKey, detached: bool) -> Result<String> {
    let Component {
        file,
        wasm,
        manifest,
        is_of_project: _,
    } = component;
    let content = signed_content(wasm);
    ensure!(
        signature_place(file, content) != Some(SignaturePlace::InFile),
        "`{}` contains a signature that is not at its end: build it again, and sign that",
        file.display()
    );
    ensure!(
        !detached || content.len() == wasm.len(),
        "`{}` contains a signature, and a detached one leaves the file unchanged: sign it without `--detached`, or build it \
         again",
        file.display()
    );
    let comment = format!("{} {}", manifest.name, manifest.version);
    let signature = minisign::sign(None, key, Cursor::new(content), Some(&comment), None)
        .context("failed to sign")?;
    let signature = signature.into_string();
    let beside = signature_file(file);
    if detached {
        std::fs::write(&beside, signature)
            .with_context(|| format!("cannot write `{}`", beside.display()))?;
    } else {
        write_signed(file, content, &signature)?;
    }
    Ok(minisign::PublicKey::from_secret_key(key)?.to_base64())
}

/// Returns the file for the signature beside a component.
fn signature_file(component: &Path) -> PathBuf {
    component.with_added_extension("minisig")
}

/// Reads the key in a file from minisign or from `keygen`.
pub(super) fn secret_key(path: &Path, password: Option<String>) -> Result<SecretKey> {
    let unreadable = || {
        format!(
            "cannot read the key `{}`; `supervisor-plugin keygen FILE` creates one",
            path.display()
        )
    };
    let length = std::fs::metadata(path).with_context(unreadable)?.len();
    ensure!(
        length <= MOST,
        "`{}` is too large for a minisign key",
        path.display()
    );
    let text = std::fs::read_to_string(path).with_context(unreadable)?;
    let no_key = || {
        format!(
            "`{}` is not a secret key, or the password is wrong; give the file of the secret key, not FILE.pub",
            path.display()
        )
    };
    // A public key is shorter; without this check its password would be asked for.
    let is_long = text.lines().any(|line| line.len() >= SHORTEST);
    ensure!(is_long, "{}", no_key());
    let key = || SecretKeyBox::from_string(&text).with_context(no_key);
    if let Ok(plain) = key()?.into_unencrypted_secret_key() {
        return Ok(plain);
    }
    let password = match password {
        Some(password) => password,
        None => rpassword::prompt_password("Password of the key: ").context(
            "cannot ask for the password here; give it in SUPERVISOR_PLUGIN_KEY_PASSWORD",
        )?,
    };
    key()?.into_secret_key(Some(password)).with_context(no_key)
}

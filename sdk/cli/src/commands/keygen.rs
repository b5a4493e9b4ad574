//! `keygen`: creates a key that signs plugins, in minisign's format.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use minisign::KeyPair;
use serde_json::json;

use crate::arguments::Keygen;
use crate::output::Output;

pub(crate) fn run(arguments: &Keygen, output: &Output) -> Result<ExitCode> {
    let pair = if arguments.no_password {
        KeyPair::generate_unencrypted_keypair()
    } else {
        KeyPair::generate_encrypted_keypair(Some(new_password()?))
    };
    let pair = pair.context("failed to create a key")?;
    let secret = pair.sk.to_box(Some("signs plugins"))?.into_string();
    let public = pair.pk.to_box()?.into_string();
    let beside = beside(&arguments.file);
    // Otherwise there would be a secret key whose public key nobody has, and which keeps the next try from creating one.
    ensure!(
        !beside.exists(),
        "cannot create `{}`, the file of the public key, because it exists: choose another name for the key",
        beside.display()
    );
    write_new(&arguments.file, &secret, 0o600)?;
    write_new(&beside, &public, 0o644)?;
    let key = pair.pk.to_base64();
    let shown = beside.display().to_string();
    output.result(
        &format!(
            "{0} is the private key: keep it secret. {1} is the public key. A device gets what the key signs, and trusts the key, with:\n\n  \
             supervisor plugins install PLUGIN.wasm --key {2}",
            arguments.file.display(),
            shown,
            shell_words::quote(&shown)
        ),
        &json!({ "key": arguments.file, "public_key": key }),
    );
    Ok(ExitCode::SUCCESS)
}

fn new_password() -> Result<String> {
    let ask = |question| {
        rpassword::prompt_password(question)
            .context("cannot ask for a password here; for a key without one, give --no-password")
    };
    let password = ask("Password of the new key: ")?;
    ensure!(
        !password.is_empty(),
        "the password is empty; for a key without one, give --no-password"
    );
    ensure!(
        ask("Repeat the password: ")? == password,
        "the two passwords differ"
    );
    Ok(password)
}

fn beside(file: &Path) -> PathBuf {
    file.with_added_extension("pub")
}

/// Writes a new file, and never overwrites one: an overwritten key would be lost.
fn write_new(file: &Path, text: &str, mode: u32) -> Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(file)
        .and_then(|mut opened| opened.write_all(text.as_bytes()))
        .with_context(|| format!("cannot create `{}`", file.display()))
}

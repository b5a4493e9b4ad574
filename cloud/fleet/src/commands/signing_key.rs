//! `signing-key make`: a key that signs releases. The cloud never has it.

use std::path::{Path, PathBuf};

use minisign::{KeyPair, SecretKey, SecretKeyBox};
use serde_json::json;

use crate::arguments::sign::SigningKeyCommand;
use crate::ask;
use crate::failure::{Failure, Result};
use crate::files::write_new;
use crate::output::Output;

/// The maximum length of a key file, in bytes.
const MOST: u64 = 4096;

pub(crate) fn run(output: &Output, command: SigningKeyCommand) -> Result<()> {
    let SigningKeyCommand::Make { file, no_password } = command;
    let pair = if no_password {
        KeyPair::generate_unencrypted_keypair()
    } else {
        let password = new_password()?;
        let _waiting = output.waiting("protecting the key with the password");
        KeyPair::generate_encrypted_keypair(Some(password))
    };
    let failed = |error| Failure::failed("failed to create a key").because(error);
    let pair = pair.map_err(failed)?;
    let secret = pair.sk.to_box(Some("signs releases of a fleet"));
    let secret = secret.map_err(failed)?.into_string();
    let public = pair.pk.to_box().map_err(failed)?.into_string();
    let beside = beside(&file);
    // An overwritten key would be lost.
    write_new(&file, &secret, 0o600)?;
    write_new(&beside, &public, 0o644)?;
    let key = pair.pk.to_base64();
    let (file, beside) = (file.display(), beside.display());
    output.done(
        format!(
            "{file} is the private key: keep it secret. {beside} is the public key. Devices that should accept only what the key signs need this in their policy:\n\n[keys.fleet]\npublic = \"{key}\"\n\n[targets]\nkeys = [\"fleet\"]"
        ),
        &json!({ "key": file.to_string(), "public_key": key }),
    );
    Ok(())
}

/// Reads the key in a file from minisign or from this program.
///
/// # Errors
/// If it cannot be read, or the password is wrong.
pub(super) fn read(path: &Path, password: Option<String>) -> Result<SecretKey> {
    let unreadable = |error: std::io::Error| {
        let failure = Failure::failed(format!("the key {} cannot be read", path.display()));
        failure
            .because(error)
            .hint("`fleet signing-key make FILE` creates one")
    };
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > MOST {
        let message = format!("{} is too large for a minisign key", path.display());
        return Err(Failure::usage(message));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let key = || SecretKeyBox::from_string(&text).map_err(|error| wrong(path, error));
    if let Ok(plain) = key()?.into_unencrypted_secret_key() {
        return Ok(plain);
    }
    let instead = "FLEET_SIGNING_PASSWORD or --password";
    let password = ask::given_secret(password, "Password of the key", instead)?;
    let opened = key()?.into_secret_key(Some(password));
    opened.map_err(|error| wrong(path, error))
}

fn wrong(path: &Path, error: minisign::PError) -> Failure {
    let failure = Failure::failed(format!(
        "{} is not a key, or the password is wrong",
        path.display()
    ));
    failure
        .because(error)
        .hint("give the file of the secret key, not FILE.pub")
}

fn new_password() -> Result<String> {
    const INSTEAD: &str = "--no-password, for a key without a password";
    let password = ask::secret("Password of the new key", INSTEAD)?;
    if password.is_empty() {
        return Err(Failure::usage("the password is empty").hint(format!("use {INSTEAD}")));
    }
    if ask::secret("Repeat the password", INSTEAD)? == password {
        Ok(password)
    } else {
        Err(Failure::usage("the two passwords differ"))
    }
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_with_its_password_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.key");
        let command = SigningKeyCommand::Make {
            file: path.clone(),
            no_password: true,
        };
        run(&Output::new(true), command).unwrap();
        let key = read(&path, None).unwrap();
        let public = minisign::PublicKey::from_file(beside(&path)).unwrap();
        assert_eq!(minisign::PublicKey::from_secret_key(&key).unwrap(), public);
        // A key is never overwritten.
        let again = SigningKeyCommand::Make {
            file: path.clone(),
            no_password: true,
        };
        assert!(run(&Output::new(true), again).is_err());
        assert!(read(&beside(&path), Some(String::new())).is_err());
        assert!(read(&folder.path().join("none"), None).is_err());
    }
}

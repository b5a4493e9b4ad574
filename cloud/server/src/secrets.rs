//! The keys that secrets in the database are encrypted with: their file, what a start checks, and the commands
//! `secrets-key` and `rotate-secrets`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use data::sealed::{self, Direction, Rotated};
use data::{Database, Keyring, Unreadable, is_key_name};

use crate::arguments::{RotateSecrets, SecretsKey};
use crate::run::with_database;
use crate::{registry, session};

/// Settings of the database that are secret.
const SETTINGS: [&str; 2] = [session::SECRET, registry::KEPT];
/// How long a value that cannot be read is not told of again.
const AGAIN: Duration = Duration::from_secs(60);
/// Values that are told of in that time.
const MOST_TOLD: usize = 100;
/// Bytes of a file of keys at most.
const MOST_BYTES: u64 = 64 << 10;

/// The keys of a file that its owner alone may read.
///
/// # Errors
/// Where it cannot be read, others may read it, or it holds no keys.
pub(crate) fn read_keyring(path: &Path) -> Result<Keyring> {
    let of_file = || format!("the keys of `{}` cannot be used", path.display());
    let file = File::open(path).with_context(of_file)?;
    let mode = file.metadata().with_context(of_file)?.permissions().mode();
    // systemd gives a service its credentials by an ACL, whose mask stands where the group's rights do.
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY");
    let is_credential = credentials.is_some_and(|folder| path.starts_with(folder));
    let others = match is_credential {
        true => 0o027,
        false => 0o077,
    };
    ensure!(
        mode & others == 0,
        "the keys of `{path}` cannot be used: others than its owner may read or change the file (mode {mode:o}); \
         `chmod 600 {path}`",
        path = path.display(),
        mode = mode & 0o777,
    );
    let mut text = String::new();
    file.take(MOST_BYTES)
        .read_to_string(&mut text)
        .with_context(of_file)?;
    Keyring::parse(&text).with_context(of_file)
}

/// Holds the keys against the database before anything is served, and says what is not encrypted.
///
/// # Errors
/// Where a key is missing or wrong, or the database fails.
pub(crate) async fn check(database: &Database, keyring: &Keyring) -> Result<()> {
    sealed::check_keys(database, keyring)
        .await
        .context("what is secret in the database cannot be read")?;
    let plain = sealed::unencrypted(database, &SETTINGS).await?;
    match (keyring.is_empty(), plain.variables, plain.all) {
        (true, 0, _) | (false, _, 0) => {}
        (true, variables, _) => tracing::warn!(
            "the values of {variables} secret variables are in the database AS THEY ARE: give keys by \
             `secrets_key_file` (`fleet-cloud secrets-key generate` makes one), then run `fleet-cloud rotate-secrets`"
        ),
        (false, _, all) => tracing::warn!(
            "{all} secrets in the database are not encrypted yet; run `fleet-cloud rotate-secrets`"
        ),
    }
    Ok(())
}

/// Says in the log which value cannot be read; of each value once a minute, however many ask for it.
pub(crate) fn log_unreadable(why: &Unreadable) {
    static TOLD: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());
    let why = why.to_string();
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    told.retain(|_, since| since.elapsed() < AGAIN);
    if told.len() < MOST_TOLD && !told.contains_key(&why) {
        tracing::error!("a secret cannot be decrypted: {why}");
        told.insert(why, Instant::now());
    }
}

/// `fleet-cloud secrets-key`.
///
/// # Errors
/// Where the name is none, or the system has no random numbers.
pub(crate) fn print_new_key(what: &SecretsKey) -> Result<()> {
    let SecretsKey::Generate { name } = what;
    if let Some(name) = name {
        ensure!(
            is_key_name(name),
            "`{name}` is no name of a key: it has letters, digits, `.`, `_` and `-`, 32 at most"
        );
    }
    let line = Keyring::new_line(name.as_deref()).context("no key can be made")?;
    println!("{line}");
    Ok(())
}

/// `fleet-cloud rotate-secrets`.
///
/// # Errors
/// Where the keys or the database cannot be used, or values could not be read.
pub(crate) fn rotate(given: RotateSecrets) -> Result<()> {
    let direction = match given.decrypt {
        true => Direction::ToPlainText,
        false => Direction::ToFirstKey,
    };
    with_database(given.settings, async |database, keyring| {
        sealed::check_keys(database, keyring).await?;
        let mut all = Vec::new();
        let told = |rotated: Rotated| {
            println!("{}", line(&rotated));
            for why in &rotated.unreadable {
                println!("  {why}");
            }
            all.push(rotated);
        };
        sealed::rotate(database, keyring, direction, &SETTINGS, told)
            .await
            .context("it broke off; what was done is done, and starting it again goes on")?;
        for line in summary(&all, keyring) {
            println!("{line}");
        }
        let unreadable: u64 = all.iter().map(|one| one.unreadable_count).sum();
        ensure!(
            unreadable == 0,
            "{unreadable} values cannot be read with the given keys, and stay as they are"
        );
        Ok(())
    })
}

/// What became of a column: `device.api_secret: 12 of 40 written anew; 40 by the key 2026-11`.
fn line(rotated: &Rotated) -> String {
    let total: u64 = rotated.by_key.values().sum();
    let by_key = rotated
        .by_key
        .iter()
        .map(|(key, count)| match key.as_str() {
            "" => format!("{count} not encrypted"),
            key => format!("{count} by the key {key}"),
        });
    let by_key: Vec<String> = by_key.collect();
    let by_key = match by_key.is_empty() {
        true => String::new(),
        false => format!("; {}", by_key.join(", ")),
    };
    format!(
        "{}.{}: {} of {total} written anew{by_key}",
        rotated.table, rotated.column, rotated.changed
    )
}

/// Which keys are in use, and which may go.
fn summary(all: &[Rotated], keyring: &Keyring) -> Vec<String> {
    let uses = |key: &str| -> u64 {
        let counts = all.iter().filter_map(|one| one.by_key.get(key));
        counts.sum()
    };
    let names = keyring.names().enumerate();
    names
        .map(|(at, key)| match (uses(key), at) {
            (0, 0) => format!("The key {key} encrypts nothing yet."),
            (0, _) => format!(
                "The key {key} encrypts nothing any more: take it out of the file once no replica runs that has it first."
            ),
            (1, _) => format!("The key {key} encrypts 1 value."),
            (count, _) => format!("The key {key} encrypts {count} values."),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};

    use super::*;

    #[test]
    fn m10_a_file_of_keys_is_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        write(&path, Keyring::new_line(Some("a")).expect("a key")).expect("a file");
        for (mode, is_good) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o620, false),
            (0o644, false),
        ] {
            set_permissions(&path, Permissions::from_mode(mode)).expect("the mode");
            let read = read_keyring(&path);
            assert_eq!(read.is_ok(), is_good, "{mode:o}: {read:?}");
            if let Err(error) = read {
                assert!(error.to_string().contains("chmod 600"), "{error}");
            }
        }
    }

    #[test]
    fn a_rotation_says_which_key_may_go() {
        let keys =
            ["new", "old", "unused"].map(|name| Keyring::new_line(Some(name)).expect("a key"));
        let keyring = Keyring::parse(&keys.join("\n")).expect("keys");
        let rotated = Rotated {
            table: "device",
            column: "api_secret",
            changed: 2,
            by_key: BTreeMap::from([("new".to_owned(), 3), ("old".to_owned(), 1)]),
            unreadable: Vec::new(),
            unreadable_count: 0,
        };
        assert_eq!(
            line(&rotated),
            "device.api_secret: 2 of 4 written anew; 3 by the key new, 1 by the key old"
        );
        assert_eq!(
            summary(&[rotated], &keyring),
            [
                "The key new encrypts 3 values.",
                "The key old encrypts 1 value.",
                "The key unused encrypts nothing any more: take it out of the file once no replica runs that has it first.",
            ]
        );
    }
}

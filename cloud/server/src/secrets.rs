//! The keys that encrypt secrets in the database: checks at the start, and the commands
//! `secrets-key` and `rotate-secrets`.

use anyhow::{Context as _, Result, ensure};
use cloud_core::session;
use data::sealed::{self, ColumnRotation, Direction};
use data::{Database, Keyring, is_key_name};

use crate::arguments::{RotateSecrets, SecretsKey};
use crate::offline::with_database;
use crate::registry;

/// Settings of the database that are secret.
const SETTINGS: [&str; 2] = [session::SECRET, registry::KEPT];

/// Checks the keys against the database before anything is served, and logs what is not encrypted.
///
/// # Errors
/// If a key is missing or wrong, or the database fails.
pub(crate) async fn check(database: &Database, keyring: &Keyring) -> Result<()> {
    sealed::check_keys(database, keyring)
        .await
        .context("the secrets in the database cannot be read")?;
    let plain = sealed::unencrypted(database, &SETTINGS).await?;
    match (keyring.is_empty(), plain.variables, plain.all) {
        (true, 0, _) | (false, _, 0) => {}
        (true, variables, _) => tracing::warn!(
            "the values of {variables} secret variables are in the database WITHOUT ENCRYPTION: give keys by \
             `secrets_key_file` (`fleet-cloud secrets-key generate` creates one), then run `fleet-cloud rotate-secrets`"
        ),
        (false, _, all) => tracing::warn!(
            "{all} secrets in the database are not encrypted yet; run `fleet-cloud rotate-secrets`"
        ),
    }
    Ok(())
}

/// `fleet-cloud secrets-key`.
///
/// # Errors
/// If the name is invalid, or the system has no random numbers.
pub(crate) fn print_new_key(what: &SecretsKey) -> Result<()> {
    let SecretsKey::Generate { name } = what;
    if let Some(name) = name {
        ensure!(
            is_key_name(name),
            "`{name}` is not a valid name of a key: use at most 32 letters, digits, `.`, `_` and `-`"
        );
    }
    let line = Keyring::new_line(name.as_deref()).context("failed to create a key")?;
    println!("{line}");
    Ok(())
}

/// `fleet-cloud rotate-secrets`.
///
/// # Errors
/// If the keys or the database cannot be used, or values could not be read.
pub(crate) fn rotate(arguments: RotateSecrets) -> Result<()> {
    let direction = if arguments.decrypt {
        Direction::ToPlainText
    } else {
        Direction::ToFirstKey
    };
    with_database(arguments.settings, async |database, keyring| {
        sealed::check_keys(database, keyring).await?;
        let mut all = Vec::new();
        let report = |rotated: ColumnRotation| {
            println!("{}", line(&rotated));
            for why in &rotated.unreadable {
                println!("  {why}");
            }
            all.push(rotated);
        };
        sealed::rotate(database, keyring, direction, &SETTINGS, report)
            .await
            .context("it was interrupted; what was rewritten remains so, and the next run continues from there")?;
        for line in summary(&all, keyring) {
            println!("{line}");
        }
        let unreadable: u64 = all.iter().map(|one| one.unreadable_count).sum();
        ensure!(
            unreadable == 0,
            "{unreadable} values cannot be read with the given keys, and were not changed"
        );
        Ok(())
    })
}

/// Returns the result for a column: `device.api_secret: 12 of 40 rewritten; 40 by the key 2026-11`.
fn line(rotated: &ColumnRotation) -> String {
    let total: u64 = rotated.by_key.values().sum();
    let by_key = rotated
        .by_key
        .iter()
        .map(|(key, count)| match key.as_str() {
            "" => format!("{count} not encrypted"),
            key => format!("{count} by the key {key}"),
        });
    let by_key: Vec<String> = by_key.collect();
    let by_key = if by_key.is_empty() {
        String::new()
    } else {
        format!("; {}", by_key.join(", "))
    };
    format!(
        "{}.{}: {} of {total} rewritten{by_key}",
        rotated.table, rotated.column, rotated.changed
    )
}

/// Returns which keys are in use, and which may be removed.
fn summary(all: &[ColumnRotation], keyring: &Keyring) -> Vec<String> {
    let uses = |key: &str| -> u64 {
        let counts = all.iter().filter_map(|one| one.by_key.get(key));
        counts.sum()
    };
    let names = keyring.names().enumerate();
    names
        .map(|(at, key)| match (uses(key), at) {
            (0, 0) => format!("The key {key} encrypts nothing yet."),
            (0, _) => format!(
                "The key {key} is no longer used: remove it from the file when no running replica has it in the first place."
            ),
            (1, _) => format!("The key {key} encrypts 1 value."),
            (count, _) => format!("The key {key} encrypts {count} values."),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_rotation_says_which_key_may_go() {
        let keys =
            ["new", "old", "unused"].map(|name| Keyring::new_line(Some(name)).expect("a key"));
        let keyring = Keyring::parse(&keys.join("\n")).expect("keys");
        let rotated = ColumnRotation {
            table: "device",
            column: "api_secret",
            changed: 2,
            by_key: BTreeMap::from([("new".to_owned(), 3), ("old".to_owned(), 1)]),
            unreadable: Vec::new(),
            unreadable_count: 0,
        };
        assert_eq!(
            line(&rotated),
            "device.api_secret: 2 of 4 rewritten; 3 by the key new, 1 by the key old"
        );
        assert_eq!(
            summary(&[rotated], &keyring),
            [
                "The key new encrypts 3 values.",
                "The key old encrypts 1 value.",
                "The key unused is no longer used: remove it from the file when no running replica has it in the first place.",
            ]
        );
    }
}

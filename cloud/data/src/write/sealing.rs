//! Secrets are encrypted on their way into the database.

use std::sync::atomic::{AtomicBool, Ordering};

use resources::{Resource, StoredValue};

use super::change::Change;
use super::{WriteResult, Writer};
use crate::error::DataError;
use crate::keyring::SecretLocation;
use crate::record::{self, Record};
use crate::sealed;

impl Writer<'_> {
    /// Encrypts the secrets in a change of an existing row; returns whether there are any.
    pub(super) fn seal(
        &self,
        resource: &'static Resource,
        change: &mut Change,
    ) -> WriteResult<bool> {
        let secrets = secrets(resource, change);
        let any = !secrets.is_empty();
        for (column, value) in secrets {
            let place = SecretLocation::from_row(resource.name, column, change.id);
            change.new.set_text(column, self.sealed(&place, &value)?);
        }
        Ok(any)
    }

    /// Inserts a row with its secrets. Encryption requires the row's number, so the secrets are written after the row.
    pub(super) async fn insert(
        &mut self,
        resource: &'static Resource,
        change: &mut Change,
    ) -> WriteResult<i64> {
        let secrets = secrets(resource, change);
        if secrets.is_empty() {
            return Ok(record::insert(self.transaction, resource, &change.new).await?);
        }
        for (column, _) in &secrets {
            change.new.set_text(column, "");
        }
        let id = record::insert(self.transaction, resource, &change.new).await?;
        let mut sealed = Record::default();
        for (column, value) in secrets {
            let place = SecretLocation::from_row(resource.name, column, id);
            sealed.set_text(column, self.sealed(&place, &value)?);
        }
        record::update(self.transaction, resource, &[id], &sealed).await?;
        Ok(id)
    }

    fn sealed(&self, place: &SecretLocation, value: &str) -> WriteResult<String> {
        let keyring = &self.environment.keyring;
        Ok(keyring.seal(place, value).map_err(DataError::from)?)
    }

    /// Warns once that a value marked as secret is not encrypted.
    pub(crate) fn warn_of_plain_text(&self) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if self.environment.keyring.is_empty() && !WARNED.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "a secret variable is stored in the database WITHOUT ENCRYPTION, since `secrets_key_file` names no keys; \
                 `fleet-cloud secrets-key generate` creates one"
            );
        }
    }
}

/// Returns the secrets in a change: fields that are always secret, and those that are secret in this row.
fn secrets(resource: &'static Resource, change: &Change) -> Vec<(&'static str, String)> {
    let mut secrets = Vec::new();
    for sealed in sealed::columns_of(resource) {
        let becomes_secret = match sealed.flag {
            Some(flag) if !change.flag(flag) => continue,
            Some(flag) => change.alters(flag),
            None => false,
        };
        let value = match change.new.get(sealed.column) {
            None if becomes_secret => change.old.get(sealed.column),
            written => written,
        };
        if let Some(StoredValue::Text(value)) = value {
            secrets.push((sealed.column, value.clone()));
        }
    }
    secrets
}

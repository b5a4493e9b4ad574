//! The encrypted values of the database, and their keys: the check of the given keys at a start, and the rotation of
//! all values to another key.

mod rotation;

use resources::{Column, Field, Resource, Source};

pub use rotation::{ColumnRotation, Direction, rotate};

use crate::database::Database;
use crate::error::DataError;
use crate::keyring::{self, Keyring, SecretLocation, UnreadableSecret};
use crate::setting;
use crate::statement::{Sql, sql};

/// The prefix of settings that show whether a key of that name is the right one.
const RECORD: &str = "secrets key ";
/// The text that they encrypt.
const KNOWN: &str = "the right key";

/// A column of which some or all values are encrypted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SealedColumn {
    pub(crate) table: &'static str,
    pub(crate) column: &'static str,
    /// The flag of rows with an encrypted value; without it, all rows.
    pub(crate) flag: Option<&'static str>,
}

/// Returns the encrypted columns of a resource.
pub(crate) fn columns_of(resource: &Resource) -> impl Iterator<Item = SealedColumn> {
    let table = resource.name;
    let fields = resource.fields.iter();
    fields.filter_map(move |field| match (field.column, field.secret_where) {
        (Column::Stored(column), flag) if flag.is_some() || field.encrypted => Some(SealedColumn {
            table,
            column,
            flag,
        }),
        _ => None,
    })
}

/// Returns the field of a resource that is secret in some rows, and the flag of those rows.
pub(crate) fn secret_field(resource: &Resource) -> Option<(&Field, &'static str)> {
    let mut fields = resource.fields.iter();
    fields.find_map(|field| Some((field, field.secret_where?)))
}

fn columns() -> impl Iterator<Item = SealedColumn> {
    let resources = resources::v7().resources().iter();
    let tables = resources.filter(|one| one.source == Source::Table);
    tables.flat_map(columns_of)
}

impl SealedColumn {
    /// Selects from the rows whose value should be encrypted, with further conditions in `rest`.
    fn select(&self, what: &str, rest: &str) -> Sql {
        let (table, column) = (self.table, self.column);
        let flag = self.flag.map(|flag| format!(" AND \"{flag}\" = TRUE"));
        let flag = flag.unwrap_or_default();
        sql(format!(
            "SELECT {what} FROM \"{table}\" WHERE \"{column}\" IS NOT NULL{flag} {rest}"
        ))
    }

    /// Selects their ids and values.
    fn values(&self, rest: &str) -> Sql {
        self.select(&format!("id, \"{}\"", self.column), rest)
    }

    /// Returns an expression for the beginning of a value, of the same length as this prefix.
    fn beginning(&self, prefix: &str) -> String {
        format!("substr(\"{}\", 1, {})", self.column, prefix.len())
    }

    fn place(&self, id: i64) -> SecretLocation {
        SecretLocation::from_row(self.table, self.column, id)
    }
}

/// Checks the given keys against those that the database is encrypted with, and records the encrypting one.
///
/// # Errors
/// [`DataError::Keys`] if a key is missing, or differs from the one of its name; if the database fails.
pub async fn check_keys(database: &Database, keyring: &Keyring) -> Result<(), DataError> {
    for (name, stored) in records(database).await? {
        let place = SecretLocation::from_setting(&name);
        match keyring.open(&place, &stored) {
            Ok(_) => {}
            Err(UnreadableSecret::NoKey { key, .. }) => {
                if let Some(place) = use_of(database, &key).await? {
                    return Err(DataError::Keys(format!(
                        "the database contains values encrypted with the key `{key}` (for example {place}), but the \
                         file that `secrets_key_file` names does not contain this key: put it back, and remove it once \
                         `fleet-cloud rotate-secrets` reports that it is no longer used"
                    )));
                }
            }
            Err(_) => {
                let key = keyring::key_of(&stored).unwrap_or_default();
                return Err(DataError::Keys(format!(
                    "the database is encrypted with another key that is also called `{key}`: put that one into the file \
                     that `secrets_key_file` names, and give the new key another name"
                )));
            }
        }
    }
    let Some(first) = keyring.names().next() else {
        return Ok(());
    };
    let name = format!("{RECORD}{first}");
    let place = SecretLocation::from_setting(&name);
    let stored = setting::read_or_write(database, &name, &keyring.seal(&place, KNOWN)?).await?;
    // If two programs start to use different keys of one name, one of them is wrong.
    keyring.open(&place, &stored)?;
    Ok(())
}

async fn records(database: &Database) -> Result<Vec<(String, String)>, DataError> {
    let select = sql("SELECT name, value FROM platform_setting WHERE name LIKE ? ORDER BY name");
    let rows = database.rows(&select.with(format!("{RECORD}%"))).await?;
    let record = |row: &crate::row::Row| Ok((row.some_text(0)?, row.some_text(1)?));
    rows.iter().map(record).collect()
}

/// Returns the place of a value that is encrypted with a key.
async fn use_of(database: &Database, key: &str) -> Result<Option<SecretLocation>, DataError> {
    let prefix = keyring::prefix(key);
    for column in columns() {
        let sealed = format!("AND {} = ? ORDER BY id LIMIT 1", column.beginning(&prefix));
        let sealed = column.values(&sealed).with(prefix.as_str());
        if let Some(row) = database.row(&sealed).await? {
            return Ok(Some(column.place(row.id(0)?)));
        }
    }
    let settings = sql(
        "SELECT name FROM platform_setting WHERE substr(value, 1, CAST(? AS INTEGER)) = ? \
                        AND name NOT LIKE ? LIMIT 1",
    )
    .with(i64::try_from(prefix.len()).unwrap_or(i64::MAX))
    .with(prefix)
    .with(format!("{RECORD}%"));
    let setting = database.row(&settings).await?;
    let place = setting.map(|row| Ok(SecretLocation::from_setting(&row.some_text(0)?)));
    place.transpose()
}

/// The number of secret values that are unencrypted in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnencryptedSecrets {
    /// Secret values of variables.
    pub variables: u64,
    /// All, including those of variables.
    pub all: u64,
}

/// Counts the secret values that are unencrypted in the database. `settings` are the names of secret settings.
///
/// # Errors
/// If the database fails.
pub async fn unencrypted(
    database: &Database,
    settings: &[&str],
) -> Result<UnencryptedSecrets, DataError> {
    let prefix = keyring::any_prefix();
    let mut unencrypted = UnencryptedSecrets {
        variables: 0,
        all: 0,
    };
    for column in columns() {
        let open = format!("AND {} <> ?", column.beginning(&prefix));
        let open = column.select("COUNT(*)", &open).with(prefix.as_str());
        let open = database.id(&open).await?.unwrap_or_default();
        let open = open.unsigned_abs();
        unencrypted.all += open;
        if column.flag.is_some() {
            unencrypted.variables += open;
        }
    }
    let mut transaction = database.begin().await?;
    for name in settings {
        let stored = setting::read(&mut transaction, name).await?;
        let is_open = stored.is_some_and(|stored| keyring::key_of(&stored).is_none());
        unencrypted.all += u64::from(is_open);
    }
    Ok(unencrypted)
}

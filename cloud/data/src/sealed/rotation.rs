//! The rotation of all secret values to another key.

use std::collections::BTreeMap;

use super::{RECORD, SealedColumn, columns, records, use_of};
use crate::database::Database;
use crate::dialect::Dialect;
use crate::error::DataError;
use crate::keyring::{self, Keyring, SecretLocation, UnreadableSecret};
use crate::setting;
use crate::statement::sql;
use crate::transaction::{Retries, Transaction};

/// Rows that are read at once, and changed in one transaction: others can write in between.
const AT_ONCE: u64 = 200;
/// The maximum number of unreadable values that are named; the rest are only counted.
const MOST_NAMED: usize = 20;
/// How often a value is retried if somebody else changed it in the meantime.
const TRIES: u32 = 5;

/// The target state of [`rotate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Everything is encrypted with the first key.
    ToFirstKey,
    /// Nothing is encrypted.
    ToPlainText,
}

/// The result for the secret values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRotation {
    /// The table, either that of a resource or `platform_setting`.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// The number of rewritten values.
    pub changed: u64,
    /// The number of values that each key now encrypts; unencrypted ones under the empty name.
    pub by_key: BTreeMap<String, u64>,
    /// The reasons why values were left unchanged, up to a maximum number.
    pub unreadable: Vec<UnreadableSecret>,
    /// The total number of such values.
    pub unreadable_count: u64,
}

impl ColumnRotation {
    fn new(table: &'static str, column: &'static str) -> Self {
        ColumnRotation {
            table,
            column,
            changed: 0,
            by_key: BTreeMap::new(),
            unreadable: Vec::new(),
            unreadable_count: 0,
        }
    }

    fn count(&mut self, stored: &str) {
        let key = keyring::key_of(stored).unwrap_or_default();
        *self.by_key.entry(key.to_owned()).or_default() += 1;
    }
}

/// Rewrites all secret values, in small transactions while the database is in use; values that others write in the
/// meantime are kept. Values that already have the right form are skipped, so that a second run continues an
/// interrupted one. `settings` are the names of secret settings. `report` receives one table after another.
///
/// # Errors
/// If the database fails, or there is no key to encrypt with. Values rewritten by then remain so.
pub async fn rotate(
    database: &Database,
    keyring: &Keyring,
    direction: Direction,
    settings: &[&str],
    mut report: impl FnMut(ColumnRotation),
) -> Result<(), DataError> {
    if direction == Direction::ToFirstKey && keyring.is_empty() {
        return Err(DataError::Keys(
            "there is no key to encrypt with: name a file of keys with `secrets_key_file`"
                .to_owned(),
        ));
    }
    let rotation = Rotation {
        database,
        keyring,
        direction,
    };
    for column in columns() {
        report(rotation.column(column).await?);
    }
    report(rotation.settings(settings).await?);
    rotation.forget_keys().await
}

struct Rotation<'a> {
    database: &'a Database,
    keyring: &'a Keyring,
    direction: Direction,
}

impl Rotation<'_> {
    /// Returns the rewritten value. A value that stays unchanged is only counted.
    fn new_value(
        &self,
        place: &SecretLocation,
        stored: &str,
        rotated: &mut ColumnRotation,
    ) -> Result<Option<String>, DataError> {
        match self.rewritten(place, stored) {
            Ok(None) => rotated.count(stored),
            Err(DataError::Unreadable(why)) => rotated.refuse(why, stored),
            result => return result,
        }
        Ok(None)
    }

    fn rewritten(&self, place: &SecretLocation, stored: &str) -> Result<Option<String>, DataError> {
        let key = keyring::key_of(stored);
        Ok(match self.direction {
            Direction::ToFirstKey if key == self.keyring.names().next() => {
                // Moved or damaged values are found here rather than when a device requests them.
                self.keyring.open(place, stored)?;
                None
            }
            Direction::ToFirstKey => {
                let value = self.keyring.open(place, stored)?;
                Some(self.keyring.seal(place, &value)?)
            }
            Direction::ToPlainText if key.is_none() => None,
            Direction::ToPlainText => Some(Keyring::unsealed(&self.keyring.open(place, stored)?)),
        })
    }

    async fn column(&self, column: SealedColumn) -> Result<ColumnRotation, DataError> {
        let mut rotated = ColumnRotation::new(column.table, column.column);
        let mut after = 0;
        loop {
            let next = format!("AND id > ? ORDER BY id LIMIT {AT_ONCE}");
            let rows = self
                .database
                .rows(&column.values(&next).with(after))
                .await?;
            let values = rows.iter().map(|row| Ok((row.id(0)?, row.some_text(1)?)));
            let values = values.collect::<Result<Vec<_>, DataError>>()?;
            let Some((last, _)) = values.last() else {
                return Ok(rotated);
            };
            after = *last;
            let mut retries = Retries::default();
            rotated.add(loop {
                match self.batch(column, &values).await {
                    Err(error) if retries.again(&error) => {}
                    batch => break batch?,
                }
            });
        }
    }

    async fn batch(
        &self,
        column: SealedColumn,
        values: &[(i64, String)],
    ) -> Result<ColumnRotation, DataError> {
        let mut batch = ColumnRotation::new(column.table, column.column);
        let mut changes = Vec::new();
        for (id, stored) in values {
            if let Some(value) = self.new_value(&column.place(*id), stored, &mut batch)? {
                changes.push((*id, stored.clone(), value));
            }
        }
        if changes.is_empty() {
            return Ok(batch);
        }
        let mut transaction = self.begin().await?;
        for (id, stored, value) in changes {
            let row = self.row(&mut transaction, column, id, stored, value, &mut batch);
            row.await?;
        }
        transaction.commit().await?;
        Ok(batch)
    }

    /// Writes one value, unless somebody else has written another since it was read.
    async fn row(
        &self,
        transaction: &mut Transaction,
        column: SealedColumn,
        id: i64,
        mut stored: String,
        mut value: String,
        batch: &mut ColumnRotation,
    ) -> Result<(), DataError> {
        let update = format!(
            "UPDATE \"{}\" SET \"{name}\" = ? WHERE id = ? AND \"{name}\" = ?",
            column.table,
            name = column.column
        );
        for _ in 0..TRIES {
            let update = sql(update.clone()).with(value.as_str()).with(id);
            if transaction.execute(&update.with(stored)).await? == 1 {
                batch.changed += 1;
                batch.count(&value);
                return Ok(());
            }
            // The row is gone, or no longer secret.
            let value_now = column.values("AND id = ?").with(id);
            let Some(row) = transaction.row(&value_now).await? else {
                return Ok(());
            };
            stored = row.some_text(1)?;
            match self.new_value(&column.place(id), &stored, batch)? {
                Some(again) => value = again,
                None => return Ok(()),
            }
        }
        batch.count(&stored);
        Ok(())
    }

    async fn settings(&self, names: &[&str]) -> Result<ColumnRotation, DataError> {
        let mut rotated = ColumnRotation::new("platform_setting", "value");
        for name in names {
            let place = SecretLocation::from_setting(name);
            let mut transaction = self.begin().await?;
            let Some(stored) = setting::read(&mut transaction, name).await? else {
                continue;
            };
            if let Some(value) = self.new_value(&place, &stored, &mut rotated)? {
                let update =
                    sql("UPDATE platform_setting SET value = ? WHERE name = ? AND value = ?");
                let update = update.with(value.as_str()).with(*name).with(stored);
                if transaction.execute(&update).await? == 1 {
                    rotated.changed += 1;
                    rotated.count(&value);
                }
                transaction.commit().await?;
            }
        }
        Ok(rotated)
    }

    /// Forgets keys that no longer encrypt anything: from now on, their names may be used for other keys.
    async fn forget_keys(&self) -> Result<(), DataError> {
        for (name, _) in records(self.database).await? {
            let key = name.strip_prefix(RECORD).unwrap_or_default();
            let stays = self.direction == Direction::ToFirstKey
                && self.keyring.names().any(|known| known == key);
            if !stays && use_of(self.database, key).await?.is_none() {
                let forget = sql("DELETE FROM platform_setting WHERE name = ?");
                self.database.execute(&forget.with(name)).await?;
            }
        }
        Ok(())
    }

    /// Begins a transaction whose overwritten data cannot be recovered from the file.
    async fn begin(&self) -> Result<Transaction, DataError> {
        let mut transaction = self.database.begin().await?;
        if transaction.dialect() == Dialect::Sqlite {
            transaction.script("PRAGMA secure_delete = ON").await?;
        }
        Ok(transaction)
    }
}

impl ColumnRotation {
    fn add(&mut self, other: ColumnRotation) {
        self.changed += other.changed;
        self.unreadable_count += other.unreadable_count;
        for (key, count) in other.by_key {
            *self.by_key.entry(key).or_default() += count;
        }
        self.unreadable.extend(other.unreadable);
        self.unreadable.truncate(MOST_NAMED);
    }

    fn refuse(&mut self, why: UnreadableSecret, stored: &str) {
        self.count(stored);
        self.unreadable_count += 1;
        if self.unreadable.len() < MOST_NAMED {
            self.unreadable.push(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_both;

    const SHELF: SealedColumn = SealedColumn {
        table: "shelf",
        column: "value",
        flag: None,
    };

    #[tokio::test]
    async fn concurrent_writes_during_a_rotation_are_kept() {
        on_both(|database| async move {
            let mut transaction = database.begin().await.expect("a transaction");
            let table = "CREATE TABLE shelf (id BIGINT PRIMARY KEY, value TEXT); \
                         INSERT INTO shelf VALUES (1, 'new'), (2, 'kept')";
            transaction.script(table).await.expect("a table");
            transaction.commit().await.expect("a commit");
            let lines = ["a", "b"].map(|name| Keyring::new_line(Some(name)).expect("a key"));
            let keyring = Keyring::parse(&lines.join("\n")).expect("keys");
            let rotation = Rotation {
                database: &database,
                keyring: &keyring,
                direction: Direction::ToFirstKey,
            };
            // As they were read: by now one has changed, and one is gone.
            let read = [(1, "old"), (2, "kept"), (3, "gone")];
            let read = read.map(|(id, value)| (id, value.to_owned()));
            let batch = rotation.batch(SHELF, &read).await.expect("a batch");
            assert_eq!((batch.changed, batch.unreadable_count), (2, 0));
            assert_eq!(batch.by_key, BTreeMap::from([("a".to_owned(), 2)]));
            let values = SHELF.values("ORDER BY id");
            let rows = database.rows(&values).await.expect("rows");
            for (row, expected) in rows.iter().zip(["new", "kept"]) {
                let id = row.id(0).expect("an id");
                let stored = row.some_text(1).expect("a value");
                assert_eq!(keyring::key_of(&stored), Some("a"));
                assert_eq!(
                    keyring.open(&SHELF.place(id), &stored).as_deref(),
                    Ok(expected)
                );
            }
            let again = rotation.column(SHELF).await.expect("nothing to do");
            assert_eq!(again.changed, 0);
        })
        .await;
    }
}

//! Which values of the database are encrypted, and by which keys: what a start holds the given keys against, and the
//! change of all of them to another key.

use std::collections::BTreeMap;

use resources::{Column, Resource, Source};
use sea_query::{Alias, Expr, ExprTrait, Order, Query, SelectStatement};

use crate::database::Database;
use crate::dialect::Dialect;
use crate::error::DataError;
use crate::keyring::{self, Keyring, Place, UnreadableSecret};
use crate::setting;
use crate::statement::{InternalStatement, sql};
use crate::transaction::{Retries, Transaction};

/// Rows that are read at once, and changed in one transaction: others write in between.
const AT_ONCE: u64 = 200;
/// Values that cannot be read and are told of one by one; the others are counted.
const MOST_TOLD: usize = 20;
/// How often a value is looked at again that somebody else changed in the meantime.
const TRIES: u32 = 5;
/// What the names of settings begin with that show whether a key of that name is the right one.
const RECORD: &str = "secrets key ";
/// What is encrypted there.
const KNOWN: &str = "the right key";

/// A column of which some or all values are encrypted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SealedColumn {
    pub(crate) table: &'static str,
    pub(crate) column: &'static str,
    /// It is so in rows where this is set; in all rows without it.
    pub(crate) flag: Option<&'static str>,
}

/// Those of a resource.
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

fn columns() -> impl Iterator<Item = SealedColumn> {
    let resources = resources::v7().resources().iter();
    let tables = resources.filter(|one| one.source == Source::Table);
    tables.flat_map(columns_of)
}

impl SealedColumn {
    /// The ids and the values that are to be encrypted.
    fn select(&self) -> SelectStatement {
        let mut select = Query::select();
        let column = Expr::col(Alias::new(self.column));
        select
            .columns([Alias::new("id"), Alias::new(self.column)])
            .from(Alias::new(self.table))
            .and_where(column.is_not_null())
            .order_by(Alias::new("id"), Order::Asc);
        if let Some(flag) = self.flag {
            select.and_where(Expr::col(Alias::new(flag)).eq(true));
        }
        select
    }

    /// Those that begin so.
    fn beginning_with(&self, prefix: &str) -> SelectStatement {
        // Only names and a number of our own are in the text.
        let begin = format!("substr(\"{}\", 1, {})", self.column, prefix.len());
        let mut select = self.select();
        select.and_where(Expr::cust(begin).eq(prefix));
        select
    }

    fn place(&self, id: i64) -> Place {
        Place::of_row(self.table, self.column, id)
    }
}

/// Holds the given keys against what the database is encrypted with, and notes the one that encrypts from now on.
///
/// # Errors
/// [`DataError::Keys`] where a key is missing, or another than the one of its name; where the database fails.
pub async fn check_keys(database: &Database, keyring: &Keyring) -> Result<(), DataError> {
    for (name, stored) in records(database).await? {
        let place = Place::of_setting(&name);
        match keyring.open(&place, &stored) {
            Ok(_) => {}
            Err(UnreadableSecret::NoKey { key, .. }) => {
                if let Some(place) = use_of(database, &key).await? {
                    return Err(DataError::Keys(format!(
                        "the database holds values that are encrypted with the key `{key}` ({place}, for one), and \
                         that key is not among the given ones: put it back into the file that `secrets_key_file` \
                         names, and take it out once `fleet-cloud rotate-secrets` says that it encrypts nothing"
                    )));
                }
            }
            Err(_) => {
                let key = keyring::key_of(&stored).unwrap_or_default();
                return Err(DataError::Keys(format!(
                    "the key `{key}` is not the one of that name that the database is encrypted with: put the right \
                     one into the file that `secrets_key_file` names, and give a new key a name of its own"
                )));
            }
        }
    }
    let Some(first) = keyring.names().next() else {
        return Ok(());
    };
    let name = format!("{RECORD}{first}");
    let place = Place::of_setting(&name);
    let stored = setting::read_or_write(database, &name, &keyring.seal(&place, KNOWN)?).await?;
    // Two programs that begin to use two keys of one name: one of them is wrong.
    keyring.open(&place, &stored)?;
    Ok(())
}

async fn records(database: &Database) -> Result<Vec<(String, String)>, DataError> {
    let select = sql("SELECT name, value FROM platform_setting WHERE name LIKE ? ORDER BY name");
    let rows = database.rows(&select.with(format!("{RECORD}%"))).await?;
    let record = |row: &crate::row::Row| Ok((row.some_text(0)?, row.some_text(1)?));
    rows.iter().map(record).collect()
}

/// A value that is encrypted with a key.
async fn use_of(database: &Database, key: &str) -> Result<Option<Place>, DataError> {
    let prefix = keyring::prefix(key);
    for column in columns() {
        let mut select = column.beginning_with(&prefix);
        if let Some(row) = database.row(&InternalStatement(select.limit(1))).await? {
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
    let found = database.row(&settings).await?;
    found
        .map(|row| Ok(Place::of_setting(&row.some_text(0)?)))
        .transpose()
}

/// Secret values that are in the database as they are: of variables, and all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnencryptedSecrets {
    /// Values of variables that are secret.
    pub variables: u64,
    /// All, those of variables among them.
    pub all: u64,
}

/// How many secret values are in the database as they are. `settings` are the names of settings that are secret.
///
/// # Errors
/// Where the database fails.
pub async fn unencrypted(
    database: &Database,
    settings: &[&str],
) -> Result<UnencryptedSecrets, DataError> {
    let prefix = keyring::any_prefix();
    let mut found = UnencryptedSecrets {
        variables: 0,
        all: 0,
    };
    for column in columns() {
        let count = async |select: SelectStatement| -> Result<u64, DataError> {
            let mut counted = Query::select();
            counted
                .expr(Expr::cust("COUNT(*)"))
                .from_subquery(select, Alias::new("found"));
            let row = database.row(&InternalStatement(&counted)).await?;
            let count = row.map(|row| row.id(0)).transpose()?.unwrap_or_default();
            Ok(count.unsigned_abs())
        };
        let mut all = column.select();
        let mut sealed = column.beginning_with(&prefix);
        all.clear_order_by();
        sealed.clear_order_by();
        let open = count(all).await?.saturating_sub(count(sealed).await?);
        found.all += open;
        if column.flag.is_some() {
            found.variables += open;
        }
    }
    let mut transaction = database.begin().await?;
    for name in settings {
        let stored = setting::read(&mut transaction, name).await?;
        found.all += u64::from(stored.is_some_and(|stored| keyring::key_of(&stored).is_none()));
    }
    Ok(found)
}

/// What [`rotate`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Everything is encrypted with the first key.
    ToFirstKey,
    /// Nothing is encrypted any more.
    ToPlainText,
}

/// What became of the secret values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRotation {
    /// The table, which is that of a resource, or `platform_setting`.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// How many values were rewritten.
    pub changed: u64,
    /// How many values each key encrypts now; under the empty name those that none does.
    pub by_key: BTreeMap<String, u64>,
    /// Why values stay as they were, the first of them.
    pub unreadable: Vec<UnreadableSecret>,
    /// How many those are.
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

/// Writes all secret values anew, in small transactions beside whoever uses the database; values that others write in
/// the meantime are theirs. What is as it should be stays, so that one that was broken off goes on where it was.
/// `settings` are the names of settings that are secret. One table after the other is told of.
///
/// # Errors
/// Where the database fails, or there is no key to encrypt with. What was done stays done.
pub async fn rotate(
    database: &Database,
    keyring: &Keyring,
    direction: Direction,
    settings: &[&str],
    mut told: impl FnMut(ColumnRotation),
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
        told(rotation.column(column).await?);
    }
    told(rotation.settings(settings).await?);
    rotation.forget_keys().await
}

struct Rotation<'a> {
    database: &'a Database,
    keyring: &'a Keyring,
    direction: Direction,
}

impl Rotation<'_> {
    /// The value as it is to be kept; nothing where it is so already.
    fn anew(&self, place: &Place, stored: &str) -> Result<Option<String>, RewriteError> {
        let key = keyring::key_of(stored);
        Ok(match self.direction {
            Direction::ToFirstKey if key == self.keyring.names().next() => {
                // Moved or damaged values are found here rather than when a device asks for them.
                self.keyring.open(place, stored)?;
                None
            }
            Direction::ToFirstKey => {
                let value = self.keyring.open(place, stored)?;
                Some(self.keyring.seal(place, &value).map_err(DataError::from)?)
            }
            Direction::ToPlainText if key.is_none() => None,
            Direction::ToPlainText => Some(Keyring::unsealed(&self.keyring.open(place, stored)?)),
        })
    }

    async fn column(&self, column: SealedColumn) -> Result<ColumnRotation, DataError> {
        let mut rotated = ColumnRotation::new(column.table, column.column);
        let mut after = 0;
        loop {
            let mut select = column.select();
            select
                .and_where(Expr::col(Alias::new("id")).gt(after))
                .limit(AT_ONCE);
            let rows = self.database.rows(&InternalStatement(&select)).await?;
            let mut values = Vec::with_capacity(rows.len());
            for row in &rows {
                values.push((row.id(0)?, row.some_text(1)?));
            }
            let Some((last, _)) = values.last() else {
                return Ok(rotated);
            };
            after = *last;
            let mut retries = Retries::default();
            loop {
                match self.batch(column, &values).await {
                    Ok(batch) => {
                        rotated.add(batch);
                        break;
                    }
                    Err(error) if retries.again(&error) => {}
                    Err(error) => return Err(error),
                }
            }
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
            match self.anew(&column.place(*id), stored) {
                Ok(None) => batch.count(stored),
                Ok(Some(value)) => changes.push((*id, stored, value)),
                Err(RewriteError::Unreadable(why)) => batch.refuse(why, stored),
                Err(RewriteError::Data(error)) => return Err(error),
            }
        }
        if changes.is_empty() {
            return Ok(batch);
        }
        let mut transaction = self.begin().await?;
        for (id, stored, value) in changes {
            self.row(
                &mut transaction,
                column,
                id,
                stored.clone(),
                value,
                &mut batch,
            )
            .await?;
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
        let is_id = || Expr::col(Alias::new("id")).eq(id);
        for _ in 0..TRIES {
            let update = Query::update()
                .table(Alias::new(column.table))
                .value(Alias::new(column.column), value.as_str())
                .and_where(is_id())
                .and_where(Expr::col(Alias::new(column.column)).eq(stored.as_str()))
                .take();
            if transaction.execute(&InternalStatement(&update)).await? == 1 {
                batch.changed += 1;
                batch.count(&value);
                return Ok(());
            }
            let mut select = column.select();
            select.and_where(is_id());
            // It is gone, or secret no more.
            let Some(row) = transaction.row(&InternalStatement(&select)).await? else {
                return Ok(());
            };
            stored = row.some_text(1)?;
            match self.anew(&column.place(id), &stored) {
                Ok(Some(again)) => value = again,
                Ok(None) => {
                    batch.count(&stored);
                    return Ok(());
                }
                Err(RewriteError::Unreadable(why)) => {
                    batch.refuse(why, &stored);
                    return Ok(());
                }
                Err(RewriteError::Data(error)) => return Err(error),
            }
        }
        batch.count(&stored);
        Ok(())
    }

    async fn settings(&self, names: &[&str]) -> Result<ColumnRotation, DataError> {
        let mut rotated = ColumnRotation::new("platform_setting", "value");
        for name in names {
            let place = Place::of_setting(name);
            let mut transaction = self.begin().await?;
            let Some(stored) = setting::read(&mut transaction, name).await? else {
                continue;
            };
            match self.anew(&place, &stored) {
                Ok(None) => rotated.count(&stored),
                Ok(Some(value)) => {
                    let update =
                        sql("UPDATE platform_setting SET value = ? WHERE name = ? AND value = ?");
                    let update = update.with(value.as_str()).with(*name).with(stored);
                    if transaction.execute(&update).await? == 1 {
                        rotated.changed += 1;
                        rotated.count(&value);
                    }
                    transaction.commit().await?;
                }
                Err(RewriteError::Unreadable(why)) => rotated.refuse(why, &stored),
                Err(RewriteError::Data(error)) => return Err(error),
            }
        }
        Ok(rotated)
    }

    /// Keys that encrypt nothing any more need not be the right ones of their names from now on.
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

    /// What is overwritten is not to be found in the file.
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
        self.unreadable.truncate(MOST_TOLD);
    }

    fn refuse(&mut self, why: UnreadableSecret, stored: &str) {
        self.count(stored);
        self.unreadable_count += 1;
        if self.unreadable.len() < MOST_TOLD {
            self.unreadable.push(why);
        }
    }
}

/// Why a value is not rewritten.
enum RewriteError {
    Unreadable(UnreadableSecret),
    Data(DataError),
}

impl From<UnreadableSecret> for RewriteError {
    fn from(why: UnreadableSecret) -> Self {
        RewriteError::Unreadable(why)
    }
}

impl From<DataError> for RewriteError {
    fn from(error: DataError) -> Self {
        RewriteError::Data(error)
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
    async fn m10_what_others_write_during_a_rotation_is_theirs() {
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
            // As they were read: one is another by now, and one is gone.
            let read = [(1, "old"), (2, "kept"), (3, "gone")];
            let read = read.map(|(id, value)| (id, value.to_owned()));
            let batch = rotation.batch(SHELF, &read).await.expect("a batch");
            assert_eq!((batch.changed, batch.unreadable_count), (2, 0));
            assert_eq!(batch.by_key, BTreeMap::from([("a".to_owned(), 2)]));
            let rows = database
                .rows(&InternalStatement(&SHELF.select()))
                .await
                .expect("rows");
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

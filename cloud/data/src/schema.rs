//! Brings a database to the tables that the resources need.
//!
//! A database starts empty or as an earlier version left it; what is missing is added, under a lock, in one
//! transaction. Nothing is ever taken away or narrowed: what would need that is refused with a reason.

mod declared;
mod existing;
mod platform;

use std::fmt::Write as _;

use declared::{Column, Index, Table};
use existing::{ExistingColumn, ExistingSchema};
use resources::Model;

use crate::database::{Database, MIGRATION};
use crate::dialect::Dialect;
use crate::error::DataError;
use crate::letter_case;
use crate::names::foreign_key_name;
use crate::setting;
use crate::statement::BuiltStatement;
use crate::transaction::Transaction;

/// Any number, the same for all replicas: whoever has it alone may change tables.
const LOCK: i64 = 0x666c_6565_7431;

/// Which state of tables, settings and what they mean this program works with. It is raised with every change that an
/// older program must not work beside or after: a column whose value it would not write, a value that it would not
/// understand. Programs refuse a database of a higher one.
const VERSION: u32 = 2;
/// Under this name the database has the highest one that worked with it.
const VERSION_NAME: &str = "schema version";

/// Adds what is missing for this model.
pub(crate) async fn migrate(database: &Database, model: &Model) -> Result<(), DataError> {
    let dialect = database.dialect();
    let mut transaction = database.begin().await?;
    alone(&mut transaction).await?;
    let present = ExistingSchema::of(&mut transaction).await?;
    let is_older = match present.columns("platform_setting") {
        None => true,
        Some(_) => check_version(&mut transaction).await?,
    };
    let script = missing(model, &present, dialect)?;
    if !script.is_empty() {
        transaction.script(script).await?;
    }
    for (name, statement) in declared::views(model) {
        replace_view(&mut transaction, name, statement).await?;
    }
    if dialect == Dialect::Postgres {
        letter_case::add_to_postgres(&mut transaction).await?;
    }
    if is_older {
        setting::write(&mut transaction, VERSION_NAME, &VERSION.to_string()).await?;
    }
    transaction.commit().await
}

/// Whether the database is of an older version than this program.
///
/// # Errors
/// Where it is of a newer one.
async fn check_version(transaction: &mut Transaction) -> Result<bool, DataError> {
    let Some(found) = setting::read(transaction, VERSION_NAME).await? else {
        return Ok(true);
    };
    match found.parse::<u32>() {
        Ok(found) if found <= VERSION => Ok(found < VERSION),
        _ => Err(DataError::Schema(format!(
            "it was used by a newer version of the program (schema {found}, this one knows {VERSION}); start that \
             version, or restore the backup that was made before the upgrade"
        ))),
    }
}

/// No other program that starts does what follows until the transaction ends.
pub(crate) async fn alone(transaction: &mut Transaction) -> Result<(), DataError> {
    if transaction.dialect() == Dialect::Postgres {
        // Tables of many rows take their time, and so does waiting for another program that starts.
        transaction
            .script("SET LOCAL statement_timeout = 0")
            .await?;
        transaction.allow(MIGRATION);
        let lock = BuiltStatement::new("SELECT 1 FROM pg_advisory_xact_lock($1)", [LOCK.into()]);
        transaction.row(&lock).await?;
    }
    Ok(())
}

/// The statements that add what is missing.
fn missing(model: &Model, present: &ExistingSchema, dialect: Dialect) -> Result<String, DataError> {
    let tables = declared::tables(model);
    let mut script = String::new();
    for table in &tables {
        match present.columns(&table.name) {
            None => table.create(dialect, &mut script),
            Some(columns) => table.add_columns(dialect, columns, &mut script)?,
        }
    }
    // After all tables, since some lead in circles; in SQLite they are part of the columns.
    if dialect == Dialect::Postgres {
        for table in &tables {
            table.add_foreign_keys(present, &mut script);
        }
    }
    for table in &tables {
        for index in &table.indexes {
            if !present.has(&index.name) {
                index.create(&table.name, &mut script);
            }
        }
    }
    Ok(script)
}

/// What tells one state of the tables from another.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn digest() -> String {
    use sha2::{Digest as _, Sha256};
    let model = resources::v7();
    let mut digest = Sha256::new();
    let tables = missing(model, &ExistingSchema::default(), Dialect::Postgres);
    digest.update(tables.unwrap_or_default());
    for (name, statement) in declared::views(model) {
        digest.update(name);
        digest.update(statement);
    }
    hex::encode(&digest.finalize()[..8])
}

/// Makes a view; anew where its statement is not what it was.
async fn replace_view(
    transaction: &mut Transaction,
    name: &str,
    statement: &str,
) -> Result<(), DataError> {
    let key = format!("view {name}");
    if setting::read(transaction, &key).await?.as_deref() == Some(statement) {
        return Ok(());
    }
    let script = format!("DROP VIEW IF EXISTS \"{name}\"; CREATE VIEW \"{name}\" AS {statement};");
    transaction.script(script).await?;
    setting::write(transaction, &key, statement).await
}

// Writing to a string cannot fail.
impl Table {
    fn create(&self, dialect: Dialect, script: &mut String) {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| column.definition(dialect))
            .collect();
        let columns = columns.join(", ");
        let _ = writeln!(script, "CREATE TABLE \"{}\" ({columns});", self.name);
    }

    fn add_columns(
        &self,
        dialect: Dialect,
        present: &[ExistingColumn],
        script: &mut String,
    ) -> Result<(), DataError> {
        let refused = |column: &str, why: &str| {
            let table = &self.name;
            DataError::Schema(format!(
                "the column `{column}` of the table `{table}` {why}; change it by hand, or start from an \
                 empty database"
            ))
        };
        for column in &self.columns {
            let Some(found) = present.iter().find(|one| one.name == column.name) else {
                let definition = column.definition(dialect);
                let _ = writeln!(
                    script,
                    "ALTER TABLE \"{}\" ADD COLUMN {definition};",
                    self.name
                );
                continue;
            };
            let kind = column.kind.name(dialect);
            if !found.kind.eq_ignore_ascii_case(kind) {
                let why = format!("holds `{}`, where `{kind}` is needed", found.kind);
                return Err(refused(&column.name, &why));
            }
            if column.nullable && found.needed {
                return Err(refused(&column.name, "does not take null, and has to"));
            }
            if !column.nullable && !found.never_null {
                return Err(refused(&column.name, "takes null, and must not"));
            }
        }
        for found in present {
            let is_declared = self.columns.iter().any(|column| column.name == found.name);
            if !is_declared && found.needed {
                let why = "is unknown to this version, which therefore can add no rows";
                return Err(refused(&found.name, why));
            }
        }
        Ok(())
    }

    fn add_foreign_keys(&self, present: &ExistingSchema, script: &mut String) {
        for column in &self.columns {
            let Some(link) = &column.link else { continue };
            let name = foreign_key_name(&self.name, &column.name);
            if present.has(&name) {
                continue;
            }
            let _ = writeln!(
                script,
                "ALTER TABLE \"{}\" ADD CONSTRAINT \"{name}\" FOREIGN KEY (\"{}\") {};",
                self.name,
                column.name,
                link.references(),
            );
        }
    }
}

impl Index {
    fn create(&self, table: &str, script: &mut String) {
        let unique = if self.unique { "UNIQUE " } else { "" };
        let columns = self.columns.join("\", \"");
        let _ = writeln!(
            script,
            "CREATE {unique}INDEX \"{}\" ON \"{table}\" (\"{columns}\");",
            self.name
        );
    }
}

impl Column {
    /// As `CREATE TABLE` and `ADD COLUMN` take it.
    fn definition(&self, dialect: Dialect) -> String {
        if self.name == "id" {
            // Numbers are never used again: a device that is gone must not become another.
            return match dialect {
                Dialect::Sqlite => "\"id\" INTEGER PRIMARY KEY AUTOINCREMENT".to_owned(),
                Dialect::Postgres => {
                    "\"id\" BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY".to_owned()
                }
            };
        }
        let mut definition = format!("\"{}\" {}", self.name, self.kind.definition(dialect));
        if !self.nullable {
            definition.push_str(" NOT NULL");
        }
        if let Some(default) = &self.default {
            let _ = write!(definition, " DEFAULT {}", default.text(dialect));
        }
        if let (Dialect::Sqlite, Some(link)) = (dialect, &self.link) {
            let _ = write!(definition, " {}", link.references());
        }
        definition
    }
}

//! Updates a database to the tables required by the resources.
//!
//! A database is initially empty or in the state of an earlier version; missing parts are added, under a lock, in one
//! transaction. Nothing is ever removed or narrowed: a change that would require it is refused with a reason.

mod declared;
mod existing;
mod platform;
mod table;

use existing::ExistingSchema;
use resources::Model;
use table::Table;

use crate::database::Database;
use crate::dialect::Dialect;
use crate::error::DataError;
use crate::letter_case;
use crate::options::{MIGRATION, Options};
use crate::pools::Pools;
use crate::setting;
use crate::statement::BuiltStatement;
use crate::transaction::Transaction;

/// An arbitrary number, the same for all replicas: the holder of this lock may change tables.
const LOCK: i64 = 0x666c_6565_7431;

/// The version of tables, settings and their meaning in this program. It is raised with every change that an older
/// program must not encounter: a column whose value it would not write, a value that it would not understand. Programs
/// refuse a database with a higher version.
const VERSION: u32 = 2;
/// The name of the setting with the highest version that has used the database.
const VERSION_NAME: &str = "schema version";

impl Database {
    /// Opens `sqlite:PATH` (created if it is missing) or `postgres://…`, and updates its tables for this program.
    ///
    /// # Errors
    /// [`DataError::Address`], [`DataError::Open`]; [`DataError::Schema`] if existing tables cannot be updated.
    pub async fn open(url: &str, options: &Options) -> Result<Self, DataError> {
        let database = Database::connect(url, options).await?;
        migrate(&database, resources::v7()).await?;
        if let Pools::Sqlite { writer, .. } = &database.pools {
            writer.hold_to(options.write_timeout);
        }
        Ok(database)
    }
}

/// Adds the missing parts for this model.
async fn migrate(database: &Database, model: &Model) -> Result<(), DataError> {
    let dialect = database.dialect();
    let mut transaction = database.begin().await?;
    alone(&mut transaction).await?;
    let present = ExistingSchema::load(&mut transaction).await?;
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
        letter_case::postgres::add_to(&mut transaction).await?;
    }
    if is_older {
        setting::write(&mut transaction, VERSION_NAME, &VERSION.to_string()).await?;
    }
    transaction.commit().await
}

/// Returns whether the database is of an older version than this program.
///
/// # Errors
/// If it is of a newer one.
async fn check_version(transaction: &mut Transaction) -> Result<bool, DataError> {
    let Some(version) = setting::read(transaction, VERSION_NAME).await? else {
        return Ok(true);
    };
    match version.parse::<u32>() {
        Ok(version) if version <= VERSION => Ok(version < VERSION),
        _ => Err(DataError::Schema(format!(
            "it was used by a newer version of the program (schema {version}, this one knows {VERSION}); start that \
             version, or restore the backup that was made before the upgrade"
        ))),
    }
}

/// Locks out other starting programs until the transaction ends.
pub(crate) async fn alone(transaction: &mut Transaction) -> Result<(), DataError> {
    if transaction.dialect() == Dialect::Postgres {
        // Changes of large tables take long, and so does waiting for another program that starts.
        transaction
            .script("SET LOCAL statement_timeout = 0")
            .await?;
        transaction.allow(MIGRATION);
        let lock = BuiltStatement::new("SELECT 1 FROM pg_advisory_xact_lock($1)", [LOCK.into()]);
        transaction.row(&lock).await?;
    }
    Ok(())
}

/// Returns the statements that add missing parts.
fn missing(model: &Model, present: &ExistingSchema, dialect: Dialect) -> Result<String, DataError> {
    let tables: Vec<Table> = declared::tables(model).chain(platform::tables()).collect();
    let mut script = String::new();
    for table in &tables {
        table.add(dialect, present, &mut script)?;
    }
    // After all tables, since some references are circular; in SQLite they are part of the columns.
    if dialect == Dialect::Postgres {
        for table in &tables {
            table.add_foreign_keys(present, &mut script);
        }
    }
    for table in &tables {
        table.add_indexes(present, &mut script);
    }
    Ok(script)
}

/// Returns a digest that distinguishes versions of the tables.
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

/// Creates a view, or replaces it if its statement has changed.
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

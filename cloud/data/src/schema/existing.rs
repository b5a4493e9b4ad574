//! The existing tables of a database.

use std::collections::{BTreeMap, BTreeSet};

use crate::dialect::Dialect;
use crate::error::DataError;
use crate::statement::BuiltStatement;
use crate::transaction::Transaction;

/// Tables with their columns; names of indexes and constraints.
#[derive(Default)]
pub(super) struct ExistingSchema {
    tables: BTreeMap<String, Vec<ExistingColumn>>,
    names: BTreeSet<String>,
}

pub(super) struct ExistingColumn {
    pub(super) name: String,
    /// The database's name for it.
    pub(super) kind: String,
    pub(super) never_null: bool,
    /// Whether a new row must specify it.
    pub(super) needed: bool,
}

/// Table, column, type, whether it is never null, whether it has a default.
const SQLITE_COLUMNS: &str = "SELECT t.name, c.name, c.type, c.\"notnull\" OR c.pk > 0, \
     c.dflt_value IS NOT NULL OR c.pk > 0 \
     FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c WHERE t.type = 'table'";
const SQLITE_NAMES: &str = "SELECT name FROM sqlite_master WHERE type = 'index'";

const POSTGRES_COLUMNS: &str = "SELECT table_name::text, column_name::text, data_type::text, is_nullable = 'NO', \
     column_default IS NOT NULL OR is_identity = 'YES' \
     FROM information_schema.columns WHERE table_schema = current_schema()";
const POSTGRES_NAMES: &str = "SELECT indexname::text FROM pg_indexes WHERE schemaname = current_schema() \
     UNION SELECT conname::text FROM pg_constraint WHERE connamespace = current_schema()::regnamespace";

impl ExistingSchema {
    pub(super) async fn load(transaction: &mut Transaction) -> Result<Self, DataError> {
        let (columns, names) = match transaction.dialect() {
            Dialect::Sqlite => (SQLITE_COLUMNS, SQLITE_NAMES),
            Dialect::Postgres => (POSTGRES_COLUMNS, POSTGRES_NAMES),
        };
        let mut tables: BTreeMap<String, Vec<ExistingColumn>> = BTreeMap::new();
        for row in transaction.rows(&BuiltStatement::new(columns, [])).await? {
            let never_null = row.flag(3)?.unwrap_or_default();
            let column = ExistingColumn {
                name: row.some_text(1)?,
                kind: row.some_text(2)?,
                never_null,
                needed: never_null && !row.flag(4)?.unwrap_or_default(),
            };
            tables.entry(row.some_text(0)?).or_default().push(column);
        }
        let names = transaction.texts(&BuiltStatement::new(names, [])).await?;
        Ok(ExistingSchema {
            tables,
            names: names.into_iter().flatten().collect(),
        })
    }

    /// Returns the columns of a table, if it exists.
    pub(super) fn columns(&self, table: &str) -> Option<&[ExistingColumn]> {
        self.tables.get(table).map(Vec::as_slice)
    }

    /// Returns whether there is an index or a constraint of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

//! A table, and the statements that create it or add its missing parts.

use std::fmt::Write as _;

use resources::OnDelete;

use super::existing::ExistingSchema;
use crate::dialect::Dialect;
use crate::error::DataError;
use crate::names::{foreign_key_name, index_name, unique_name};

pub(super) struct Table {
    pub(super) name: &'static str,
    columns: Vec<Column>,
    indexes: Vec<Index>,
}

pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: ColumnKind,
    pub(super) nullable: bool,
    pub(super) default: Option<Literal>,
    pub(super) link: Option<Link>,
}

/// The type of a column. Times are numbers (milliseconds since 1970), JSON is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Number,
    Flag,
    Text,
    Bytes,
}

pub(super) enum Literal {
    Text(&'static str),
    Number(i64),
    Flag(bool),
}

/// A column's link: it holds the number of a row of another table.
pub(super) struct Link {
    pub(super) to: &'static str,
    pub(super) on_delete: OnDelete,
}

struct Index {
    name: String,
    unique: bool,
    fields: Vec<&'static str>,
}

impl Column {
    pub(super) fn new(name: &'static str, kind: ColumnKind) -> Self {
        Column {
            name,
            kind,
            nullable: false,
            default: None,
            link: None,
        }
    }

    pub(super) fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Makes it a link to a row of another table; the row is deleted together with that one.
    pub(super) fn going_with(mut self, to: &'static str) -> Self {
        let on_delete = OnDelete::Cascade;
        self.link = Some(Link { to, on_delete });
        self
    }
}

impl ColumnKind {
    /// Returns the database's own name for the type, as found in its schema.
    fn name(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::Sqlite, ColumnKind::Number | ColumnKind::Flag) => "INTEGER",
            (Dialect::Postgres, ColumnKind::Number) => "BIGINT",
            (Dialect::Postgres, ColumnKind::Flag) => "BOOLEAN",
            (_, ColumnKind::Text) => "TEXT",
            (Dialect::Sqlite, ColumnKind::Bytes) => "BLOB",
            (Dialect::Postgres, ColumnKind::Bytes) => "BYTEA",
        }
    }

    /// Returns the type for a column definition. Both databases compare text by its bytes.
    fn definition(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::Postgres, ColumnKind::Text) => "TEXT COLLATE \"C\"",
            _ => self.name(dialect),
        }
    }
}

impl Literal {
    fn text(&self, dialect: Dialect) -> String {
        match (self, dialect) {
            (Literal::Text(text), _) => format!("'{}'", text.replace('\'', "''")),
            (Literal::Number(number), _) => number.to_string(),
            (Literal::Flag(flag), Dialect::Sqlite) => i64::from(*flag).to_string(),
            (Literal::Flag(flag), Dialect::Postgres) => flag.to_string(),
        }
    }
}

impl Link {
    /// Returns the reference clause, the same for both databases. A link that refuses the deletion of its target is
    /// checked at the end of the statement: one cascade may delete both. A write may defer the check to the end of the
    /// cascade, because PostgreSQL would check too early.
    fn references(&self) -> String {
        let action = match self.on_delete {
            OnDelete::Cascade => "CASCADE",
            OnDelete::SetNull => "SET NULL",
            OnDelete::Refuse | OnDelete::Ignore => "NO ACTION",
        };
        format!(
            "REFERENCES \"{}\" (\"id\") ON DELETE {action} DEFERRABLE INITIALLY IMMEDIATE",
            self.to
        )
    }
}

// Writing to a string cannot fail.
impl Table {
    /// Creates a table whose rows have a number each.
    pub(super) fn new<const N: usize>(name: &'static str, columns: [Column; N]) -> Self {
        let id = Column::new("id", ColumnKind::Number);
        Table::from_columns([id].into_iter().chain(columns), name)
    }

    pub(super) fn from_columns(columns: impl Iterator<Item = Column>, name: &'static str) -> Self {
        Table {
            name,
            columns: columns.collect(),
            indexes: Vec::new(),
        }
    }

    /// Makes the combined values of these fields unique.
    pub(super) fn unique(mut self, fields: &[&'static str]) -> Self {
        self.indexes.push(Index {
            name: unique_name(self.name, fields),
            unique: true,
            fields: fields.to_vec(),
        });
        self
    }

    /// Indexes these fields for searches.
    pub(super) fn index(mut self, fields: &[&'static str]) -> Self {
        self.indexes.push(Index {
            name: index_name(self.name, fields),
            unique: false,
            fields: fields.to_vec(),
        });
        self
    }

    /// Returns whether an index finds rows by this field.
    pub(super) fn finds_by(&self, field: &str) -> bool {
        let mut indexes = self.indexes.iter();
        indexes.any(|index| index.fields.first() == Some(&field))
    }

    /// Creates the table, or adds its missing columns.
    pub(super) fn add(
        &self,
        dialect: Dialect,
        existing: &ExistingSchema,
        script: &mut String,
    ) -> Result<(), DataError> {
        let Some(present) = existing.columns(self.name) else {
            let columns = self.columns.iter();
            let columns: Vec<String> = columns.map(|one| one.definition(dialect)).collect();
            let columns = columns.join(", ");
            let _ = writeln!(script, "CREATE TABLE \"{}\" ({columns});", self.name);
            return Ok(());
        };
        let refused = |column: &str, why: &str| {
            let table = self.name;
            DataError::Schema(format!(
                "the column `{column}` of the table `{table}` {why}; change it by hand, or start from an \
                 empty database"
            ))
        };
        for column in &self.columns {
            let Some(existing) = present.iter().find(|one| one.name == column.name) else {
                let (table, definition) = (self.name, column.definition(dialect));
                let _ = writeln!(script, "ALTER TABLE \"{table}\" ADD COLUMN {definition};");
                continue;
            };
            let kind = column.kind.name(dialect);
            if !existing.kind.eq_ignore_ascii_case(kind) {
                let why = format!("holds `{}`, where `{kind}` is needed", existing.kind);
                return Err(refused(column.name, &why));
            }
            if column.nullable && existing.needed {
                return Err(refused(column.name, "does not accept null, but must"));
            }
            if !column.nullable && !existing.never_null {
                return Err(refused(column.name, "accepts null, but must not"));
            }
        }
        for existing in present {
            let is_declared = self
                .columns
                .iter()
                .any(|column| column.name == existing.name);
            if !is_declared && existing.needed {
                let why = "is unknown to this version, which therefore can add no rows";
                return Err(refused(&existing.name, why));
            }
        }
        Ok(())
    }

    pub(super) fn add_indexes(&self, present: &ExistingSchema, script: &mut String) {
        for index in self
            .indexes
            .iter()
            .filter(|index| !present.has(&index.name))
        {
            let unique = if index.unique { "UNIQUE " } else { "" };
            let (name, table, fields) = (&index.name, self.name, index.fields.join("\", \""));
            let _ = writeln!(
                script,
                "CREATE {unique}INDEX \"{name}\" ON \"{table}\" (\"{fields}\");"
            );
        }
    }

    pub(super) fn add_foreign_keys(&self, present: &ExistingSchema, script: &mut String) {
        for column in &self.columns {
            let Some(link) = &column.link else { continue };
            let name = foreign_key_name(self.name, column.name);
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

impl Column {
    /// Returns the definition for `CREATE TABLE` and `ADD COLUMN`.
    fn definition(&self, dialect: Dialect) -> String {
        if self.name == "id" {
            // Numbers are never reused: another device must not get the number of a deleted one.
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

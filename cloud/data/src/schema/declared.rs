//! The tables that the resources need.

use resources::{Column as Place, Default, Field, Model, OnDelete, Resource, Source, Type};

use crate::dialect::Dialect;
use crate::names::{index_name, unique_name};

pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    pub(super) indexes: Vec<Index>,
}

pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    pub(super) nullable: bool,
    pub(super) default: Option<Literal>,
    pub(super) link: Option<Link>,
}

/// What a column holds. Times are numbers (milliseconds since 1970), JSON is text.
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

/// That a column has the number of a row of another table.
pub(super) struct Link {
    pub(super) to: &'static str,
    pub(super) on_delete: OnDelete,
}

pub(super) struct Index {
    pub(super) name: String,
    pub(super) unique: bool,
    pub(super) columns: Vec<String>,
}

/// All tables: those of the resources, and the platform's own.
pub(super) fn tables(model: &Model) -> Vec<Table> {
    let resources = model.resources().iter();
    let mut tables: Vec<Table> = resources
        .filter(|resource| resource.source == Source::Table)
        .map(of)
        .collect();
    tables.extend(super::platform::tables());
    tables
}

/// Names and statements of all views.
pub(super) fn views(model: &Model) -> impl Iterator<Item = (&'static str, &'static str)> {
    let resources = model.resources().iter();
    resources.filter_map(|resource| match resource.source {
        Source::View(statement) => Some((resource.name, statement)),
        Source::Table => None,
    })
}

fn of(resource: &Resource) -> Table {
    let mut indexes: Vec<Index> = resource
        .unique
        .iter()
        .map(|fields| index(resource.name, fields, true))
        .collect();
    for fields in &resource.indexes {
        indexes.push(index(resource.name, fields, false));
    }
    // The rows that lead to one are looked for in every expansion, and when that one is deleted.
    let links = resource.fields.iter().filter(|field| {
        matches!(field.kind, Type::Link { .. }) && matches!(field.column, Place::Stored(_))
    });
    for link in links {
        let leads = |index: &Index| {
            index
                .columns
                .first()
                .is_some_and(|first| first == link.name)
        };
        if !indexes.iter().any(leads) {
            indexes.push(index(resource.name, &[link.name], false));
        }
    }
    Table {
        name: resource.name.to_owned(),
        columns: resource.fields.iter().filter_map(column).collect(),
        indexes,
    }
}

pub(super) fn index(table: &str, fields: &[&str], unique: bool) -> Index {
    Index {
        name: if unique {
            unique_name(table, fields)
        } else {
            index_name(table, fields)
        },
        unique,
        columns: fields.iter().map(|&field| field.to_owned()).collect(),
    }
}

fn column(field: &Field) -> Option<Column> {
    let Place::Stored(name) = field.column else {
        return None;
    };
    let kind = match field.kind {
        Type::Integer | Type::BigInteger | Type::Timestamp | Type::Link { .. } => {
            ColumnKind::Number
        }
        Type::Boolean => ColumnKind::Flag,
        _ => ColumnKind::Text,
    };
    let link = match field.kind {
        Type::Link {
            on_delete: OnDelete::Ignore,
            ..
        } => None,
        Type::Link { to, on_delete } => Some(Link { to, on_delete }),
        _ => None,
    };
    let default = match field.default {
        Default::Text(text) => Some(Literal::Text(text)),
        Default::Integer(number) => Some(Literal::Number(number)),
        Default::Boolean(flag) => Some(Literal::Flag(flag)),
        Default::None | Default::Now | Default::Uuid => None,
    };
    Some(Column {
        name: name.to_owned(),
        kind,
        nullable: field.nullable,
        default,
        link,
    })
}

impl ColumnKind {
    /// As the database calls it when asked what it has.
    pub(super) fn name(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::Sqlite, ColumnKind::Number | ColumnKind::Flag) => "INTEGER",
            (Dialect::Postgres, ColumnKind::Number) => "BIGINT",
            (Dialect::Postgres, ColumnKind::Flag) => "BOOLEAN",
            (_, ColumnKind::Text) => "TEXT",
            (Dialect::Sqlite, ColumnKind::Bytes) => "BLOB",
            (Dialect::Postgres, ColumnKind::Bytes) => "BYTEA",
        }
    }

    /// As a column of it is made. Text is compared by its bytes in both.
    pub(super) fn definition(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::Postgres, ColumnKind::Text) => "TEXT COLLATE \"C\"",
            _ => self.name(dialect),
        }
    }
}

impl Literal {
    pub(super) fn text(&self, dialect: Dialect) -> String {
        match (self, dialect) {
            (Literal::Text(text), _) => format!("'{}'", text.replace('\'', "''")),
            (Literal::Number(number), _) => number.to_string(),
            (Literal::Flag(flag), Dialect::Sqlite) => i64::from(*flag).to_string(),
            (Literal::Flag(flag), Dialect::Postgres) => flag.to_string(),
        }
    }
}

impl Link {
    /// As both databases take it. A link that holds what it leads to is checked when the statement is done,
    /// not before: both may go by the same cascade. A write may put it off to the end of the cascade, where
    /// PostgreSQL would look too early.
    pub(super) fn references(&self) -> String {
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

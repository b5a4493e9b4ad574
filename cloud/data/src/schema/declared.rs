//! The tables required by the resources.

use resources::{Column as Place, Default, Field, Model, OnDelete, Resource, Source, Type};

use super::table::{Column, ColumnKind, Link, Literal, Table};

/// Returns the tables of the resources.
pub(super) fn tables(model: &Model) -> impl Iterator<Item = Table> {
    let resources = model.resources().iter();
    resources
        .filter(|resource| resource.source == Source::Table)
        .map(build_table)
}

/// Returns names and statements of all views.
pub(super) fn views(model: &Model) -> impl Iterator<Item = (&'static str, &'static str)> {
    let resources = model.resources().iter();
    resources.filter_map(|resource| match resource.source {
        Source::View(statement) => Some((resource.name, statement)),
        Source::Table => None,
    })
}

fn build_table(resource: &Resource) -> Table {
    let columns = resource.fields.iter().filter_map(column);
    let table = Table::from_columns(columns, resource.name);
    let table = (resource.unique.iter()).fold(table, |table, fields| table.unique(fields));
    let table = (resource.indexes.iter()).fold(table, |table, fields| table.index(fields));
    // Rows are searched by their links in every expansion, and when the linked row is deleted.
    let links = resource.fields.iter().filter(|field| {
        matches!(field.kind, Type::Link { .. }) && matches!(field.column, Place::Stored(_))
    });
    links.fold(table, |table, link| {
        if table.finds_by(link.name) {
            table
        } else {
            table.index(&[link.name])
        }
    })
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
        name,
        kind,
        nullable: field.nullable,
        default,
        link,
    })
}

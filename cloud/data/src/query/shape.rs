//! Rows as the API shows them: as JSON text that the database itself makes, with what is expanded in it
//! (docs/spec/cloud.md#odata-options, docs/spec/cloud.md#odata-answers).
//!
//! PostgreSQL makes an object of a sub-select's row, whose number of columns is not bounded as that of a
//! function's arguments is. SQLite joins the pieces of text, a bounded number of them at a time.

use std::mem;

use odata::{Direction, Name, Options, Select};
use resources::{Column, Field, Resource, Step, Type};
use sea_query::{Alias, Expr, ExprTrait, NullOrdering, Order, SelectStatement};

use super::compiler::Compiler;
use super::error::QueryError;
use super::expansion::Expansion;
use super::json::{JsonField, concat, object_text};
use super::scope::{Nulls, Scope, TableRow};
use super::sql::as_text;
use super::value::{SHORT, ValueKind};
use crate::dialect::Dialect;

/// The column that holds a row's text.
pub(super) const TEXT: &str = "j";

/// Whether the rows of a resource have numbers of their own: those of some views have none.
fn is_numbered(resource: &Resource) -> bool {
    let id = resource.find_field("id");
    id.is_some_and(|id| !id.nullable)
}

/// Rows whose objects are still to be made: in PostgreSQL a column for each field, in SQLite one of text.
pub(super) struct Listing {
    pub(super) select: SelectStatement,
    /// Bytes of a row, likewise.
    pub(super) longest: u64,
}

impl<'a> Compiler<'a> {
    /// Rows of a resource for which the conditions hold, as the options describe them. What the caller may read is part
    /// of the conditions.
    pub(super) fn listing(
        &self,
        row: &TableRow<'a>,
        conditions: Vec<Expr>,
        options: &Options,
        path: &Expansion,
        at: usize,
    ) -> Result<Listing, QueryError> {
        let scope = Scope::of(row.clone());
        let fields = self.json_fields(&scope, options, path, at)?;
        let longest = fields
            .iter()
            .fold(0_u64, |sum, field| sum.saturating_add(field.longest));
        let mut select = row.select(conditions);
        if let Some(filter) = &options.filter {
            select.and_where(self.condition(&scope, filter, Nulls::Allowed)?);
        }
        self.ordered(&mut select, &scope, options)?;
        self.paged(&mut select, options);
        // SQLite makes the text of each row before it orders them: those of a page are found first.
        let is_page = options.top.is_some() || options.skip.is_some();
        if is_page && self.dialect == Dialect::Sqlite && is_numbered(row.resource) {
            select.expr(row.column("id"));
            let page = mem::replace(&mut select, row.select(None));
            let page = match options.skip {
                Some(skip) => self.skipped(page, options.top, skip)?,
                None => page,
            };
            select.and_where(row.column("id").in_subquery(page));
            self.ordered(&mut select, &scope, options)?;
        }
        match self.dialect {
            Dialect::Postgres => {
                for field in fields {
                    select.expr_as(field.value, Alias::new(field.name));
                }
            }
            Dialect::Sqlite => {
                select.expr_as(object_text(fields), Alias::new(TEXT));
            }
        }
        Ok(Listing { select, longest })
    }

    /// A row each, of one column of JSON text.
    pub(super) fn texts(&self, listing: Listing) -> Result<SelectStatement, QueryError> {
        if self.dialect == Dialect::Sqlite {
            return Ok(listing.select);
        }
        self.of_rows(listing.select, |rows| {
            format!("CAST(row_to_json(\"{rows}\") AS text)")
        })
    }

    /// An expression over the rows of a statement, which gets the name that they have in it.
    pub(super) fn of_rows(
        &self,
        rows: SelectStatement,
        expression: impl FnOnce(&str) -> String,
    ) -> Result<SelectStatement, QueryError> {
        let name = self.unused_name()?;
        let mut select = SelectStatement::new();
        select
            .expr_as(Expr::cust(expression(&name)), Alias::new(TEXT))
            .from_subquery(rows, Alias::new(name));
        Ok(select)
    }

    fn ordered(
        &self,
        select: &mut SelectStatement,
        scope: &Scope<'a>,
        options: &Options,
    ) -> Result<(), QueryError> {
        for order in &options.order_by {
            let value = self.value(scope, &order.by)?;
            if value.kind == ValueKind::Json {
                return Err(QueryError::refused(
                    order.by.at,
                    "`$orderby` does not support objects or arrays",
                ));
            }
            // As PostgreSQL has it, said for both: null is the greatest.
            let (direction, nulls) = match order.direction {
                Direction::Ascending => (Order::Asc, NullOrdering::Last),
                Direction::Descending => (Order::Desc, NullOrdering::First),
            };
            if value.constant.is_some() {
                // PostgreSQL takes a bare number for the place of a column.
                continue;
            }
            select.order_by_expr_with_nulls(value.sql, direction, nulls);
        }
        let resource = scope.it.resource;
        if is_numbered(resource) {
            select.order_by_expr(scope.it.column("id"), Order::Asc);
        } else {
            // Pages need an order in which each row has its place.
            for field in &resource.fields {
                let is_ordered = matches!(field.kind, Type::Link { .. } | Type::Boolean);
                if let (Column::Stored(column), true) = (field.column, is_ordered) {
                    select.order_by_expr(scope.it.column(column), Order::Asc);
                }
            }
        }
        Ok(())
    }

    fn paged(&self, select: &mut SelectStatement, options: &Options) {
        let most = match (options.top, options.skip) {
            (Some(top), _) => Some(top),
            // SQLite has no OFFSET without a LIMIT.
            (None, Some(_)) if self.dialect == Dialect::Sqlite => Some(u64::MAX),
            (None, _) => None,
        };
        if let Some(most) = most {
            select.limit(bounded(most));
        }
        if let Some(skip) = options.skip {
            select.offset(bounded(skip));
        }
    }

    /// The numbers of a page behind those that are passed over, on SQLite. Its 3.51 makes a join of an `EXISTS`, and
    /// an `OFFSET` beside it then counts a row once for each that it is joined with: so rows are found by one
    /// statement and passed over by another.
    fn skipped(
        &self,
        mut found: SelectStatement,
        top: Option<u64>,
        skip: u64,
    ) -> Result<SelectStatement, QueryError> {
        let top = top.unwrap_or(u64::MAX);
        found
            .limit(bounded(top.saturating_add(skip)))
            .reset_offset();
        let mut page = SelectStatement::new();
        page.column(Alias::new("id"))
            .from_subquery(found, Alias::new(self.unused_name()?))
            .limit(bounded(top))
            .offset(bounded(skip));
        Ok(page)
    }

    /// The fields of a row's object, in their order.
    fn json_fields(
        &self,
        scope: &Scope<'a>,
        options: &Options,
        path: &Expansion,
        at: usize,
    ) -> Result<Vec<JsonField>, QueryError> {
        let row = &scope.it;
        let mut fields: Vec<JsonField> = Vec::new();
        let has = |fields: &[JsonField], name: &str| fields.iter().any(|field| field.name == name);
        let expanded = |name: &str| options.expand.iter().any(|one| one.link.text == name);
        let readable = || row.resource.fields.iter().filter(|field| !field.secret);
        match &options.select {
            None | Some(Select::All) => {
                for field in readable().filter(|field| !expanded(field.name)) {
                    fields.push(self.json_field(row, field, field.name)?);
                }
            }
            Some(Select::Fields(names)) => {
                for name in names {
                    if has(&fields, &name.text) || expanded(&name.text) {
                        continue;
                    }
                    match self.selected(row, name)? {
                        Some(field) => fields.push(self.json_field(row, field, &name.text)?),
                        None if self.context.lenient => {}
                        None => return Err(row.no_field(name)),
                    }
                }
            }
        }
        // A row without a number of its own is nowhere.
        if let Some(address) = self.addresses
            && is_numbered(row.resource)
        {
            fields.push(self.metadata_field(row, address));
        }
        for expand in &options.expand {
            let link = &expand.link;
            if has(&fields, &link.text) {
                let message = format!("`{}` is expanded twice", link.text);
                return Err(QueryError::refused(link.at, message));
            }
            let Some(navigation) = self.model.navigation(row.resource, &link.text) else {
                if self.context.lenient {
                    continue;
                }
                return Err(row.no_link(link));
            };
            let (value, longest) = if expand.count {
                (self.expanded_count(row, navigation, expand)?, SHORT)
            } else {
                self.expanded(row, navigation, expand, path)?
            };
            fields.push(JsonField {
                name: link.text.clone(),
                value,
                longest,
            });
        }
        if fields.is_empty() && !self.context.lenient {
            return Err(QueryError::refused(at, "`$select` names no field"));
        }
        Ok(fields)
    }

    /// The field that `$select` names, perhaps by another name of its link.
    fn selected(&self, row: &TableRow<'a>, name: &Name) -> Result<Option<&'a Field>, QueryError> {
        if let Some(field) = row.field(&name.text) {
            return Ok(Some(field));
        }
        let navigation = self.model.navigation(row.resource, &name.text);
        match navigation.map(|navigation| navigation.step) {
            Some(Step::One(field)) => Ok(row.field(field)),
            Some(_) if !self.context.lenient => Err(QueryError::refused(
                name.at,
                format!("`{}` has many records: name it in `$expand`", name.text),
            )),
            _ => Ok(None),
        }
    }
}

/// As a number that both databases have.
fn bounded(number: u64) -> u64 {
    Ord::min(number, i64::MAX.unsigned_abs())
}

/// Rows that are only to be found again: their ids, in order.
pub(super) fn identified(mut select: SelectStatement, row: &TableRow<'_>) -> SelectStatement {
    select
        .expr(row.column("id").cast_as(Alias::new("bigint")))
        .order_by_expr(row.column("id"), Order::Asc);
    select
}

/// Rows as references: `{"url":"application(4)"}`.
pub(super) fn linked(mut select: SelectStatement, to: &TableRow<'_>) -> SelectStatement {
    let start = format!("'{{\"url\":\"{}('", to.resource.name);
    select
        .expr(concat(vec![
            Expr::cust(start),
            as_text(to.column("id")),
            Expr::cust("')\"}'"),
        ]))
        .order_by_expr(to.column("id"), Order::Asc);
    select
}

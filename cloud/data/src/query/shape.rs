//! Rows as the API shows them: JSON text built by the database itself, including expanded links
//! (docs/spec/cloud.md#odata-options, docs/spec/cloud.md#odata-answers).
//!
//! PostgreSQL converts a sub-select's row to an object, since its columns are not limited in number as a function's
//! arguments are. SQLite joins the pieces of text, a limited number of them at a time.

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

/// The column with a row's text.
pub(super) const TEXT: &str = "j";

/// Returns whether the rows of a resource have their own numbers: those of some views have none.
fn is_numbered(resource: &Resource) -> bool {
    let id = resource.find_field("id");
    id.is_some_and(|id| !id.nullable)
}

/// Rows that are not yet converted to objects: in PostgreSQL one column per field, in SQLite one column of text.
pub(super) struct Listing {
    pub(super) select: SelectStatement,
    /// The maximum size of a row in bytes, as far as the declared lengths of fields tell.
    pub(super) longest: u64,
}

impl<'a> Compiler<'a> {
    /// Returns the rows of a resource for which the conditions hold, as the options request them. The conditions
    /// include what the caller may read.
    pub(super) fn listing(
        &self,
        row: &TableRow<'a>,
        conditions: Vec<Expr>,
        options: &Options,
        path: &Expansion,
        at: usize,
    ) -> Result<Listing, QueryError> {
        let scope = Scope::new(row.clone());
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
        // SQLite builds the text of each row before it sorts them, so the rows of a page are found first.
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

    /// Returns one column of JSON text, with one record per row.
    pub(super) fn texts(&self, listing: Listing) -> Result<SelectStatement, QueryError> {
        if self.dialect == Dialect::Sqlite {
            return Ok(listing.select);
        }
        self.select_from_rows(listing.select, |rows| {
            format!("CAST(row_to_json(\"{rows}\") AS text)")
        })
    }

    /// Returns an expression over the rows of a statement; it receives their name.
    pub(super) fn select_from_rows(
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
            // As in PostgreSQL, made explicit for both: null is the greatest.
            let (direction, nulls) = match order.direction {
                Direction::Ascending => (Order::Asc, NullOrdering::Last),
                Direction::Descending => (Order::Desc, NullOrdering::First),
            };
            if value.constant.is_some() {
                // PostgreSQL interprets a bare number as the position of a column.
                continue;
            }
            select.order_by_expr_with_nulls(value.sql, direction, nulls);
        }
        let resource = scope.it.resource;
        if is_numbered(resource) {
            select.order_by_expr(scope.it.column("id"), Order::Asc);
        } else {
            // Pages need an unambiguous order.
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

    /// Returns the numbers of a page after the skipped rows, on SQLite. SQLite 3.51 converts an `EXISTS` to a join, and
    /// an `OFFSET` in the same statement then counts a row once for each joined row: so one statement finds rows, and
    /// another skips them.
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

    /// Returns the fields of a row's object, in order.
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
        // A row without its own number has no address.
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

    /// Returns the field that `$select` names, possibly by another name of its link.
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

/// Limits a number to the range of both databases.
fn bounded(number: u64) -> u64 {
    Ord::min(number, i64::MAX.unsigned_abs())
}

/// Selects only the ids of rows, in order.
pub(super) fn identified(mut select: SelectStatement, row: &TableRow<'_>) -> SelectStatement {
    select
        .expr(row.column("id").cast_as(Alias::new("bigint")))
        .order_by_expr(row.column("id"), Order::Asc);
    select
}

/// Selects references to rows: `{"url":"application(4)"}`.
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

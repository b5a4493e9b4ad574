//! Rows as the API shows them: as JSON text that the database itself makes, with what is expanded in it
//! (docs/spec/cloud.md#odata-options, docs/spec/cloud.md#odata-answers).
//!
//! PostgreSQL makes an object of a sub-select's row, whose number of columns is not bounded as that of a
//! function's arguments is. SQLite joins the pieces of text, a bounded number of them at a time.

use std::mem;

use odata::{Direction, Expand, Name, Options, Select};
use resources::{Column, Field, Navigation, Resource, Step, Type};
use sea_query::{Alias, Expr, ExprTrait, Func, NullOrdering, Order, SelectStatement};

use super::bounds::Bounds;
use super::compile_error::CompileError;
use super::links::no_link;
use super::scope::{Compiler, Scope, TableRow};
use super::sql::{custom, from, moment_text};
use super::value::{SHORT, longest};
use crate::Dialect;

/// Arguments of one function, below what either database takes.
const PIECES: usize = 90;
/// The column that holds a row's text.
const TEXT: &str = "j";
/// Rows that may have so many times the bytes that one link may expand to, going by the declared lengths of their
/// fields, are not counted: hardly any field is as long as it may be.
const ALLOWED: u64 = 4;
/// The window of rows up to the current one.
const SO_FAR: &str = "ROWS UNBOUNDED PRECEDING";

/// JSON that cannot be made, for as soon as there is more than may be shown: PostgreSQL fails with an error that
/// [`DataError`](crate::DataError) knows by this word. `depending` on something, or it would be worked out beforehand.
fn too_much_postgres(depending: &str) -> String {
    let word = crate::error::TOO_MUCH;
    format!("to_json(CAST(concat('{word}', {depending}) AS date))")
}

/// The same for SQLite, which fails where a value is longer than it may be. Whatever the bound, this is longer.
const TOO_MUCH_SQLITE: &str = "CAST(zeroblob(2000000000 + count(*)) AS TEXT)";

/// The resources on the way to what is expanded.
#[derive(Debug, Clone)]
pub(super) struct Expansion {
    tables: Vec<&'static str>,
    to_many: usize,
}

impl Expansion {
    /// It begins at a resource.
    pub(super) fn at(resource: &Resource) -> Self {
        Expansion {
            tables: vec![resource.table],
            to_many: 0,
        }
    }

    /// One link further.
    fn through(
        &self,
        navigation: &Navigation,
        to: &Resource,
        bounds: &Bounds,
        link: &Name,
    ) -> Result<Self, CompileError> {
        let mut path = self.clone();
        path.tables.push(to.table);
        path.to_many += usize::from(!matches!(navigation.step, Step::One(_)));
        if path.to_many > bounds.expanded_to_many {
            let message = format!(
                "links to many records are expanded in each other at most {} deep",
                bounds.expanded_to_many
            );
            return Err(CompileError::refused(link.at, message));
        }
        let times = path
            .tables
            .iter()
            .filter(|table| **table == to.table)
            .count();
        if times > bounds.same_resource {
            let message = format!(
                "`{}` leads back to `{}`, which stands on the way of an expansion at most {}",
                link.text,
                to.name,
                match bounds.same_resource {
                    1 => "once".to_owned(),
                    2 => "twice".to_owned(),
                    more => format!("{more} times"),
                }
            );
            return Err(CompileError::refused(link.at, message));
        }
        Ok(path)
    }
}

/// A field of an object that is to be made.
struct JsonField {
    name: String,
    value: JsonExpr,
    /// Bytes that it has at most, as far as the declared lengths of fields tell.
    longest: u64,
}

/// Whether the rows of a resource have numbers of their own: those of some views have none.
fn is_numbered(resource: &Resource) -> bool {
    let id = resource.find_field("id");
    id.is_some_and(|id| !id.nullable)
}

/// Rows whose objects are still to be made: in PostgreSQL a column for each field, in SQLite one of text.
pub(super) struct Listing {
    select: SelectStatement,
    /// Bytes of a row, likewise.
    longest: u64,
}

/// SQL for a value. In PostgreSQL of whichever type reads as the right JSON, in SQLite always JSON text.
struct JsonExpr(Expr);

impl<'a> Compiler<'a> {
    /// Rows of a resource that hold a condition, as the options want them. What the caller may read is part of
    /// the condition.
    pub(super) fn listing(
        &self,
        row: &TableRow<'a>,
        condition: Vec<Expr>,
        options: &Options,
        path: &Expansion,
        at: usize,
    ) -> Result<Listing, CompileError> {
        let scope = Scope::of(row.clone());
        let shown = self.json_fields(&scope, options, path, at)?;
        let longest = shown
            .iter()
            .fold(0_u64, |sum, one| sum.saturating_add(one.longest));
        let mut select = from(row.resource.table, &row.alias);
        for one in condition {
            select.and_where(one);
        }
        if let Some(filter) = &options.filter {
            select.and_where(self.condition(&scope, filter, false)?);
        }
        self.ordered(&mut select, &scope, options)?;
        self.paged(&mut select, options);
        // SQLite makes the text of each row before it orders them: those of a page are found first.
        let is_page = options.top.is_some() || options.skip.is_some();
        if is_page && self.dialect == Dialect::Sqlite && is_numbered(row.resource) {
            select.expr(row.column("id"));
            let page = mem::replace(&mut select, from(row.resource.table, &row.alias));
            let page = match options.skip {
                Some(skip) => self.skipped(page, options.top, skip)?,
                None => page,
            };
            select.and_where(row.column("id").in_subquery(page));
            self.ordered(&mut select, &scope, options)?;
        }
        match self.dialect {
            Dialect::Postgres => {
                for one in shown {
                    select.expr_as(one.value.0, Alias::new(one.name));
                }
            }
            Dialect::Sqlite => {
                select.expr_as(object_text(shown), Alias::new(TEXT));
            }
        }
        Ok(Listing { select, longest })
    }

    /// A row each, of one column of JSON text.
    pub(super) fn texts(&self, listing: Listing) -> Result<SelectStatement, CompileError> {
        if self.dialect == Dialect::Sqlite {
            return Ok(listing.select);
        }
        let rows = self.unused_name()?;
        let mut whole = SelectStatement::new();
        whole
            .expr(Expr::cust(format!("CAST(row_to_json(\"{rows}\") AS text)")))
            .from_subquery(listing.select, Alias::new(rows));
        Ok(whole)
    }

    /// One array of at most so many rows and bytes ([`Bounds`]); the statement fails where there are more.
    fn array(&self, listing: Listing, top: Option<u64>) -> Result<Expr, CompileError> {
        let most = self.bounds.expanded_rows;
        let Listing {
            select: mut rows,
            longest,
        } = listing;
        let is_bounded = top.is_some_and(|top| top <= most);
        if !is_bounded {
            rows.limit(most + 1);
        }
        let count = top.map_or(most, |top| Ord::min(top, most));
        let mut is_made = false;
        if self.dialect == Dialect::Postgres
            && count.saturating_mul(longest) > ALLOWED * self.bounds.expanded_bytes
        {
            rows = self.of_bounded_bytes(rows)?;
            is_made = true;
        }
        let name = self.unused_name()?;
        let array = match self.dialect {
            Dialect::Postgres if is_made => {
                format!("coalesce(json_agg(\"{name}\".\"{TEXT}\"), '[]')")
            }
            Dialect::Postgres => format!("coalesce(json_agg(\"{name}\"), '[]')"),
            Dialect::Sqlite => {
                format!("'[' || coalesce(group_concat(\"{name}\".\"{TEXT}\", ','), '') || ']'")
            }
        };
        let failure = match self.dialect {
            Dialect::Postgres => format!("to_json({})", too_much_postgres("count(*)")),
            Dialect::Sqlite => TOO_MUCH_SQLITE.to_owned(),
        };
        let array = if is_bounded {
            array
        } else {
            format!("CASE WHEN count(*) > {most} THEN {failure} ELSE {array} END")
        };
        let mut whole = SelectStatement::new();
        whole
            .expr(Expr::cust(array))
            .from_subquery(rows, Alias::new(name));
        Ok(Expr::from(whole))
    }

    /// The rows as one column of JSON. The statement fails as soon as those so far have more bytes than may be shown:
    /// the row that is too much is the last one that PostgreSQL makes. (SQLite has a limit of its own for that.)
    fn of_bounded_bytes(&self, rows: SelectStatement) -> Result<SelectStatement, CompileError> {
        let bytes = self.bounds.expanded_bytes;
        let (name, made) = (self.unused_name()?, self.unused_name()?);
        let mut texts = SelectStatement::new();
        texts
            .expr_as(
                Expr::cust(format!("row_to_json(\"{name}\")")),
                Alias::new(TEXT),
            )
            .from_subquery(rows, Alias::new(name))
            // Or the JSON of each row would be made twice.
            .offset(0);
        let text = format!("\"{made}\".\"{TEXT}\"");
        let sum = format!("sum(octet_length(CAST({text} AS text))) OVER ({SO_FAR})");
        let failure = too_much_postgres(&sum);
        let mut counting = SelectStatement::new();
        counting
            .expr_as(
                Expr::cust(format!(
                    "CASE WHEN {sum} > {bytes} THEN {failure} ELSE {text} END"
                )),
                Alias::new(TEXT),
            )
            .from_subquery(texts, Alias::new(made));
        Ok(counting)
    }

    /// An array of one row, or of none: there is nothing to put in order or together.
    fn array_of_one(&self, listing: Listing) -> Result<Expr, CompileError> {
        let mut row = listing.select;
        row.clear_order_by();
        let (array, row) = match self.dialect {
            Dialect::Sqlite => ("'[' || coalesce(?, '') || ']'", row),
            Dialect::Postgres => {
                let name = self.unused_name()?;
                let mut whole = SelectStatement::new();
                whole
                    .expr(Expr::cust(format!("json_build_array(\"{name}\")")))
                    .from_subquery(row, Alias::new(name));
                ("coalesce(?, '[]')", whole)
            }
        };
        Ok(custom(self.dialect, array, [Expr::from(row)]))
    }

    fn ordered(
        &self,
        select: &mut SelectStatement,
        scope: &Scope<'a>,
        options: &Options,
    ) -> Result<(), CompileError> {
        for order in &options.order_by {
            let value = self.value(scope, &order.by)?;
            if value.kind == super::value::ValueKind::Json {
                return Err(CompileError::refused(
                    order.by.at,
                    "`$orderby` does not support objects or arrays".to_owned(),
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
        match (options.top, options.skip, self.dialect) {
            (Some(top), _, _) => {
                select.limit(bounded(top));
            }
            // SQLite has no OFFSET without a LIMIT.
            (None, Some(_), Dialect::Sqlite) => {
                select.limit(i64::MAX.unsigned_abs());
            }
            (None, _, _) => {}
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
    ) -> Result<SelectStatement, CompileError> {
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
    ) -> Result<Vec<JsonField>, CompileError> {
        let row = &scope.it;
        let mut json_fields: Vec<JsonField> = Vec::new();
        let expanded = |name: &str| options.expand.iter().any(|one| one.link.text == name);
        let readable = || row.resource.fields.iter().filter(|field| !field.secret);
        match &options.select {
            None | Some(Select::All) => {
                for field in readable().filter(|field| !expanded(field.name)) {
                    let value = self.rendered(row, field)?;
                    json_fields.push(JsonField {
                        name: field.name.to_owned(),
                        value,
                        longest: longest(&field.kind),
                    });
                }
            }
            Some(Select::Fields(names)) => {
                for name in names {
                    if json_fields.iter().any(|one| one.name == name.text) || expanded(&name.text) {
                        continue;
                    }
                    match self.selected(row, name)? {
                        Some(field) => json_fields.push(JsonField {
                            name: name.text.clone(),
                            value: self.rendered(row, field)?,
                            longest: longest(&field.kind),
                        }),
                        None if self.lenient => {}
                        None => return Err(super::expression::no_field(row, name)),
                    }
                }
            }
        }
        // A row without a number of its own is nowhere.
        let numbered = row.resource.find_field("id").is_some_and(|id| !id.nullable);
        if let Some(address) = self.addresses
            && numbered
        {
            let start = format!("{{\"uri\":\"{address}/{}(@id)?@id=", row.resource.name);
            let text = concat(vec![
                constant(&start),
                super::sql::as_text(row.column("id")),
                constant("\"}"),
            ]);
            json_fields.push(JsonField {
                name: "__metadata".to_owned(),
                value: self.json(text),
                longest: SHORT,
            });
        }
        for expand in &options.expand {
            if json_fields.iter().any(|one| one.name == expand.link.text) {
                return Err(CompileError::refused(
                    expand.link.at,
                    format!("`{}` is expanded twice", expand.link.text),
                ));
            }
            let Some(navigation) = self.model.navigation(row.resource, &expand.link.text) else {
                if self.lenient {
                    continue;
                } else {
                    return Err(no_link(row, &expand.link));
                }
            };
            let (value, longest) = if expand.count {
                (self.expanded_count(scope, navigation, expand)?, SHORT)
            } else {
                self.expanded(row, navigation, expand, path)?
            };
            json_fields.push(JsonField {
                name: expand.link.text.clone(),
                value,
                longest,
            });
        }
        if json_fields.is_empty() && !self.lenient {
            return Err(CompileError::refused(
                at,
                "`$select` names no field".to_owned(),
            ));
        }
        Ok(json_fields)
    }

    /// The field that `$select` names, perhaps by another name of its link.
    fn selected(&self, row: &TableRow<'a>, name: &Name) -> Result<Option<&'a Field>, CompileError> {
        if let Some(field) = self.named_field(row.resource, &name.text) {
            return Ok(Some(field));
        }
        match self
            .model
            .navigation(row.resource, &name.text)
            .map(|one| one.step)
        {
            Some(Step::One(field)) => Ok(self.named_field(row.resource, field)),
            Some(_) if self.lenient => Ok(None),
            Some(_) => Err(CompileError::refused(
                name.at,
                format!("`{}` has many records: name it in `$expand`", name.text),
            )),
            None => Ok(None),
        }
    }

    /// What is behind a link, as an array; one object at most where the link leads to one.
    fn expanded(
        &self,
        row: &TableRow<'a>,
        navigation: &Navigation,
        expand: &Expand,
        path: &Expansion,
    ) -> Result<(JsonExpr, u64), CompileError> {
        let target = self.target(navigation)?;
        let path = path.through(navigation, target, self.bounds, &expand.link)?;
        let other = self.row(target)?;
        let step = self.step(navigation, row, &other, false)?;
        let mut condition = vec![step];
        condition.extend(self.permitted_behind(navigation, row, &other, false, expand.link.at)?);
        let listing = self.listing(&other, condition, &expand.options, &path, expand.link.at)?;
        let longest = listing.longest;
        Ok(match navigation.step {
            Step::One(_) => (JsonExpr(self.array_of_one(listing)?), longest),
            Step::Many(_) | Step::Through { .. } => {
                let array = self.array(listing, expand.options.top)?;
                (JsonExpr(array), self.bounds.expanded_bytes)
            }
        })
    }

    fn expanded_count(
        &self,
        scope: &Scope<'a>,
        navigation: &Navigation,
        expand: &Expand,
    ) -> Result<JsonExpr, CompileError> {
        let other = self.row(self.target(navigation)?)?;
        let mut select = from(other.resource.table, &other.alias);
        select
            .and_where(self.step(navigation, &scope.it, &other, false)?)
            .and_where_option(self.permitted_behind(
                navigation,
                &scope.it,
                &other,
                false,
                expand.link.at,
            )?);
        if let Some(filter) = &expand.options.filter {
            let inner = Scope::of(other);
            select.and_where(self.condition(&inner, filter, false)?);
        }
        select.expr(Func::count(Expr::cust("*")));
        Ok(JsonExpr(Expr::from(select)))
    }

    /// A field as its type reads.
    fn rendered(&self, row: &TableRow<'a>, field: &Field) -> Result<JsonExpr, CompileError> {
        if field.column == Column::Stored("id") && field.nullable {
            return Ok(JsonExpr(self.null()));
        }
        let value = self.field(row, field)?;
        let dialect = self.dialect;
        let sql = match (&field.kind, dialect) {
            (Type::Integer, Dialect::Postgres) | (Type::Boolean, Dialect::Postgres) => value,
            (Type::Text { .. } | Type::Word(_) | Type::JsonText { .. }, Dialect::Postgres) => value,
            (Type::BigInteger, Dialect::Postgres) => super::sql::as_text(value),
            (Type::Timestamp, Dialect::Postgres) => moment_text(dialect, value),
            (Type::Json { .. }, Dialect::Postgres) => custom(dialect, "CAST(? AS json)", [value]),
            (
                Type::Integer | Type::Text { .. } | Type::Word(_) | Type::JsonText { .. },
                Dialect::Sqlite,
            ) => custom(dialect, "json_quote(?)", [value]),
            (Type::Boolean, Dialect::Sqlite) => {
                custom(dialect, "CASE WHEN ? THEN 'true' ELSE 'false' END", [value])
            }
            (Type::BigInteger, Dialect::Sqlite) => {
                custom(dialect, "coalesce('\"' || (?) || '\"', 'null')", [value])
            }
            (Type::Timestamp, Dialect::Sqlite) => {
                let text = moment_text(dialect, value);
                custom(dialect, "coalesce('\"' || (?) || '\"', 'null')", [text])
            }
            (Type::Json { .. }, Dialect::Sqlite) => custom(dialect, "coalesce(?, 'null')", [value]),
            (Type::Link { to, .. }, _) => self.reference(value, to),
        };
        Ok(JsonExpr(sql))
    }

    /// `{"__id":4}`, or null.
    fn reference(&self, link: Expr, to: &str) -> Expr {
        let end = match self.addresses {
            None => "}".to_owned(),
            Some(address) => format!(",\"__deferred\":{{\"uri\":\"{address}/{to}(@id)?@id="),
        };
        let number = match self.addresses {
            None => "'{\"__id\":' || (?) || ",
            Some(_) => "'{\"__id\":' || (?) || ? || (?) || ",
        };
        let sql = match (self.addresses, self.dialect) {
            (None, Dialect::Postgres) => {
                return custom(self.dialect, &format!("CAST({number}'}}' AS json)"), [link]);
            }
            (None, Dialect::Sqlite) => {
                return custom(
                    self.dialect,
                    &format!("coalesce({number}'}}', 'null')"),
                    [link],
                );
            }
            (Some(_), Dialect::Postgres) => format!("CAST({number}'\"}}}}' AS json)"),
            (Some(_), Dialect::Sqlite) => format!("coalesce({number}'\"}}}}', 'null')"),
        };
        custom(self.dialect, &sql, [link.clone(), constant(&end), link])
    }

    /// JSON text as a value of an object.
    fn json(&self, text: Expr) -> JsonExpr {
        JsonExpr(match self.dialect {
            Dialect::Postgres => custom(self.dialect, "CAST(? AS json)", [text]),
            Dialect::Sqlite => text,
        })
    }

    fn null(&self) -> Expr {
        match self.dialect {
            Dialect::Postgres => Expr::cust("CAST(NULL AS bigint)"),
            Dialect::Sqlite => Expr::cust("'null'"),
        }
    }
}

/// As a number that both databases have.
fn bounded(number: u64) -> u64 {
    Ord::min(number, i64::MAX.unsigned_abs())
}

/// A text of our own, as a value of the statement.
fn constant(text: &str) -> Expr {
    Expr::val(text)
}

/// `{"a":…,"b":…}` of JSON texts.
fn object_text(fields: Vec<JsonField>) -> Expr {
    let mut pieces = Vec::with_capacity(fields.len() * 2 + 1);
    for (number, field) in fields.into_iter().enumerate() {
        let before = if number == 0 { '{' } else { ',' };
        // The names are the request's, and it may give only those that the model has.
        pieces.push(Expr::cust(format!("'{before}\"{}\":'", field.name)));
        pieces.push(field.value.0);
    }
    pieces.push(Expr::cust("'}'"));
    concat(pieces)
}

/// Texts in a row; null counts as empty.
fn concat(pieces: Vec<Expr>) -> Expr {
    if pieces.len() <= PIECES {
        return Expr::from(Func::cust(Alias::new("concat")).args(pieces));
    }
    let mut pieces = pieces.into_iter();
    let mut groups = Vec::new();
    loop {
        let group: Vec<Expr> = pieces.by_ref().take(PIECES).collect();
        if group.is_empty() {
            return concat(groups);
        }
        groups.push(concat(group));
    }
}

/// How many rows hold a condition: one number.
pub(super) fn counted(mut select: SelectStatement) -> SelectStatement {
    select.expr(Func::count(Expr::cust("*")));
    select
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
            super::sql::as_text(to.column("id")),
            Expr::cust("')\"}'"),
        ]))
        .order_by_expr(to.column("id"), Order::Asc);
    select
}

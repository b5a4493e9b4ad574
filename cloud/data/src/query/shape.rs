//! Rows as the API shows them: as JSON text that the database itself makes, with what is expanded in it
//! (cloud behaviour 1.1, 2.2 and 2.6).
//!
//! PostgreSQL makes an object of a sub-select's row, whose number of columns is not bounded as that of a
//! function's arguments is. SQLite joins the pieces of text, a bounded number of them at a time.

use std::mem;

use odata::{Direction, Expand, Name, Options, Select};
use resources::{Column, Field, Navigation, Step, Type};
use sea_query::{Alias, Expr, ExprTrait, Func, NullOrdering, Order, SelectStatement};

use super::expression::no_link;
use super::fault::Fault;
use super::scope::{Compiler, Row, Scope};
use super::sql::{custom, from, moment_text};
use crate::Dialect;

/// Arguments of one function, below what either database takes.
const PIECES: usize = 90;
/// The column that holds a row's text.
const TEXT: &str = "j";

/// A field of an object that is to be made.
struct Shown {
    name: String,
    value: Rendered,
}

/// Rows whose objects are still to be made: in PostgreSQL a column for each field, in SQLite one of text.
pub(super) struct Listing(SelectStatement);

/// SQL for a value. In PostgreSQL of whichever type reads as the right JSON, in SQLite always JSON text.
struct Rendered(Expr);

impl<'a> Compiler<'a> {
    /// Rows of a resource that hold a condition, as the options want them. What the caller may read is part of
    /// the condition.
    pub(super) fn listing(
        &self,
        row: &Row<'a>,
        condition: Vec<Expr>,
        options: &Options,
        at: usize,
    ) -> Result<Listing, Fault> {
        let scope = Scope::of(row.clone());
        let shown = self.shown(&scope, options, at)?;
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
        if is_page && self.dialect == Dialect::Sqlite && row.resource.find_field("id").is_some() {
            select.expr(row.column("id"));
            let page = mem::replace(&mut select, from(row.resource.table, &row.alias));
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
        Ok(Listing(select))
    }

    /// A row each, of one column of JSON text.
    pub(super) fn texts(&self, listing: Listing) -> Result<SelectStatement, Fault> {
        if self.dialect == Dialect::Sqlite {
            return Ok(listing.0);
        }
        let rows = self.unused_name()?;
        let mut whole = SelectStatement::new();
        whole
            .expr(Expr::cust(format!("CAST(row_to_json(\"{rows}\") AS text)")))
            .from_subquery(listing.0, Alias::new(rows));
        Ok(whole)
    }

    /// One array.
    fn array(&self, listing: Listing) -> Result<Expr, Fault> {
        let rows = self.unused_name()?;
        let array = match self.dialect {
            Dialect::Postgres => format!("coalesce(json_agg(\"{rows}\"), '[]')"),
            Dialect::Sqlite => {
                format!("'[' || coalesce(group_concat(\"{rows}\".\"{TEXT}\", ','), '') || ']'")
            }
        };
        let mut whole = SelectStatement::new();
        whole
            .expr(Expr::cust(array))
            .from_subquery(listing.0, Alias::new(rows));
        Ok(Expr::from(whole))
    }

    /// An array of one row, or of none: there is nothing to put in order or together.
    fn array_of_one(&self, listing: Listing) -> Result<Expr, Fault> {
        let mut row = listing.0;
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
    ) -> Result<(), Fault> {
        for order in &options.order_by {
            let value = self.value(scope, &order.by)?;
            if value.kind == super::value::Kind::Json {
                return Err(Fault::refused(
                    order.by.at,
                    "nothing is ordered by an object or array".to_owned(),
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
        if scope.it.resource.find_field("id").is_some() {
            select.order_by_expr(scope.it.column("id"), Order::Asc);
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

    /// The fields of a row's object, in their order.
    fn shown(&self, scope: &Scope<'a>, options: &Options, at: usize) -> Result<Vec<Shown>, Fault> {
        let row = &scope.it;
        let mut shown: Vec<Shown> = Vec::new();
        let expanded = |name: &str| options.expand.iter().any(|one| one.link.text == name);
        let readable = || row.resource.fields.iter().filter(|field| !field.secret);
        match &options.select {
            None | Some(Select::All) => {
                for field in readable().filter(|field| !expanded(field.name)) {
                    let value = self.rendered(row, field)?;
                    shown.push(Shown {
                        name: field.name.to_owned(),
                        value,
                    });
                }
            }
            Some(Select::Fields(names)) => {
                for name in names {
                    if shown.iter().any(|one| one.name == name.text) || expanded(&name.text) {
                        continue;
                    }
                    match self.selected(row, name)? {
                        Some(field) => shown.push(Shown {
                            name: name.text.clone(),
                            value: self.rendered(row, field)?,
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
            shown.push(Shown {
                name: "__metadata".to_owned(),
                value: self.json(text),
            });
        }
        for expand in &options.expand {
            if shown.iter().any(|one| one.name == expand.link.text) {
                return Err(Fault::refused(
                    expand.link.at,
                    format!("`{}` is expanded twice", expand.link.text),
                ));
            }
            let Some(navigation) = self.model.navigation(row.resource, &expand.link.text) else {
                match self.lenient {
                    true => continue,
                    false => return Err(no_link(row, &expand.link)),
                }
            };
            let value = match expand.count {
                true => self.expanded_count(scope, navigation, expand)?,
                false => self.expanded(row, navigation, expand)?,
            };
            shown.push(Shown {
                name: expand.link.text.clone(),
                value,
            });
        }
        if shown.is_empty() && !self.lenient {
            return Err(Fault::refused(at, "nothing is selected".to_owned()));
        }
        Ok(shown)
    }

    /// The field that `$select` names, perhaps by another name of its link.
    fn selected(&self, row: &Row<'a>, name: &Name) -> Result<Option<&'a Field>, Fault> {
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
            Some(_) => Err(Fault::refused(
                name.at,
                format!("`{}` has many records: name it in `$expand`", name.text),
            )),
            None => Ok(None),
        }
    }

    /// What is behind a link, as an array; one object at most where the link leads to one.
    fn expanded(
        &self,
        row: &Row<'a>,
        navigation: &Navigation,
        expand: &Expand,
    ) -> Result<Rendered, Fault> {
        let other = self.row(self.target(navigation)?)?;
        let step = self.step(navigation, row, &other, false)?;
        let mut condition = vec![step];
        condition.extend(self.permitted_behind(navigation, row, &other, false, expand.link.at)?);
        let listing = self.listing(&other, condition, &expand.options, expand.link.at)?;
        Ok(Rendered(match navigation.step {
            Step::One(_) => self.array_of_one(listing)?,
            Step::Many(_) | Step::Through { .. } => self.array(listing)?,
        }))
    }

    fn expanded_count(
        &self,
        scope: &Scope<'a>,
        navigation: &Navigation,
        expand: &Expand,
    ) -> Result<Rendered, Fault> {
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
        Ok(Rendered(Expr::from(select)))
    }

    /// A field as its type reads.
    fn rendered(&self, row: &Row<'a>, field: &Field) -> Result<Rendered, Fault> {
        if field.column == Column::Stored("id") && field.nullable {
            return Ok(Rendered(self.null()));
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
        Ok(Rendered(sql))
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
    fn json(&self, text: Expr) -> Rendered {
        Rendered(match self.dialect {
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
fn object_text(fields: Vec<Shown>) -> Expr {
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
pub(super) fn identified(mut select: SelectStatement, row: &Row<'_>) -> SelectStatement {
    select
        .expr(row.column("id").cast_as(Alias::new("bigint")))
        .order_by_expr(row.column("id"), Order::Asc);
    select
}

/// Rows as references: `{"url":"application(4)"}`.
pub(super) fn linked(mut select: SelectStatement, to: &Row<'_>) -> SelectStatement {
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

//! Requests of the query language as SQL: one statement each, for either database, with every value bound
//! (docs/spec/cloud.md#odata, docs/spec/cloud.md#rights).
//!
//! ```text
//! odata::Request + resources::Model + Caller
//!   ├─ compiler    tables, links, fields, keys and constants of the statement
//!   ├─ rights      which rows the caller may see (by rule)
//!   ├─ expression  $filter and $orderby, by scope (the meaning of names), junction (chains and lists), arithmetic, value
//!   │              (kinds and constants) and function
//!   └─ shape       $select and $expand: the database makes the JSON text of each row (by json)
//! ```
//!
//! A row that the caller may not see does not exist for it: not in a list, behind a link, in a count, nor in a
//! condition. The text of a statement contains nothing from outside the model.

mod arithmetic;
mod array;
mod bounds;
mod compiler;
mod computed;
mod context;
mod error;
mod expansion;
mod expression;
mod function;
mod json;
mod junction;
mod links;
mod rights;
mod rule;
mod scope;
mod shape;
mod sql;
mod value;

use odata::{Address, Key, Options, Request, ResourcePath, Tail};
use resources::{Method, Resource};
use sea_query::{Alias, Expr, ExprTrait, SelectStatement};

pub use crate::caller::Caller;
use crate::dialect::Dialect;
use crate::statement::{BuiltStatement, SeaQuery, Statement};
use compiler::{Compiler, FIRST_TABLE};
pub use context::QueryContext;
pub use error::QueryError;
use expansion::Expansion;
pub use rights::Right;
use scope::{Nulls, Scope, TableRow, Visibility};
use sql::{counted, exists};

/// A statement limited to the rows on which its caller has the right. Only this module creates one.
#[derive(Debug, Clone)]
pub struct CompiledQuery(SelectStatement);

impl Statement for CompiledQuery {
    fn built(&self, dialect: Dialect) -> BuiltStatement {
        self.0.in_words_of(dialect)
    }
}

/// The statement for a GET.
#[derive(Debug, Clone)]
pub enum ReadStatement {
    /// Each row has one column, the JSON text of a record.
    Records(CompiledQuery),
    /// A single number.
    Count(CompiledQuery),
    /// The description of the model.
    Metadata,
}

/// Compiles the statement for a GET.
///
/// # Errors
/// See [`QueryError`].
pub fn read(context: &QueryContext<'_>, request: &Request) -> Result<ReadStatement, QueryError> {
    let Address::Resource(path) = &request.address else {
        return Ok(ReadStatement::Metadata);
    };
    let mut compiler = Compiler::new(context, &request.options);
    compiler.for_one_row = path.key.is_some();
    reading(&compiler, path, &request.options).map_err(|error| error.within(&request.text))
}

/// Compiles the statement for the ids of the rows that a PATCH or DELETE selects, if the caller has the right on them.
/// Without key and filter that is every row.
///
/// # Errors
/// See [`QueryError`]; also if the path continues after the resource, or the query has paging or an order.
pub fn rows(
    context: &QueryContext<'_>,
    request: &Request,
    method: Method,
) -> Result<(&'static str, CompiledQuery), QueryError> {
    let mut compiler = Compiler::new(context, &request.options);
    compiler.from_is_readable = method == Method::Read;
    compiler.for_one_row =
        matches!(&request.address, Address::Resource(path) if path.key.is_some());
    writing(&compiler, request, method)
        .map(|(resource, select)| (resource.table, CompiledQuery(select)))
        .map_err(|error| error.within(&request.text))
}

/// Limits the rows of a statement of [`rows`] to these ids.
pub(crate) fn among(select: &mut CompiledQuery, ids: &[i64]) {
    let id = sql::column(FIRST_TABLE, "id");
    select.0.and_where(id.is_in(ids.iter().copied()));
}

/// Compiles the statement for the record with an id as the caller sees it, with the default fields: no row if the
/// caller cannot see it.
///
/// # Errors
/// See [`QueryError`].
pub fn record(
    context: &QueryContext<'_>,
    resource: &str,
    id: i64,
) -> Result<CompiledQuery, QueryError> {
    let options = Options::default();
    let mut compiler = Compiler::new(context, &options);
    compiler.for_one_row = true;
    let one_record = || {
        let row = compiler.row(compiler.resource(resource)?)?;
        let mut conditions = vec![row.column("id").eq(id)];
        conditions.extend(compiler.permitted(&row, Method::Read.into())?);
        let path = Expansion::at(row.resource);
        let listing = compiler.listing(&row, conditions, &options, &path, 0)?;
        compiler.texts(listing).map(CompiledQuery)
    };
    one_record().map_err(|error: QueryError| error.within(""))
}

/// Compiles the check of the caller's right on the row with an id: the result is the id, or no row.
///
/// # Errors
/// See [`QueryError`].
pub fn permitted(
    context: &QueryContext<'_>,
    resource: &str,
    id: i64,
    right: impl Into<Right>,
) -> Result<CompiledQuery, QueryError> {
    permitted_among(context, resource, Some(&[id]), right.into())
}

/// Compiles the check whether the caller has the right on any row: the result is the id of one, or no row.
///
/// # Errors
/// See [`QueryError`].
pub fn permitted_any(
    context: &QueryContext<'_>,
    resource: &str,
    method: Method,
) -> Result<CompiledQuery, QueryError> {
    let mut select = permitted_among(context, resource, None, method.into())?;
    select.0.limit(1);
    Ok(select)
}

/// Compiles the statement for those of these rows, or of all, on which the caller has the right: their ids, in order.
pub(crate) fn permitted_among(
    context: &QueryContext<'_>,
    resource: &str,
    ids: Option<&[i64]>,
    right: Right,
) -> Result<CompiledQuery, QueryError> {
    let options = Options::default();
    let mut compiler = Compiler::new(context, &options);
    compiler.for_one_row = matches!(ids, Some([_]));
    let permitted = || {
        let row = compiler.row(compiler.resource(resource)?)?;
        let is_it = match ids {
            None => None,
            Some([id]) => Some(row.column("id").eq(*id)),
            Some(ids) => Some(row.column("id").is_in(ids.iter().copied())),
        };
        let permitted = compiler.permitted(&row, right)?;
        let select = row.select(is_it.into_iter().chain(permitted));
        Ok(CompiledQuery(shape::identified(select, &row)))
    };
    permitted().map_err(|error: QueryError| error.within(""))
}

/// Returns whether the caller has any right of this kind on a resource, whatever the rows.
///
/// # Errors
/// If the model has no such resource.
pub fn any_right(
    context: &QueryContext<'_>,
    resource: &str,
    method: Method,
) -> Result<bool, QueryError> {
    let declared = context.model.resource(resource);
    let declared = declared.ok_or_else(|| QueryError::no_resource(resource))?;
    Ok(context.caller.has_any(declared, method))
}

fn reading(
    compiler: &Compiler<'_>,
    path: &ResourcePath,
    options: &Options,
) -> Result<ReadStatement, QueryError> {
    let (row, mut conditions) = addressed(compiler, path)?;
    conditions.extend(compiler.permitted(&row, Method::Read.into())?);
    match &path.tail {
        Tail::Records => {
            let at = path.resource.at;
            let path = Expansion::at(row.resource);
            let listing = compiler.listing(&row, conditions, options, &path, at)?;
            let texts = compiler.texts(listing)?;
            Ok(ReadStatement::Records(CompiledQuery(texts)))
        }
        Tail::Count => {
            conditions.extend(filter(compiler, &row, options)?);
            let count = counted(row.select(conditions));
            Ok(ReadStatement::Count(CompiledQuery(count)))
        }
        Tail::Links(link) => {
            let (step, to) = row_behind(compiler, &row, link)?;
            let permitted = compiler.permitted(&to, Method::Read.into())?;
            let mut select = row.select(conditions.into_iter().chain([step]).chain(permitted));
            select.from_as(Alias::new(to.resource.table), Alias::new(&to.alias));
            let links = shape::linked(select, &to);
            Ok(ReadStatement::Records(CompiledQuery(links)))
        }
    }
}

/// Returns the rows at the end of a path, and their conditions apart from the caller's rights.
fn addressed<'a>(
    compiler: &Compiler<'a>,
    path: &ResourcePath,
) -> Result<(TableRow<'a>, Vec<Expr>), QueryError> {
    let mut row = compiler.row(compiler.resource(&path.resource.text)?)?;
    let mut conditions = keyed(compiler, &row, path.key.as_ref())?;
    for (link, key) in &path.links {
        let (step, other) = row_behind(compiler, &row, link)?;
        let permitted = compiler.permitted(&row, Method::Read.into())?;
        let before = [step].into_iter().chain(permitted).chain(conditions);
        conditions = vec![exists(row.select(before))];
        conditions.extend(keyed(compiler, &other, key.as_ref())?);
        row = other;
    }
    Ok((row, conditions))
}

fn row_behind<'a>(
    compiler: &Compiler<'a>,
    row: &TableRow<'a>,
    link: &odata::Name,
) -> Result<(Expr, TableRow<'a>), QueryError> {
    let navigation = compiler
        .model
        .navigation(row.resource, &link.text)
        .ok_or_else(|| row.no_link(link))?;
    let other = compiler.target_row(navigation)?;
    let step = compiler.step(navigation, row, &other, Visibility::OfCaller)?;
    Ok((step, other))
}

fn keyed<'a>(
    compiler: &Compiler<'a>,
    row: &TableRow<'a>,
    key: Option<&Key>,
) -> Result<Vec<Expr>, QueryError> {
    let key = key.map(|key| compiler.key(row, key, Visibility::OfCaller));
    Ok(key.transpose()?.into_iter().collect())
}

fn filter<'a>(
    compiler: &Compiler<'a>,
    row: &TableRow<'a>,
    options: &Options,
) -> Result<Option<Expr>, QueryError> {
    let scope = Scope::new(row.clone());
    let filter = options.filter.as_ref();
    let filter = filter.map(|filter| compiler.condition(&scope, filter, Nulls::Allowed));
    filter.transpose()
}

fn writing<'a>(
    compiler: &Compiler<'a>,
    request: &Request,
    method: Method,
) -> Result<(&'a Resource, SelectStatement), QueryError> {
    let Address::Resource(path) = &request.address else {
        return Err(QueryError::refused(0, "`$metadata` is read only"));
    };
    if !path.links.is_empty() || path.tail != Tail::Records {
        return Err(QueryError::refused(
            path.resource.at,
            "only the records of a resource itself are changed: address them directly",
        ));
    }
    let options = &request.options;
    if options.top.is_some() || options.skip.is_some() || !options.order_by.is_empty() {
        return Err(QueryError::refused(
            0,
            "`$top`, `$skip` and `$orderby` are for GET: choose what is changed by `$filter`",
        ));
    }
    let row = compiler.row(compiler.resource(&path.resource.text)?)?;
    let mut conditions = keyed(compiler, &row, path.key.as_ref())?;
    conditions.extend(compiler.permitted(&row, method.into())?);
    conditions.extend(filter(compiler, &row, options)?);
    let select = row.select(conditions);
    Ok((row.resource, shape::identified(select, &row)))
}

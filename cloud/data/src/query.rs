//! Requests of the query language as SQL: one statement each, for either database, with every value bound
//! (docs/spec/cloud.md#odata, docs/spec/cloud.md#rights).
//!
//! ```text
//! odata::Request + resources::Model + Caller
//!   ├─ scope       rows in the statement, how links join them, which of them the caller may see (by rule)
//!   ├─ expression  $filter and $orderby, by junction (chains and lists), arithmetic, value (kinds and constants) and
//!   │              function
//!   └─ shape       $select and $expand: the database makes the JSON text of each row
//! ```
//!
//! A row that the caller may not see is not there: not in a list, behind a link, in a count, nor for a
//! condition. Nothing that is not in the model reaches the text of a statement.

mod arithmetic;
mod bounds;
mod caller;
mod compile_error;
mod computed;
mod expression;
mod function;
mod junction;
mod links;
mod rule;
mod scope;
mod shape;
mod sql;
mod value;

use odata::{Address, Expression, Key, Options, ParseError, Request, ResourcePath, Tail};
use resources::{Method, Model, Resource};
use sea_query::{Expr, SelectStatement};

pub use caller::Caller;
use compile_error::{CompileError, CompileErrorKind};
pub use scope::Right;
use scope::{Compiler, FIRST_TABLE, Scope, TableRow};
use shape::Expansion;
use sql::{exists, from};

use crate::Dialect;

/// What of a request is not in the request.
#[derive(Debug, Clone, Copy)]
pub struct QueryContext<'a> {
    /// The version of the API that it is made to.
    pub model: &'a Model,
    /// The database.
    pub dialect: Dialect,
    /// Who makes it.
    pub caller: &'a Caller,
    /// Milliseconds since the epoch; what `now()` answers.
    pub now: i64,
    /// The path that addresses of rows begin with (`/v7`), where every row and link has one, as with
    /// `$format=json;odata.metadata=full`.
    pub addresses: &'a str,
    /// Rows and links always have their addresses (older versions).
    pub always_addressed: bool,
    /// Unknown names in `$select` and `$expand` are passed over (older versions).
    pub lenient: bool,
    /// Names of the configuration variable that switches the tunnel off, the current one first: a device
    /// without a tunnel lacks nothing then (docs/spec/cloud.md#model-overall-status).
    pub tunnel_variables: &'a [String],
    /// The address that this cloud is reached by (`https://cloud.example.com`), which addresses of files begin
    /// with.
    pub origin: &'a str,
}

/// Why a request cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It is wrong: 400, with a message that points at the character.
    #[error(transparent)]
    Refused(ParseError),
    /// It names a resource that is not there, or that the caller has nothing to do with: 401.
    #[error("{0}")]
    NoRights(String),
    /// The model is wrong, which the request is not to blame for.
    #[error("the model of the data API is at fault: {0}")]
    Broken(String),
}

/// A statement that finds what its caller has the right to, and nothing else. Only this module makes one.
#[derive(Debug, Clone)]
pub struct CompiledQuery(pub(crate) SelectStatement);

/// A statement that answers a GET.
#[derive(Debug, Clone)]
pub enum ReadStatement {
    /// Each row's one column is the JSON text of a record.
    Records(CompiledQuery),
    /// One number.
    Count(CompiledQuery),
    /// The description of the model.
    Metadata,
}

/// The statement for a GET of `path?query`, as [`odata::parse`] read it.
///
/// # Errors
/// See [`QueryError`].
pub fn read(
    setting: &QueryContext<'_>,
    request: &Request,
    path: &str,
    query: Option<&str>,
) -> Result<ReadStatement, QueryError> {
    let Address::Resource(resource) = &request.address else {
        return Ok(ReadStatement::Metadata);
    };
    let mut compiler = compiler(setting, &request.options);
    compiler.for_one_row = resource.key.is_some();
    reading(&compiler, resource, &request.options).map_err(|fault| explained(fault, path, query))
}

/// Which rows a PATCH or DELETE means: the statement that lists their ids, of those that the caller may do
/// this with. With neither key nor filter that is every one.
///
/// # Errors
/// See [`QueryError`]; also where the path goes on behind the resource, or the query pages or orders.
pub fn rows(
    setting: &QueryContext<'_>,
    request: &Request,
    method: Method,
    path: &str,
    query: Option<&str>,
) -> Result<(&'static str, CompiledQuery), QueryError> {
    let mut compiler = compiler(setting, &request.options);
    compiler.from_is_readable = method == Method::Read;
    compiler.for_one_row =
        matches!(&request.address, Address::Resource(path) if path.key.is_some());
    writing(&compiler, request, method)
        .map(|(resource, select)| (resource.table, CompiledQuery(select)))
        .map_err(|fault| explained(fault, path, query))
}

/// Of the rows that a statement of [`rows`] lists, those with these ids alone.
pub(crate) fn among(select: &mut CompiledQuery, ids: &[i64]) {
    let id = sql::column(FIRST_TABLE, "id");
    select
        .0
        .and_where(sea_query::ExprTrait::is_in(id, ids.iter().copied()));
}

/// The record of an id as the caller sees it with the default fields: no row where it does not.
///
/// # Errors
/// See [`QueryError`].
pub fn record(
    setting: &QueryContext<'_>,
    resource: &str,
    id: i64,
) -> Result<CompiledQuery, QueryError> {
    let options = Options::default();
    let mut compiler = compiler(setting, &options);
    compiler.for_one_row = true;
    one_record(&compiler, resource, id, &options)
        .map(CompiledQuery)
        .map_err(|fault| explained(fault, "", None))
}

/// Whether the caller may do this with the row of an id: the id, or no row.
///
/// # Errors
/// See [`QueryError`].
pub fn permitted(
    setting: &QueryContext<'_>,
    resource: &str,
    id: i64,
    right: impl Into<Right>,
) -> Result<CompiledQuery, QueryError> {
    may(setting, resource, Some(id), right.into()).map(CompiledQuery)
}

/// Whether there is any row with which the caller may do this: the id of one, or no row.
///
/// # Errors
/// See [`QueryError`].
pub fn permitted_any(
    setting: &QueryContext<'_>,
    resource: &str,
    method: Method,
) -> Result<CompiledQuery, QueryError> {
    let mut select = may(setting, resource, None, method.into())?;
    Ok(CompiledQuery(select.limit(1).take()))
}

fn may(
    setting: &QueryContext<'_>,
    resource: &str,
    id: Option<i64>,
    right: Right,
) -> Result<SelectStatement, QueryError> {
    let options = Options::default();
    let mut compiler = compiler(setting, &options);
    compiler.for_one_row = id.is_some();
    let one = || {
        let row = compiler.row(known(&compiler, resource)?)?;
        let mut select = from(row.resource.table, &row.alias);
        select
            .and_where_option(id.map(|id| sea_query::ExprTrait::eq(row.column("id"), id)))
            .and_where_option(compiler.permitted(&row, right, false, 0)?);
        Ok(shape::identified(select, &row))
    };
    one().map_err(|fault| explained(fault, "", None))
}

/// Whether the caller holds any right of this kind on a resource, whatever the rows.
///
/// # Errors
/// Where the model has no such resource.
pub fn any_right(
    setting: &QueryContext<'_>,
    resource: &str,
    method: Method,
) -> Result<bool, QueryError> {
    let resource = setting
        .model
        .resource(resource)
        .ok_or_else(|| QueryError::NoRights(format!("there is no resource `{resource}`")))?;
    Ok(setting.caller.has_any(resource, method))
}

fn compiler<'a>(setting: &QueryContext<'a>, options: &'a Options) -> Compiler<'a> {
    let mut compiler = Compiler::new(
        setting.model,
        setting.dialect,
        setting.caller,
        setting.now,
        &options.aliases,
    );
    compiler.lenient = setting.lenient;
    compiler.tunnel_variables = setting.tunnel_variables;
    compiler.origin = setting.origin;
    if setting.always_addressed || options.full_metadata {
        compiler.addresses = Some(setting.addresses);
    }
    compiler
}

fn known<'a>(compiler: &Compiler<'a>, name: &str) -> Result<&'a Resource, CompileError> {
    compiler
        .model
        .resource(name)
        .ok_or_else(|| CompileError::no_rights(0, format!("there is no resource `{name}`")))
}

fn one_record(
    compiler: &Compiler<'_>,
    resource: &str,
    id: i64,
    options: &Options,
) -> Result<SelectStatement, CompileError> {
    let row = compiler.row(known(compiler, resource)?)?;
    let is = sea_query::ExprTrait::eq(row.column("id"), id);
    let mut condition = vec![is];
    condition.extend(compiler.permitted(&row, Method::Read.into(), false, 0)?);
    let path = Expansion::at(row.resource);
    let listing = compiler.listing(&row, condition, options, &path, 0)?;
    compiler.texts(listing)
}

fn reading(
    compiler: &Compiler<'_>,
    path: &ResourcePath,
    options: &Options,
) -> Result<ReadStatement, CompileError> {
    let (row, mut conditions) = addressed(compiler, path)?;
    let at = path.resource.at;
    conditions.extend(compiler.permitted(&row, Method::Read.into(), false, at)?);
    match &path.tail {
        Tail::Records => {
            let path = Expansion::at(row.resource);
            let listing = compiler.listing(&row, conditions, options, &path, at)?;
            Ok(ReadStatement::Records(CompiledQuery(
                compiler.texts(listing)?,
            )))
        }
        Tail::Count => {
            let mut select = from(row.resource.table, &row.alias);
            conditions.extend(filter(compiler, &row, options.filter.as_ref())?);
            for one in conditions {
                select.and_where(one);
            }
            Ok(ReadStatement::Count(CompiledQuery(shape::counted(select))))
        }
        Tail::Links(link) => {
            let to = row_behind(compiler, &row, link)?;
            let mut select = from(row.resource.table, &row.alias);
            for one in conditions {
                select.and_where(one);
            }
            select.from_as(
                sea_query::Alias::new(to.1.resource.table),
                sea_query::Alias::new(&to.1.alias),
            );
            select.and_where(to.0).and_where_option(compiler.permitted(
                &to.1,
                Method::Read.into(),
                false,
                link.at,
            )?);
            Ok(ReadStatement::Records(CompiledQuery(shape::linked(
                select, &to.1,
            ))))
        }
    }
}

/// The rows at the end of a path, and what holds for them beside what the caller may see.
fn addressed<'a>(
    compiler: &Compiler<'a>,
    path: &ResourcePath,
) -> Result<(TableRow<'a>, Vec<Expr>), CompileError> {
    let mut row = compiler.row(compiler.resource(&path.resource)?)?;
    let mut conditions = keyed(compiler, &row, path.key.as_ref())?;
    let mut at = path.resource.at;
    for (link, key) in &path.links {
        let (step, other) = row_behind(compiler, &row, link)?;
        let mut select = from(row.resource.table, &row.alias);
        select.and_where(step).and_where_option(compiler.permitted(
            &row,
            Method::Read.into(),
            false,
            at,
        )?);
        for one in conditions {
            select.and_where(one);
        }
        conditions = vec![exists(select)];
        conditions.extend(keyed(compiler, &other, key.as_ref())?);
        row = other;
        at = link.at;
    }
    Ok((row, conditions))
}

fn row_behind<'a>(
    compiler: &Compiler<'a>,
    row: &TableRow<'a>,
    link: &odata::Name,
) -> Result<(Expr, TableRow<'a>), CompileError> {
    let navigation = compiler
        .model
        .navigation(row.resource, &link.text)
        .ok_or_else(|| links::no_link(row, link))?;
    let other = compiler.row(compiler.target(navigation)?)?;
    let step = compiler.step(navigation, row, &other, false)?;
    Ok((step, other))
}

fn keyed<'a>(
    compiler: &Compiler<'a>,
    row: &TableRow<'a>,
    key: Option<&Key>,
) -> Result<Vec<Expr>, CompileError> {
    match key {
        None => Ok(Vec::new()),
        Some(key) => Ok(vec![compiler.key(row, key, false)?]),
    }
}

fn filter<'a>(
    compiler: &Compiler<'a>,
    row: &TableRow<'a>,
    filter: Option<&Expression>,
) -> Result<Option<Expr>, CompileError> {
    let scope = Scope::of(row.clone());
    filter
        .map(|filter| compiler.condition(&scope, filter, false))
        .transpose()
}

fn writing<'a>(
    compiler: &Compiler<'a>,
    request: &Request,
    method: Method,
) -> Result<(&'a Resource, SelectStatement), CompileError> {
    let Address::Resource(path) = &request.address else {
        return Err(CompileError::refused(
            0,
            "`$metadata` is read only".to_owned(),
        ));
    };
    if !path.links.is_empty() || path.tail != Tail::Records {
        return Err(CompileError::refused(
            path.resource.at,
            "only the records of a resource itself are changed: address them directly".to_owned(),
        ));
    }
    let options = &request.options;
    if options.top.is_some() || options.skip.is_some() || !options.order_by.is_empty() {
        return Err(CompileError::refused(
            0,
            "`$top`, `$skip` and `$orderby` are for GET: choose what is changed by `$filter`"
                .to_owned(),
        ));
    }
    let row = compiler.row(compiler.resource(&path.resource)?)?;
    let mut select = from(row.resource.table, &row.alias);
    for one in keyed(compiler, &row, path.key.as_ref())? {
        select.and_where(one);
    }
    select
        .and_where_option(compiler.permitted(&row, method.into(), false, path.resource.at)?)
        .and_where_option(filter(compiler, &row, options.filter.as_ref())?);
    Ok((row.resource, shape::identified(select, &row)))
}

fn explained(fault: CompileError, path: &str, query: Option<&str>) -> QueryError {
    match fault.kind {
        CompileErrorKind::Refused => {
            QueryError::Refused(ParseError::pointing(path, query, fault.at, &fault.message))
        }
        CompileErrorKind::NoRights => QueryError::NoRights(fault.message),
        CompileErrorKind::Broken => QueryError::Broken(fault.message),
    }
}

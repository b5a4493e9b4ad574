//! Building one statement: its tables, and the SQL of links, fields, keys and constants.

use std::cell::Cell;
use std::collections::BTreeMap;

use odata::{Key, Literal, Options, Value};
use resources::{
    Column, Constant, Field, Method, Model, Navigation, Readers, Resource, Role, Step,
};
use sea_query::{Expr, ExprTrait};

use super::bounds::Bounds;
use super::computed;
use super::context::QueryContext;
use super::error::QueryError;
use super::rule::Rule;
use super::scope::{TableRow, Visibility};
use super::sql::exists;
use super::value::{TypedExpr, ValueKind};
use crate::caller::Caller;
use crate::dialect::Dialect;

/// The name of the first table of a statement, which contains the requested rows.
pub(super) const FIRST_TABLE: &str = "t0";

/// Builds one statement.
pub(super) struct Compiler<'a> {
    pub(super) context: QueryContext<'a>,
    pub(super) model: &'a Model,
    pub(super) dialect: Dialect,
    pub(super) caller: &'a Caller,
    /// Values of the request's parameters (`@name`).
    aliases: &'a BTreeMap<String, Literal>,
    /// The path prefix of the addresses of rows and links, if they are shown.
    pub(super) addresses: Option<&'a str>,
    /// Whether the caller may read the rows that a filter starts from, and not only change or delete them.
    pub(super) from_is_readable: bool,
    /// Whether the request is for one row, addressed by its key.
    pub(super) for_one_row: bool,
    /// The request's cost limits.
    pub(super) bounds: &'static Bounds,
    tables: Cell<usize>,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(context: &QueryContext<'a>, options: &'a Options) -> Self {
        let is_addressed = context.always_addressed || options.full_metadata;
        Compiler {
            context: *context,
            model: context.model,
            dialect: context.dialect,
            caller: context.caller,
            aliases: &options.aliases,
            addresses: is_addressed.then_some(context.addresses),
            from_is_readable: true,
            for_one_row: false,
            bounds: Bounds::for_caller(context.caller),
            tables: Cell::new(0),
        }
    }

    /// Returns the resource that a request names.
    pub(super) fn resource(&self, name: &str) -> Result<&'a Resource, QueryError> {
        let resource = self.model.resource(name);
        resource.ok_or_else(|| QueryError::no_resource(name))
    }

    /// Returns the resource at the end of a navigation.
    pub(super) fn target(&self, navigation: &Navigation) -> Result<&'a Resource, QueryError> {
        self.model.resource(navigation.to).ok_or_else(|| {
            QueryError::Broken(format!(
                "`{}` refers to an unknown resource",
                navigation.name
            ))
        })
    }

    /// Returns a new table of the statement.
    pub(super) fn row(&self, resource: &'a Resource) -> Result<TableRow<'a>, QueryError> {
        let alias = self.unused_name()?;
        Ok(TableRow { resource, alias })
    }

    /// Returns a new table for the rows at the end of a navigation.
    pub(super) fn target_row(&self, navigation: &Navigation) -> Result<TableRow<'a>, QueryError> {
        self.row(self.target(navigation)?)
    }

    /// Returns a unique name within the statement.
    pub(super) fn unused_name(&self) -> Result<String, QueryError> {
        let number = self.tables.get();
        let most = self.bounds.tables;
        if number >= most {
            let message =
                format!("the request needs more than {most} tables at once; split it into several");
            return Err(QueryError::refused(0, message));
        }
        self.tables.set(number + 1);
        Ok(format!("t{number}"))
    }

    /// Returns the condition that `to` is one of the rows that a navigation leads to.
    pub(super) fn step(
        &self,
        navigation: &Navigation,
        from: &TableRow<'a>,
        to: &TableRow<'a>,
        visibility: Visibility,
    ) -> Result<Expr, QueryError> {
        Ok(match navigation.step {
            Step::One(field) => to.column("id").eq(self.stored(from, field)?),
            Step::Many(field) => self.stored(to, field)?.eq(from.column("id")),
            Step::Through { between, near, far } => {
                let between = self
                    .model
                    .resource(between)
                    .ok_or_else(|| QueryError::Broken(format!("there is no `{between}`")))?;
                let between = self.row(between)?;
                let visible = self.visible(&between, visibility)?;
                let joined = [
                    between.column(near).eq(from.column("id")),
                    between.column(far).eq(to.column("id")),
                ];
                exists(between.select(visible.into_iter().chain(joined)))
            }
        })
    }

    /// Returns the SQL of a row's field.
    pub(super) fn stored(&self, row: &TableRow<'a>, name: &str) -> Result<Expr, QueryError> {
        let field = row.resource.find_field(name).ok_or_else(|| {
            QueryError::Broken(format!("`{}` has no `{name}`", row.resource.name))
        })?;
        self.unrestricted(row, field)
    }

    /// Returns a row's field as the caller sees it: null if the caller may not see it.
    pub(super) fn field(&self, row: &TableRow<'a>, field: &Field) -> Result<Expr, QueryError> {
        let value = match (self.unrestricted(row, field)?, field.secret_where) {
            (value, None) => value,
            (value, Some(flag)) => Expr::case(row.column(flag).eq(false), value).into(),
        };
        let Some(role) = self.caller.role() else {
            return Ok(value);
        };
        let visible = match field.readers {
            Readers::OfTheRow => return Ok(value),
            Readers::Changers if role == Role::DeviceKey => return Ok(value),
            // A read-only key sees what its user does.
            Readers::Changers => self.rule_of(role, row, Method::Update.into())?,
            Readers::Where(text) => self.rule_where(row, text)?,
        };
        Ok(match visible {
            Rule::All => value,
            Rule::Nothing => nothing(ValueKind::from_type(&field.kind)),
            Rule::Where { what, .. } => Expr::case(what, value).into(),
        })
    }

    /// Returns a row's field regardless of the caller.
    pub(super) fn unrestricted(
        &self,
        row: &TableRow<'a>,
        field: &Field,
    ) -> Result<Expr, QueryError> {
        match field.column {
            Column::Stored(name) => Ok(row.column(name)),
            Column::Constant(Constant::Null) => Ok(nothing(ValueKind::from_type(&field.kind))),
            Column::Constant(Constant::Boolean(value)) => Ok(value.into()),
            Column::Computed(name) => {
                let expression = computed::expression(&self.context, row, name);
                expression.ok_or_else(|| {
                    let resource = row.resource.name;
                    let message = format!("there is no rule to compute `{name}` of `{resource}`");
                    QueryError::Broken(message)
                })
            }
        }
    }

    /// Returns the condition for the row with a key.
    pub(super) fn key(
        &self,
        row: &TableRow<'a>,
        key: &Key,
        visibility: Visibility,
    ) -> Result<Expr, QueryError> {
        let values: Vec<(&str, &Value, usize)> = match key {
            Key::Id(value) => vec![("id", value, 0)],
            Key::Fields(fields) => fields
                .iter()
                .map(|(name, value)| (name.text.as_str(), value, name.at))
                .collect(),
        };
        let named: Vec<&str> = values.iter().map(|(name, ..)| *name).collect();
        let is_key = named == ["id"]
            || row.resource.unique.iter().any(|set| {
                set.len() == named.len() && set.iter().all(|field| named.contains(field))
            });
        let at = values.first().map_or(0, |(.., at)| *at);
        if !is_key {
            let (resource, key) = (row.resource.name, named.join(" and "));
            let message = format!("`{resource}` has no key of {key}");
            return Err(QueryError::refused(at, message));
        }
        self.equal(row, values, visibility)
    }

    /// Returns the condition for rows whose fields have these values.
    pub(super) fn equal<'g>(
        &self,
        row: &TableRow<'a>,
        values: impl IntoIterator<Item = (&'g str, &'g Value, usize)>,
        visibility: Visibility,
    ) -> Result<Expr, QueryError> {
        let each = values.into_iter().map(|(name, value, at)| {
            let field = row.field(name).ok_or_else(|| {
                QueryError::refused(at, format!("`{}` has no field `{name}`", row.resource.name))
            })?;
            let value = self
                .constant(value, at, visibility)?
                .read_as(ValueKind::from_type(&field.kind))
                .map_err(|why| QueryError::refused(at, why))?;
            Ok(self.field(row, field)?.eq(value.sql))
        });
        let each = each.collect::<Result<Vec<_>, QueryError>>()?;
        let all = each.into_iter().reduce(Expr::and);
        all.ok_or_else(|| QueryError::refused(0, "a key has a value"))
    }

    /// Returns a constant, or the value of a parameter.
    pub(super) fn constant(
        &self,
        value: &Value,
        at: usize,
        visibility: Visibility,
    ) -> Result<TypedExpr, QueryError> {
        let literal =
            match value {
                Value::Literal(literal) => literal.clone(),
                Value::Alias(name) if visibility == Visibility::OfRule => {
                    let number = self.caller.parameter(&name.text);
                    Literal::Integer(number.ok_or_else(|| {
                        QueryError::Broken(format!("a rule has a parameter `@{}`", name.text))
                    })?)
                }
                Value::Alias(name) => self.aliases.get(&name.text).cloned().ok_or_else(|| {
                    QueryError::refused(at, format!("`@{}` has no value", name.text))
                })?,
            };
        TypedExpr::constant(&literal, at).map_err(|why| QueryError::refused(at, why))
    }
}

/// Returns null with the SQL type of a kind of values.
pub(super) fn nothing(kind: ValueKind) -> Expr {
    Expr::cust(match kind {
        ValueKind::Null | ValueKind::Text | ValueKind::Json => "CAST(NULL AS TEXT)",
        ValueKind::Boolean => "CAST(NULL AS BOOLEAN)",
        ValueKind::Integer | ValueKind::Moment | ValueKind::Duration => "CAST(NULL AS BIGINT)",
        ValueKind::Number => "CAST(NULL AS DOUBLE PRECISION)",
    })
}

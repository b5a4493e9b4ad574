//! Rows in a statement, and the meaning of names in an expression.

use odata::{Name, PathSegment};
use resources::{Field, Resource};
use sea_query::{Alias, Expr, SelectStatement};

use super::bounds::Bounds;
use super::error::QueryError;
use super::sql::column;

/// A row of a resource, with the name of its table in the statement.
#[derive(Debug, Clone)]
pub(super) struct TableRow<'a> {
    pub(super) resource: &'a Resource,
    pub(super) alias: String,
}

impl<'a> TableRow<'a> {
    pub(super) fn column(&self, name: &str) -> Expr {
        column(&self.alias, name)
    }

    /// Selects the rows of its table for which all of these conditions hold.
    pub(super) fn select(&self, conditions: impl IntoIterator<Item = Expr>) -> SelectStatement {
        let mut select = SelectStatement::new();
        select.from_as(Alias::new(self.resource.table), Alias::new(&self.alias));
        for condition in conditions {
            select.and_where(condition);
        }
        select
    }

    /// Returns the field that a request names, unless nobody can read it.
    pub(super) fn field(&self, name: &str) -> Option<&'a Field> {
        self.resource.find_field(name).filter(|field| !field.secret)
    }

    pub(super) fn no_field(&self, name: &Name) -> QueryError {
        let message = format!("`{}` has no field `{}`", self.resource.name, name.text);
        QueryError::refused(name.at, message)
    }

    pub(super) fn no_link(&self, name: &Name) -> QueryError {
        let message = format!("`{}` has no link `{}`", self.resource.name, name.text);
        QueryError::refused(name.at, message)
    }
}

/// The meaning of names in an expression.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    /// The row that the expression is about.
    pub(super) it: TableRow<'a>,
    /// Variables of lambdas, the innermost last.
    pub(super) variables: Vec<(String, TableRow<'a>)>,
    /// The rows that the expression sees.
    pub(super) visibility: Visibility,
    /// The enclosing `any`, `all` and `$count`.
    pub(super) lambdas: Lambdas,
}

/// Whether a condition may yield null in place of false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    /// It may be null.
    Allowed,
    /// It must be false: it is below a `not`, or is a value.
    Excluded,
}

/// The rows that an expression sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    /// Those that the caller may read.
    OfCaller,
    /// All rows: the expression is a rule of the model, in which `@actor` and `@user` are the
    /// caller's.
    OfRule,
}

/// The nesting of `any`, `all` and `$count`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lambdas {
    all: usize,
    to_many: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn new(it: TableRow<'a>) -> Self {
        Scope {
            it,
            variables: Vec::new(),
            visibility: Visibility::OfCaller,
            lambdas: Lambdas::default(),
        }
    }

    /// Creates the scope of a rule of the model.
    pub(super) fn new_for_rule(it: TableRow<'a>) -> Self {
        Scope {
            visibility: Visibility::OfRule,
            ..Scope::new(it)
        }
    }

    /// Returns the scope one level deeper, for rows behind links.
    pub(super) fn deeper(
        &self,
        to_many: bool,
        bounds: &Bounds,
        at: usize,
    ) -> Result<Self, QueryError> {
        let mut inner = self.clone();
        if self.visibility == Visibility::OfRule {
            return Ok(inner);
        }
        inner.lambdas.all += 1;
        inner.lambdas.to_many += usize::from(to_many);
        if inner.lambdas.all > bounds.lambdas {
            let most = bounds.lambdas;
            let message = format!("`any`, `all` and `$count` can be nested at most {most} deep");
            return Err(QueryError::refused(at, message));
        }
        if inner.lambdas.to_many > bounds.lambdas_to_many {
            let message = format!(
                "`any`, `all` and `$count` on links to many records can be nested at most {} deep",
                bounds.lambdas_to_many
            );
            return Err(QueryError::refused(at, message));
        }
        Ok(inner)
    }

    /// Returns the row that a path begins at, and the rest of the path.
    pub(super) fn begin<'p>(
        &self,
        segments: &'p [PathSegment],
    ) -> (TableRow<'a>, &'p [PathSegment]) {
        if let Some((first, rest)) = segments.split_first()
            && first.key.is_none()
        {
            let mut named = self.variables.iter().rev();
            if let Some((_, row)) = named.find(|(variable, _)| *variable == first.name.text) {
                return (row.clone(), rest);
            }
        }
        (self.it.clone(), segments)
    }

    pub(super) fn with(&self, variable: &str, row: TableRow<'a>) -> Self {
        let mut inner = self.clone();
        inner.variables.push((variable.to_owned(), row));
        inner
    }
}

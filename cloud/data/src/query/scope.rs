//! Rows in a statement, and what names in an expression mean.

use odata::{Name, PathSegment};
use resources::{Field, Resource};
use sea_query::{Alias, Expr, SelectStatement};

use super::bounds::Bounds;
use super::error::QueryError;
use super::sql::column;

/// A row of a resource, by the name that its table has in the statement.
#[derive(Debug, Clone)]
pub(super) struct TableRow<'a> {
    pub(super) resource: &'a Resource,
    pub(super) alias: String,
}

impl<'a> TableRow<'a> {
    pub(super) fn column(&self, name: &str) -> Expr {
        column(&self.alias, name)
    }

    /// Those rows of its table, of which it is one, for which all of this holds.
    pub(super) fn select(&self, conditions: impl IntoIterator<Item = Expr>) -> SelectStatement {
        let mut select = SelectStatement::new();
        select.from_as(Alias::new(self.resource.table), Alias::new(&self.alias));
        for condition in conditions {
            select.and_where(condition);
        }
        select
    }

    /// The field that a request names; those that nobody reads are not there.
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

/// What names in an expression mean.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    /// The row that is asked about.
    pub(super) it: TableRow<'a>,
    /// Variables of lambdas, the innermost last.
    pub(super) variables: Vec<(String, TableRow<'a>)>,
    /// Which rows it sees.
    pub(super) visibility: Visibility,
    /// `any`, `all` and `$count` around it.
    pub(super) lambdas: Lambdas,
}

/// What a condition may answer in place of false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    /// Null as well.
    Allowed,
    /// False alone: it stands below a `not`, or is a value.
    Excluded,
}

/// Which rows an expression sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    /// Those that the caller may read.
    OfCaller,
    /// Every one: it is a rule of the model, in which `@actor` and `@user` are the caller's.
    OfRule,
}

/// `any`, `all` and `$count` that stand in each other.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lambdas {
    all: usize,
    to_many: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn of(it: TableRow<'a>) -> Self {
        Scope {
            it,
            variables: Vec::new(),
            visibility: Visibility::OfCaller,
            lambdas: Lambdas::default(),
        }
    }

    /// Of a rule of the model.
    pub(super) fn of_rule(it: TableRow<'a>) -> Self {
        Scope {
            visibility: Visibility::OfRule,
            ..Scope::of(it)
        }
    }

    /// What is asked of rows behind links, one level deeper.
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

    /// The row that a path begins at, and what is left of it.
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

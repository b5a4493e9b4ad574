//! Expanded links: the rows behind them, and the limits of their depth.

use odata::{Expand, Name};
use resources::{Navigation, Resource, Step};
use sea_query::Expr;

use super::bounds::Bounds;
use super::compiler::Compiler;
use super::error::QueryError;
use super::scope::{Nulls, Scope, TableRow, Visibility};
use super::sql::counted;

/// The resources on the path of an expansion.
#[derive(Debug, Clone)]
pub(super) struct Expansion {
    tables: Vec<&'static str>,
    to_many: usize,
}

impl Expansion {
    /// Begins at a resource.
    pub(super) fn at(resource: &Resource) -> Self {
        Expansion {
            tables: vec![resource.table],
            to_many: 0,
        }
    }

    /// Follows one more link.
    pub(super) fn through(
        &self,
        navigation: &Navigation,
        to: &Resource,
        bounds: &Bounds,
        link: &Name,
    ) -> Result<Self, QueryError> {
        let mut path = self.clone();
        path.tables.push(to.table);
        path.to_many += usize::from(!matches!(navigation.step, Step::One(_)));
        if path.to_many > bounds.expanded_to_many {
            let most = bounds.expanded_to_many;
            let message =
                format!("links to many records are expanded in each other at most {most} deep");
            return Err(QueryError::refused(link.at, message));
        }
        let times = path.tables.iter().filter(|table| **table == to.table);
        if times.count() > bounds.same_resource {
            let most = match bounds.same_resource {
                1 => "once".to_owned(),
                2 => "twice".to_owned(),
                more => format!("{more} times"),
            };
            let message = format!(
                "`{}` leads back to `{}`, which may occur at most {most} on one path of an expansion",
                link.text, to.name,
            );
            return Err(QueryError::refused(link.at, message));
        }
        Ok(path)
    }
}

impl<'a> Compiler<'a> {
    /// Returns the rows behind a link as an array; at most one object if the link leads to one row.
    pub(super) fn expanded(
        &self,
        row: &TableRow<'a>,
        navigation: &Navigation,
        expand: &Expand,
        path: &Expansion,
    ) -> Result<(Expr, u64), QueryError> {
        let target = self.target(navigation)?;
        let path = path.through(navigation, target, self.bounds, &expand.link)?;
        let other = self.row(target)?;
        let conditions = self.behind_expanded(row, navigation, &other)?;
        let listing = self.listing(&other, conditions, &expand.options, &path, expand.link.at)?;
        let longest = listing.longest;
        Ok(match navigation.step {
            Step::One(_) => (self.array_of_one(listing)?, longest),
            Step::Many(_) | Step::Through { .. } => {
                let array = self.array(listing, expand.options.top)?;
                (array, self.bounds.expanded_bytes)
            }
        })
    }

    pub(super) fn expanded_count(
        &self,
        row: &TableRow<'a>,
        navigation: &Navigation,
        expand: &Expand,
    ) -> Result<Expr, QueryError> {
        let other = self.target_row(navigation)?;
        let mut conditions = self.behind_expanded(row, navigation, &other)?;
        if let Some(filter) = &expand.options.filter {
            let scope = Scope::new(other.clone());
            conditions.push(self.condition(&scope, filter, Nulls::Allowed)?);
        }
        Ok(Expr::from(counted(other.select(conditions))))
    }

    /// Returns the conditions for rows behind an expanded link that the caller may see.
    fn behind_expanded(
        &self,
        row: &TableRow<'a>,
        navigation: &Navigation,
        other: &TableRow<'a>,
    ) -> Result<Vec<Expr>, QueryError> {
        let mut conditions = vec![self.step(navigation, row, other, Visibility::OfCaller)?];
        conditions.extend(self.visible_behind(navigation, row, other, Visibility::OfCaller)?);
        Ok(conditions)
    }
}

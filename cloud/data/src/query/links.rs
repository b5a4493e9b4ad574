//! Links in conditions: paths, `any`, `all` and `$count` over the linked rows.

use odata::{Count, Lambda, PathSegment, Quantifier};
use resources::{Navigation, Step};
use sea_query::{Alias, Expr, ExprTrait, SelectStatement};

use super::compiler::Compiler;
use super::error::QueryError;
use super::rule::{NEAR, links_from_caller};
use super::scope::{Nulls, Scope, TableRow, Visibility};
use super::sql::{counted, exists};

impl<'a> Compiler<'a> {
    /// Returns the navigation that a segment of a path names.
    pub(super) fn follow(
        &self,
        row: &TableRow<'a>,
        segment: &PathSegment,
    ) -> Result<&'a Navigation, QueryError> {
        self.model
            .navigation(row.resource, &segment.name.text)
            .ok_or_else(|| row.no_link(&segment.name))
    }

    /// Returns the condition for rows behind a segment of a path that the caller may see.
    pub(super) fn behind(
        &self,
        scope: &Scope<'a>,
        navigation: &Navigation,
        row: &TableRow<'a>,
        other: &TableRow<'a>,
        segment: &PathSegment,
    ) -> Result<Expr, QueryError> {
        let visibility = scope.visibility;
        let mut all = self.step(navigation, row, other, visibility)?;
        if let Some(visible) = self.visible_behind(navigation, row, other, visibility)? {
            all = all.and(visible);
        }
        if let Some(key) = &segment.key {
            // The link itself is part of a key such as (device, tag_key).
            let key = match (key, navigation.step) {
                (odata::Key::Fields(fields), Step::Many(field)) => {
                    self.partial_key(other, fields, field, visibility)?
                }
                _ => self.key(other, key, visibility)?,
            };
            all = all.and(key);
        }
        Ok(all)
    }

    /// Returns the condition for the fields of a key, which may omit the field that the link already determines.
    fn partial_key(
        &self,
        row: &TableRow<'a>,
        fields: &[(odata::Name, odata::Value)],
        link: &str,
        visibility: Visibility,
    ) -> Result<Expr, QueryError> {
        let whole = row.resource.unique.iter().any(|set| {
            let others = set.iter().filter(|field| **field != link);
            set.contains(&link)
                && others.clone().count() == fields.len()
                && others
                    .into_iter()
                    .all(|field| fields.iter().any(|(name, _)| name.text == *field))
        });
        if !whole {
            return self.key(row, &odata::Key::Fields(fields.to_vec()), visibility);
        }
        let values = fields
            .iter()
            .map(|(name, value)| (name.text.as_str(), value, name.at));
        self.equal(row, values, visibility)
    }

    pub(super) fn lambda(
        &self,
        scope: &Scope<'a>,
        lambda: &Lambda,
        nulls: Nulls,
    ) -> Result<Expr, QueryError> {
        let (row, segments) = scope.begin(&lambda.path.segments);
        let scope = &self.deeper(scope, &row, segments)?;
        // A link may be null, and a comparison with null yields null: so not below a `not`.
        if scope.visibility == Visibility::OfRule
            && nulls == Nulls::Allowed
            && lambda.quantifier == Quantifier::Any
            && let [link] = segments
            && let Some(links) = links_from_caller(&lambda.body)
            && links < NEAR + u32::from(!self.for_one_row)
            && let Some(gathered) = self.gathered(scope, &row, link, lambda)?
        {
            return Ok(gathered);
        }
        self.chain(scope, &row, segments, &mut |compiler, other| {
            let inner = scope.with(&lambda.variable.text, other.clone());
            match lambda.quantifier {
                Quantifier::Any => compiler.condition(&inner, &lambda.body, Nulls::Allowed),
                Quantifier::All => {
                    let condition = compiler.condition(&inner, &lambda.body, Nulls::Excluded)?;
                    Ok(condition.not())
                }
            }
        })
        .map(|select| match lambda.quantifier {
            Quantifier::Any => exists(select),
            Quantifier::All => exists(select).not(),
        })
    }

    /// Returns the scope for rows at the end of links.
    fn deeper(
        &self,
        scope: &Scope<'a>,
        row: &TableRow<'a>,
        segments: &[PathSegment],
    ) -> Result<Scope<'a>, QueryError> {
        let Some(first) = segments.first() else {
            return Ok(scope.clone());
        };
        let mut resource = row.resource;
        let mut to_many = false;
        for segment in segments {
            let Some(navigation) = self.model.navigation(resource, &segment.name.text) else {
                // The error is reported when the link is followed.
                break;
            };
            to_many |= !matches!(navigation.step, Step::One(_)) && segment.key.is_none();
            resource = self.target(navigation)?;
        }
        scope.deeper(to_many, self.bounds, first.name.at)
    }

    /// Returns the condition for a row that links to one of the rows near the caller ([`NEAR`]).
    fn gathered(
        &self,
        scope: &Scope<'a>,
        row: &TableRow<'a>,
        link: &PathSegment,
        lambda: &Lambda,
    ) -> Result<Option<Expr>, QueryError> {
        let navigation = self.follow(row, link)?;
        let other = self.target_row(navigation)?;
        let (near, far) = match navigation.step {
            Step::One(field) => (self.stored(row, field)?, other.column("id")),
            Step::Many(field) => (row.column("id"), self.stored(&other, field)?),
            Step::Through { .. } => return Ok(None),
        };
        let inner = scope.with(&lambda.variable.text, other.clone());
        let mut conditions: Vec<Expr> = Vec::from_iter(self.visible(&other, scope.visibility)?);
        conditions.push(self.condition(&inner, &lambda.body, Nulls::Allowed)?);
        let mut others = other.select(conditions);
        others.expr(far);
        Ok(Some(near.in_subquery(others)))
    }

    pub(super) fn count(&self, scope: &Scope<'a>, count: &Count) -> Result<Expr, QueryError> {
        let (row, segments) = scope.begin(&count.path.segments);
        let scope = &self.deeper(scope, &row, segments)?;
        let select = self.chain(
            scope,
            &row,
            segments,
            &mut |compiler, other| match &count.filter {
                None => Ok(true.into()),
                Some(filter) => {
                    let mut inner = scope.clone();
                    inner.it = other.clone();
                    compiler.condition(&inner, filter, Nulls::Allowed)
                }
            },
        )?;
        Ok(Expr::from(counted(select)))
    }

    /// Selects the rows at the end of links that meet a condition. All links except the last lead to one row.
    fn chain(
        &self,
        scope: &Scope<'a>,
        row: &TableRow<'a>,
        segments: &[PathSegment],
        last: &mut dyn FnMut(&Self, &TableRow<'a>) -> Result<Expr, QueryError>,
    ) -> Result<SelectStatement, QueryError> {
        let Some((end, links)) = segments.split_last() else {
            return Err(QueryError::refused(0, "a link must be named"));
        };
        let mut row = row.clone();
        let mut select = SelectStatement::new();
        for link in links {
            let navigation = self.follow(&row, link)?;
            if !matches!(navigation.step, Step::One(_)) && link.key.is_none() {
                return Err(QueryError::refused(
                    link.name.at,
                    format!(
                        "`{}` has many records: use `any` or `all` on it",
                        link.name.text
                    ),
                ));
            }
            row = self.joined_row(&mut select, scope, &row, navigation, link)?;
        }
        let navigation = self.follow(&row, end)?;
        let row = self.joined_row(&mut select, scope, &row, navigation, end)?;
        select.and_where(last(self, &row)?);
        Ok(select)
    }

    /// Adds the rows behind a link as a further table of the statement.
    fn joined_row(
        &self,
        select: &mut SelectStatement,
        scope: &Scope<'a>,
        row: &TableRow<'a>,
        navigation: &Navigation,
        segment: &PathSegment,
    ) -> Result<TableRow<'a>, QueryError> {
        let other = self.target_row(navigation)?;
        select.from_as(Alias::new(other.resource.table), Alias::new(&other.alias));
        select.and_where(self.behind(scope, navigation, row, &other, segment)?);
        Ok(other)
    }
}

//! The rows on which the caller has a right, according to the rules of the model.

use odata::Expression;
use resources::{
    Action, KeyLimits, Method, Navigation, Resource, Role, Rows, Step, find_fleet_filter,
};
use sea_query::{Expr, ExprTrait};

use super::compiler::Compiler;
use super::error::QueryError;
use super::rule::{NEAR, Rule, either, leads, links_from_caller, parsed};
use super::scope::{Nulls, Scope, TableRow, Visibility};
use super::sql::exists;

/// A kind of access to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// A method of the data API.
    Method(Method),
    /// Another action.
    Action(Action),
}

impl From<Action> for Right {
    fn from(action: Action) -> Self {
        Right::Action(action)
    }
}

impl From<Method> for Right {
    fn from(method: Method) -> Self {
        Right::Method(method)
    }
}

/// Returns the rows of a resource on which a role has this right, separately for each grant.
fn granted(resource: &Resource, role: Role, right: Right) -> impl Iterator<Item = Rows> {
    let grants = resource.grants.iter().filter_map(move |grant| {
        let is_it = matches!(right, Right::Method(method) if grant.methods.has(method));
        (is_it && grant.role == role).then_some(grant.rows)
    });
    let permits = resource.permits.iter().filter_map(move |permit| {
        let is_it = right == Right::Action(permit.action);
        (is_it && permit.role == role).then_some(permit.rows)
    });
    grants.chain(permits)
}

impl<'a> Compiler<'a> {
    /// Returns the condition for rows of a resource on which the caller has this right; `None` if it has the right on
    /// all.
    pub(super) fn permitted(
        &self,
        row: &TableRow<'a>,
        right: Right,
    ) -> Result<Option<Expr>, QueryError> {
        let only = self.only(row)?;
        let no_rights = || {
            QueryError::NoRights(format!(
                "this credential has no rights on `{}`",
                row.resource.name
            ))
        };
        // Such rows exist only for users: other callers are refused, as for a filter that leads to users.
        let is_of_users = row.resource.only.is_some_and(|rule| rule.contains("@user"));
        if is_of_users && self.caller.roles().is_some() && self.caller.user().is_none() {
            return Err(no_rights());
        }
        let rule = match self.rule(row, right)? {
            Rule::All => None,
            Rule::Where { what, .. } => Some(what),
            Rule::Nothing => return Err(no_rights()),
        };
        Ok(match (only, rule) {
            (Some(only), Some(rule)) => Some(only.and(rule)),
            (one, other) => one.or(other),
        })
    }

    /// Returns the condition for rows of a resource that an expression sees.
    pub(super) fn visible(
        &self,
        row: &TableRow<'a>,
        visibility: Visibility,
    ) -> Result<Option<Expr>, QueryError> {
        match visibility {
            Visibility::OfCaller => self.permitted(row, Method::Read.into()),
            Visibility::OfRule => self.only(row),
        }
    }

    /// Returns the condition for rows of the table that belong to the resource.
    fn only(&self, row: &TableRow<'a>) -> Result<Option<Expr>, QueryError> {
        let Some(text) = row.resource.only else {
            return Ok(None);
        };
        Ok(Some(self.condition_of_rule(row, &*parsed(text)?)?))
    }

    /// Returns the rule for rows on which the caller has this right through any of its roles.
    fn rule(&self, row: &TableRow<'a>, right: Right) -> Result<Rule, QueryError> {
        let Some(roles) = self.caller.roles() else {
            return Ok(Rule::All);
        };
        let mut together = Rule::Nothing;
        for role in roles {
            let mut rule = self.rule_of(role, row, right)?;
            if let (Some(limits), false) = (self.caller.limits(), role == Role::Guest) {
                rule = self.limited(limits, rule, row, right)?;
            }
            together = either(together, rule);
        }
        Ok(together)
    }

    /// Applies the limits of a named key to its rights.
    fn limited(
        &self,
        limits: KeyLimits,
        rule: Rule,
        row: &TableRow<'a>,
        right: Right,
    ) -> Result<Rule, QueryError> {
        let permitted = match right {
            Right::Method(method) => limits.permit(row.resource.table, method),
            Right::Action(action) => limits.permit_action(action),
        };
        if !permitted {
            return Ok(Rule::Nothing);
        }
        let (Some(_), Some(of_fleet)) = (limits.fleet, find_fleet_filter(row.resource.table))
        else {
            return Ok(rule);
        };
        let of_fleet = self.condition_of_rule(row, &*parsed(of_fleet)?)?;
        Ok(match rule {
            Rule::Nothing => Rule::Nothing,
            Rule::All => Rule::Where {
                what: of_fleet,
                links: Some(0),
            },
            Rule::Where { what, links } => Rule::Where {
                what: what.and(of_fleet),
                links,
            },
        })
    }

    /// Like [`Compiler::visible`], for the rows behind a link of a row that the caller may read: if the rule of the
    /// linked rows follows from that of this row, it is not checked again.
    pub(super) fn visible_behind(
        &self,
        navigation: &Navigation,
        from: &TableRow<'a>,
        to: &TableRow<'a>,
        visibility: Visibility,
    ) -> Result<Option<Expr>, QueryError> {
        if self.from_is_readable && self.follows(navigation, from.resource, to.resource) {
            self.only(to)
        } else {
            self.visible(to, visibility)
        }
    }

    /// Returns whether the caller may read every row behind a link of a row that it may read.
    fn follows(&self, navigation: &Navigation, from: &Resource, to: &Resource) -> bool {
        if self
            .caller
            .limits()
            .is_some_and(|limits| limits.fleet.is_some())
        {
            return false;
        }
        let Some(mut roles) = self.caller.roles() else {
            return false;
        };
        let readable = |resource, role| granted(resource, role, Method::Read.into());
        match navigation.step {
            // Whoever may read the row may read the others, which link to it.
            Step::Many(link) => roles.all(|role| {
                readable(from, role).next().is_none()
                    || readable(to, role).any(|rows| leads(to, rows, link))
            }),
            // The row can be read only by those who may read the linked row.
            Step::One(link) => {
                roles.all(|role| readable(from, role).all(|rows| leads(from, rows, link)))
            }
            Step::Through { .. } => false,
        }
    }

    pub(super) fn rule_of(
        &self,
        role: Role,
        row: &TableRow<'a>,
        right: Right,
    ) -> Result<Rule, QueryError> {
        let mut together = Rule::Nothing;
        for rows in granted(row.resource, role, right) {
            let one = match rows {
                Rows::All => Rule::All,
                Rows::Where(text) => self.rule_where(row, text)?,
                Rows::Through(link) => self.rule_through(role, row, right, link)?,
            };
            together = either(together, one);
        }
        Ok(together)
    }

    /// Compiles a filter of the model to a rule.
    pub(super) fn rule_where(
        &self,
        row: &TableRow<'a>,
        text: &'static str,
    ) -> Result<Rule, QueryError> {
        let rule = parsed(text)?;
        Ok(Rule::Where {
            what: self.condition_of_rule(row, &rule)?,
            links: links_from_caller(&rule),
        })
    }

    fn condition_of_rule(&self, row: &TableRow<'a>, rule: &Expression) -> Result<Expr, QueryError> {
        self.condition(&Scope::new_for_rule(row.clone()), rule, Nulls::Allowed)
    }

    /// Returns the rule of the row that a link refers to.
    fn rule_through(
        &self,
        role: Role,
        row: &TableRow<'a>,
        right: Right,
        link: &'static str,
    ) -> Result<Rule, QueryError> {
        let navigation = row.resource.find_navigation(link).ok_or_else(|| {
            QueryError::Broken(format!("`{}` has no `{link}`", row.resource.name))
        })?;
        let other = self.row(self.target(navigation)?)?;
        let needed = match right {
            Right::Method(Method::Read) => Method::Read,
            _ => Method::Update,
        };
        let mut select = other.select(self.only(&other)?);
        let links = match self.rule_of(role, &other, needed.into())? {
            Rule::Nothing => return Ok(Rule::Nothing),
            Rule::All => None,
            Rule::Where { what, links } => {
                select.and_where(what);
                links
            }
        };
        let is_near = !self.for_one_row && links.is_some_and(|links| links <= NEAR + 1);
        let what = match navigation.step {
            Step::One(field) if is_near => {
                select.expr(other.column("id"));
                self.stored(row, field)?.in_subquery(select)
            }
            _ => {
                select.and_where(self.step(navigation, row, &other, Visibility::OfRule)?);
                exists(select)
            }
        };
        Ok(Rule::Where { what, links: None })
    }
}

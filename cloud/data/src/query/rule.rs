//! Rules of the model on rows: their SQL, and how the database finds their rows.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use odata::{Comparison, Expression, Operand, Quantifier, Value};
use parking_lot::Mutex;
use resources::{Resource, Rows, Step};
use sea_query::{Expr, ExprTrait};

use super::error::QueryError;

/// Up to this many links from the caller, rows are still few: the fleets of a user's organizations, but not the devices
/// of those fleets. The database collects such rows once, and finds rows that link to them by that set; more distant
/// rows are checked individually.
pub(super) const NEAR: u32 = 2;

/// The rows of a resource that a rule allows.
pub(super) enum Rule {
    All,
    /// The role has no right on the resource.
    Nothing,
    Where {
        what: Expr,
        /// The number of links from the caller to the rows, if they can be found that way.
        links: Option<u32>,
    },
}

/// Returns the rule that allows what either of two rules does.
pub(super) fn either(one: Rule, other: Rule) -> Rule {
    match (one, other) {
        (Rule::All, _) | (_, Rule::All) => Rule::All,
        (Rule::Nothing, rest) | (rest, Rule::Nothing) => rest,
        (
            Rule::Where { what, links },
            Rule::Where {
                what: other,
                links: others,
            },
        ) => Rule::Where {
            what: what.or(other),
            links: links.zip(others).map(|(one, other)| Ord::max(one, other)),
        },
    }
}

/// Returns whether rows are defined by the link through this field.
pub(super) fn leads(resource: &Resource, rows: Rows, field: &str) -> bool {
    match rows {
        Rows::Through(name) => resource
            .find_navigation(name)
            .is_some_and(|one| matches!(one.step, Step::One(by) if by == field)),
        Rows::All | Rows::Where(_) => false,
    }
}

/// Returns the number of links from the caller to the rows of a rule, if they can be found that way: zero if they are
/// compared with the caller, one more for each `any`.
pub(super) fn links_from_caller(rule: &Expression) -> Option<u32> {
    match &rule.operand {
        Operand::Compare(Comparison::Equal, both) => {
            let is_caller = |side: &Expression| match &side.operand {
                Operand::Value(Value::Alias(name)) => name.text == "actor" || name.text == "user",
                _ => false,
            };
            both.iter().any(is_caller).then_some(0)
        }
        Operand::And(parts) => parts.iter().filter_map(links_from_caller).min(),
        Operand::Or(parts) => parts
            .iter()
            .map(links_from_caller)
            .try_fold(0, |most, links| Some(Ord::max(links?, most))),
        Operand::Lambda(lambda) if lambda.quantifier == Quantifier::Any => {
            Some(links_from_caller(&lambda.body)? + 1)
        }
        _ => None,
    }
}

/// Returns a rule of the model as an expression; each is parsed once.
pub(super) fn parsed(text: &'static str) -> Result<Arc<Expression>, QueryError> {
    static READ: LazyLock<Mutex<HashMap<&'static str, Arc<Expression>>>> =
        LazyLock::new(Mutex::default);
    let mut read = READ.lock();
    if let Some(expression) = read.get(text) {
        return Ok(expression.clone());
    }
    let expression = odata::parse_filter(text)
        .map_err(|error| QueryError::Broken(format!("the rule `{text}`: {error}")))?;
    let expression = Arc::new(expression);
    read.insert(text, expression.clone());
    Ok(expression)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(rule: &str) -> Option<u32> {
        links_from_caller(&odata::parse_filter(rule).unwrap())
    }

    #[test]
    fn rows_are_as_far_from_the_caller_as_links_lead_to_them() {
        assert_eq!(links("user eq @user"), Some(0));
        assert_eq!(links("device/any(d:d/actor eq @actor)"), Some(1));
        assert_eq!(
            links("organization/any(o:o/organization_membership/any(m:m/user eq @user))"),
            Some(2)
        );
        assert_eq!(
            links("user eq @user and application/any(a:a/is_public eq true)"),
            Some(0),
            "one of two that must hold finds them"
        );
        assert_eq!(
            links("user eq @user or device/any(d:d/actor eq @actor)"),
            Some(1),
            "the furthest of either"
        );
    }

    #[test]
    fn rows_that_others_than_the_caller_lead_to_are_not_found_from_it() {
        for rule in [
            "is_public eq true",
            "user eq @user or is_public eq true",
            "user ne @user",
            "not(user eq @user)",
            "device/all(d:d/actor eq @actor)",
        ] {
            assert_eq!(links(rule), None, "{rule}");
        }
    }
}

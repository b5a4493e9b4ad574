//! Joined conditions: chains of `and` and `or`, and lists of `in`. Even long ones hardly deepen the statement.

use odata::{Comparison, Expression, Operand};
use sea_query::{Expr, ExprTrait};

use super::compiler::Compiler;
use super::error::QueryError;
use super::scope::{Nulls, Scope};
use super::sql::custom;
use super::value::{ONLY_NULL, TypedExpr, ValueKind, alike};
use crate::dialect::Dialect;

/// The maximum number of items of one `in` that are compared individually.
const MAX_APART: usize = 50;

/// Refuses an item of `in` that would repeat the preceding value too often.
fn may_be_repeated(times: usize, most: usize, at: usize) -> Result<(), QueryError> {
    if times <= most {
        return Ok(());
    }
    Err(QueryError::refused(
        at,
        match most {
            1 => "a condition before `in` is compared only with constants; use `eq`".to_owned(),
            most => format!("a list of `in` has at most {most} items that are not constants"),
        },
    ))
}

/// How conditions are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Junction {
    And,
    Or,
}

/// The number of conditions that are joined without parentheses.
const JOINED_AT_ONCE: usize = 8;

/// Joins conditions in a tree, so that a thousand of them nest only four times as deep as eight do. In a simple chain,
/// each would be one level deeper than the previous one: sea-query walks such a tree by recursion, and SQLite rejects
/// one of a thousand levels.
fn balanced(dialect: Dialect, mut conditions: Vec<Expr>, junction: Junction) -> Option<Expr> {
    let join = match junction {
        Junction::And => Expr::and,
        Junction::Or => Expr::or,
    };
    while conditions.len() > JOINED_AT_ONCE {
        let mut groups = Vec::with_capacity(conditions.len().div_ceil(JOINED_AT_ONCE));
        let mut rest = conditions.into_iter().peekable();
        while rest.peek().is_some() {
            let group = rest.by_ref().take(JOINED_AT_ONCE).reduce(join);
            // In its own parentheses: without them, both databases would read one long chain.
            groups.extend(group.map(|group| custom(dialect, "?", [group])));
        }
        conditions = groups;
    }
    conditions.into_iter().reduce(join)
}

impl<'a> Compiler<'a> {
    pub(super) fn joined(
        &self,
        scope: &Scope<'a>,
        parts: &[Expression],
        nulls: Nulls,
        junction: Junction,
    ) -> Result<Expr, QueryError> {
        let each = parts.iter().map(|part| self.condition(scope, part, nulls));
        let each = each.collect::<Result<Vec<_>, QueryError>>()?;
        balanced(self.dialect, each, junction)
            .ok_or_else(|| QueryError::Broken("a chain of no conditions".to_owned()))
    }

    /// Checks that a value is in a list, by `IN`, whose depth does not depend on the list's length. Items that `IN`
    /// cannot contain (null, and items that may be null like the value) are compared individually.
    pub(super) fn among(
        &self,
        scope: &Scope<'a>,
        value: &Expression,
        list: &[Expression],
        nulls: Nulls,
        at: usize,
    ) -> Result<Expr, QueryError> {
        // Each comparison repeats the value. A condition may contain lists itself, which would be repeated for each
        // item of this list, and so on with lists within them.
        let repeated = match &value.operand {
            Operand::Property(_) | Operand::Value(_) => MAX_APART,
            _ => 1,
        };
        let value = self.value(scope, value)?;
        let repeated = match value.kind {
            ValueKind::Boolean => repeated,
            _ => MAX_APART,
        };
        let mut apart = Vec::new();
        let mut listed: Vec<(TypedExpr, Vec<Expr>)> = Vec::new();
        for item in list {
            let item = self.value(scope, item)?;
            let item_at = item.at;
            if item.constant.is_none()
                || item.kind == ValueKind::Null
                || value.kind == ValueKind::Null
            {
                apart.push(self.compare(Comparison::Equal, value.clone(), item, nulls)?);
                may_be_repeated(apart.len() + listed.len(), repeated, item_at)?;
                continue;
            }
            let (left, item) =
                alike(value.clone(), item).map_err(|why| QueryError::refused(item_at, why))?;
            if left.kind == ValueKind::Json {
                return Err(QueryError::refused(item_at, ONLY_NULL));
            }
            // One list per kind: the value may be a constant, which is converted to the kind of each item.
            match listed.iter_mut().find(|(of, _)| of.kind == left.kind) {
                Some((_, items)) => items.push(item.sql),
                None => listed.push((left, vec![item.sql])),
            }
            may_be_repeated(apart.len() + listed.len(), repeated, item_at)?;
        }
        for (value, items) in listed {
            apart.push(self.settled(value.sql.is_in(items), value.nullable, nulls));
        }
        balanced(self.dialect, apart, Junction::Or)
            .ok_or_else(|| QueryError::refused(at, "`in` needs at least one value"))
    }
}

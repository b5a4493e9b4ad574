//! Conditions that are joined: chains of `and` and `or`, and lists of `in`. However long they are, the statement is
//! hardly deeper for it.

use odata::{Comparison, Expression, Operand};
use sea_query::{Expr, ExprTrait};

use super::compile_error::CompileError;
use super::expression::{ONLY_NULL, alike};
use super::scope::{Compiler, Scope};
use super::sql::{custom, decided};
use super::value::{TypedExpr, ValueKind};
use crate::Dialect;

/// Items of one `in` that are compared by themselves.
const MAX_APART: usize = 50;

/// Refuses an item of `in` for which the value before it would have to be repeated once too often.
fn may_be_repeated(times: usize, most: usize, at: usize) -> Result<(), CompileError> {
    if times <= most {
        return Ok(());
    }
    Err(CompileError::refused(
        at,
        match most {
            1 => "a condition before `in` is compared with constants alone; use `eq`".to_owned(),
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

/// Conditions that are joined without parentheses: so many make one that is as deep.
const JOINED_AT_ONCE: usize = 8;

/// Conditions joined so that a thousand of them nest four times as deep as eight do. In a row, each would be one
/// level deeper than the one before: sea-query walks such a tree by recursion, and SQLite refuses one of a
/// thousand levels.
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
            // In parentheses of its own: both databases would read a chain without them as one in a row.
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
        strict: bool,
        junction: Junction,
    ) -> Result<Expr, CompileError> {
        let each = parts.iter().map(|part| self.condition(scope, part, strict));
        let each = each.collect::<Result<Vec<_>, CompileError>>()?;
        balanced(self.dialect, each, junction)
            .ok_or_else(|| CompileError::broken("a chain of no conditions".to_owned()))
    }

    /// Whether a value is one of a list: `IN`, which is no deeper however long the list is. What cannot stand in
    /// one (null, what may be null as the value may) is compared by itself.
    pub(super) fn among(
        &self,
        scope: &Scope<'a>,
        value: &Expression,
        list: &[Expression],
        strict: bool,
        at: usize,
    ) -> Result<Expr, CompileError> {
        // Each comparison repeats the value. A condition may have lists of its own in it, which would be repeated as
        // often as there are items in this one, and those within them once more.
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
            if item.constant.is_none()
                || item.kind == ValueKind::Null
                || value.kind == ValueKind::Null
            {
                let item_at = item.at;
                apart.push(self.compare(Comparison::Equal, value.clone(), item, strict)?);
                may_be_repeated(apart.len() + listed.len(), repeated, item_at)?;
                continue;
            }
            let item_at = item.at;
            let (left, item) =
                alike(value.clone(), item).map_err(|why| CompileError::refused(item_at, why))?;
            if left.kind == ValueKind::Json {
                return Err(CompileError::refused(item_at, ONLY_NULL.to_owned()));
            }
            // Of one kind each: the value may be a constant, which is read as each item is.
            match listed.iter_mut().find(|(of, _)| of.kind == left.kind) {
                Some((_, items)) => items.push(item.sql),
                None => listed.push((left, vec![item.sql])),
            }
            may_be_repeated(apart.len() + listed.len(), repeated, item_at)?;
        }
        for (value, items) in listed {
            let found = value.sql.is_in(items);
            apart.push(if value.nullable && strict {
                decided(self.dialect, found)
            } else {
                found
            });
        }
        balanced(self.dialect, apart, Junction::Or)
            .ok_or_else(|| CompileError::refused(at, "`in` needs at least one value".to_owned()))
    }
}

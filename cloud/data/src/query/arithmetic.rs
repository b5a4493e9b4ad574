//! Arithmetic in `$filter` and `$orderby`: with whole numbers, fractions, moments and durations.

use odata::Arithmetic;
use sea_query::Expr;

use super::compiler::Compiler;
use super::error::QueryError;
use super::sql::custom;
use super::value::{TypedExpr, ValueKind};
use crate::dialect::Dialect;

impl Compiler<'_> {
    pub(super) fn arithmetic(
        &self,
        how: Arithmetic,
        left: TypedExpr,
        right: TypedExpr,
        at: usize,
    ) -> Result<TypedExpr, QueryError> {
        use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
        use ValueKind::{Duration, Integer, Moment, Number};
        if left.kind == ValueKind::Null || right.kind == ValueKind::Null {
            return Ok(TypedExpr::new(Expr::null(), ValueKind::Null, true, at));
        }
        let numbers = |kind| matches!(kind, Integer | Number);
        let kind = match (left.kind, how, right.kind) {
            (Moment, Add | Subtract, Duration) => Moment,
            (Duration, Add, Moment) => Moment,
            (Moment, Subtract, Moment) => Duration,
            (Duration, Add | Subtract, Duration) => Duration,
            (Duration, Multiply | Divide, Integer) | (Integer, Multiply, Duration) => Duration,
            (Integer, _, Integer) => Integer,
            (one, Add | Subtract | Multiply | Divide, other) if numbers(one) && numbers(other) => {
                Number
            }
            (one, _, other) => {
                let (one, other) = (one.name(), other.name());
                let message = format!("this operator does not apply to {one} and {other}");
                return Err(QueryError::refused(at, message));
            }
        };
        if let (Some(left), Some(right)) = (left.known, right.known) {
            let constant_value = match how {
                Add => left.checked_add(right),
                Subtract => left.checked_sub(right),
                Multiply => left.checked_mul(right),
                Divide => left.checked_div(right),
                Remainder => left.checked_rem(right),
            };
            return Ok(match constant_value {
                Some(constant_value) => TypedExpr::known(constant_value, kind, at),
                None => TypedExpr::new(Expr::null(), ValueKind::Null, true, at),
            });
        }
        let sql = match kind {
            Number => custom(self.dialect, plain(how), [left.sql, right.sql]),
            _ => whole(self.dialect, how, left.sql, right.sql),
        };
        Ok(TypedExpr::new(sql, kind, true, at))
    }
}

/// Returns the SQL of a calculation, the same for both databases. Division by zero yields null.
fn plain(how: Arithmetic) -> &'static str {
    match how {
        Arithmetic::Add => "(?) + (?)",
        Arithmetic::Subtract => "(?) - (?)",
        Arithmetic::Multiply => "(?) * (?)",
        Arithmetic::Divide => "(?) / nullif(?, 0)",
        Arithmetic::Remainder => "(?) % nullif(?, 0)",
    }
}

/// Calculates with whole numbers. Division by zero yields null, as does a result of more than 64 bits: there PostgreSQL
/// would fail, and SQLite would continue with less exact numbers.
fn whole(dialect: Dialect, how: Arithmetic, left: Expr, right: Expr) -> Expr {
    let sql = match (dialect, how) {
        (Dialect::Sqlite, how) => plain(how),
        (Dialect::Postgres, Arithmetic::Add) => "CAST(? AS numeric) + (?)",
        (Dialect::Postgres, Arithmetic::Subtract) => "CAST(? AS numeric) - (?)",
        (Dialect::Postgres, Arithmetic::Multiply) => "CAST(? AS numeric) * (?)",
        (Dialect::Postgres, Arithmetic::Divide) => "div(CAST(? AS numeric), nullif(?, 0))",
        (Dialect::Postgres, Arithmetic::Remainder) => "mod(CAST(? AS numeric), nullif(?, 0))",
    };
    let fits = match dialect {
        Dialect::Sqlite => "typeof(v) = 'integer' THEN v",
        Dialect::Postgres => {
            "v BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST(v AS bigint)"
        }
    };
    let sql = format!("SELECT CASE WHEN {fits} END FROM (SELECT {sql} AS v) AS x");
    custom(dialect, &sql, [left, right])
}

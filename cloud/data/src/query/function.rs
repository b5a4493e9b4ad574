//! The functions of `$filter` in SQL.

use odata::Function;
use sea_query::{Expr, ExprTrait};

use super::scope::nothing;
use super::sql::{
    as_text, cased, clamped, contains, custom, date_part, ends_with, moment_text, position,
    starts_with, substring,
};
use super::value::{SHORT, TypedExpr, ValueKind};
use crate::{Dialect, letter_case};

const DAY: i64 = 86_400_000;
/// The first moment of the year 1, and the last of 9999.
const EARLIEST: i64 = -62_135_596_800_000;
const LATEST: i64 = 253_402_300_799_999;
/// Whole days before the epoch, more than there are to the year 1.
const BEFORE: i64 = 800_000 * DAY;

/// A function of values; their number is right already.
pub(super) fn call(
    dialect: Dialect,
    now: i64,
    function: Function,
    arguments: Vec<TypedExpr>,
    at: usize,
) -> Result<TypedExpr, String> {
    use Function as F;
    let nullable = arguments.iter().any(|one| one.nullable);
    let longest = longest(function, &arguments);
    let typed = |sql: Expr, kind| {
        let value = TypedExpr::new(sql, kind, nullable, at);
        Ok(TypedExpr { longest, ..value })
    };
    let mut given = arguments.into_iter();
    let mut next = || {
        given
            .next()
            .ok_or_else(|| format!("`{}` needs more values", function.name()))
    };
    let of = |value: TypedExpr, kind: ValueKind| {
        value
            .read_as(kind)
            // PostgreSQL takes a bare null for a text, and has no function of that.
            .map(|value| match value.kind {
                ValueKind::Null => nothing(kind),
                _ => value.sql,
            })
            .map_err(|why| format!("`{}`: {why}", function.name()))
    };
    // Moments that have a year: reckoning can lead beyond, where the databases know no dates.
    let moment =
        |value: TypedExpr| of(value, ValueKind::Moment).map(|sql| within_years(dialect, sql));
    match function {
        F::StartsWith => {
            let (text, start) = (of(next()?, ValueKind::Text)?, of(next()?, ValueKind::Text)?);
            typed(starts_with(dialect, text, start), ValueKind::Boolean)
        }
        F::EndsWith => {
            let (text, end) = (of(next()?, ValueKind::Text)?, of(next()?, ValueKind::Text)?);
            typed(ends_with(dialect, text, end), ValueKind::Boolean)
        }
        F::Contains => {
            let (text, part) = (of(next()?, ValueKind::Text)?, of(next()?, ValueKind::Text)?);
            typed(contains(dialect, text, part), ValueKind::Boolean)
        }
        F::SubstringOf => {
            let (part, text) = (of(next()?, ValueKind::Text)?, of(next()?, ValueKind::Text)?);
            typed(contains(dialect, text, part), ValueKind::Boolean)
        }
        F::ToLower => typed(
            cased(dialect, letter_case::LOWER, of(next()?, ValueKind::Text)?),
            ValueKind::Text,
        ),
        F::ToUpper => typed(
            cased(dialect, letter_case::UPPER, of(next()?, ValueKind::Text)?),
            ValueKind::Text,
        ),
        F::Trim => {
            let trim = match dialect {
                Dialect::Postgres => "btrim(?)",
                Dialect::Sqlite => "trim(?)",
            };
            typed(
                custom(dialect, trim, [of(next()?, ValueKind::Text)?]),
                ValueKind::Text,
            )
        }
        F::Length => {
            let text = of(next()?, ValueKind::Text)?;
            typed(
                whole(dialect, custom(dialect, "length(?)", [text])),
                ValueKind::Integer,
            )
        }
        F::IndexOf => {
            let (text, part) = (of(next()?, ValueKind::Text)?, of(next()?, ValueKind::Text)?);
            typed(
                whole(dialect, position(dialect, text, part)).sub(1),
                ValueKind::Integer,
            )
        }
        F::Substring => {
            let (text, start) = (
                of(next()?, ValueKind::Text)?,
                of(next()?, ValueKind::Integer)?,
            );
            let length = match next() {
                Ok(length) => Some(of(length, ValueKind::Integer)?),
                Err(_) => None,
            };
            typed(substring(dialect, text, start, length), ValueKind::Text)
        }
        F::Concat => {
            let (one, other) = (of(next()?, ValueKind::Text)?, of(next()?, ValueKind::Text)?);
            typed(custom(dialect, "(?) || (?)", [one, other]), ValueKind::Text)
        }
        F::Replace => {
            let text = of(next()?, ValueKind::Text)?;
            let (from, to) = (of(next()?, ValueKind::Text)?, of(next()?, ValueKind::Text)?);
            // SQLite leaves a text as it is if it has to replace nothing, even with null.
            let replaced = match dialect {
                Dialect::Sqlite if nullable => {
                    "SELECT CASE WHEN c IS NOT NULL THEN replace(a, b, c) END \
                     FROM (SELECT ? AS a, ? AS b, ? AS c)"
                }
                _ => "replace(?, ?, ?)",
            };
            typed(custom(dialect, replaced, [text, from, to]), ValueKind::Text)
        }
        F::Year => typed(
            date_part(dialect, "year", moment(next()?)?),
            ValueKind::Integer,
        ),
        F::Month => typed(
            date_part(dialect, "month", moment(next()?)?),
            ValueKind::Integer,
        ),
        F::Day => typed(
            date_part(dialect, "day", moment(next()?)?),
            ValueKind::Integer,
        ),
        F::Hour => typed(
            clock(dialect, "(?) / 3600000", moment(next()?)?),
            ValueKind::Integer,
        ),
        F::Minute => {
            let when = moment(next()?)?;
            typed(clock(dialect, "(?) / 60000 % 60", when), ValueKind::Integer)
        }
        F::Second => {
            let when = moment(next()?)?;
            typed(clock(dialect, "(?) / 1000 % 60", when), ValueKind::Integer)
        }
        F::FractionalSeconds => {
            let when = moment(next()?)?;
            typed(
                clock(dialect, "(?) % 1000 / CAST(1000 AS double precision)", when),
                ValueKind::Number,
            )
        }
        F::TotalOffsetMinutes => {
            moment(next()?)?;
            Ok(TypedExpr::known(0, ValueKind::Integer, at))
        }
        F::TotalSeconds => {
            let duration = of(next()?, ValueKind::Duration)?;
            let seconds = "(?) / CAST(1000 AS double precision)";
            typed(custom(dialect, seconds, [duration]), ValueKind::Number)
        }
        F::Date => {
            // Days before 1970 are counted downwards too: from a day before every moment there is.
            let day = format!("((?) + {BEFORE}) / {DAY} * {DAY} - {BEFORE}");
            typed(custom(dialect, &day, [moment(next()?)?]), ValueKind::Moment)
        }
        F::Time => typed(clock(dialect, "?", moment(next()?)?), ValueKind::Duration),
        F::Now => Ok(TypedExpr::known(now, ValueKind::Moment, at)),
        F::MinDateTime => Ok(TypedExpr::known(EARLIEST, ValueKind::Moment, at)),
        F::MaxDateTime => Ok(TypedExpr::known(LATEST, ValueKind::Moment, at)),
        F::Round | F::Floor | F::Ceiling => {
            let value = next()?;
            if value.kind == ValueKind::Integer {
                return Ok(value);
            }
            let sql = of(value, ValueKind::Number)?;
            let name = match (function, dialect) {
                // Away from zero in the middle, which PostgreSQL does for decimal numbers alone.
                (F::Round, Dialect::Postgres) => {
                    "CAST(round(CAST(? AS numeric)) AS double precision)"
                }
                (F::Round, Dialect::Sqlite) => "round(?)",
                (F::Floor, Dialect::Postgres) => "floor(?)",
                (F::Floor, Dialect::Sqlite) => {
                    "SELECT CAST(v AS INTEGER) - (v < CAST(v AS INTEGER)) FROM (SELECT ? AS v)"
                }
                (_, Dialect::Postgres) => "ceil(?)",
                (_, Dialect::Sqlite) => {
                    "SELECT CAST(v AS INTEGER) + (v > CAST(v AS INTEGER)) FROM (SELECT ? AS v)"
                }
            };
            typed(custom(dialect, name, [sql]), ValueKind::Number)
        }
        F::Cast => cast(dialect, next()?, &type_name(next()?)?, at),
        F::IsOf => {
            let value = next()?;
            let target_kind = kind_named(&type_name(next()?)?)?;
            let is = value.kind == target_kind;
            Ok(TypedExpr::new(is, ValueKind::Boolean, false, at))
        }
    }
}

/// Characters that what a function makes has as text at most: `replace` multiplies, and `concat` adds.
fn longest(function: Function, arguments: &[TypedExpr]) -> u64 {
    let of = |at: usize| arguments.get(at).map_or(0, |one| one.longest);
    let shortest = |at: usize| match arguments.get(at).map(|one| &one.constant) {
        Some(Some(odata::Literal::Text(text))) => Ord::max(text.chars().count() as u64, 1),
        _ => 1,
    };
    match function {
        Function::Concat => of(0).saturating_add(of(1)),
        Function::Replace => {
            let replaced = of(0) / shortest(1);
            of(0).saturating_add(replaced.saturating_mul(of(2)))
        }
        Function::ToLower | Function::ToUpper | Function::Trim | Function::Substring => of(0),
        _ => SHORT,
    }
}

/// Of 64 bits, where PostgreSQL would have 32.
fn whole(dialect: Dialect, number: Expr) -> Expr {
    match dialect {
        Dialect::Postgres => custom(dialect, "CAST(? AS bigint)", [number]),
        Dialect::Sqlite => number,
    }
}

/// Something of the time of day, in milliseconds since midnight, for `?`; also before 1970.
fn clock(dialect: Dialect, what: &str, moment: Expr) -> Expr {
    let of_day = custom(dialect, &format!("((?) % {DAY} + {DAY}) % {DAY}"), [moment]);
    custom(dialect, what, [of_day])
}

/// The moment, or the nearest that has a year of four digits.
fn within_years(dialect: Dialect, moment: Expr) -> Expr {
    clamped(dialect, moment, EARLIEST, LATEST)
}

/// The name of a type, as text: `'Edm.String'`.
fn type_name(value: TypedExpr) -> Result<String, String> {
    match value.constant {
        Some(odata::Literal::Text(name)) => Ok(name),
        _ => Err("the name of a type is needed, such as `'Edm.String'`".to_owned()),
    }
}

fn kind_named(name: &str) -> Result<ValueKind, String> {
    Ok(match name {
        "Edm.String" => ValueKind::Text,
        "Edm.Boolean" => ValueKind::Boolean,
        "Edm.Int16" | "Edm.Int32" | "Edm.Int64" => ValueKind::Integer,
        "Edm.Double" | "Edm.Single" | "Edm.Decimal" => ValueKind::Number,
        "Edm.DateTimeOffset" | "Edm.DateTime" | "Edm.Date" => ValueKind::Moment,
        "Edm.Duration" => ValueKind::Duration,
        other => {
            return Err(format!(
                "`{}` is not a supported type; `Edm.String` is one",
                super::value::short(other)
            ));
        }
    })
}

fn cast(dialect: Dialect, value: TypedExpr, to: &str, at: usize) -> Result<TypedExpr, String> {
    let kind = kind_named(to)?;
    let nullable = value.nullable;
    if value.kind == kind || value.constant.is_some() && kind != ValueKind::Text {
        return value.read_as(kind);
    }
    let sql = match (value.kind, kind) {
        (ValueKind::Integer, ValueKind::Text) => as_text(value.sql),
        (ValueKind::Moment, ValueKind::Text) => {
            moment_text(dialect, within_years(dialect, value.sql))
        }
        (ValueKind::Integer, ValueKind::Number) => {
            custom(dialect, "CAST(? AS double precision)", [value.sql])
        }
        (from, to) => {
            return Err(format!("cannot convert {} to {}", from.name(), to.name()));
        }
    };
    Ok(TypedExpr::new(sql, kind, nullable, at))
}

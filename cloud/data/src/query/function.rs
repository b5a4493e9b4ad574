//! The functions of `$filter` in SQL.

use odata::Function;
use sea_query::{Expr, ExprTrait};

use super::compiler::nothing;
use super::sql::{
    as_text, cased, clamped, contains, custom, date_part, ends_with, moment_text, position,
    starts_with, substring,
};
use super::value::{SHORT, TypedExpr, ValueKind};
use crate::dialect::Dialect;
use crate::letter_case;

const DAY: i64 = 86_400_000;
/// The first moment of the year 1, and the last of 9999.
const EARLIEST: i64 = -62_135_596_800_000;
const LATEST: i64 = 253_402_300_799_999;
/// A whole number of days before the epoch, reaching back beyond the year 1.
const BEFORE: i64 = 800_000 * DAY;

/// The arguments of a call, read one after another; their number has already been checked.
struct Arguments {
    dialect: Dialect,
    function: Function,
    values: std::vec::IntoIter<TypedExpr>,
}

impl Arguments {
    fn next(&mut self) -> Result<TypedExpr, String> {
        let next = self.values.next();
        next.ok_or_else(|| format!("`{}` needs more values", self.function))
    }

    /// Converts a value to a kind.
    fn convert(&self, value: TypedExpr, kind: ValueKind) -> Result<Expr, String> {
        match value.read_as(kind) {
            // PostgreSQL treats a bare null as a text, for which it has no such function.
            Ok(value) if value.kind == ValueKind::Null => Ok(nothing(kind)),
            Ok(value) => Ok(value.sql),
            Err(why) => Err(format!("`{}`: {why}", self.function)),
        }
    }

    fn next_of(&mut self, kind: ValueKind) -> Result<Expr, String> {
        let value = self.next()?;
        self.convert(value, kind)
    }

    fn text(&mut self) -> Result<Expr, String> {
        self.next_of(ValueKind::Text)
    }

    /// Returns a moment within the years that have dates in the databases: arithmetic can lead beyond.
    fn moment(&mut self) -> Result<Expr, String> {
        let moment = self.next_of(ValueKind::Moment)?;
        Ok(within_years(self.dialect, moment))
    }

    /// Returns a part of a moment's time of day; in `part`, `?` stands for milliseconds since midnight, also before
    /// 1970.
    fn clock(&mut self, part: &str) -> Result<Expr, String> {
        let moment = self.moment()?;
        let of_day = format!("((?) % {DAY} + {DAY}) % {DAY}");
        let of_day = custom(self.dialect, &of_day, [moment]);
        Ok(custom(self.dialect, part, [of_day]))
    }

    fn date_part(&mut self, part: &'static str) -> Result<Expr, String> {
        Ok(date_part(self.dialect, part, self.moment()?))
    }
}

/// Compiles a function call; the number of arguments has already been checked.
pub(super) fn call(
    dialect: Dialect,
    now: i64,
    function: Function,
    arguments: Vec<TypedExpr>,
    at: usize,
) -> Result<TypedExpr, String> {
    use Function as F;
    use ValueKind::{Boolean, Duration, Integer, Moment, Number, Text};
    let nullable = arguments.iter().any(|one| one.nullable);
    let longest = longest(function, &arguments);
    let mut of = Arguments {
        dialect,
        function,
        values: arguments.into_iter(),
    };
    let (sql, kind) = match function {
        F::StartsWith => (starts_with(dialect, of.text()?, of.text()?), Boolean),
        F::EndsWith => (ends_with(dialect, of.text()?, of.text()?), Boolean),
        F::Contains => (contains(dialect, of.text()?, of.text()?), Boolean),
        F::SubstringOf => {
            let part = of.text()?;
            (contains(dialect, of.text()?, part), Boolean)
        }
        F::ToLower => (cased(dialect, letter_case::LOWER, of.text()?), Text),
        F::ToUpper => (cased(dialect, letter_case::UPPER, of.text()?), Text),
        F::Trim => {
            let trim = match dialect {
                Dialect::Postgres => "btrim(?)",
                Dialect::Sqlite => "trim(?)",
            };
            (custom(dialect, trim, [of.text()?]), Text)
        }
        F::Length => {
            let length = custom(dialect, "length(?)", [of.text()?]);
            (whole(dialect, length), Integer)
        }
        F::IndexOf => {
            let position = position(dialect, of.text()?, of.text()?);
            (whole(dialect, position).sub(1), Integer)
        }
        F::Substring => {
            let (text, start) = (of.text()?, of.next_of(Integer)?);
            let length = match of.next() {
                Ok(length) => Some(of.convert(length, Integer)?),
                Err(_) => None,
            };
            (substring(dialect, text, start, length), Text)
        }
        F::Concat => {
            let both = [of.text()?, of.text()?];
            (custom(dialect, "(?) || (?)", both), Text)
        }
        F::Replace => {
            // SQLite returns a text unchanged if nothing has to be replaced, even by null.
            let replaced = match dialect {
                Dialect::Sqlite if nullable => {
                    "SELECT CASE WHEN c IS NOT NULL THEN replace(a, b, c) END \
                     FROM (SELECT ? AS a, ? AS b, ? AS c)"
                }
                _ => "replace(?, ?, ?)",
            };
            let texts = [of.text()?, of.text()?, of.text()?];
            (custom(dialect, replaced, texts), Text)
        }
        F::Year => (of.date_part("year")?, Integer),
        F::Month => (of.date_part("month")?, Integer),
        F::Day => (of.date_part("day")?, Integer),
        F::Hour => (of.clock("(?) / 3600000")?, Integer),
        F::Minute => (of.clock("(?) / 60000 % 60")?, Integer),
        F::Second => (of.clock("(?) / 1000 % 60")?, Integer),
        F::FractionalSeconds => {
            let fraction = "(?) % 1000 / CAST(1000 AS double precision)";
            (of.clock(fraction)?, Number)
        }
        F::TotalOffsetMinutes => {
            of.moment()?;
            return Ok(TypedExpr::known(0, Integer, at));
        }
        F::TotalSeconds => {
            let seconds = "(?) / CAST(1000 AS double precision)";
            (custom(dialect, seconds, [of.next_of(Duration)?]), Number)
        }
        F::Date => {
            // Days before 1970 are rounded down too, by counting from a day before all valid moments.
            let day = format!("((?) + {BEFORE}) / {DAY} * {DAY} - {BEFORE}");
            (custom(dialect, &day, [of.moment()?]), Moment)
        }
        F::Time => (of.clock("?")?, Duration),
        F::Now => return Ok(TypedExpr::known(now, Moment, at)),
        F::MinDateTime => return Ok(TypedExpr::known(EARLIEST, Moment, at)),
        F::MaxDateTime => return Ok(TypedExpr::known(LATEST, Moment, at)),
        F::Round | F::Floor | F::Ceiling => {
            let value = of.next()?;
            if value.kind == Integer {
                return Ok(value);
            }
            let rounded = match (function, dialect) {
                // Halves are rounded away from zero, which PostgreSQL does only for decimal numbers.
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
            (
                custom(dialect, rounded, [of.convert(value, Number)?]),
                Number,
            )
        }
        F::Cast => return cast(dialect, of.next()?, &type_name(of.next()?)?, at),
        F::IsOf => {
            let kind = of.next()?.kind;
            let is_it = kind == kind_named(&type_name(of.next()?)?)?;
            return Ok(TypedExpr::new(is_it, Boolean, false, at));
        }
    };
    let value = TypedExpr::new(sql, kind, nullable, at);
    Ok(TypedExpr { longest, ..value })
}

/// Returns the maximum number of characters of a function's result as text: `replace` multiplies, and `concat` adds.
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

/// Returns a number of 64 bits, where PostgreSQL would return 32.
fn whole(dialect: Dialect, number: Expr) -> Expr {
    match dialect {
        Dialect::Postgres => custom(dialect, "CAST(? AS bigint)", [number]),
        Dialect::Sqlite => number,
    }
}

/// Returns the moment, or the nearest one with a four-digit year.
fn within_years(dialect: Dialect, moment: Expr) -> Expr {
    clamped(dialect, moment, EARLIEST, LATEST)
}

/// Returns the name of a type, given as text: `'Edm.String'`.
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

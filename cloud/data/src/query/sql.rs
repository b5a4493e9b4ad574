//! SQL that differs between the two databases.

use sea_query::{Alias, Expr, ExprTrait, Func, IntoColumnRef, SelectStatement};

use crate::dialect::Dialect;

/// Returns custom SQL with an expression for each `?`, in parentheses as a whole. What precedes and follows a `?` must
/// bind less tightly than any operator: a comma, a parenthesis, or the `?` has its own parentheses.
pub(super) fn custom<const N: usize>(dialect: Dialect, sql: &str, with: [Expr; N]) -> Expr {
    let mut text = String::with_capacity(sql.len() + 2);
    text.push('(');
    let mut number = 0;
    for part in sql.chars() {
        match (part, dialect) {
            ('?', Dialect::Postgres) => {
                number += 1;
                text.push_str(&format!("${number}"));
            }
            (other, _) => text.push(other),
        }
    }
    text.push(')');
    Expr::cust_with_exprs(text, with)
}

/// Returns a column of the table with the name `alias` in the statement.
pub(super) fn column(alias: &str, column: &str) -> Expr {
    Expr::col((Alias::new(alias), Alias::new(column)).into_column_ref())
}

/// Returns the number of rows of a statement.
pub(super) fn counted(mut select: SelectStatement) -> SelectStatement {
    select.expr(Func::count(Expr::cust("*")));
    select
}

/// Returns whether the statement has rows.
pub(super) fn exists(mut select: SelectStatement) -> Expr {
    select.expr(Expr::cust("1"));
    Expr::exists(select)
}

/// Converts a moment in milliseconds to text: ISO 8601 in UTC with three digits of a second and a `Z`.
pub(super) fn moment_text(dialect: Dialect, moment: Expr) -> Expr {
    match dialect {
        Dialect::Postgres => custom(
            dialect,
            "to_char(to_timestamp((?) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')",
            [moment],
        ),
        Dialect::Sqlite => custom(
            dialect,
            "strftime('%Y-%m-%dT%H:%M:%fZ', (?) / 1000.0, 'unixepoch')",
            [moment],
        ),
    }
}

/// Returns a part of a moment's date: `year`, `month` or `day`.
pub(super) fn date_part(dialect: Dialect, part: &'static str, moment: Expr) -> Expr {
    match dialect {
        Dialect::Postgres => custom(
            dialect,
            &format!(
                "CAST(extract({part} FROM to_timestamp((?) / 1000.0) AT TIME ZONE 'UTC') AS bigint)"
            ),
            [moment],
        ),
        Dialect::Sqlite => {
            let format = match part {
                "year" => "%Y",
                "month" => "%m",
                _ => "%d",
            };
            custom(
                dialect,
                &format!("CAST(strftime('{format}', (?) / 1000.0, 'unixepoch') AS INTEGER)"),
                [moment],
            )
        }
    }
}

/// Converts a whole or other number to text.
pub(super) fn as_text(value: Expr) -> Expr {
    value.cast_as(Alias::new("TEXT"))
}

/// Compares two values for equality, where null equals null.
pub(super) fn same(dialect: Dialect, left: Expr, right: Expr) -> Expr {
    custom(dialect, "(?) IS NOT DISTINCT FROM (?)", [left, right])
}

/// Compares two values for inequality, where null equals null.
pub(super) fn differ(dialect: Dialect, left: Expr, right: Expr) -> Expr {
    custom(dialect, "(?) IS DISTINCT FROM (?)", [left, right])
}

/// Turns null into false in a condition.
pub(super) fn decided(dialect: Dialect, condition: Expr) -> Expr {
    custom(dialect, "coalesce(?, FALSE)", [condition])
}

/// Returns whether one text contains another.
pub(super) fn contains(dialect: Dialect, text: Expr, part: Expr) -> Expr {
    position(dialect, text, part).gt(0)
}

/// Returns the position of one text in another, from 1; 0 if it does not occur.
pub(super) fn position(dialect: Dialect, text: Expr, part: Expr) -> Expr {
    match dialect {
        Dialect::Postgres => custom(dialect, "strpos(?, ?)", [text, part]),
        Dialect::Sqlite => custom(dialect, "instr(?, ?)", [text, part]),
    }
}

/// Returns whether a text begins with another.
pub(super) fn starts_with(dialect: Dialect, text: Expr, start: Expr) -> Expr {
    match dialect {
        Dialect::Postgres => custom(dialect, "starts_with(?, ?)", [text, start]),
        Dialect::Sqlite => custom(
            dialect,
            "substr(?, 1, length(?)) = (?)",
            [text, start.clone(), start],
        ),
    }
}

/// Returns whether a text ends with another.
pub(super) fn ends_with(dialect: Dialect, text: Expr, end: Expr) -> Expr {
    match dialect {
        Dialect::Postgres => custom(
            dialect,
            "right(?, length(?)) = (?)",
            [text, end.clone(), end],
        ),
        // `substr` from -0 would be the whole text.
        Dialect::Sqlite => custom(
            dialect,
            "length(?) >= length(?) AND substr(?, length(?) - length(?) + 1) = (?)",
            [
                text.clone(),
                end.clone(),
                text.clone(),
                text,
                end.clone(),
                end,
            ],
        ),
    }
}

/// Converts a text to upper or lower case with a function of [`crate::letter_case`], whatever the database's locale.
pub(super) fn cased(dialect: Dialect, function: &'static str, text: Expr) -> Expr {
    match dialect {
        Dialect::Postgres => custom(dialect, &format!("{function}((?) COLLATE \"C\")"), [text]),
        Dialect::Sqlite => custom(dialect, &format!("{function}(?)"), [text]),
    }
}

/// Returns the characters of a text from `start` (from 0), at most `length`.
pub(super) fn substring(dialect: Dialect, text: Expr, start: Expr, length: Option<Expr>) -> Expr {
    // PostgreSQL accepts 32 bits here, and both databases treat a negative start specially.
    let bounded = |value: Expr| {
        let value = clamped(dialect, value, 0, i64::from(i32::MAX) - 1);
        custom(dialect, "CAST(? AS integer)", [value])
    };
    let start = bounded(start);
    match length {
        None => custom(dialect, "substr(?, (?) + 1)", [text, start]),
        Some(length) => custom(
            dialect,
            "substr(?, (?) + 1, ?)",
            [text, start, bounded(length)],
        ),
    }
}

/// Limits a number to a range. Null stays null; PostgreSQL's `least` and `greatest` would ignore it.
pub(super) fn clamped(dialect: Dialect, value: Expr, least: i64, most: i64) -> Expr {
    let sql = format!(
        "SELECT CASE WHEN v < {least} THEN {least} WHEN v > {most} THEN {most} ELSE v END \
         FROM (SELECT ? AS v) AS x"
    );
    custom(dialect, &sql, [value])
}

//! Values in conditions: their kinds, and the conversion of constants to the kind that they are compared with.

use jiff::{Span, SpanRelativeTo, Unit};
use odata::Literal;
use resources::Type;
use sea_query::Expr;

/// The largest number with a fraction, apart from the sign.
const LARGEST: f64 = 1e15;

/// The kinds of values in conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// Only null.
    Null,
    Boolean,
    /// A 64-bit number; also a link.
    Integer,
    /// A number with a fraction.
    Number,
    Text,
    /// Milliseconds since the epoch.
    Moment,
    /// Milliseconds.
    Duration,
    /// It can be compared only with null.
    Json,
}

impl ValueKind {
    pub(super) fn from_type(kind: &Type) -> Self {
        match kind {
            Type::Integer | Type::BigInteger | Type::Link { .. } => ValueKind::Integer,
            Type::Boolean => ValueKind::Boolean,
            Type::Text { .. } | Type::Word(_) => ValueKind::Text,
            Type::Timestamp => ValueKind::Moment,
            Type::Json { .. } | Type::JsonText { .. } => ValueKind::Json,
        }
    }

    /// Returns the name of the kind, for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            ValueKind::Null => "null",
            ValueKind::Boolean => "`true` or `false`",
            ValueKind::Integer => "a whole number",
            ValueKind::Number => "a number",
            ValueKind::Text => "a text",
            ValueKind::Moment => "a time",
            ValueKind::Duration => "a duration",
            ValueKind::Json => "an object or array",
        }
    }
}

/// A value of a condition.
#[derive(Debug, Clone)]
pub(super) struct TypedExpr {
    pub(super) sql: Expr,
    pub(super) kind: ValueKind,
    pub(super) nullable: bool,
    /// The constant, if it is one: it can be converted to another kind.
    pub(super) constant: Option<Literal>,
    /// The number, if it depends on no row.
    pub(super) known: Option<i64>,
    /// The maximum number of characters as text, as far as the declared lengths of fields tell.
    pub(super) longest: u64,
    /// Its place in the request.
    pub(super) at: usize,
}

/// The maximum number of characters of a number, time or word as text.
pub(super) const SHORT: u64 = 64;

/// Returns the maximum number of characters of a field's value as text.
pub(super) fn longest(kind: &Type) -> u64 {
    let bytes = match kind {
        Type::Text { max, .. } | Type::Json { max } | Type::JsonText { max } => *max,
        Type::Integer
        | Type::BigInteger
        | Type::Boolean
        | Type::Word(_)
        | Type::Timestamp
        | Type::Link { .. } => return SHORT,
    };
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl TypedExpr {
    pub(super) fn new(sql: impl Into<Expr>, kind: ValueKind, nullable: bool, at: usize) -> Self {
        TypedExpr {
            sql: sql.into(),
            kind,
            nullable,
            constant: None,
            known: None,
            longest: SHORT,
            at,
        }
    }

    /// Creates a number that depends on no row.
    pub(super) fn known(number: i64, kind: ValueKind, at: usize) -> Self {
        TypedExpr {
            known: Some(number),
            ..TypedExpr::new(number, kind, false, at)
        }
    }

    /// Creates a constant of its own kind.
    pub(super) fn constant(literal: &Literal, at: usize) -> Result<Self, String> {
        let number = |number, kind| TypedExpr {
            constant: Some(literal.clone()),
            ..TypedExpr::known(number, kind, at)
        };
        let (sql, kind): (Expr, ValueKind) = match literal {
            Literal::Null => (Expr::null(), ValueKind::Null),
            Literal::Bool(value) => ((*value).into(), ValueKind::Boolean),
            Literal::Integer(value) => return Ok(number(*value, ValueKind::Integer)),
            Literal::Decimal(text) => {
                let value: f64 = text
                    .parse()
                    .ok()
                    .filter(|value: &f64| value.abs() <= LARGEST)
                    .ok_or_else(|| {
                        format!(
                            "`{text}` is not a number of at most {LARGEST:e}, as those here are"
                        )
                    })?;
                (value.into(), ValueKind::Number)
            }
            Literal::Text(text) if text.contains('\0') => {
                return Err("a text cannot have the character NUL in it".to_owned());
            }
            Literal::Text(text) => (text.clone().into(), ValueKind::Text),
            Literal::DateTime(text) => return Ok(number(moment(text)?, ValueKind::Moment)),
            Literal::Duration(text) => return Ok(number(duration(text)?, ValueKind::Duration)),
        };
        Ok(TypedExpr {
            sql,
            kind,
            nullable: kind == ValueKind::Null,
            constant: Some(literal.clone()),
            known: None,
            longest: match literal {
                Literal::Text(text) => text.chars().count() as u64,
                _ => SHORT,
            },
            at,
        })
    }

    /// Converts the value to `kind`: it has that kind, or its text can be parsed as such
    /// (docs/spec/cloud.md#odata-coercion).
    pub(super) fn read_as(self, kind: ValueKind) -> Result<Self, String> {
        if self.kind == kind || self.kind == ValueKind::Null {
            return Ok(self);
        }
        let refused = || {
            let value = match &self.constant {
                Some(Literal::Text(text)) => format!("the text `{}`", short(text)),
                _ => self.kind.name().to_owned(),
            };
            format!("{value} is used where {} is needed", kind.name())
        };
        let sql: Expr = match (&self.constant, kind) {
            (Some(Literal::Text(text)), ValueKind::Integer) => {
                whole(text).ok_or_else(refused)?.into()
            }
            (Some(Literal::Text(text)), ValueKind::Number) => text
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite())
                .ok_or_else(refused)?
                .into(),
            (Some(Literal::Text(text)), ValueKind::Boolean) => match text.as_str() {
                "true" | "1" => true.into(),
                "false" | "0" => false.into(),
                _ => return Err(refused()),
            },
            (Some(Literal::Integer(value @ 0..=1)), ValueKind::Boolean) => (*value == 1).into(),
            (Some(Literal::Text(text)), ValueKind::Moment) => moment(text)?.into(),
            (_, ValueKind::Number) if self.kind == ValueKind::Integer => self.sql,
            _ => return Err(refused()),
        };
        Ok(TypedExpr {
            sql,
            kind,
            constant: None,
            known: None,
            ..self
        })
    }
}

/// The message for other uses of an object or array.
pub(super) const ONLY_NULL: &str = "an object or array can be compared only with `null`";

/// Converts two values to one kind: a constant is converted to the kind that it is compared with.
pub(super) fn alike(left: TypedExpr, right: TypedExpr) -> Result<(TypedExpr, TypedExpr), String> {
    let numbers = |kind| matches!(kind, ValueKind::Integer | ValueKind::Number);
    if left.kind == right.kind || numbers(left.kind) && numbers(right.kind) {
        return Ok((left, right));
    }
    if right.constant.is_some() {
        match right.clone().read_as(left.kind) {
            Ok(right) => return Ok((left, right)),
            Err(why) if left.constant.is_none() => return Err(why),
            Err(_) => {}
        }
    }
    let left = left.read_as(right.kind)?;
    Ok((left, right))
}

/// Parses digits, optionally with a sign.
fn whole(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// Shortens text from a request for a message.
pub(super) fn short(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Parses a moment in ISO 8601, like a written value.
fn moment(text: &str) -> Result<i64, String> {
    resources::moment(text).ok_or_else(|| {
        format!(
            "`{}` is not a time; write it as `2026-01-02T03:04:05.678Z`",
            short(text)
        )
    })
}

/// Parses a duration in ISO 8601 of days, hours, minutes and seconds.
fn duration(text: &str) -> Result<i64, String> {
    let refused = || {
        format!(
            "`{}` is not a duration of days, hours, minutes and seconds; write it as `P1DT2H`",
            short(text)
        )
    };
    if !text.contains('P') {
        // `time'10:30:00'`
        let time: jiff::civil::Time = text.parse().map_err(|_| refused())?;
        let since = time.duration_since(jiff::civil::Time::midnight());
        return i64::try_from(since.as_millis()).map_err(|_| refused());
    }
    let span: Span = text.parse().map_err(|_| refused())?;
    let whole = span
        .total((Unit::Millisecond, SpanRelativeTo::days_are_24_hours()))
        .map_err(|_| refused())?;
    const LONGEST: f64 = 1e15;
    if whole.abs() > LONGEST {
        return Err(refused());
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounded above, and a millisecond is the least that counts"
    )]
    Ok(whole as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_durations_are_read_in_iso_8601() {
        assert_eq!(moment("1970-01-01T00:00:01.500Z"), Ok(1500));
        assert_eq!(moment("1970-01-01T01:00:00+01:00"), Ok(0));
        assert_eq!(moment("9999-12-31T23:59:59Z"), Ok(253_402_300_799_000));
        assert_eq!(moment("1970-01-02"), Ok(86_400_000));
        assert_eq!(moment("1970-01-02T00:00:00"), Ok(86_400_000));
        assert!(moment("yesterday").is_err());
        assert_eq!(duration("P1DT2H"), Ok(93_600_000));
        assert_eq!(duration("-PT5M"), Ok(-300_000));
        assert_eq!(duration("PT0.5S"), Ok(500));
        assert_eq!(duration("01:00:00"), Ok(3_600_000));
        assert!(duration("P1M").is_err(), "months have no fixed length");
        assert!(duration("P400000000D").is_err());
        assert!(duration("x").is_err());
    }

    #[test]
    fn text_is_read_as_what_it_is_compared_with() {
        let text =
            |text: &str| TypedExpr::constant(&Literal::Text(text.to_owned()), 0).expect(text);
        assert_eq!(
            text("12").read_as(ValueKind::Integer).map(|it| it.kind),
            Ok(ValueKind::Integer)
        );
        assert!(text("1x").read_as(ValueKind::Integer).is_err());
        assert!(
            text("99999999999999999999")
                .read_as(ValueKind::Integer)
                .is_err()
        );
        assert!(text("maybe").read_as(ValueKind::Boolean).is_err());
        assert!(
            text("2026-01-01T00:00:00Z")
                .read_as(ValueKind::Moment)
                .is_ok()
        );
        assert!(TypedExpr::constant(&Literal::Text("a\0b".to_owned()), 0).is_err());
    }
}

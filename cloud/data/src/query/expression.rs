//! Conditions and values of `$filter` and `$orderby` in SQL (cloud behaviour 2.3).
//!
//! Conditions have two values: what compares with null is false, and so its opposite is true. Where SQL
//! would answer null, that is made false only below a `not`, where it makes a difference: indexes serve a
//! bare comparison.

use odata::{Arithmetic, Comparison, Expression, Function, Operand, PathSegment, PropertyPath};
use resources::{Navigation, Readers, Step};
use sea_query::{Expr, ExprTrait};

use super::fault::Fault;
use super::function;
use super::junction::Junction;
use super::links::begin;
use super::scope::{Compiler, Row, Scope};
use super::sql::{custom, decided, differ, from, same};
use super::value::{Kind, Typed, longest};

pub(super) const ONLY_NULL: &str = "an object or array is compared with `null` alone";

impl<'a> Compiler<'a> {
    /// What holds where an expression does. `strict`: null will not do for false.
    pub(super) fn condition(
        &self,
        scope: &Scope<'a>,
        expression: &Expression,
        strict: bool,
    ) -> Result<Expr, Fault> {
        match &expression.operand {
            Operand::And(parts) => self.joined(scope, parts, strict, Junction::And),
            Operand::Or(parts) => self.joined(scope, parts, strict, Junction::Or),
            Operand::Not(inner) => Ok(self.condition(scope, inner, true)?.not()),
            Operand::Compare(how, both) => {
                let [left, right] = &**both;
                let left = self.value(scope, left)?;
                let right = self.value(scope, right)?;
                self.compare(*how, left, right, strict)
            }
            Operand::In(value, list) => self.among(scope, value, list, strict, expression.at),
            Operand::Lambda(lambda) => self.lambda(scope, lambda, strict),
            _ => {
                let value = self.value(scope, expression)?;
                let value = value
                    .read_as(Kind::Boolean)
                    .map_err(|why| Fault::refused(expression.at, why))?;
                match value.kind {
                    Kind::Null => Ok(false.into()),
                    _ if value.nullable && strict => Ok(decided(self.dialect, value.sql)),
                    _ => Ok(value.sql),
                }
            }
        }
    }

    /// The value of an expression.
    pub(super) fn value(&self, scope: &Scope<'a>, expression: &Expression) -> Result<Typed, Fault> {
        let at = expression.at;
        match &expression.operand {
            Operand::Value(value) => self.constant(value, at, scope.rule),
            Operand::Property(path) => self.property(scope, path, at),
            Operand::Count(count) => {
                let sql = self.count(scope, count)?;
                Ok(Typed::new(sql, Kind::Integer, false, at))
            }
            Operand::Call(name, arguments) => {
                let arguments = arguments
                    .iter()
                    .map(|one| self.value(scope, one))
                    .collect::<Result<Vec<_>, _>>()?;
                let bound = self.bounds.text;
                let value = function::call(self.dialect, self.now, *name, arguments, at)
                    .map_err(|why| Fault::refused(at, why))?;
                let makes_text = matches!(name, Function::Replace | Function::Concat);
                if makes_text && value.longest > bound {
                    let message = format!(
                        "`{}` may make a text of {} characters here, and may make {bound} at most",
                        name.name(),
                        value.longest
                    );
                    return Err(Fault::refused(at, message));
                }
                Ok(value)
            }
            Operand::Negative(inner) => {
                let inner = self.value(scope, inner)?;
                match inner.kind {
                    Kind::Number => {
                        let sql = custom(self.dialect, "-(?)", [inner.sql]);
                        Ok(Typed::new(sql, inner.kind, inner.nullable, at))
                    }
                    Kind::Integer | Kind::Duration => {
                        let zero = Typed::known(0, inner.kind, at);
                        self.arithmetic(Arithmetic::Subtract, zero, inner, at)
                    }
                    Kind::Null => Ok(inner),
                    other => Err(Fault::refused(
                        at,
                        format!("`-` is for numbers, not for {}", other.name()),
                    )),
                }
            }
            Operand::Arithmetic(how, both) => {
                let [left, right] = &**both;
                let left = self.value(scope, left)?;
                let right = self.value(scope, right)?;
                self.arithmetic(*how, left, right, at)
            }
            Operand::Not(_)
            | Operand::And(_)
            | Operand::Or(_)
            | Operand::Compare(..)
            | Operand::In(..)
            | Operand::Lambda(_) => {
                let sql = self.condition(scope, expression, true)?;
                Ok(Typed::new(sql, Kind::Boolean, false, at))
            }
        }
    }

    pub(super) fn compare(
        &self,
        how: Comparison,
        left: Typed,
        right: Typed,
        strict: bool,
    ) -> Result<Expr, Fault> {
        let at = right.at;
        let equality = matches!(how, Comparison::Equal | Comparison::NotEqual);
        // Null is the same as null, and neither more nor less than anything.
        let other = match (left.kind, right.kind) {
            (Kind::Null, Kind::Null) => return Ok((how == Comparison::Equal).into()),
            (Kind::Null, _) => Some(&right),
            (_, Kind::Null) => Some(&left),
            _ => None,
        };
        if let Some(other) = other {
            return Ok(match how {
                Comparison::Equal => other.sql.clone().is_null(),
                Comparison::NotEqual => other.sql.clone().is_not_null(),
                _ => false.into(),
            });
        }
        let refused = |why| Fault::refused(at, why);
        let (left, right) = alike(left, right).map_err(refused)?;
        if left.kind == Kind::Json {
            return Err(refused(ONLY_NULL.to_owned()));
        }
        let nullable = left.nullable || right.nullable;
        if nullable && equality && (how == Comparison::NotEqual || left.nullable && right.nullable)
        {
            return Ok(match how {
                Comparison::Equal => same(self.dialect, left.sql, right.sql),
                _ => differ(self.dialect, left.sql, right.sql),
            });
        }
        let (left, right) = (left.sql, right.sql);
        let bare = match how {
            Comparison::Equal => left.eq(right),
            Comparison::NotEqual => left.ne(right),
            Comparison::Greater => left.gt(right),
            Comparison::GreaterOrEqual => left.gte(right),
            Comparison::Less => left.lt(right),
            Comparison::LessOrEqual => left.lte(right),
        };
        match nullable && strict {
            true => Ok(decided(self.dialect, bare)),
            false => Ok(bare),
        }
    }

    /// The field at the end of a path.
    fn property(&self, scope: &Scope<'a>, path: &PropertyPath, at: usize) -> Result<Typed, Fault> {
        let (row, segments) = begin(scope, &path.segments);
        let Some((last, links)) = segments.split_last() else {
            return Err(Fault::refused(
                at,
                "a field of the record has to be named".to_owned(),
            ));
        };
        let Some((first, rest)) = links.split_first() else {
            return self.last_field(scope, &row, last);
        };
        let navigation = self.follow(&row, first)?;
        let one = matches!(navigation.step, Step::One(_)) || first.key.is_some();
        if !one {
            return Err(Fault::refused(
                first.name.at,
                format!(
                    "`{}` has many records: use `any`, `all` or `$count`, or name one by its key",
                    first.name.text
                ),
            ));
        }
        let other = self.row(self.target(navigation)?)?;
        let mut select = from(other.resource.table, &other.alias);
        select.and_where(self.behind(scope, navigation, &row, &other, first)?);
        let rest = PropertyPath {
            segments: rest.iter().chain([last]).cloned().collect(),
        };
        let inner = Scope {
            it: other,
            variables: Vec::new(),
            rule: scope.rule,
            lambdas: scope.lambdas,
        };
        let value = self.property(&inner, &rest, at)?;
        select.expr(value.sql);
        let longest = value.longest;
        let value = Typed::new(Expr::from(select), value.kind, true, at);
        Ok(Typed { longest, ..value })
    }

    fn last_field(
        &self,
        scope: &Scope<'a>,
        row: &Row<'a>,
        segment: &PathSegment,
    ) -> Result<Typed, Fault> {
        let name = &segment.name;
        let field = match scope.rule {
            true => row.resource.find_field(&name.text),
            false => self.named_field(row.resource, &name.text),
        };
        let field = match (field, self.model.navigation(row.resource, &name.text)) {
            (Some(field), _) => field,
            // Another name of a link means its number, as the link does.
            (
                None,
                Some(Navigation {
                    step: Step::One(field),
                    ..
                }),
            ) => row
                .resource
                .find_field(field)
                .ok_or_else(|| Fault::broken(format!("`{field}` is no field")))?,
            (None, Some(_)) => {
                return Err(Fault::refused(
                    name.at,
                    format!("`{}` has many records, and is no value", name.text),
                ));
            }
            (None, None) => return Err(no_field(row, name)),
        };
        let sql = match scope.rule {
            true => self.kept(row, field)?,
            false => self.field(row, field)?,
        };
        let nullable = field.nullable || field.readers != Readers::OfTheRow;
        let value = Typed::new(sql, Kind::of(&field.kind), nullable, name.at);
        Ok(Typed {
            longest: longest(&field.kind),
            ..value
        })
    }
}

/// Two values as one kind: a constant is read as what it is compared with.
pub(super) fn alike(left: Typed, right: Typed) -> Result<(Typed, Typed), String> {
    let numbers = |kind| matches!(kind, Kind::Integer | Kind::Number);
    if left.kind == right.kind || numbers(left.kind) && numbers(right.kind) {
        return Ok((left, right));
    }
    match right.constant.is_some() {
        true => match (right.clone().read_as(left.kind), left.constant.is_some()) {
            (Ok(right), _) => Ok((left, right)),
            (Err(_), true) => {
                let left = left.read_as(right.kind)?;
                Ok((left, right))
            }
            (Err(why), false) => Err(why),
        },
        false => {
            let left = left.read_as(right.kind)?;
            Ok((left, right))
        }
    }
}

pub(super) fn no_field(row: &Row<'_>, name: &odata::Name) -> Fault {
    Fault::refused(
        name.at,
        format!("`{}` has no field `{}`", row.resource.name, name.text),
    )
}

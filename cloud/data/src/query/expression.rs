//! Conditions and values of `$filter` and `$orderby` in SQL (docs/spec/cloud.md#odata-filter).
//!
//! Conditions have two values: what compares with null is false, and so its opposite is true. Where SQL
//! would answer null, that is made false only below a `not`, where it makes a difference: indexes serve a
//! bare comparison.

use odata::{Arithmetic, Comparison, Expression, Function, Operand, PathSegment, PropertyPath};
use resources::{Navigation, Readers, Step};
use sea_query::{Expr, ExprTrait};

use super::compile_error::CompileError;
use super::function;
use super::junction::Junction;
use super::links::begin;
use super::scope::{Compiler, Scope, TableRow};
use super::sql::{custom, decided, differ, from, same};
use super::value::{TypedExpr, ValueKind, longest};

pub(super) const ONLY_NULL: &str = "an object or array is compared with `null` alone";

impl<'a> Compiler<'a> {
    /// What holds where an expression does. `strict`: null will not do for false.
    pub(super) fn condition(
        &self,
        scope: &Scope<'a>,
        expression: &Expression,
        strict: bool,
    ) -> Result<Expr, CompileError> {
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
                    .read_as(ValueKind::Boolean)
                    .map_err(|why| CompileError::refused(expression.at, why))?;
                match value.kind {
                    ValueKind::Null => Ok(false.into()),
                    _ if value.nullable && strict => Ok(decided(self.dialect, value.sql)),
                    _ => Ok(value.sql),
                }
            }
        }
    }

    /// The value of an expression.
    pub(super) fn value(
        &self,
        scope: &Scope<'a>,
        expression: &Expression,
    ) -> Result<TypedExpr, CompileError> {
        let at = expression.at;
        match &expression.operand {
            Operand::Value(value) => self.constant(value, at, scope.rule),
            Operand::Property(path) => self.property(scope, path, at),
            Operand::Count(count) => {
                let sql = self.count(scope, count)?;
                Ok(TypedExpr::new(sql, ValueKind::Integer, false, at))
            }
            Operand::Call(name, arguments) => {
                let arguments = arguments
                    .iter()
                    .map(|one| self.value(scope, one))
                    .collect::<Result<Vec<_>, _>>()?;
                let bound = self.bounds.text;
                let value = function::call(self.dialect, self.now, *name, arguments, at)
                    .map_err(|why| CompileError::refused(at, why))?;
                let makes_text = matches!(name, Function::Replace | Function::Concat);
                if makes_text && value.longest > bound {
                    let message = format!(
                        "`{}` may make a text of {} characters here, and may make {bound} at most",
                        name.name(),
                        value.longest
                    );
                    return Err(CompileError::refused(at, message));
                }
                Ok(value)
            }
            Operand::Negative(inner) => {
                let inner = self.value(scope, inner)?;
                match inner.kind {
                    ValueKind::Number => {
                        let sql = custom(self.dialect, "-(?)", [inner.sql]);
                        Ok(TypedExpr::new(sql, inner.kind, inner.nullable, at))
                    }
                    ValueKind::Integer | ValueKind::Duration => {
                        let zero = TypedExpr::known(0, inner.kind, at);
                        self.arithmetic(Arithmetic::Subtract, zero, inner, at)
                    }
                    ValueKind::Null => Ok(inner),
                    other => Err(CompileError::refused(
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
                Ok(TypedExpr::new(sql, ValueKind::Boolean, false, at))
            }
        }
    }

    pub(super) fn compare(
        &self,
        how: Comparison,
        left: TypedExpr,
        right: TypedExpr,
        strict: bool,
    ) -> Result<Expr, CompileError> {
        let at = right.at;
        let equality = matches!(how, Comparison::Equal | Comparison::NotEqual);
        // Null is the same as null, and neither more nor less than anything.
        let other = match (left.kind, right.kind) {
            (ValueKind::Null, ValueKind::Null) => return Ok((how == Comparison::Equal).into()),
            (ValueKind::Null, _) => Some(&right),
            (_, ValueKind::Null) => Some(&left),
            _ => None,
        };
        if let Some(other) = other {
            return Ok(match how {
                Comparison::Equal => other.sql.clone().is_null(),
                Comparison::NotEqual => other.sql.clone().is_not_null(),
                _ => false.into(),
            });
        }
        let refused = |why| CompileError::refused(at, why);
        let (left, right) = alike(left, right).map_err(refused)?;
        if left.kind == ValueKind::Json {
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
        if nullable && strict {
            Ok(decided(self.dialect, bare))
        } else {
            Ok(bare)
        }
    }

    /// The field at the end of a path.
    fn property(
        &self,
        scope: &Scope<'a>,
        path: &PropertyPath,
        at: usize,
    ) -> Result<TypedExpr, CompileError> {
        let (row, segments) = begin(scope, &path.segments);
        let Some((last, links)) = segments.split_last() else {
            return Err(CompileError::refused(
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
            return Err(CompileError::refused(
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
        let value = TypedExpr::new(Expr::from(select), value.kind, true, at);
        Ok(TypedExpr { longest, ..value })
    }

    fn last_field(
        &self,
        scope: &Scope<'a>,
        row: &TableRow<'a>,
        segment: &PathSegment,
    ) -> Result<TypedExpr, CompileError> {
        let name = &segment.name;
        let field = if scope.rule {
            row.resource.find_field(&name.text)
        } else {
            self.named_field(row.resource, &name.text)
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
                .ok_or_else(|| CompileError::broken(format!("`{field}` is no field")))?,
            (None, Some(_)) => {
                return Err(CompileError::refused(
                    name.at,
                    format!("`{}` has many records, and is not a value", name.text),
                ));
            }
            (None, None) => return Err(no_field(row, name)),
        };
        let sql = if scope.rule {
            self.kept(row, field)?
        } else {
            self.field(row, field)?
        };
        let nullable = field.nullable || field.readers != Readers::OfTheRow;
        let value = TypedExpr::new(sql, ValueKind::of(&field.kind), nullable, name.at);
        Ok(TypedExpr {
            longest: longest(&field.kind),
            ..value
        })
    }
}

/// Two values as one kind: a constant is read as what it is compared with.
pub(super) fn alike(left: TypedExpr, right: TypedExpr) -> Result<(TypedExpr, TypedExpr), String> {
    let numbers = |kind| matches!(kind, ValueKind::Integer | ValueKind::Number);
    if left.kind == right.kind || numbers(left.kind) && numbers(right.kind) {
        return Ok((left, right));
    }
    if right.constant.is_some() {
        match (right.clone().read_as(left.kind), left.constant.is_some()) {
            (Ok(right), _) => Ok((left, right)),
            (Err(_), true) => {
                let left = left.read_as(right.kind)?;
                Ok((left, right))
            }
            (Err(why), false) => Err(why),
        }
    } else {
        let left = left.read_as(right.kind)?;
        Ok((left, right))
    }
}

pub(super) fn no_field(row: &TableRow<'_>, name: &odata::Name) -> CompileError {
    CompileError::refused(
        name.at,
        format!("`{}` has no field `{}`", row.resource.name, name.text),
    )
}

//! Conditions and values of `$filter` and `$orderby` in SQL (docs/spec/cloud.md#odata-filter).
//!
//! Conditions have two values: a comparison with null is false, and so its opposite is true. A null result of SQL is
//! turned into false only below a `not`, where it makes a difference, because indexes serve only a bare comparison.

use odata::{Arithmetic, Comparison, Expression, Function, Operand, PathSegment, PropertyPath};
use resources::{Navigation, Readers, Step};
use sea_query::{Expr, ExprTrait};

use super::compiler::Compiler;
use super::error::QueryError;
use super::function;
use super::junction::Junction;
use super::scope::{Nulls, Scope, TableRow, Visibility};
use super::sql::{custom, decided, differ, same};
use super::value::{ONLY_NULL, TypedExpr, ValueKind, alike, longest};

impl<'a> Compiler<'a> {
    /// Returns the condition of an expression.
    pub(super) fn condition(
        &self,
        scope: &Scope<'a>,
        expression: &Expression,
        nulls: Nulls,
    ) -> Result<Expr, QueryError> {
        match &expression.operand {
            Operand::And(parts) => self.joined(scope, parts, nulls, Junction::And),
            Operand::Or(parts) => self.joined(scope, parts, nulls, Junction::Or),
            Operand::Not(inner) => Ok(self.condition(scope, inner, Nulls::Excluded)?.not()),
            Operand::Compare(how, both) => {
                let [left, right] = &**both;
                let left = self.value(scope, left)?;
                let right = self.value(scope, right)?;
                self.compare(*how, left, right, nulls)
            }
            Operand::In(value, list) => self.among(scope, value, list, nulls, expression.at),
            Operand::Lambda(lambda) => self.lambda(scope, lambda, nulls),
            _ => {
                let value = self.value(scope, expression)?;
                let value = value
                    .read_as(ValueKind::Boolean)
                    .map_err(|why| QueryError::refused(expression.at, why))?;
                match value.kind {
                    ValueKind::Null => Ok(false.into()),
                    _ => Ok(self.settled(value.sql, value.nullable, nulls)),
                }
            }
        }
    }

    /// Returns the value of an expression.
    pub(super) fn value(
        &self,
        scope: &Scope<'a>,
        expression: &Expression,
    ) -> Result<TypedExpr, QueryError> {
        let at = expression.at;
        match &expression.operand {
            Operand::Value(value) => self.constant(value, at, scope.visibility),
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
                let now = self.context.now;
                let value = function::call(self.dialect, now, *name, arguments, at)
                    .map_err(|why| QueryError::refused(at, why))?;
                let makes_text = matches!(name, Function::Replace | Function::Concat);
                if makes_text && value.longest > bound {
                    let message = format!(
                        "`{name}` could produce a text of {} characters here, but may produce at most {bound}",
                        value.longest
                    );
                    return Err(QueryError::refused(at, message));
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
                    other => Err(QueryError::refused(
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
                let sql = self.condition(scope, expression, Nulls::Excluded)?;
                Ok(TypedExpr::new(sql, ValueKind::Boolean, false, at))
            }
        }
    }

    pub(super) fn compare(
        &self,
        how: Comparison,
        left: TypedExpr,
        right: TypedExpr,
        nulls: Nulls,
    ) -> Result<Expr, QueryError> {
        let at = right.at;
        let equality = matches!(how, Comparison::Equal | Comparison::NotEqual);
        // Null equals null, and is neither greater nor less than anything.
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
        let refused = |why| QueryError::refused(at, why);
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
        Ok(self.settled(bare, nullable, nulls))
    }

    /// Makes null results of a condition false if null is not allowed.
    pub(super) fn settled(&self, condition: Expr, nullable: bool, nulls: Nulls) -> Expr {
        if nullable && nulls == Nulls::Excluded {
            decided(self.dialect, condition)
        } else {
            condition
        }
    }

    /// Returns the field at the end of a path.
    fn property(
        &self,
        scope: &Scope<'a>,
        path: &PropertyPath,
        at: usize,
    ) -> Result<TypedExpr, QueryError> {
        let (row, segments) = scope.begin(&path.segments);
        let Some((last, links)) = segments.split_last() else {
            return Err(QueryError::refused(
                at,
                "a field of the record must be named",
            ));
        };
        let Some((first, rest)) = links.split_first() else {
            return self.last_field(scope, &row, last);
        };
        let navigation = self.follow(&row, first)?;
        let one = matches!(navigation.step, Step::One(_)) || first.key.is_some();
        if !one {
            return Err(QueryError::refused(
                first.name.at,
                format!(
                    "`{}` has many records: use `any`, `all` or `$count`, or name one by its key",
                    first.name.text
                ),
            ));
        }
        let other = self.target_row(navigation)?;
        let mut select = other.select([self.behind(scope, navigation, &row, &other, first)?]);
        let rest = PropertyPath {
            segments: rest.iter().chain([last]).cloned().collect(),
        };
        let inner = Scope {
            it: other,
            variables: Vec::new(),
            ..scope.clone()
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
    ) -> Result<TypedExpr, QueryError> {
        let name = &segment.name;
        let field = match scope.visibility {
            Visibility::OfRule => row.resource.find_field(&name.text),
            Visibility::OfCaller => row.field(&name.text),
        };
        let field = match (field, self.model.navigation(row.resource, &name.text)) {
            (Some(field), _) => field,
            // Another name of a link stands for its number, as the link itself does.
            (
                None,
                Some(Navigation {
                    step: Step::One(field),
                    ..
                }),
            ) => row
                .resource
                .find_field(field)
                .ok_or_else(|| QueryError::Broken(format!("`{field}` is not a field")))?,
            (None, Some(_)) => {
                return Err(QueryError::refused(
                    name.at,
                    format!("`{}` has many records, and is not a value", name.text),
                ));
            }
            (None, None) => return Err(row.no_field(name)),
        };
        let sql = match scope.visibility {
            Visibility::OfRule => self.unrestricted(row, field)?,
            Visibility::OfCaller => self.field(row, field)?,
        };
        let nullable = field.nullable || field.readers != Readers::OfTheRow;
        let value = TypedExpr::new(sql, ValueKind::from_type(&field.kind), nullable, name.at);
        Ok(TypedExpr {
            longest: longest(&field.kind),
            ..value
        })
    }
}

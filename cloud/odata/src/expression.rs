//! `$filter` and `$orderby`: conditions and values.
//!
//! From the loosest binding to the tightest: `or`, `and`, comparisons, `add` and `sub`, `mul`, `div` and `mod`, `not`
//! and `-` (OData 4.01 part 2, 5.1.1.16).

use winnow::combinator::{alt, cut_err, opt, peek, repeat, terminated};
use winnow::prelude::*;
use winnow::token::{any, literal, one_of};

use crate::function::Function;
use crate::request::{
    Arithmetic, Comparison, Count, Expression, Lambda, Operand, PathSegment, PropertyPath,
    Quantifier, Value,
};
use crate::token::{
    Input, calculated, constant, deeper, expected, items, keyed_name, name, one_link_more_than,
    one_more_than, place, refuse, sign, spaces, value, word,
};

/// Reads a whole expression and the spaces around it.
pub(crate) fn expression(input: &mut Input<'_>) -> ModalResult<Expression> {
    deeper(input, |input: &mut Input<'_>| {
        spaces.parse_next(input)?;
        let expression = either(input)?;
        spaces.parse_next(input)?;
        Ok(expression)
    })
}

/// Reads one of these operators and the spaces around it, and returns its meaning. If another word follows, no input is
/// consumed.
fn operator<'a, T: Copy>(input: &mut Input<'a>, operators: &[(&str, T)]) -> ModalResult<Option<T>> {
    let operator = (spaces, word).verify_map(|((), word): ((), &'a str)| {
        let operator = operators.iter().find(|(name, _)| *name == word);
        operator.map(|(_, meaning)| *meaning)
    });
    let mut operator = opt(terminated(
        operator,
        peek(alt((one_of([' ', '\t', '(']).void(), literal('-').void()))),
    ));
    let operator = operator.parse_next(input)?;
    if operator.is_some() {
        spaces.parse_next(input)?;
    }
    Ok(operator)
}

fn either(input: &mut Input<'_>) -> ModalResult<Expression> {
    joined(input, "or", both, Operand::Or)
}

fn both(input: &mut Input<'_>) -> ModalResult<Expression> {
    joined(input, "and", comparison, Operand::And)
}

/// Reads one or more of `part`, separated by `between`.
fn joined(
    input: &mut Input<'_>,
    between: &'static str,
    part: fn(&mut Input<'_>) -> ModalResult<Expression>,
    join: fn(Vec<Expression>) -> Operand,
) -> ModalResult<Expression> {
    let at = place(input);
    let first = part(input)?;
    let mut all = vec![first];
    while operator(input, &[(between, ())])?.is_some() {
        one_more_than(all.len())?;
        all.push(cut_err(part).parse_next(input)?);
    }
    Ok(match (all.pop(), all.is_empty()) {
        (Some(only), true) => only,
        (last, _) => Expression {
            operand: join(all.into_iter().chain(last).collect()),
            at,
        },
    })
}

/// How each operator compares its two sides; `None` for `in`, whose right side is a list.
const COMPARISONS: [(&str, Option<Comparison>); 7] = [
    ("eq", Some(Comparison::Equal)),
    ("ne", Some(Comparison::NotEqual)),
    ("gt", Some(Comparison::Greater)),
    ("ge", Some(Comparison::GreaterOrEqual)),
    ("lt", Some(Comparison::Less)),
    ("le", Some(Comparison::LessOrEqual)),
    ("in", None),
];

fn comparison(input: &mut Input<'_>) -> ModalResult<Expression> {
    let at = place(input);
    let left = sum(input)?;
    let operand = match operator(input, &COMPARISONS)? {
        None => return Ok(left),
        Some(None) => Operand::In(Box::new(left), list(input)?),
        Some(Some(how)) => {
            let right = cut_err(sum).parse_next(input)?;
            Operand::Compare(how, Box::new([left, right]))
        }
    };
    Ok(Expression { operand, at })
}

/// Reads a list of at least one value: `(1,2)`.
fn list(input: &mut Input<'_>) -> ModalResult<Vec<Expression>> {
    sign('(', "`(` and a list of values").parse_next(input)?;
    let item = |input: &mut Input<'_>| deeper(input, padded_sum);
    let items = items(input, cut_err(item), literal(',').void())?;
    sign(')', "`,` or `)` in the list of values").parse_next(input)?;
    Ok(items)
}

fn padded_sum(input: &mut Input<'_>) -> ModalResult<Expression> {
    spaces.parse_next(input)?;
    let value = sum(input)?;
    spaces.parse_next(input)?;
    Ok(value)
}

fn sum(input: &mut Input<'_>) -> ModalResult<Expression> {
    let operators = [("add", Arithmetic::Add), ("sub", Arithmetic::Subtract)];
    arithmetic(input, &operators, product)
}

fn product(input: &mut Input<'_>) -> ModalResult<Expression> {
    let operators = [
        ("mul", Arithmetic::Multiply),
        ("div", Arithmetic::Divide),
        ("mod", Arithmetic::Remainder),
    ];
    arithmetic(input, &operators, unary)
}

fn arithmetic(
    input: &mut Input<'_>,
    operators: &[(&str, Arithmetic)],
    part: fn(&mut Input<'_>) -> ModalResult<Expression>,
) -> ModalResult<Expression> {
    let at = place(input);
    let mut left = part(input)?;
    while let Some(how) = operator(input, operators)? {
        calculated(input)?;
        let right = cut_err(part).parse_next(input)?;
        left = Expression {
            operand: Operand::Arithmetic(how, Box::new([left, right])),
            at,
        };
    }
    Ok(left)
}

fn unary(input: &mut Input<'_>) -> ModalResult<Expression> {
    let at = place(input);
    let not = opt(terminated("not", peek(one_of([' ', '\t', '('])))).parse_next(input)?;
    if not.is_some() {
        spaces.parse_next(input)?;
        let inner = deeper(input, cut_err(unary))?;
        return Ok(Expression {
            operand: Operand::Not(Box::new(inner)),
            at,
        });
    }
    let mut negated = opt((literal('-'), peek(one_of(|c: char| !c.is_ascii_digit()))));
    if negated.parse_next(input)?.is_some() {
        spaces.parse_next(input)?;
        let inner = deeper(input, cut_err(unary))?;
        return Ok(Expression {
            operand: Operand::Negative(Box::new(inner)),
            at,
        });
    }
    primary(input)
}

fn primary(input: &mut Input<'_>) -> ModalResult<Expression> {
    const EXPECTED: &str = "a field, a value, a function or `(`";
    let at = place(input);
    let Some(first) = opt(peek(any)).parse_next(input)? else {
        return refuse(EXPECTED);
    };
    let operand = match first {
        '(' => {
            literal('(').parse_next(input)?;
            let inner = expression(input)?;
            sign(')', "an operator or `)`").parse_next(input)?;
            return Ok(Expression { at, ..inner });
        }
        '\'' | '-' | '@' | '0'..='9' => value.map(Operand::Value).parse_next(input)?,
        'a'..='z' | 'A'..='Z' | '_' => named(input)?,
        _ => return refuse(EXPECTED),
    };
    Ok(Expression { operand, at })
}

/// Reads what begins with a word: a constant, a function or a path.
fn named(input: &mut Input<'_>) -> ModalResult<Operand> {
    let boundary = peek(winnow::combinator::not(one_of(['/', '('])));
    let literal_value = opt(terminated(constant, boundary)).parse_next(input)?;
    if let Some(literal) = literal_value {
        return Ok(Operand::Value(Value::Literal(literal)));
    }
    let called = opt(peek(terminated(word, literal('(')))).parse_next(input)?;
    if let Some(function) = called.and_then(|name| name.parse::<Function>().ok()) {
        return call(input, function);
    }
    path(input)
}

fn call(input: &mut Input<'_>, function: Function) -> ModalResult<Operand> {
    (word, literal('(')).parse_next(input)?;
    spaces.parse_next(input)?;
    let mut arguments: Vec<Expression> = Vec::new();
    if opt(literal(')')).parse_next(input)?.is_none() {
        arguments = items(input, cut_err(expression), literal(',').void())?;
        sign(')', "`,` or `)` behind the argument").parse_next(input)?;
    }
    if !function.arguments().contains(&arguments.len()) {
        return refuse(arguments_of(function));
    }
    Ok(Operand::Call(function, arguments))
}

fn arguments_of(function: Function) -> &'static str {
    match (*function.arguments().start(), *function.arguments().end()) {
        (0, 0) => "a function without arguments",
        (1, 1) => "a function of one argument",
        (1, 2) => "a function of one or two arguments",
        (2, 2) => "a function of two arguments",
        (2, 3) => "a function of two or three arguments",
        _ => "a function of three arguments",
    }
}

/// Reads links that end in a field, a count or a lambda.
fn path(input: &mut Input<'_>) -> ModalResult<Operand> {
    let mut segments = vec![segment(input)?];
    loop {
        if opt(literal('/')).parse_next(input)?.is_none() {
            return Ok(Operand::Property(PropertyPath { segments }));
        }
        if opt(literal("$count")).parse_next(input)?.is_some() {
            let path = PropertyPath { segments };
            let filter = count_filter(input)?;
            return Ok(Operand::Count(Box::new(Count { path, filter })));
        }
        let quantifier = opt(terminated(alt(("any", "all")), literal('('))).parse_next(input)?;
        if let Some(word) = quantifier {
            let quantifier = match word {
                "any" => Quantifier::Any,
                _ => Quantifier::All,
            };
            return lambda(input, PropertyPath { segments }, quantifier);
        }
        one_link_more_than(segments.len())?;
        segments.push(cut_err(segment).parse_next(input)?);
    }
}

fn segment(input: &mut Input<'_>) -> ModalResult<PathSegment> {
    let (name, key) = keyed_name(input)?;
    Ok(PathSegment { name, key })
}

/// Reads `($filter=…)` after `$count`.
pub(crate) fn count_filter(input: &mut Input<'_>) -> ModalResult<Option<Expression>> {
    if opt(literal('(')).parse_next(input)?.is_none() {
        return Ok(None);
    }
    spaces.parse_next(input)?;
    if opt(literal(')')).parse_next(input)?.is_some() {
        return Ok(None);
    }
    cut_err(literal("$filter="))
        .context(expected("`$filter=`, the one option of a count"))
        .parse_next(input)?;
    let filter = cut_err(expression).parse_next(input)?;
    sign(')', "an operator or `)`").parse_next(input)?;
    Ok(Some(filter))
}

fn lambda(
    input: &mut Input<'_>,
    path: PropertyPath,
    quantifier: Quantifier,
) -> ModalResult<Operand> {
    spaces.parse_next(input)?;
    let variable = cut_err(name)
        .context(expected("a variable and `:`, as in `any(d:…)`"))
        .parse_next(input)?;
    spaces.parse_next(input)?;
    sign(':', "`:` and a condition").parse_next(input)?;
    let body = cut_err(expression).parse_next(input)?;
    sign(')', "an operator or `)`").parse_next(input)?;
    Ok(Operand::Lambda(Box::new(Lambda {
        path,
        quantifier,
        variable,
        body,
    })))
}

/// Reads fields or counts, each with a direction.
pub(crate) fn orders(input: &mut Input<'_>) -> ModalResult<Vec<crate::Order>> {
    let comma = (spaces, literal(','), spaces).void();
    items(input, cut_err(order), comma)
}

fn order(input: &mut Input<'_>) -> ModalResult<crate::Order> {
    use crate::Direction::{Ascending, Descending};
    let by = padded_path(input)?;
    let direction =
        opt((repeat::<_, _, (), _, _>(1.., one_of([' ', '\t'])), word)).parse_next(input)?;
    let direction = match direction.map(|((), word)| word) {
        None | Some("asc") => Ascending,
        Some("desc") => Descending,
        Some(_) => return refuse("`asc` or `desc`"),
    };
    Ok(crate::Order { by, direction })
}

fn padded_path(input: &mut Input<'_>) -> ModalResult<Expression> {
    spaces.parse_next(input)?;
    let at = place(input);
    let operand = cut_err(path)
        .context(expected("a field"))
        .parse_next(input)?;
    if matches!(operand, Operand::Lambda(_)) {
        return refuse("a field or a count, not a condition");
    }
    Ok(Expression { operand, at })
}

//! The tokens of the language: names, literals, spaces, and keys in parentheses.

use winnow::combinator::{alt, cut_err, opt, peek, separated};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location, Stateful};
use winnow::token::{any, literal, one_of, take_while};

use crate::error::{MAX_CALCULATIONS, MAX_DEPTH, MAX_ITEMS, MAX_LINKS, ParseError};
use crate::raw::DecodedText;
use crate::request::{Key, Literal, Name, Value};

/// The text being read, with the current nesting depth.
pub(crate) type Input<'a> = Stateful<LocatingSlice<&'a str>, ReaderState<'a>>;

/// State that the parsers share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReaderState<'a> {
    decoded: &'a DecodedText,
    depth: usize,
    calculations: usize,
}

/// Reads all of `decoded` with `parser`; `then` describes what may follow in an error message.
pub(crate) fn read_all<'a, T>(
    decoded: &'a DecodedText,
    then: &'static str,
    mut parser: impl Parser<Input<'a>, T, ErrMode<ContextError>>,
) -> Result<T, ParseError> {
    let mut input = Stateful {
        input: LocatingSlice::new(decoded.text.as_str()),
        state: ReaderState {
            decoded,
            depth: 0,
            calculations: 0,
        },
    };
    let result = parser.parse_next(&mut input);
    let at = decoded.place(input.current_token_start());
    match result {
        Ok(value) if input.is_empty() => Ok(value),
        Ok(_) => Err(ParseError::expected(at, then)),
        Err(error) => {
            let context = error.into_inner().unwrap_or_default();
            let description = context.context().find_map(|context| match context {
                StrContext::Expected(StrContextValue::Description(what)) => Some(*what),
                _ => None,
            });
            Err(ParseError::expected(
                at,
                description.unwrap_or("something else"),
            ))
        }
    }
}

/// Returns the context of an error that names what should stand here.
pub(crate) fn expected(what: &'static str) -> StrContext {
    StrContext::Expected(StrContextValue::Description(what))
}

/// Fails without backtracking, with a message that names what should stand here.
pub(crate) fn refuse<T>(what: &'static str) -> ModalResult<T> {
    let mut context = ContextError::new();
    context.push(expected(what));
    Err(ErrMode::Cut(context))
}

/// Runs `parser` one level deeper.
pub(crate) fn deeper<'a, T>(
    input: &mut Input<'a>,
    mut parser: impl Parser<Input<'a>, T, ErrMode<ContextError>>,
) -> ModalResult<T> {
    if input.state.depth >= MAX_DEPTH {
        return refuse("at most 32 levels of nesting");
    }
    input.state.depth += 1;
    let result = parser.parse_next(input);
    input.state.depth -= 1;
    result
}

/// Counts one more arithmetic operator.
pub(crate) fn calculated(input: &mut Input<'_>) -> ModalResult<()> {
    input.state.calculations += 1;
    if input.state.calculations > MAX_CALCULATIONS {
        return refuse("at most 64 calculations in one option");
    }
    Ok(())
}

/// Fails if a list or chain already has the maximum number of items.
pub(crate) fn one_more_than(items: usize) -> ModalResult<()> {
    if items >= MAX_ITEMS {
        return refuse("at most 1,000 items in one list or chain");
    }
    Ok(())
}

/// Fails if a path already has the maximum number of links.
pub(crate) fn one_link_more_than(links: usize) -> ModalResult<()> {
    if links >= MAX_LINKS {
        return refuse("at most 16 links in one path");
    }
    Ok(())
}

/// Reads one or more items separated by `between`, up to [`MAX_ITEMS`]. Neither parser backtracks once an item has
/// begun.
pub(crate) fn items<'a, T>(
    input: &mut Input<'a>,
    mut item: impl Parser<Input<'a>, T, ErrMode<ContextError>>,
    mut between: impl Parser<Input<'a>, (), ErrMode<ContextError>>,
) -> ModalResult<Vec<T>> {
    let mut items = vec![item.parse_next(input)?];
    while opt(between.by_ref()).parse_next(input)?.is_some() {
        one_more_than(items.len())?;
        items.push(item.parse_next(input)?);
    }
    Ok(items)
}

/// Returns the place of the next character in the request.
pub(crate) fn place(input: &Input<'_>) -> usize {
    input.state.decoded.place(input.current_token_start())
}

/// Skips spaces, if there are any.
pub(crate) fn spaces(input: &mut Input<'_>) -> ModalResult<()> {
    take_while(0.., [' ', '\t']).void().parse_next(input)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Reads a word: letters, digits and underscores, not beginning with a digit.
pub(crate) fn word<'a>(input: &mut Input<'a>) -> ModalResult<&'a str> {
    (
        one_of(|c: char| c.is_ascii_alphabetic() || c == '_'),
        take_while(0.., is_word),
    )
        .take()
        .parse_next(input)
}

/// Reads a word that names something.
pub(crate) fn name(input: &mut Input<'_>) -> ModalResult<Name> {
    let at = place(input);
    let text = word.context(expected("a name")).parse_next(input)?;
    Ok(Name {
        text: text.to_owned(),
        at,
    })
}

/// Reads the sign `sign`, or fails with a message that names it.
pub(crate) fn sign<'a>(
    sign: char,
    what: &'static str,
) -> impl Parser<Input<'a>, (), ErrMode<ContextError>> {
    cut_err(literal(sign)).void().context(expected(what))
}

/// Reads a literal or `@name`.
pub(crate) fn value(input: &mut Input<'_>) -> ModalResult<Value> {
    if opt(literal('@')).parse_next(input)?.is_some() {
        return cut_err(name).map(Value::Alias).parse_next(input);
    }
    constant.map(Value::Literal).parse_next(input)
}

/// Reads a literal.
pub(crate) fn constant(input: &mut Input<'_>) -> ModalResult<Literal> {
    let first = peek(any).parse_next(input)?;
    match first {
        '\'' => quoted.map(Literal::Text).parse_next(input),
        '-' | '0'..='9' => number.parse_next(input),
        _ => alt((typed, keyword)).parse_next(input),
    }
}

/// Reads `'text'`, in which `''` is one apostrophe.
fn quoted(input: &mut Input<'_>) -> ModalResult<String> {
    literal('\'').parse_next(input)?;
    let mut text = String::new();
    loop {
        let piece = take_while(0.., |c| c != '\'').parse_next(input)?;
        text.push_str(piece);
        sign('\'', "an apostrophe at the end of the text").parse_next(input)?;
        if opt(literal('\'')).parse_next(input)?.is_none() {
            return Ok(text);
        }
        text.push('\'');
    }
}

fn number(input: &mut Input<'_>) -> ModalResult<Literal> {
    let digits = || take_while(1.., |c: char| c.is_ascii_digit());
    let whole = (opt(literal('-')), digits()).take().parse_next(input)?;
    let mut fraction = opt((literal('.'), cut_err(digits()).context(expected("a digit"))).take());
    let fraction = fraction.parse_next(input)?.unwrap_or_default();
    let mut exponent = opt((one_of(['e', 'E']), opt(one_of(['+', '-'])), digits()).take());
    let exponent = exponent.parse_next(input)?.unwrap_or_default();
    if opt(peek(one_of(is_word))).parse_next(input)?.is_some() {
        return refuse("the end of the number");
    }
    if fraction.is_empty() && exponent.is_empty() {
        return match whole.parse() {
            Ok(integer) => Ok(Literal::Integer(integer)),
            Err(_) => refuse("a number of at most 64 bits"),
        };
    }
    Ok(Literal::Decimal(format!("{whole}{fraction}{exponent}")))
}

/// Reads `datetime'…'`, `date'…'` or `duration'…'`.
fn typed(input: &mut Input<'_>) -> ModalResult<Literal> {
    let kind = alt(("datetimeoffset", "datetime", "duration", "date", "time"));
    let kind = winnow::combinator::terminated(kind, peek(literal('\''))).parse_next(input)?;
    let text = quoted.parse_next(input)?;
    Ok(match kind {
        "duration" | "time" => Literal::Duration(text),
        _ => Literal::DateTime(text),
    })
}

fn keyword(input: &mut Input<'_>) -> ModalResult<Literal> {
    word.verify_map(|word| match word {
        "null" => Some(Literal::Null),
        "true" => Some(Literal::Bool(true)),
        "false" => Some(Literal::Bool(false)),
        _ => None,
    })
    .context(expected("a value"))
    .parse_next(input)
}

/// Reads a name, with a key in parentheses if one is given.
pub(crate) fn keyed_name(input: &mut Input<'_>) -> ModalResult<(Name, Option<Key>)> {
    let name = name.parse_next(input)?;
    let key = match opt(literal('(')).parse_next(input)? {
        Some(_) => Some(key.parse_next(input)?),
        None => None,
    };
    Ok((name, key))
}

/// The maximum number of fields in one key. No resource has a key with even half as many.
const MAX_KEY_FIELDS: usize = 8;

/// Reads the contents of a key's parentheses, and the closing parenthesis.
fn key(input: &mut Input<'_>) -> ModalResult<Key> {
    spaces.parse_next(input)?;
    let named = opt(peek((word, spaces, literal('=')))).parse_next(input)?;
    let key = match named {
        Some(_) => separated(
            1..=MAX_KEY_FIELDS,
            key_field,
            (spaces, literal(','), spaces),
        )
        .map(Key::Fields)
        .parse_next(input)?,
        None => cut_err(value)
            .context(expected("a key: an id, or fields with values"))
            .map(Key::Id)
            .parse_next(input)?,
    };
    spaces.parse_next(input)?;
    sign(')', "`)` at the end of the key").parse_next(input)?;
    Ok(key)
}

fn key_field(input: &mut Input<'_>) -> ModalResult<(Name, Value)> {
    let field = cut_err(name).parse_next(input)?;
    spaces.parse_next(input)?;
    sign('=', "`=` and the value of the key's field").parse_next(input)?;
    spaces.parse_next(input)?;
    let value = cut_err(value)
        .context(expected("a value"))
        .parse_next(input)?;
    Ok((field, value))
}

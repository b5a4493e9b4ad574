//! The query: what is requested of the records.

use std::collections::BTreeSet;

use winnow::combinator::{alt, cut_err, opt};
use winnow::prelude::*;
use winnow::token::{literal, take_while};

use crate::error::{MAX_ITEMS, ParseError};
use crate::expression::{count_filter, expression, orders};
use crate::raw::{self, PlusDecoding};
use crate::request::{Expand, Expression, Name, Options, Select};
use crate::token::{
    Input, constant, deeper, expected, items, name, read_all, refuse, sign, spaces,
};

/// The options that an expansion may also have in its parentheses, and what may follow the value of each in a query.
const SHARED: [(&str, &str); 6] = [
    ("$select", "`,` and a field, `&`, or the end"),
    ("$expand", "`,` and a link, `(`, `&`, or the end"),
    (
        "$filter",
        "an operator such as `eq` or `and`, `&`, or the end",
    ),
    (
        "$orderby",
        "`asc`, `desc`, `,` and a field, `&`, or the end",
    ),
    ("$top", "`&` or the end"),
    ("$skip", "`&` or the end"),
];

/// Reads the value of one of these options.
fn shared(option: &str, options: &mut Options, input: &mut Input<'_>) -> ModalResult<()> {
    match option {
        "$select" => options.select = Some(select(input)?),
        "$expand" => options.expand = expands(input)?,
        "$filter" => options.filter = Some(cut_err(expression).parse_next(input)?),
        "$orderby" => options.order_by = orders(input)?,
        "$top" => options.top = Some(whole_number(input)?),
        _ => options.skip = Some(whole_number(input)?),
    }
    Ok(())
}

/// Reads the query, which begins at byte `begin` of the request.
pub(crate) fn read(query: &str, begin: usize) -> Result<Options, ParseError> {
    let mut options = Options::default();
    let mut seen = BTreeSet::new();
    for (part, at) in raw::parts(query, begin) {
        let (option, value, value_at) = match part.split_once('=') {
            Some((option, value)) => (option, value, at + option.len() + 1),
            None => (part, "", at + part.len()),
        };
        let option = raw::decode(option, at, PlusDecoding::Space)?.text;
        if !seen.insert(option.clone()) {
            return Err(ParseError::new(at, format!("`{option}` is given twice")));
        }
        let value = raw::decode(value, value_at, PlusDecoding::Space)?;
        if let Some(alias) = option.strip_prefix('@') {
            let value = read_all(&value, "`&` or the end", cut_err(padded_constant))?;
            if options.aliases.len() >= MAX_ITEMS {
                return Err(ParseError::new(
                    at,
                    format!("a request has at most {MAX_ITEMS} parameters"),
                ));
            }
            options.aliases.insert(alias.to_owned(), value);
            continue;
        }
        if let Some((name, then)) = SHARED.iter().find(|(name, _)| *name == option) {
            let read = |input: &mut Input<'_>| shared(name, &mut options, input);
            read_all(&value, then, read)?;
            continue;
        }
        match option.as_str() {
            "$format" => {
                options.full_metadata =
                    format(&value.text).map_err(|why| ParseError::new(value_at, why))?;
            }
            // No effect here; the values are checked anyway, since a wrong one may be a typing error.
            "$count" => one_of(&option, &value.text, &["true", "false"], value_at)?,
            "$inlinecount" => one_of(&option, &value.text, &["allpages", "none"], value_at)?,
            "apikey" => options.api_key = Some(value.text),
            "returnResource" => {
                one_of(&option, &value.text, &["true", "false", "1", "0"], value_at)?;
                options.returns_id_alone = matches!(value.text.as_str(), "false" | "0");
            }
            unknown => {
                let more = if known(&format!("${unknown}")) {
                    format!("; is `${unknown}` meant?")
                } else {
                    String::new()
                };
                return Err(ParseError::new(
                    at,
                    format!("unknown option `{unknown}`{more}"),
                ));
            }
        }
    }
    Ok(options)
}

/// Reads a condition on its own.
pub(crate) fn condition(text: &str) -> Result<Expression, ParseError> {
    let text = raw::decode(text, 0, PlusDecoding::Space)?;
    read_all(
        &text,
        "an operator such as `eq` or `and`, or the end",
        cut_err(expression),
    )
}

fn known(option: &str) -> bool {
    SHARED.iter().any(|(name, _)| *name == option) || ["$format", "$count"].contains(&option)
}

/// Checks that a value is one of those that its option may have.
fn one_of(option: &str, value: &str, words: &[&str], at: usize) -> Result<(), ParseError> {
    if words.contains(&value) {
        return Ok(());
    }
    let words = words.iter().map(|word| format!("`{word}`"));
    let words = words.collect::<Vec<_>>().join(" or ");
    Err(ParseError::new(
        at,
        format!("`{option}` must be {words}, not `{value}`"),
    ))
}

/// Returns whether a format requests all metadata. JSON is the only format.
fn format(format: &str) -> Result<bool, String> {
    let mut parts = format.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    if !["json", "application/json"].contains(&kind) {
        return Err(format!("`$format` must be `json`, not `{kind}`"));
    }
    let mut is_full = false;
    for part in parts {
        match part.strip_prefix("odata.metadata=") {
            Some("full") => is_full = true,
            Some("none" | "minimal") | None => {}
            Some(other) => {
                return Err(format!(
                    "`odata.metadata` must be `none`, `minimal` or `full`, not `{other}`"
                ));
            }
        }
    }
    Ok(is_full)
}

fn padded_constant(input: &mut Input<'_>) -> ModalResult<crate::Literal> {
    spaces.parse_next(input)?;
    let value = constant.context(expected("a value")).parse_next(input)?;
    spaces.parse_next(input)?;
    Ok(value)
}

fn comma(input: &mut Input<'_>) -> ModalResult<()> {
    (spaces, literal(','), spaces).void().parse_next(input)
}

fn select(input: &mut Input<'_>) -> ModalResult<Select> {
    spaces.parse_next(input)?;
    let selection = match opt(literal('*')).parse_next(input)? {
        Some(_) => Select::All,
        None => {
            let field = cut_err(name).context(expected("the name of a field, or `*`"));
            Select::Fields(items(input, field, comma)?)
        }
    };
    spaces.parse_next(input)?;
    Ok(selection)
}

fn expands(input: &mut Input<'_>) -> ModalResult<Vec<Expand>> {
    items(input, cut_err(expand), comma)
}

/// Reads `link`, `link/$count($filter=…)`, `link(…)` or, in an older form, `link/link`.
fn expand(input: &mut Input<'_>) -> ModalResult<Expand> {
    deeper(input, |input: &mut Input<'_>| {
        spaces.parse_next(input)?;
        let link: Name = cut_err(name)
            .context(expected("the name of a link"))
            .parse_next(input)?;
        if opt(literal("/$count")).parse_next(input)?.is_some() {
            let filter = count_filter(input)?;
            let options = Options {
                filter,
                ..Options::default()
            };
            return Ok(Expand {
                link,
                count: true,
                options,
            });
        }
        let mut options = Options::default();
        if opt(literal('/')).parse_next(input)?.is_some() {
            options.expand = vec![expand(input)?];
        } else if opt(literal('(')).parse_next(input)?.is_some() {
            options = inner(input)?;
        }
        spaces.parse_next(input)?;
        Ok(Expand {
            link,
            count: false,
            options,
        })
    })
}

/// Reads the options in the parentheses of an expansion, and the closing parenthesis.
fn inner(input: &mut Input<'_>) -> ModalResult<Options> {
    let mut options = Options::default();
    let mut seen: Vec<&str> = Vec::new();
    loop {
        spaces.parse_next(input)?;
        if opt(literal(')')).parse_next(input)?.is_some() {
            return Ok(options);
        }
        let option = cut_err(alt((
            "$select",
            "$filter",
            "$expand",
            "$orderby",
            "$top",
            "$skip",
            "$count",
            "$inlinecount",
        )))
        .context(expected("an option such as `$select`, or `)`"))
        .parse_next(input)?;
        if seen.contains(&option) {
            return refuse("an option that was not given before");
        }
        seen.push(option);
        spaces.parse_next(input)?;
        sign('=', "`=` and the option's value").parse_next(input)?;
        match option {
            "$inlinecount" => {
                cut_err(alt(("allpages", "none")))
                    .context(expected("`allpages` or `none`"))
                    .parse_next(input)?;
            }
            "$count" => {
                cut_err(alt(("true", "false")))
                    .context(expected("`true` or `false`"))
                    .parse_next(input)?;
            }
            _ => shared(option, &mut options, input)?,
        }
        spaces.parse_next(input)?;
        if opt(alt((';', '&'))).parse_next(input)?.is_none() {
            sign(')', "`;` or `)` behind the option").parse_next(input)?;
            return Ok(options);
        }
    }
}

fn whole_number(input: &mut Input<'_>) -> ModalResult<u64> {
    spaces.parse_next(input)?;
    let number = take_while(1.., |c: char| c.is_ascii_digit());
    let number = cut_err(number.verify_map(|digits: &str| digits.parse().ok()))
        .context(expected("a whole number that is not negative"))
        .parse_next(input)?;
    spaces.parse_next(input)?;
    Ok(number)
}

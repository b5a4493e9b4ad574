//! The query: what is asked of the records.

use std::collections::BTreeSet;

use winnow::combinator::{alt, cut_err, opt};
use winnow::prelude::*;
use winnow::token::{literal, take_while};

use crate::error::{Fault, MAX_ITEMS};
use crate::expression::{count_filter, expression, orders};
use crate::raw::{self, Plus};
use crate::request::{Expand, Expression, Name, Options, Select};
use crate::token::{Input, constant, deeper, items, name, read_all, refuse, sign, spaces, wanted};

/// Reads the query, which stands at `begin` of the request.
pub(crate) fn read(query: &str, begin: usize) -> Result<Options, Fault> {
    let mut options = Options::default();
    let mut seen = BTreeSet::new();
    for (part, at) in raw::parts(query, begin) {
        let (option, value, value_at) = match part.split_once('=') {
            Some((option, value)) => (option, value, at + option.len() + 1),
            None => (part, "", at + part.len()),
        };
        let option = raw::decode(option, at, Plus::Space)?.text;
        if !seen.insert(option.clone()) {
            return Err(Fault::said(at, format!("`{option}` is given twice")));
        }
        let value = raw::decode(value, value_at, Plus::Space)?;
        if let Some(alias) = option.strip_prefix('@') {
            let value = read_all(&value, "`&` or the end", cut_err(padded_constant))?;
            if options.aliases.len() >= MAX_ITEMS {
                return Err(Fault::said(
                    at,
                    format!("a request has at most {MAX_ITEMS} parameters"),
                ));
            }
            options.aliases.insert(alias.to_owned(), value);
            continue;
        }
        match option.as_str() {
            "$select" => {
                options.select = Some(read_all(
                    &value,
                    "`,` and a field, `&`, or the end",
                    select,
                )?)
            }
            "$expand" => {
                options.expand = read_all(&value, "`,` and a link, `(`, `&`, or the end", expands)?
            }
            "$filter" => {
                options.filter = Some(read_all(
                    &value,
                    "an operator such as `eq` or `and`, `&`, or the end",
                    cut_err(expression),
                )?)
            }
            "$orderby" => {
                options.order_by = read_all(
                    &value,
                    "`asc`, `desc`, `,` and a field, `&`, or the end",
                    orders,
                )?
            }
            "$top" => options.top = Some(read_all(&value, "`&` or the end", whole_number)?),
            "$skip" => options.skip = Some(read_all(&value, "`&` or the end", whole_number)?),
            "$format" => {
                options.full_metadata =
                    format(&value.text).map_err(|why| Fault::said(value_at, why))?;
            }
            // Of no effect here; what they say is looked at all the same, since it may be a typing error.
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
                return Err(Fault::said(at, format!("unknown option `{unknown}`{more}")));
            }
        }
    }
    Ok(options)
}

/// Reads a condition by itself.
pub(crate) fn condition(text: &str) -> Result<Expression, Fault> {
    let text = raw::decode(text, 0, Plus::Space)?;
    read_all(
        &text,
        "an operator such as `eq` or `and`, or the end",
        cut_err(expression),
    )
}

fn known(option: &str) -> bool {
    [
        "$select", "$expand", "$filter", "$orderby", "$top", "$skip", "$format", "$count",
    ]
    .contains(&option)
}

/// Whether a value is one of those that its option may have.
fn one_of(option: &str, value: &str, words: &[&str], at: usize) -> Result<(), Fault> {
    if words.contains(&value) {
        return Ok(());
    }
    let words = words.iter().map(|word| format!("`{word}`"));
    let words = words.collect::<Vec<_>>().join(" or ");
    Err(Fault::said(
        at,
        format!("`{option}` is {words}, and not `{value}`"),
    ))
}

/// Whether a format asks for all metadata. There is JSON alone.
fn format(format: &str) -> Result<bool, String> {
    let mut parts = format.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    if !["json", "application/json"].contains(&kind) {
        return Err(format!("`$format` is `json`, and not `{kind}`"));
    }
    let mut is_full = false;
    for part in parts {
        match part.strip_prefix("odata.metadata=") {
            Some("full") => is_full = true,
            Some("none" | "minimal") | None => {}
            Some(other) => {
                return Err(format!(
                    "`odata.metadata` is `none`, `minimal` or `full`, and not `{other}`"
                ));
            }
        }
    }
    Ok(is_full)
}

fn padded_constant(input: &mut Input<'_>) -> ModalResult<crate::Literal> {
    spaces.parse_next(input)?;
    let found = constant.context(wanted("a value")).parse_next(input)?;
    spaces.parse_next(input)?;
    Ok(found)
}

fn comma(input: &mut Input<'_>) -> ModalResult<()> {
    (spaces, literal(','), spaces).void().parse_next(input)
}

fn select(input: &mut Input<'_>) -> ModalResult<Select> {
    spaces.parse_next(input)?;
    let found = match opt(literal('*')).parse_next(input)? {
        Some(_) => Select::All,
        None => {
            let field = cut_err(name).context(wanted("the name of a field, or `*`"));
            Select::Fields(items(input, field, comma)?)
        }
    };
    spaces.parse_next(input)?;
    Ok(found)
}

fn expands(input: &mut Input<'_>) -> ModalResult<Vec<Expand>> {
    items(input, cut_err(expand), comma)
}

/// `link`, `link/$count($filter=…)`, `link(…)` or, as it was once written, `link/link`.
fn expand(input: &mut Input<'_>) -> ModalResult<Expand> {
    deeper(input, |input: &mut Input<'_>| {
        spaces.parse_next(input)?;
        let link: Name = cut_err(name)
            .context(wanted("the name of a link"))
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

/// The options in the parentheses of an expansion, and the one that closes them.
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
        .context(wanted("an option such as `$select`, or `)`"))
        .parse_next(input)?;
        if seen.contains(&option) {
            return refuse("an option that was not given before");
        }
        seen.push(option);
        spaces.parse_next(input)?;
        sign('=', "`=` and the option's value").parse_next(input)?;
        match option {
            "$select" => options.select = Some(select(input)?),
            "$filter" => options.filter = Some(cut_err(expression).parse_next(input)?),
            "$expand" => options.expand = expands(input)?,
            "$orderby" => options.order_by = orders(input)?,
            "$top" => options.top = Some(whole_number(input)?),
            "$skip" => options.skip = Some(whole_number(input)?),
            "$inlinecount" => {
                cut_err(alt(("allpages", "none")))
                    .context(wanted("`allpages` or `none`"))
                    .parse_next(input)?;
            }
            _ => {
                cut_err(alt(("true", "false")))
                    .context(wanted("`true` or `false`"))
                    .parse_next(input)?;
            }
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
        .context(wanted("a whole number that is not negative"))
        .parse_next(input)?;
    spaces.parse_next(input)?;
    Ok(number)
}

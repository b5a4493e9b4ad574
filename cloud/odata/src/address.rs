//! The path: which records a request addresses.

use winnow::combinator::{alt, cut_err, eof, opt};
use winnow::prelude::*;
use winnow::token::literal;

use crate::error::ParseError;
use crate::raw::{self, PlusDecoding};
use crate::request::{Address, ResourcePath, Tail};
use crate::token::{Input, expected, keyed_name, name, one_link_more_than, read_all, refuse, sign};

/// Reads the path after the version, which begins at byte `begin` of the request.
pub(crate) fn read(path: &str, begin: usize) -> Result<Address, ParseError> {
    let decoded = raw::decode(path, begin, PlusDecoding::Plus)?;
    read_all(&decoded, "the end of the path", address)
}

fn address(input: &mut Input<'_>) -> ModalResult<Address> {
    sign('/', "`/` and the name of a resource").parse_next(input)?;
    if opt(literal("$metadata")).parse_next(input)?.is_some() {
        return Ok(Address::Metadata);
    }
    let (resource, key) = cut_err(keyed_name)
        .context(expected("the name of a resource"))
        .parse_next(input)?;
    let mut links = Vec::new();
    let tail = loop {
        if opt(literal('/')).parse_next(input)?.is_none() {
            break Tail::Records;
        }
        if opt(literal("$count")).parse_next(input)?.is_some() {
            break Tail::Count;
        }
        let begin = input.checkpoint();
        let is_reference = opt(literal("$links/")).parse_next(input)?.is_some();
        if is_reference && key.is_some() {
            break Tail::Links(cut_err(name).parse_next(input)?);
        }
        if opt(alt((literal("$"), eof))).parse_next(input)?.is_some() {
            return refuse("a link, `$count` or `$links/` and a link");
        }
        if key.is_none() {
            input.reset(&begin);
            return refuse(
                "`$count`, or a key in parentheses before the link, which leads from one record",
            );
        }
        one_link_more_than(links.len())?;
        links.push(cut_err(keyed_name).parse_next(input)?);
    };
    cut_err(eof)
        .context(expected(
            "the end of the path, a key in parentheses, or `/` and a link",
        ))
        .parse_next(input)?;
    Ok(Address::Resource(ResourcePath {
        resource,
        key,
        links,
        tail,
    }))
}

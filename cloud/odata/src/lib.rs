//! Parses the requests of the cloud's data API: which records a URL addresses, and what it requests of them.
//!
//! [`parse`] accepts the path after the version and the query, both as received, and returns a [`Request`]. It knows
//! the language but no resources: whether a name is a field, a link or unknown is for the caller to decide, who has the
//! model; each [`Name`] carries its place in the URL.
//!
//! ```text
//! raw URL ─ raw        parts of the query, each decoded once, with the position of each character
//!         ├─ address   /device(uuid='…')/owns__device/$count
//!         ├─ options   $select, $expand, $orderby, …
//!         └─ expression  $filter
//! ```
//!
//! It rejects an invalid URL with the character at which it stops being valid. It bounds the length of a request, its
//! nesting depth, and the number of items in its lists and chains. So parsing costs no more than the request's length,
//! and walking the result never recurses deeper than some hundred steps. (OData 4.01 part 2; docs/spec/cloud.md#odata,
//! which takes precedence where they differ.)

#![warn(missing_docs)]

mod address;
mod aliases;
mod error;
mod expression;
mod function;
mod options;
mod raw;
mod request;
mod token;

pub use error::{MAX_CALCULATIONS, MAX_DEPTH, MAX_ITEMS, MAX_LENGTH, MAX_LINKS, ParseError};
pub use function::Function;
pub use request::{
    Address, Arithmetic, Comparison, Count, Direction, Expand, Expression, Key, Lambda, Literal,
    Name, Operand, Options, Order, PathSegment, PropertyPath, Quantifier, Request, ResourcePath,
    Select, Tail, Value,
};

/// Parses a request: `path` is what follows the version (`/device(7)`), `query` what follows the `?`, both still
/// percent-encoded. Places in errors and names count the bytes of `path?query` from 0.
///
/// # Errors
/// [`ParseError`] if it is not valid in the language.
pub fn parse(path: &str, query: Option<&str>) -> Result<Request, ParseError> {
    parse_behind("", path, query)
}

/// Like [`parse`], for a path that follows `base` (`/v7`): places count the bytes of the whole, as the client sent it.
///
/// # Errors
/// As [`parse`].
pub fn parse_behind(base: &str, path: &str, query: Option<&str>) -> Result<Request, ParseError> {
    let length = base.len() + path.len() + query.map_or(0, |query| query.len() + 1);
    if length > MAX_LENGTH {
        return Err(ParseError::too_long(length));
    }
    let text = match query {
        Some(query) => format!("{base}{path}?{query}"),
        None => format!("{base}{path}"),
    };
    let read = || {
        let address = address::read(path, base.len())?;
        let options = match query {
            Some(query) => options::read(query, base.len() + path.len() + 1)?,
            None => Options::default(),
        };
        aliases::check(&address, &options)?;
        Ok((address, options))
    };
    let (address, options) = read().map_err(|error: ParseError| error.within(&text))?;
    Ok(Request {
        address,
        options,
        text,
    })
}

/// Parses a condition on its own, as it reads after `$filter=` once decoded.
///
/// # Errors
/// [`ParseError`] if it is not valid in the language.
pub fn parse_filter(text: &str) -> Result<Expression, ParseError> {
    if text.len() > MAX_LENGTH {
        return Err(ParseError::too_long(text.len()));
    }
    options::condition(text).map_err(|error| error.within(text))
}

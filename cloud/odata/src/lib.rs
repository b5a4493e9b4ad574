//! Reads the requests of the cloud's data API: which records a URL names, and what it asks of them.
//!
//! [`parse`] takes the path behind the version and the query, both as they came, and answers a
//! [`Request`]. It knows the language and no resource: whether a name is a field, a link or nothing at all
//! is for whoever has the model to say, at the place in the URL that each [`Name`] carries.
//!
//! ```text
//! raw URL ─ raw        parts of the query, each decoded once, with the place of each character
//!         ├─ address   /device(uuid='…')/owns__device/$count
//!         ├─ options   $select, $expand, $orderby, …
//!         └─ expression  $filter
//! ```
//!
//! It refuses what is no URL of the data API with the character at which it stops to be one, and bounds
//! how long a request may be, how deep it may nest, and how many items its lists and chains may have, so that
//! reading it costs no more than its length and whoever walks what was read never goes deeper than some hundred
//! steps.
//! (OData 4.01 part 2; docs/spec/cloud.md#odata, which wins where they differ.)

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

/// Reads a request: `path` is what follows the version (`/device(7)`), `query` what follows the `?`, both
/// still percent-encoded. Places in errors and names count the bytes of `path?query` from 0.
///
/// # Errors
/// [`ParseError`] where it is not of the language.
pub fn parse(path: &str, query: Option<&str>) -> Result<Request, ParseError> {
    parse_behind("", path, query)
}

/// The same, where `base` (`/v7`) stands before the path: places count the bytes of the whole, as whoever sent it
/// sees it.
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

/// Reads a condition by itself, as it stands behind `$filter=` once decoded.
///
/// # Errors
/// [`ParseError`] where it is not of the language.
pub fn parse_filter(text: &str) -> Result<Expression, ParseError> {
    if text.len() > MAX_LENGTH {
        return Err(ParseError::too_long(text.len()));
    }
    options::condition(text).map_err(|error| error.within(text))
}

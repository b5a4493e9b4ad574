//! The routes that a plugin answers.

use std::fmt;
use std::str::FromStr as _;

use http::Method;

use crate::Pattern;

/// A route: a method and a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// GET, POST, PUT, PATCH or DELETE.
    pub method: Method,
    /// The path.
    pub pattern: Pattern,
}

impl Route {
    /// Parses `GET /v3/greet/:name`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Route, String> {
        let Some((method, path)) = text.split_once(' ') else {
            let text: String = text.chars().take(300).collect();
            return Err(format!(
                "`{text}` is not a route: a route is a method and a path, for example `GET /v3/greet/:name`"
            ));
        };
        Ok(Route {
            method: parse_method(method)?,
            pattern: Pattern::parse(path.trim_start()).map_err(|error| error.to_string())?,
        })
    }

    /// Returns whether both match the same paths, so that the second one could never be called.
    #[must_use]
    pub fn is_the_same_as(&self, other: &Route) -> bool {
        self.method == other.method
            && self.pattern.overlaps(&other.pattern)
            && self.pattern.rank() == other.pattern.rank()
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.pattern)
    }
}

/// Returns the method of the routes that answer a request with `method`: those for GET also answer HEAD, and the body of
/// the answer is dropped later.
#[must_use]
pub fn route_method(method: &Method) -> &Method {
    match *method {
        Method::HEAD => &Method::GET,
        _ => method,
    }
}

/// Returns the value of the header `Allow` for a path whose routes have these methods.
#[must_use]
pub fn allowed_methods<'m>(methods: impl IntoIterator<Item = &'m Method>) -> String {
    let mut names: Vec<&str> = methods.into_iter().map(Method::as_str).collect();
    if names.contains(&"GET") {
        names.push("HEAD");
    }
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// Parses the method of a route.
///
/// # Errors
/// The methods that a route can have.
pub fn parse_method(text: &str) -> Result<Method, String> {
    match Method::from_str(text) {
        Ok(
            method @ (Method::GET | Method::POST | Method::PUT | Method::PATCH | Method::DELETE),
        ) => Ok(method),
        _ => {
            let text: String = text.chars().take(20).collect();
            Err(format!(
                "its method is `{text}`, but must be GET, POST, PUT, PATCH or DELETE"
            ))
        }
    }
}

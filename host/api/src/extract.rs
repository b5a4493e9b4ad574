//! What handlers take from the path and the query. [`crate::auth::Caller`], and [`crate::body`]'s [`Fields`] and
//! [`Document`], are further arguments of theirs.
//!
//! [`Fields`]: crate::body::Fields
//! [`Document`]: crate::body::Document

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::answer::Failure;

/// What the `:names` of the route's path stand for, percent-decoded, among the request's extensions.
#[derive(Clone)]
pub(crate) struct PathParameters(pub(crate) Vec<String>);

/// The values of the `:names` in the route's path, of which there are `N`.
pub(crate) struct Path<const N: usize>(pub(crate) [String; N]);

impl<S: Sync, const N: usize> FromRequestParts<S> for Path<N> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let parameters = parts.extensions.remove::<PathParameters>();
        let values = parameters.and_then(|PathParameters(values)| values.try_into().ok());
        values.map(Path).ok_or_else(|| Failure::Internal {
            doing: "read the path",
            cause: "the route has another number of parameters than its handler takes".into(),
        })
    }
}

/// The value of a parameter of the query; the last one if it is repeated.
pub(crate) fn query_parameter<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    form_urlencoded::parse(query?.as_bytes())
        .filter(|(parameter, _)| parameter == name)
        .last()
        .map(|(_, value)| value)
}

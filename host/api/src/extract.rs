//! Arguments of handlers: the caller, and what they extract from the path and the query. Further arguments are
//! [`crate::body`]'s [`Fields`] and [`Document`].
//!
//! [`Fields`]: crate::body::Fields
//! [`Document`]: crate::body::Document

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::answer::Failure;
use crate::caller::Caller;
use crate::state::RouteState;

/// The values of the `N` `:names` in the route's path.
pub(crate) struct Path<const N: usize>(pub(crate) [String; N]);

impl<const N: usize> FromRequestParts<RouteState> for Path<N> {
    type Rejection = Failure;

    async fn from_request_parts(_: &mut Parts, state: &RouteState) -> Result<Self, Failure> {
        let values = state.parameters.clone().try_into();
        values.map(Path).map_err(|_| Failure::Internal {
            doing: "read the path",
            cause: "the route has another number of parameters than its handler takes".into(),
        })
    }
}

/// If no caller was admitted, handlers that need one are not called.
impl FromRequestParts<RouteState> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(_: &mut Parts, state: &RouteState) -> Result<Self, Failure> {
        state.caller.clone().ok_or(Failure::Unauthorized)
    }
}

/// Returns the value of a parameter of the query; the last one if it is repeated.
pub(crate) fn query_parameter<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    form_urlencoded::parse(query?.as_bytes())
        .filter(|(parameter, _)| parameter == name)
        .last()
        .map(|(_, value)| value)
}

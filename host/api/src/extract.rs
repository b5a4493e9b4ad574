//! Arguments that handlers extract from the path and the query. Further arguments are [`crate::caller::Caller`], and
//! [`crate::body`]'s [`Fields`] and [`Document`].
//!
//! [`Fields`]: crate::body::Fields
//! [`Document`]: crate::body::Document

use std::borrow::Cow;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;

use crate::answer::Failure;
use crate::app::Api;
use crate::caller::Caller;

/// The input of a handler in addition to its request: the state of axum's handlers. Extensions of the request would
/// work too, but cost a map on the heap for each request.
#[derive(Clone)]
pub(crate) struct RouteState {
    pub(crate) api: Api,
    /// The admitted caller; `None` on a route that needs no key.
    pub(crate) caller: Option<Caller>,
    /// The values of the `:names` in the route's path, percent-decoded.
    pub(crate) parameters: Vec<String>,
}

impl FromRef<RouteState> for Api {
    fn from_ref(state: &RouteState) -> Api {
        state.api.clone()
    }
}

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

/// Returns the value of a parameter of the query; the last one if it is repeated.
pub(crate) fn query_parameter<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    form_urlencoded::parse(query?.as_bytes())
        .filter(|(parameter, _)| parameter == name)
        .last()
        .map(|(_, value)| value)
}

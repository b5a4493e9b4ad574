//! The core routes as a table: the basis for dispatching, for the routes that plugins may not claim, and for the
//! description of the API.
//!
//! The handlers are axum's, but its router is not used. It would add the core's methods as `Allow` to every answer to
//! another method, and so to a plugin's answer too. Also, every path would have to be rewritten before it, to match in
//! any case and with a slash at the end, while parameters are read from the original path.
//!
//! To add a route, write its handler in the file of its family and add it to the file's `routes`; to add a
//! family, add its `routes` to [`ROUTES`].

use std::sync::LazyLock;

use http::Method;
use plugin_manifest::route_method;

use crate::route::Route;
use crate::{metrics, ping, v1, v2, v3};

/// The core routes; every other route is a plugin's.
static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let families = [
        ping::routes(),
        metrics::routes(),
        v1::health::routes(),
        v1::device::routes(),
        v1::blink::routes(),
        v1::api_key::routes(),
        v1::actions::routes(),
        v1::apps::routes(),
        v1::power::routes(),
        v1::update::routes(),
        v2::version::routes(),
        v2::state_status::routes(),
        v2::applications::routes(),
        v2::container_id::routes(),
        v2::actions::routes(),
        v2::volumes::routes(),
        v2::local::routes(),
        v3::events::routes(),
        v3::locks::routes(),
        v3::openapi::routes(),
        v3::plan::routes(),
        v3::plugins::routes(),
    ];
    families.into_iter().flatten().collect()
});

/// Lists all core routes.
pub fn core_routes() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter()
}

/// The core's routes for a method and a path.
pub(crate) enum CoreMatch {
    /// A route with its index, and the values of its `:names`.
    Route(usize, &'static Route, Vec<String>),
    /// The path exists with these methods; empty if it does not exist.
    OtherMethods(Vec<Method>),
}

/// Finds the route of a request.
pub(crate) fn find(method: &Method, path: &str) -> CoreMatch {
    let method = route_method(method);
    let mut others = Vec::new();
    for (place, route) in core_routes().enumerate() {
        if let Some(params) = route.matches(path) {
            if route.method == *method {
                return CoreMatch::Route(place, route, params);
            }
            others.push(route.method.clone());
        }
    }
    CoreMatch::OtherMethods(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_routes_are_the_same_and_each_says_what_it_does() {
        let mut paths = std::collections::BTreeSet::new();
        for route in core_routes() {
            assert!(
                paths.insert((route.path, route.method.as_str())),
                "{}",
                route.path
            );
            assert!(!route.summary.is_empty(), "{}", route.path);
        }
    }
}

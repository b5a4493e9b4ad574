//! The core routes as data: what the API dispatches by, what plugins may not claim, and what a
//! description of the API is made from.
//!
//! To add a route, write its handler in the file of its family and add a line to that family's `ROUTES`;
//! to add a family, add it to [`FAMILIES`].

use futures::future::BoxFuture;
use http::Method;
use percent_encoding::percent_decode_str;

use crate::answer::Failure;
use crate::app::Api;
use crate::call::Call;
use crate::device::Response;
use crate::operation::Operation;
use crate::{metrics, ping, v1, v2, v3};

/// The core families; every other route is a plugin's.
const FAMILIES: &[&[Route]] = &[
    ping::ROUTES,
    metrics::ROUTES,
    v1::health::ROUTES,
    v1::device::ROUTES,
    v1::blink::ROUTES,
    v1::api_key::ROUTES,
    v1::actions::ROUTES,
    v1::apps::ROUTES,
    v1::power::ROUTES,
    v1::update::ROUTES,
    v2::version::ROUTES,
    v2::state_status::ROUTES,
    v2::applications::ROUTES,
    v2::container_id::ROUTES,
    v2::actions::ROUTES,
    v2::volumes::ROUTES,
    v2::local::ROUTES,
    v3::events::ROUTES,
    v3::locks::ROUTES,
    v3::openapi::ROUTES,
    v3::plan::ROUTES,
    v3::plugins::ROUTES,
];

/// One route: a method on a path.
pub struct Route {
    /// The method; `HEAD` is answered like `GET`.
    pub method: Method,
    /// The path; a segment that begins with a colon matches any segment.
    pub path: &'static str,
    /// What the route does, in a few words.
    pub summary: &'static str,
    pub(crate) operation: Operation,
    pub(crate) handler: Handler,
}

pub(crate) type Outcome = Result<Response, Failure>;

/// The function that answers a route.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// Answers from memory.
    Now(fn(&Api, &Call) -> Outcome),
    /// Answers after it has read the body or waited for something.
    Later(fn(Api, Call) -> BoxFuture<'static, Outcome>),
}

/// Lists all core routes.
pub fn core_routes() -> impl Iterator<Item = &'static Route> {
    FAMILIES.iter().copied().flatten()
}

/// The index of a core route.
pub(crate) fn place_of(method: &Method, path: &str) -> Option<usize> {
    core_routes().position(|route| route.method == *method && route.path == path)
}

/// The core's routes for a method and a path.
pub(crate) enum Core {
    /// With its place among all, and what its `:names` stand for.
    Route(usize, &'static Route, Vec<String>),
    /// The path is known, with these methods; none if it is not known.
    OtherMethods(Vec<Method>),
}

/// Finds the route of a request. `HEAD` is answered as `GET`; its body is dropped on the way out.
pub(crate) fn find(method: &Method, path: &str) -> Core {
    let wanted = if *method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    let mut others = Vec::new();
    for (place, route) in core_routes().enumerate() {
        if let Some(params) = matches(route.path, path) {
            if route.method == *wanted {
                return Core::Route(place, route, params);
            }
            others.push(route.method.clone());
        }
    }
    Core::OtherMethods(others)
}

/// What the pattern's `:names` stand for, percent-decoded, if `path` matches: whatever its case, and
/// with or without one slash at the end.
fn matches(pattern: &str, path: &str) -> Option<Vec<String>> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if !pattern.contains(':') {
        return pattern.eq_ignore_ascii_case(path).then(Vec::new);
    }
    let mut params = Vec::new();
    let mut segments = path.split('/');
    for expected in pattern.split('/') {
        let segment = segments.next()?;
        if expected.starts_with(':') {
            if segment.is_empty() {
                return None;
            }
            let value = percent_decode_str(segment).decode_utf8().ok()?;
            params.push(value.into_owned());
        } else if !expected.eq_ignore_ascii_case(segment) {
            return None;
        }
    }
    segments.next().is_none().then_some(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_whatever_their_case_and_with_a_slash_at_the_end() {
        let pattern = "/v2/applications/:appId/state";
        for (pattern, path, params) in [
            ("/v1/device", "/v1/device", Some(&[][..])),
            ("/v1/device", "/V1/Device/", Some(&[])),
            ("/v1/device", "/v1/device//", None),
            ("/v1/device", "/v1/device/x", None),
            ("/v1/device", "//v1/device", None),
            ("/v1/device", "/v1/%64evice", None),
            (pattern, "/v2/applications/12/state", Some(&["12"])),
            (pattern, "/V2/Applications/AbC/State/", Some(&["AbC"])),
            (pattern, "/v2/applications/%31%32/state", Some(&["12"])),
            (pattern, "/v2/applications/%ff/state", None),
            (pattern, "/v2/applications//state", None),
            (pattern, "/v2/applications/state", None),
            (pattern, "/v2/applications/1/2/state", None),
        ] {
            let expected: Option<Vec<String>> =
                params.map(|params| params.iter().map(ToString::to_string).collect());
            assert_eq!(matches(pattern, path), expected, "{path}");
        }
    }

    #[test]
    fn no_two_routes_are_the_same_and_each_says_what_it_does() {
        let mut seen = std::collections::BTreeSet::new();
        for route in core_routes() {
            assert!(
                seen.insert((route.path, route.method.as_str())),
                "{}",
                route.path
            );
            assert!(!route.summary.is_empty(), "{}", route.path);
        }
    }
}

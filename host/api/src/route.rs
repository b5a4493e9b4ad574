//! One route: its path, its handler, and the declarations that describe it.

use axum::handler::Handler;
use futures::future::BoxFuture;
use http::Method;
use plugin_manifest::match_path;
use schemars::JsonSchema;

use crate::message::{Request, Response};
use crate::operation::{Answer, RequestBody, SchemaOf, schema};
use crate::state::RouteState;

/// One route: a method on a path, its handler, and its entry in `GET /v3/openapi.json`.
pub struct Route {
    /// The method; `HEAD` is answered like `GET`.
    pub method: Method,
    /// The path; a segment that begins with a colon matches any segment.
    pub path: &'static str,
    /// What the route does, in a few words.
    pub summary: &'static str,
    /// Whether it is answered without a key.
    pub(crate) is_open: bool,
    /// The parameters of the query, all of which are optional, with their descriptions.
    pub(crate) query: &'static [(&'static str, &'static str)],
    pub(crate) body: RequestBody,
    pub(crate) answers: Vec<Answer>,
    handler: Box<dyn Fn(Request, RouteState) -> BoxFuture<'static, Response> + Send + Sync>,
}

impl Route {
    /// Creates a route without a body and without declared answers.
    pub(crate) fn new<H, T>(method: Method, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, RouteState, Future = BoxFuture<'static, Response>>,
    {
        Route {
            method,
            path,
            summary: "",
            is_open: false,
            query: &[],
            body: RequestBody::Ignored,
            answers: Vec::new(),
            handler: Box::new(move |request, state| handler.clone().call(request, state)),
        }
    }

    pub(crate) fn get<H, T>(path: &'static str, handler: H) -> Self
    where
        H: Handler<T, RouteState, Future = BoxFuture<'static, Response>>,
    {
        Route::new(Method::GET, path, handler)
    }

    pub(crate) fn post<H, T>(path: &'static str, handler: H) -> Self
    where
        H: Handler<T, RouteState, Future = BoxFuture<'static, Response>>,
    {
        Route::new(Method::POST, path, handler)
    }

    /// Declares what the route does.
    pub(crate) fn summary(self, summary: &'static str) -> Self {
        Route { summary, ..self }
    }

    /// Makes the route answer without a key.
    pub(crate) fn without_key(self) -> Self {
        Route {
            is_open: true,
            ..self
        }
    }

    /// Declares that the handler reads these parameters of the query, with their descriptions.
    pub(crate) fn with_query(self, query: &'static [(&'static str, &'static str)]) -> Self {
        Route { query, ..self }
    }

    /// Declares that the handler reads an object with these fields.
    pub(crate) fn taking<T: JsonSchema>(self) -> Self {
        Route {
            body: RequestBody::Action(schema::<T>),
            ..self
        }
    }

    /// Declares that the handler reads a document.
    pub(crate) fn taking_document(self, schema: SchemaOf) -> Self {
        Route {
            body: RequestBody::Document(schema),
            ..self
        }
    }

    /// Declares that the handler reads a WebAssembly component.
    pub(crate) fn taking_component(self) -> Self {
        Route {
            body: RequestBody::Component,
            ..self
        }
    }

    /// Declares the handler's answers. Answers of all routes, such as the refusal of a key, need not be declared.
    pub(crate) fn answering(self, answers: impl Into<Vec<Answer>>) -> Self {
        Route {
            answers: answers.into(),
            ..self
        }
    }

    pub(crate) fn call(&self, request: Request, state: RouteState) -> BoxFuture<'static, Response> {
        (self.handler)(request, state)
    }

    /// Returns the values of the path's `:names`, percent-decoded, if `path` matches, in any case, with or without one
    /// slash at the end.
    pub(crate) fn matches(&self, path: &str) -> Option<Vec<String>> {
        let values = match_path(self.path, path)?.into_iter();
        Some(values.map(|(_, value)| value).collect())
    }
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
            let route = Route::get(pattern, || async {});
            assert_eq!(route.matches(path), expected, "{path}");
        }
    }
}

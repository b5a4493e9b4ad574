//! The whole request, as a handler can see it.

use crate::bindings::endpoint::platform::supervisor::types as wit;
use crate::{Body, Headers};

/// One HTTP request on one of the plugin's routes. The host has checked the caller's key, and has
/// removed it from the query and the headers.
#[derive(Debug, Default)]
pub struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) route: String,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) query: String,
    pub(crate) headers: Headers,
    pub(crate) body: Body,
}

impl Request {
    /// Returns the method in upper case.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the path as it arrived, percent-encoded, without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the matching pattern of [`crate::plugin!`].
    #[must_use]
    pub fn route(&self) -> &str {
        &self.route
    }

    /// Returns the query string as it arrived, without the question mark.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Returns the header fields.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Takes the body out; a second call finds it empty.
    pub fn take_body(&mut self) -> Body {
        std::mem::take(&mut self.body)
    }

    /// Returns whether this request is for this `route` and `method` of the manifest.
    #[doc(hidden)]
    #[must_use]
    pub fn is(&self, method: &str, route: &str) -> bool {
        self.method == method && self.route == route
    }
}

impl From<wit::Request> for Request {
    fn from(request: wit::Request) -> Self {
        Self {
            method: request.method,
            path: request.path,
            route: request.route,
            params: request.params,
            query: request.query,
            headers: Headers(request.headers),
            body: request.body.into(),
        }
    }
}

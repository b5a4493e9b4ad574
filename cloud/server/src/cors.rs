//! Web pages of other origins, and headers for browsers (docs/spec/cloud.md#http-rules).

use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

const METHODS: &str = "GET, PUT, POST, PATCH, DELETE, OPTIONS, HEAD";
const HEADERS: &str = "Content-Type, Authorization, Application-Record-Count, MaxDataServiceVersion, \
                       X-Requested-With, X-Platform-Client";
const EXPOSED: &str = "Retry-After, ETag, Location";
/// Seconds.
const MAX_AGE: &str = "86400";

/// The kind of client, as far as it matters for web pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Devices and command-line tools, which do not need the headers.
    Program,
    Browser,
    /// A browser that asks whether a request is permitted.
    Preflight,
}

impl Origin {
    pub(crate) fn from_request(request: &Request) -> Self {
        match (is_browser(request.headers()), request.method()) {
            (false, _) => Origin::Program,
            (true, &Method::OPTIONS) => Origin::Preflight,
            (true, _) => Origin::Browser,
        }
    }

    pub(crate) fn is_preflight(self) -> bool {
        self == Origin::Preflight
    }

    /// Sets the headers that tell browsers what they may do.
    pub(crate) fn allow(self, response: &mut Response) {
        if self == Origin::Program {
            return;
        }
        let headers = response.headers_mut();
        let mut set = |name: HeaderName, value: &'static str| {
            headers.insert(name, HeaderValue::from_static(value));
        };
        if self.is_preflight() {
            set(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            set(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
            set(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        }
        // Pages of any origin may send requests, but none with credentials that a browser adds automatically: the API
        // accepts no cookies, and a proxy in front that adds its own credentials must not lend them to whatever page is
        // open.
        set(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        set(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        set(header::X_FRAME_OPTIONS, "DENY");
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    }
}

fn is_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT);
    agent
        .and_then(|agent| agent.to_str().ok())
        .is_some_and(|agent| !agent.starts_with("Supervisor") && !agent.starts_with("curl"))
}

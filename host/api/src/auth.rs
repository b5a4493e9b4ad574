//! Authorization: the key of a request, and what it covers (docs/spec/device.md#keys).
//!
//! [`Credentials::admit`] runs for every request that needs a key, whether or not its path exists, so that a caller
//! without one learns nothing about which paths exist. It never logs a key.

use std::borrow::Cow;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use model::{key_in_query, query_without_key};
use store::KeyOwner;

use crate::answer::Failure;
use crate::caller::{Caller, KeyScope};
use crate::client_connection::ClientConnection;
use crate::listener::LocalModeAuth;
use crate::message::Request;
use crate::state::Api;

/// What the command line tool requests in addition to `/v2/local/*`.
const LOCAL_READS: [&str; 3] = ["/v2/version", "/v2/state/status", "/v2/containerId"];
const LOCAL_PREFIX: &str = "/v2/local/";

/// The credentials of a request.
pub(crate) struct Credentials<'a> {
    key: Option<KeyOwner>,
    /// The connection, if its listener may answer without a key in local mode.
    open_to: Option<&'a ClientConnection>,
}

impl<'a> Credentials<'a> {
    /// Returns the credentials of this request. Requests through the cloud's tunnel have no connection, and need a key.
    pub(crate) fn from_request(
        api: &Api,
        request: &Request,
        connection: Option<&'a ClientConnection>,
    ) -> Self {
        let key = offered_key(request).and_then(|offered| api.keys.key_owner(&offered));
        let (method, path) = (request.method(), request.uri().path());
        let open_to = connection.filter(|connection| {
            // The device's own key opens everything anyway.
            key != Some(KeyOwner::Global)
                && needs_no_key(connection.auth(), method, path)
                && api.device.local_mode()
        });
        Credentials { key, open_to }
    }

    /// Admits the request or refuses it.
    ///
    /// # Errors
    /// Returns [`Failure::Unauthorized`] if a key is needed and the offered one is missing or unknown.
    pub(crate) async fn admit(self) -> Result<Caller, Failure> {
        let open = match &self.open_to {
            Some(connection) => connection.may_do_without_key().await,
            None => false,
        };
        let scope = match &self.key {
            _ if open => KeyScope::All,
            Some(KeyOwner::Global) => KeyScope::All,
            Some(KeyOwner::Service { app, .. }) => KeyScope::App(*app),
            None => return Err(Failure::Unauthorized),
        };
        Ok(Caller {
            scope,
            key: self.key,
        })
    }
}

/// Returns whether a device in local mode answers this without a key at a listener with `auth`.
fn needs_no_key(auth: LocalModeAuth, method: &Method, path: &str) -> bool {
    match auth {
        LocalModeAuth::Strict => false,
        LocalModeAuth::Open => true,
        LocalModeAuth::LocalEndpoints => {
            let path = path.strip_suffix('/').unwrap_or(path);
            let reads = matches!(*method, Method::GET | Method::HEAD);
            let is_local = path
                .get(..LOCAL_PREFIX.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(LOCAL_PREFIX));
            is_local
                || (reads
                    && LOCAL_READS
                        .iter()
                        .any(|open| path.eq_ignore_ascii_case(open)))
        }
    }
}

/// Returns the key of a request: one `apikey` in the query, else the header. A key in the query takes precedence even
/// if it is wrong; a repeated or empty one counts as missing (docs/spec/device.md#keys-where).
pub(crate) fn offered_key(request: &Request) -> Option<Cow<'_, str>> {
    let in_query = request.uri().query().and_then(key_in_query);
    in_query.or_else(|| key_in_header(request.headers()))
}

/// Returns the request in a form that may be passed on: without the header and the parameter for keys.
pub(crate) fn without_key(mut request: Request) -> Request {
    request.headers_mut().remove(AUTHORIZATION);
    let query = request.uri().query().map(query_without_key);
    if let Some(Cow::Owned(rest)) = query {
        let mut target = request.uri().path().to_owned();
        if !rest.is_empty() {
            target.push('?');
            target.push_str(&rest);
        }
        // These are parts of a valid target; if they ever fail to parse, having no query at all is the safe result.
        *request.uri_mut() = target.parse().unwrap_or_default();
    }
    request
}

fn key_in_header(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let is_key = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("apikey");
    let is_clean = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (is_key && is_clean).then_some(Cow::Borrowed(key))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn offered(query: &str, header: Option<&str>) -> Option<String> {
        let mut request = http::Request::builder().uri(format!("/v1/device{query}"));
        if let Some(header) = header {
            request = request.header(AUTHORIZATION, header);
        }
        let request = request.body(Body::empty()).unwrap();
        offered_key(&request).map(Cow::into_owned)
    }

    #[test]
    fn a_key_is_read_from_the_query_and_else_from_the_header() {
        for (query, header, key) in [
            ("?apikey=abc", None, Some("abc")),
            ("?x=1&apikey=abc&y", None, Some("abc")),
            ("?apikey=a%62c", None, Some("abc")),
            ("?api%6Bey=abc", None, Some("abc")),
            ("?apikey=wrong", Some("Bearer right"), Some("wrong")),
            ("?apikey=a&apikey=b", None, None),
            ("?apikey=a&apikey=b", Some("Bearer right"), Some("right")),
            ("?apikey=", Some("ApiKey right"), Some("right")),
            ("?APIKEY=abc", None, None),
            ("?apikey[]=abc", None, None),
            ("", Some("bearer abc"), Some("abc")),
            ("", Some("APIKEY a_1"), Some("a_1")),
            ("", Some("Basic abc"), None),
            ("", Some("Bearer  abc"), None),
            ("", Some("Bearer a-b"), None),
            ("", Some("Bearer "), None),
            ("", Some("Bearer"), None),
            ("", None, None),
        ] {
            assert_eq!(
                offered(query, header).as_deref(),
                key,
                "{query:?} {header:?}"
            );
        }
    }

    #[test]
    fn keys_are_removed_from_a_request_before_others_see_it() {
        for (target, remaining) in [
            ("/a?apikey=k", "/a"),
            ("/a?x=1&apikey=k&y=%20&apikey=l", "/a?x=1&y=%20"),
            ("/a?api%6Bey=k&z", "/a?z"),
            ("/a?x&%61pikey=k", "/a?x"),
            ("/a?apikey", "/a"),
            ("/a?x=apikey&APIKEY=1", "/a?x=apikey&APIKEY=1"),
            ("/a?", "/a?"),
            ("/a", "/a"),
        ] {
            let request = http::Request::builder()
                .uri(target)
                .header(AUTHORIZATION, "Bearer k")
                .body(Body::empty())
                .unwrap();
            let request = without_key(request);
            assert_eq!(request.uri().to_string(), remaining);
            assert!(request.headers().is_empty());
        }
    }

    #[test]
    fn local_mode_opens_what_the_command_line_tool_calls_and_no_more() {
        use LocalModeAuth::{LocalEndpoints, Open, Strict};
        for (method, path, open) in [
            ("GET", "/v2/local/target-state", true),
            ("POST", "/v2/local/target-state", true),
            ("GET", "/V2/Local/Logs/", true),
            ("GET", "/v2/local/unknown", true),
            ("GET", "/v2/local", false),
            ("GET", "/v2/version", true),
            ("HEAD", "/v2/version/", true),
            ("POST", "/v2/version", false),
            ("GET", "/v2/state/status", true),
            ("GET", "/v2/CONTAINERID", true),
            ("GET", "/v2/applications/state", false),
            ("GET", "/v1/device", false),
            ("POST", "/v1/regenerate-api-key", false),
            ("GET", "/", false),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(
                needs_no_key(LocalEndpoints, &method, path),
                open,
                "{method} {path}"
            );
            assert!(needs_no_key(Open, &method, path));
            assert!(!needs_no_key(Strict, &method, path));
        }
    }
}

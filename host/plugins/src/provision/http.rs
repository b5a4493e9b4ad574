//! Requests of plugins to the hosts that the policy names.

use std::sync::Arc;

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use plugin_protocol::text::cut;
use plugin_protocol::wit::http::{Host, HttpError, Request, Response};
use plugin_protocol::{HTTP_BODY, HTTP_HEADER_BYTES, HTTP_HEADERS, HTTP_URL};

use super::{InstanceCall, method_of};
use crate::bounds::HTTP_ANSWER;
use crate::config::{AddressScope, OutgoingRequest};
use crate::http_grants::{Destination, DestinationGrant};

/// The methods that `wit/http.wit` permits.
const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];
/// Headers about the connection or the destination: only the device itself may set them.
const REFUSED: [HeaderName; 9] = [
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    HOST,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

impl Host for InstanceCall<'_> {
    async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let plugin = self.plugin;
        let (request, destination) = checked(request)?;
        let reachable = match plugin.grants.http.find_grant(&destination) {
            DestinationGrant::Nowhere => {
                return Err(HttpError::NotGranted(cut(format!(
                    "the policy does not name `{destination}` in `http` of the plugin `{}`",
                    plugin.name
                ))));
            }
            DestinationGrant::ByName => AddressScope::OtherMachines,
            DestinationGrant::ByAddress => AddressScope::Everything,
        };
        let outgoing = OutgoingRequest {
            plugin: Arc::clone(&plugin.name),
            request,
            reachable,
            longest_answer: HTTP_ANSWER,
        };
        plugin.services.http.send(outgoing).await
    }
}

/// Converts a valid request. It comes from a plugin's instance, so lengths are checked again.
fn checked(request: Request) -> Result<(http::Request<Vec<u8>>, Destination), HttpError> {
    let Request {
        method,
        url,
        headers,
        body,
    } = request;
    if url.len() > HTTP_URL || headers.len() > HTTP_HEADERS || body.len() > HTTP_BODY {
        return Err(invalid("it is longer than a request may be"));
    }
    let Some(method) = method_of(&method, &METHODS) else {
        return Err(invalid(
            "its method must be GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS",
        ));
    };
    let uri = url.parse::<Uri>().ok();
    let destination = uri.as_ref().and_then(Destination::from_uri);
    let (Some(uri), Some(destination)) = (uri, destination) else {
        return Err(invalid(
            "its `url` must be an address such as `https://api.acme.example/path`",
        ));
    };
    let mut fields = HeaderMap::with_capacity(headers.len());
    let mut length = 0;
    for (name, value) in &headers {
        length += name.len() + value.len();
        let field = HeaderName::from_bytes(name.as_bytes()).ok();
        let field = field.zip(HeaderValue::from_bytes(value).ok());
        let Some((field, value)) = field else {
            let name: String = name.chars().take(64).collect();
            return Err(invalid(format!("{name:?} is not a header field")));
        };
        if REFUSED.contains(&field) {
            return Err(invalid(format!(
                "the device itself writes the header `{field}`"
            )));
        }
        fields.append(field, value);
    }
    if length > HTTP_HEADER_BYTES {
        return Err(invalid("its headers are longer than they may be"));
    }
    let mut request = http::Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = fields;
    Ok((request, destination))
}

fn invalid(why: impl Into<String>) -> HttpError {
    HttpError::Invalid(format!("the request cannot be sent: {}", why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            method: "POST".to_owned(),
            url: "https://api.acme.example/x?y".to_owned(),
            headers: vec![("X-One".to_owned(), b"1".to_vec())],
            body: b"a".to_vec(),
        }
    }

    fn with_header(name: &str, value: Vec<u8>) -> Request {
        Request {
            headers: vec![(name.to_owned(), value)],
            ..request()
        }
    }

    /// Returns why the request is not sent.
    fn refusal(request: Request) -> String {
        match checked(request) {
            Err(HttpError::Invalid(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_is_sent_as_the_plugin_wrote_it() {
        let (sent, destination) = checked(request()).unwrap();
        assert_eq!(destination.to_string(), "https://api.acme.example:443");
        assert_eq!(sent.method(), Method::POST);
        assert_eq!(sent.uri(), "https://api.acme.example/x?y");
        assert_eq!(sent.headers()["x-one"], "1");
        assert_eq!(sent.headers().len(), 1);
        assert_eq!(sent.body(), b"a");
    }

    #[test]
    fn methods_and_headers_of_the_connection_are_the_devices_own() {
        for method in ["TRACE", "CONNECT", "get", "", "GET "] {
            let method = method.to_owned();
            let why = refusal(Request {
                method,
                ..request()
            });
            assert!(why.contains("its method must be GET"), "{why}");
        }
        for name in [
            "Host",
            "Content-Length",
            "Transfer-Encoding",
            "Connection",
            "Expect",
            "Proxy-Authorization",
            "TE",
            "Trailer",
            "Upgrade",
        ] {
            let why = refusal(with_header(name, b"1".to_vec()));
            let expected = format!(
                "the device itself writes the header `{}`",
                name.to_lowercase()
            );
            assert!(why.contains(&expected), "{why}");
        }
        for (name, value) in [("x y", &b"1"[..]), ("", b"1"), ("x", b"1\r\nhost: y")] {
            let why = refusal(with_header(name, value.to_vec()));
            assert!(why.contains("is not a header field"), "{why}");
        }
    }

    #[test]
    fn a_request_is_as_long_as_it_may_be_and_no_longer() {
        let url = |length: usize| {
            let start = "https://api.acme.example/";
            let url = format!("{start}{}", "x".repeat(length - start.len()));
            Request { url, ..request() }
        };
        let headers = |count: usize| {
            let headers = vec![("x".to_owned(), b"1".to_vec()); count];
            Request {
                headers,
                ..request()
            }
        };
        let header_bytes = |length: usize| with_header("x", vec![b'y'; length - 1]);
        let body = |length: usize| {
            let body = vec![b'x'; length];
            Request { body, ..request() }
        };
        let long = "it is longer than a request may be";
        for (fits, over, expected) in [
            (url(HTTP_URL), url(HTTP_URL + 1), long),
            (headers(HTTP_HEADERS), headers(HTTP_HEADERS + 1), long),
            (body(HTTP_BODY), body(HTTP_BODY + 1), long),
            (
                header_bytes(HTTP_HEADER_BYTES),
                header_bytes(HTTP_HEADER_BYTES + 1),
                "its headers are longer than they may be",
            ),
        ] {
            assert!(checked(fits).is_ok(), "{expected}");
            let why = refusal(over);
            assert!(why.ends_with(expected), "{why}");
        }
    }
}

//! Requests to the device's own API, to the routes that the policy names.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Uri};
use plugin_protocol::text::cut;
use plugin_protocol::wit::api::{ApiError, Host, Request as ApiRequest, Response};
use plugin_protocol::{HTTP_BODY, HTTP_URL};

use super::{InstanceCall, method_of};
use crate::actions::DEPTH;
use crate::bounds::HTTP_ANSWER;
use crate::config::PluginApiRequest;

/// The methods of the API's routes.
const METHODS: [Method; 6] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
];

impl Host for InstanceCall<'_> {
    async fn send(&self, request: ApiRequest) -> Result<Response, ApiError> {
        let plugin = self.plugin;
        let request = checked(request)?;
        let (method, path) = (request.method(), request.uri().path());
        if !plugin.grants.api.cover(method, path) {
            return Err(ApiError::NotGranted(cut(format!(
                "the policy does not name `{method} {path}` in `api` of the plugin `{}`",
                plugin.name
            ))));
        }
        let origin = self.origin.through(&plugin.name);
        if origin.depth > DEPTH {
            return Err(ApiError::Unavailable(format!(
                "plugins wait for each other {DEPTH} deep"
            )));
        }
        let request = PluginApiRequest {
            plugin: Arc::clone(&plugin.name),
            request,
            origin,
            longest_answer: HTTP_ANSWER,
        };
        plugin.services.api.send(request).await
    }
}

/// Converts a valid request. It comes from a plugin's instance, so lengths are checked again.
fn checked(request: ApiRequest) -> Result<Request<Vec<u8>>, ApiError> {
    let ApiRequest {
        method,
        path,
        content_type,
        body,
    } = request;
    let types = content_type.as_ref().map_or(0, String::len);
    if path.len() > HTTP_URL || body.len() > HTTP_BODY || types > HTTP_URL {
        return Err(invalid("it is longer than a request may be"));
    }
    let Some(method) = method_of(&method, &METHODS) else {
        return Err(invalid(
            "its method must be GET, HEAD, POST, PUT, PATCH or DELETE",
        ));
    };
    let uri = path.parse::<Uri>().ok();
    let is_path = |uri: &Uri| uri.scheme().is_none() && uri.authority().is_none();
    let Some(uri) = uri.filter(|uri| path.starts_with('/') && is_path(uri)) else {
        return Err(invalid("its `path` must be one such as `/v2/state/status`"));
    };
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    if let Some(text) = content_type {
        let value = HeaderValue::try_from(text);
        let value = value.map_err(|_| invalid("its `content-type` is not a header"))?;
        headers.insert(CONTENT_TYPE, value);
    }
    Ok(request)
}

fn invalid(why: &str) -> ApiError {
    ApiError::Invalid(format!("the request cannot be made: {why}"))
}

//! The HTTP client of the cloud: each caller makes one request at a time, and each phase of it is bounded.
//!
//! It shares the HTTP and TLS code of the image registries' client. It never logs a key or a body, sends the key only
//! to the cloud's host, and follows no redirect away from TLS. It does not retry: when to do so is up to its callers.

mod answer;
mod connections;
mod error;
mod lasting;

use std::sync::Arc;
use std::time::Duration;

use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH,
};
use http::{HeaderMap, Method, StatusCode};
use model::{ApiKey, DeviceUuid};
use parking_lot::Mutex;
use reqwest::Response;
use serde_json::Value;

use crate::identity::Identity;
use crate::payload;
use answer::{collect, read, refusal};
use error::unreachable;

pub use connections::{Connections, user_agent};
pub use error::CloudError;

/// The longest ETag that is kept, in bytes.
const MAX_ETAG: usize = 1 << 10;
/// The data API's version.
pub(crate) const DATA_API: &str = "v7";
/// How many rows the answer to a query may have.
const MAX_ROWS: usize = 10_000;

/// The device's client for its cloud.
pub struct Client {
    identity: Identity,
    /// The device's number, which it may receive while it runs.
    device_id: Mutex<Option<u64>>,
    connections: Arc<Connections>,
}

/// The cloud's answer to a request for the target.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetAnswer {
    /// The target still matches the ETag, or the cloud has none.
    Unchanged,
    /// The target differs from the previous one.
    New {
        /// The target as it was received, not checked yet.
        body: Value,
        /// The ETag to send next time (RFC 9110, 8.8.3); missing if the answer had none, or one that is too long to
        /// keep.
        etag: Option<String>,
    },
}

impl Client {
    /// Sends nothing yet. `agent` is the result of [`user_agent`].
    #[must_use]
    pub fn new(identity: Identity, agent: &str) -> Client {
        let connections = Arc::new(Connections::new(&identity, agent));
        Client::with_connections(connections, identity)
    }

    /// As [`Client::new`], with connections that other devices of this process also use. They are for the cloud of this
    /// identity.
    #[must_use]
    pub fn with_connections(connections: Arc<Connections>, identity: Identity) -> Client {
        let number = identity.device_id.filter(|_| identity.is_provisioned());
        Client {
            device_id: Mutex::new(number),
            identity,
            connections,
        }
    }

    /// Returns the device's identity at its cloud, as it was when this client was created.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the device's number, once the cloud has assigned one.
    #[must_use]
    pub fn device_id(&self) -> Option<u64> {
        *self.device_id.lock()
    }

    /// Sets the device's number.
    pub(crate) fn set_device_id(&self, number: u64) {
        let mut id = self.device_id.lock();
        *id = Some(number);
    }

    /// Returns the device's own uuid, from its identity.
    #[must_use]
    pub fn uuid(&self) -> &DeviceUuid {
        &self.identity.uuid
    }

    /// `GET /device/v3/<uuid>/state`: the target, unless it is still that of `etag`. `limit` is for each
    /// phase of the exchange.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn target(
        &self,
        etag: Option<&str>,
        limit: Duration,
    ) -> Result<TargetAnswer, CloudError> {
        let path = format!("device/v3/{}/state", self.identity.uuid);
        let mut headers = HeaderMap::new();
        if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            headers.insert(IF_NONE_MATCH, etag);
        }
        let key = self.identity.device_key();
        let answer = self
            .send(&key, Method::GET, &path, headers, None, limit)
            .await?;
        if answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(TargetAnswer::Unchanged);
        }
        let etag = answer.headers().get(ETAG).and_then(|etag| {
            let etag = etag.to_str().ok()?;
            (etag.len() <= MAX_ETAG).then(|| etag.to_owned())
        });
        let body = read(answer, limit).await?;
        Ok(TargetAnswer::New { body, etag })
    }

    /// Returns this device's rows of `resource`, as JSON objects with these fields.
    ///
    /// # Errors
    /// [`CloudError::Unprovisioned`] before the device has a number, [`CloudError::Invalid`] if `resource` or a field
    /// is not a valid name, otherwise the error of the request.
    pub async fn records(
        &self,
        resource: &str,
        fields: &[String],
        limit: Duration,
    ) -> Result<Vec<Value>, CloudError> {
        // Checked, so the query contains only names.
        for name in fields.iter().map(String::as_str).chain([resource]) {
            if !is_name(name) {
                return Err(CloudError::Invalid(format!(
                    "`{name}` is not a name in the cloud's data (lower-case letters, digits and `_`)"
                )));
            }
        }
        let Some(device) = self.device_id() else {
            return Err(CloudError::Unprovisioned);
        };
        let filter = format!("device eq {device}");
        let key = self.identity.device_key();
        self.rows(resource, &fields.join(","), &filter, &key, limit)
            .await
    }

    /// Returns the rows of `resource` that match `filter`, as far as `key` gives access.
    pub(crate) async fn rows(
        &self,
        resource: &str,
        select: &str,
        filter: &str,
        key: &ApiKey,
        limit: Duration,
    ) -> Result<Vec<Value>, CloudError> {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("$select", select)
            .append_pair("$filter", filter)
            .finish();
        // A plus sign means a blank only in forms.
        let path = format!("{DATA_API}/{resource}?{}", query.replace('+', "%20"));
        let answer = self
            .send(key, Method::GET, &path, HeaderMap::new(), None, limit)
            .await?;
        let mut body = read(answer, limit).await?;
        match body.get_mut("d").map(Value::take) {
            Some(Value::Array(rows)) if rows.len() <= MAX_ROWS => Ok(rows),
            _ => Err(CloudError::Shape("a list of records")),
        }
    }

    /// `PATCH /device/v3/<what>` with this body; any 2xx is success.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn patch(&self, what: &str, body: &Value, limit: Duration) -> Result<(), CloudError> {
        let path = format!("device/v3/{what}");
        let key = self.identity.device_key();
        let answer = self
            .send(
                &key,
                Method::PATCH,
                &path,
                HeaderMap::new(),
                Some(body),
                limit,
            )
            .await?;
        // The body is of no use; reading it keeps the connection.
        let _ = collect(answer, limit).await;
        Ok(())
    }

    /// Sends a JSON request to the data API or another path, with `key`; returns the answer if it is JSON.
    pub(crate) async fn send_json(
        &self,
        key: &ApiKey,
        method: Method,
        path: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<Option<Value>, CloudError> {
        let answer = self
            .send(key, method, path, HeaderMap::new(), Some(body), limit)
            .await?;
        match read(answer, limit).await {
            Ok(body) => Ok(Some(body)),
            Err(CloudError::Payload(payload::PayloadError::Json(_))) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a request, and returns the answer's head if its status is a 2xx or 304.
    async fn send(
        &self,
        key: &ApiKey,
        method: Method,
        path: &str,
        more: HeaderMap,
        body: Option<&Value>,
        limit: Duration,
    ) -> Result<Response, CloudError> {
        let mut headers = self.headers(key)?;
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.extend(more);
        let url = format!("{}/{path}", self.identity.endpoint);
        let mut request = self
            .connections
            .http(limit)?
            .request(method, url)
            .headers(headers);
        if let Some(body) = body {
            let json = HeaderValue::from_static("application/json");
            request = request.header(CONTENT_TYPE, json).body(body.to_string());
        }
        // Connecting has the limit to itself; the request and the head of the answer have the same again.
        let what = "begin to answer";
        let answer = tokio::time::timeout(limit * 2, request.send()).await;
        let answer = answer.map_err(|_| CloudError::Timeout { what, limit })?;
        let answer = answer.map_err(unreachable)?;
        let status = answer.status();
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Ok(answer);
        }
        Err(refusal(answer, limit).await)
    }

    fn headers(&self, key: &ApiKey) -> Result<HeaderMap, CloudError> {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key.reveal()))
            .map_err(|_| CloudError::Invalid("the key in config.json cannot be sent".into()))?;
        bearer.set_sensitive(true);
        Ok([(AUTHORIZATION, bearer)].into_iter().collect())
    }
}

fn is_name(name: &str) -> bool {
    let byte = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(byte)
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;

//! The HTTP client of the cloud: one request at a time by each caller, each bounded in every phase.
//!
//! It shares the HTTP and TLS code of the image registries' client. It never logs a key or a body, sends the
//! key to no other host than the cloud's, and follows no redirect away from TLS. It retries nothing: when to
//! ask again is its callers' to decide.

mod connections;

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    HeaderValue, IF_NONE_MATCH,
};
use http::{HeaderMap, Method, StatusCode};
use model::{ApiKey, DeviceUuid};
use reqwest::Response;
use serde_json::Value;

use crate::identity::Identity;
use crate::payload::{self, MAX_BODY};
use crate::poll::Source;
use crate::retry;
use connections::CONNECT_WITHIN;

pub use connections::Connections;

/// The longest ETag that is kept, in bytes.
const MAX_ETAG: usize = 1 << 10;
/// How much of a refusal's body is told, in bytes.
const MAX_REASON: usize = 200;
/// An answer may take this many times what one of its pieces may.
const WHOLE: u32 = 5;
/// The data API's version.
pub(crate) const DATA_API: &str = "v7";
/// Rows that one query may answer.
const MAX_ROWS: usize = 10_000;

/// The device's way to its cloud.
pub struct Client {
    identity: Identity,
    /// The device's number, which it may get while it runs.
    device_id: Mutex<Option<u64>>,
    connections: Arc<Connections>,
}

/// What the cloud says of the target.
#[derive(Debug, Clone, PartialEq)]
pub enum Fetched {
    /// It is the one that the ETag stands for, or the cloud has none to give.
    Unchanged,
    /// There is another target than the one before.
    New {
        /// The target as the cloud gave it, not checked yet.
        body: Value,
        /// What to ask with next time (RFC 9110, 8.8.3); missing where none came, or one too long
        /// to keep.
        etag: Option<String>,
    },
}

/// Why the cloud did not answer what it was asked. The text says no key and no part of a target.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// The device has no number at its cloud yet: nothing was sent.
    #[error("this device is not registered with its cloud")]
    Unprovisioned,
    /// No connection could be made, or it broke before the answer was whole.
    #[error("the cloud cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// It took longer than its limit to begin its answer, or to end it.
    #[error("the cloud did not {what} within {} s", limit.as_secs_f64())]
    Timeout {
        /// What it did not do in time, as the rest of a sentence.
        what: &'static str,
        /// The limit that it did not keep.
        limit: Duration,
    },
    /// The cloud refused: with any status but a success or 304.
    #[error("the cloud answered {status}{}", told(reason))]
    Status {
        /// The status of the answer.
        status: StatusCode,
        /// How long the cloud wants not to be asked again.
        retry_after: Option<Duration>,
        /// The beginning of its text.
        reason: String,
    },
    /// The body is too large, cannot be unpacked, or is no JSON.
    #[error("the cloud's answer cannot be used")]
    Payload(#[from] payload::PayloadError),
    /// The answer has another form than it was asked for: this one, as the end of a sentence.
    #[error("the cloud's answer is not {0}")]
    Shape(&'static str),
    /// What was to be sent is not what can be.
    #[error("{0}")]
    Invalid(String),
}

impl CloudError {
    /// How long the cloud wants not to be asked again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            CloudError::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the same request would be refused again, whenever it is made.
    #[must_use]
    pub fn is_final(&self) -> bool {
        use StatusCode as S;
        match self {
            CloudError::Invalid(_) => true,
            CloudError::Status { status, .. } => {
                status.is_client_error()
                    && !matches!(
                        *status,
                        S::UNAUTHORIZED
                            | S::FORBIDDEN
                            | S::NOT_FOUND
                            | S::REQUEST_TIMEOUT
                            | S::TOO_MANY_REQUESTS
                    )
            }
            _ => false,
        }
    }
}

fn told(reason: &str) -> String {
    match reason {
        "" => String::new(),
        reason => format!(": {reason}"),
    }
}

/// The User-Agent of this device (device behaviour 7.8): `Supervisor/19.0.0 (Linux; Some OS 1.2; prod)`,
/// without what is not known.
#[must_use]
pub fn user_agent(api_level: &str, os: Option<&str>, variant: Option<&str>) -> String {
    let known = [Some("Linux"), os, variant].into_iter().flatten();
    let plain = |text: &str| -> String {
        let allowed = |c: &char| matches!(c, ' '..='~') && !matches!(c, '(' | ')' | ';');
        text.chars().filter(allowed).collect()
    };
    let parts: Vec<String> = known.map(plain).filter(|part| !part.is_empty()).collect();
    format!("Supervisor/{api_level} ({})", parts.join("; "))
}

impl Client {
    /// Sends nothing yet. `agent` is of [`user_agent`].
    #[must_use]
    pub fn new(identity: Identity, agent: &str) -> Client {
        let connections = Arc::new(Connections::new(&identity, agent));
        Client::over(connections, identity)
    }

    /// As [`Client::new`], over connections that other devices of this process use as well. They are for the
    /// cloud of this identity.
    #[must_use]
    pub fn over(connections: Arc<Connections>, identity: Identity) -> Client {
        let number = identity.device_id.filter(|_| identity.is_provisioned());
        Client {
            device_id: Mutex::new(number),
            identity,
            connections,
        }
    }

    /// Who the device is to its cloud, as it was when this client was made.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The device's number, once the cloud has given it one.
    #[must_use]
    pub fn device_id(&self) -> Option<u64> {
        *self
            .device_id
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the device has this number.
    pub(crate) fn set_device_id(&self, number: u64) {
        let mut held = self
            .device_id
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *held = Some(number);
    }

    /// The device's own uuid, from its identity.
    #[must_use]
    pub fn uuid(&self) -> &DeviceUuid {
        &self.identity.uuid
    }

    /// `GET /device/v3/<uuid>/state`: the target, unless it is still that of `etag`. `limit` is for each
    /// phase of the exchange.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn target(&self, etag: Option<&str>, limit: Duration) -> Result<Fetched, CloudError> {
        let path = format!("device/v3/{}/state", self.identity.uuid);
        let mut headers = HeaderMap::new();
        if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            headers.insert(IF_NONE_MATCH, etag);
        }
        let answer = self.send(Method::GET, &path, headers, None, limit).await?;
        if answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(Fetched::Unchanged);
        }
        let etag = answer.headers().get(ETAG).and_then(|etag| {
            let etag = etag.to_str().ok()?;
            (etag.len() <= MAX_ETAG).then(|| etag.to_owned())
        });
        let body = read(answer, limit).await?;
        Ok(Fetched::New { body, etag })
    }

    /// The rows of `resource` that are this device's, as JSON objects with these fields.
    ///
    /// # Errors
    /// [`CloudError::Unprovisioned`] before the device has a number, [`CloudError::Invalid`] where
    /// `resource` or a field is no name, else what became of the request.
    pub async fn records(
        &self,
        resource: &str,
        fields: &[String],
        limit: Duration,
    ) -> Result<Vec<Value>, CloudError> {
        // Checked, so that nothing but a name gets into the query.
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

    /// The rows of `resource` for which `filter` holds, as `key` sees them.
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
        // A plus sign is a blank in forms alone.
        let path = format!("{DATA_API}/{resource}?{}", query.replace('+', "%20"));
        let answer = self
            .send_as(key, Method::GET, &path, HeaderMap::new(), None, limit)
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
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = body.to_string();
        let answer = self
            .send(Method::PATCH, &path, headers, Some(body), limit)
            .await?;
        // What it says beside that is of no use; reading it keeps the connection.
        let _ = collect(answer, limit).await;
        Ok(())
    }

    /// A request of the data API, or one beside it, with JSON, as `key`; the answer as JSON where it is any.
    pub(crate) async fn tell(
        &self,
        key: &ApiKey,
        method: Method,
        path: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<Option<Value>, CloudError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = Some(body.to_string());
        let answer = self
            .send_as(key, method, path, headers, body, limit)
            .await?;
        match read(answer, limit).await {
            Ok(body) => Ok(Some(body)),
            Err(CloudError::Payload(payload::PayloadError::Json(_))) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `POST /device/v2/<uuid>/log-stream`: lines as NDJSON, packed, for as long as `body` lasts; any 2xx is
    /// success. `limit` is for all of it, where it has an end that is known.
    pub(crate) async fn send_logs(
        &self,
        body: reqwest::Body,
        limit: Option<Duration>,
    ) -> Result<(), CloudError> {
        let base = self.identity.logs_endpoint.as_ref();
        let base = base.unwrap_or(&self.identity.endpoint);
        let url = format!("{base}/device/v2/{}/log-stream", self.identity.uuid);
        let mut headers = self.headers(&self.identity.device_key())?;
        let ndjson = HeaderValue::from_static("application/x-ndjson");
        headers.insert(CONTENT_TYPE, ndjson);
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let request = self
            .connections
            .lasting()?
            .post(url)
            .headers(headers)
            .body(body);
        let answer = match limit {
            None => request.send().await,
            Some(limit) => match tokio::time::timeout(limit, request.send()).await {
                Ok(answer) => answer,
                Err(_) => {
                    let what = "take logs";
                    return Err(CloudError::Timeout { what, limit });
                }
            },
        };
        let answer = answer.map_err(unreachable)?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(refusal(answer, CONNECT_WITHIN).await)
    }

    /// `GET /device/v3/<uuid>/tunnel`: a connection that has switched protocols, to WebSocket messages of
    /// this subprotocol.
    pub(crate) async fn tunnel(&self, protocol: &str) -> Result<reqwest::Upgraded, CloudError> {
        const WHAT: &str = "open a tunnel";
        let offer =
            tunnel::Offer::new(protocol).map_err(|error| CloudError::Invalid(error.to_string()))?;
        let mut headers = self.headers(&self.identity.device_key())?;
        headers.extend(offer.headers());
        let (endpoint, uuid) = (&self.identity.endpoint, &self.identity.uuid);
        let url = format!("{endpoint}/device/v3/{uuid}/tunnel");
        let request = self.connections.lasting()?.get(url).headers(headers).send();
        let late = |_| CloudError::Timeout {
            what: WHAT,
            limit: CONNECT_WITHIN,
        };
        let answer = tokio::time::timeout(CONNECT_WITHIN, request).await;
        let answer = answer.map_err(late)?.map_err(unreachable)?;
        if answer.status().is_client_error() || answer.status().is_server_error() {
            return Err(refusal(answer, CONNECT_WITHIN).await);
        }
        let taken = offer.is_taken(answer.status(), answer.headers());
        taken.map_err(|error| CloudError::Invalid(error.to_string()))?;
        let upgraded = tokio::time::timeout(CONNECT_WITHIN, answer.upgrade()).await;
        upgraded.map_err(late)?.map_err(unreachable)
    }

    /// The head of a 2xx or 304.
    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Option<String>,
        limit: Duration,
    ) -> Result<Response, CloudError> {
        let key = self.identity.device_key();
        self.send_as(&key, method, path, headers, body, limit).await
    }

    async fn send_as(
        &self,
        key: &ApiKey,
        method: Method,
        path: &str,
        more: HeaderMap,
        body: Option<String>,
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
            request = request.body(body);
        }
        // Connecting has the limit by itself; then as much for the request and the head of the answer.
        let answer = match tokio::time::timeout(limit * 2, request.send()).await {
            Ok(answer) => answer.map_err(unreachable)?,
            Err(_) => {
                return Err(CloudError::Timeout {
                    what: "begin to answer",
                    limit,
                });
            }
        };
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

/// What an answer says that is no success.
async fn refusal(answer: Response, limit: Duration) -> CloudError {
    let (status, retry_after) = (answer.status(), retry::asked(answer.headers()));
    let reason = tokio::time::timeout(limit, beginning(answer)).await;
    CloudError::Status {
        status,
        retry_after,
        reason: reason.unwrap_or_default(),
    }
}

/// Without the URL: a log has it once already, and the identity in it.
fn unreachable(error: reqwest::Error) -> CloudError {
    CloudError::Unreachable(error.without_url().into())
}

fn is_name(name: &str) -> bool {
    let byte = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(byte)
}

/// The whole body as JSON, parsed where that holds up nobody.
async fn read(answer: Response, limit: Duration) -> Result<Value, CloudError> {
    let gzip = match answer.headers().get(CONTENT_ENCODING) {
        None => false,
        Some(name) if name.as_bytes().eq_ignore_ascii_case(b"identity") => false,
        Some(name) if name.as_bytes().eq_ignore_ascii_case(b"gzip") => true,
        Some(_) => return Err(CloudError::Shape("packed as it was asked to be")),
    };
    let body = collect(answer, limit).await?;
    let parsed = tokio::task::spawn_blocking(move || payload::parse(body, gzip)).await;
    match parsed {
        Ok(parsed) => Ok(parsed?),
        Err(gone) => Err(CloudError::Unreachable(gone.into())),
    }
}

/// The whole body, if it is no longer than it may be. The client bounds the silence between two pieces;
/// a cloud that trickles is given up after a few times as long.
async fn collect(answer: Response, limit: Duration) -> Result<Vec<u8>, CloudError> {
    let announced = answer.headers().get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(payload::PayloadError::TooLong.into());
    }
    match tokio::time::timeout(limit * WHOLE, bounded(answer)).await {
        Ok(body) => body,
        Err(_) => Err(CloudError::Timeout {
            what: "end its answer",
            limit: limit * WHOLE,
        }),
    }
}

async fn bounded(mut answer: Response) -> Result<Vec<u8>, CloudError> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
        if body.len() + piece.len() > MAX_BODY {
            return Err(payload::PayloadError::TooLong.into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The beginning of a refusal's text, on one line.
async fn beginning(mut answer: Response) -> String {
    let packed = answer.headers().get(CONTENT_ENCODING);
    let packed = packed.is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(b"gzip"));
    let mut text = Vec::new();
    while text.len() < MAX_REASON
        && let Ok(Some(piece)) = answer.chunk().await
    {
        text.extend_from_slice(&piece);
    }
    if packed {
        text = payload::beginning(&text, MAX_REASON);
    }
    text.truncate(MAX_REASON);
    let text = String::from_utf8_lossy(&text);
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.collect::<String>().trim().to_owned()
}

impl Source for Client {
    fn target<'a>(
        &'a self,
        etag: Option<&'a str>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Fetched, CloudError>> {
        Client::target(self, etag, limit).boxed()
    }
}

#[cfg(test)]
mod tests;

//! One request to one device.

use std::time::Duration;

use axum::body::Bytes;
use data::{DataError, Keyring, RowRight, SecretLocation, Sql, SystemPurpose};
use http::{Method, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::device_connections::DeviceConnections;
use crate::bus::{CallError, DeviceClient, NO_ANSWER};
use crate::unreadable;

/// A device as the target of requests.
#[derive(Debug, Clone)]
pub struct DeviceTarget {
    pub id: i64,
    uuid: String,
    /// The key that its supervisor expects; missing until the supervisor has reported it.
    secret: Option<String>,
}

/// Devices of one statement.
const AT_ONCE: usize = 1000;
const ADDRESSED: &str = "SELECT id, uuid, api_secret FROM device WHERE id IN (?) ORDER BY id";

/// Returns these devices, for a caller with a right on each; deleted devices are missing.
///
/// # Errors
/// If the database fails.
pub async fn targets(
    connections: &DeviceConnections,
    rights: &[RowRight],
) -> Result<Vec<DeviceTarget>, DataError> {
    let some = rights.chunks(AT_ONCE);
    read(
        connections,
        some.map(|some| RowRight::sql_of_all(some, ADDRESSED)),
    )
    .await
}

/// Returns these devices, for the cloud itself, which notifies them of a new state.
///
/// # Errors
/// If the database fails.
pub(super) async fn push_targets(
    connections: &DeviceConnections,
    ids: &[i64],
) -> Result<Vec<DeviceTarget>, DataError> {
    let some = ids.chunks(AT_ONCE);
    read(
        connections,
        some.map(|some| SystemPurpose::Push.sql(ADDRESSED).with_all(some)),
    )
    .await
}

async fn read(
    connections: &DeviceConnections,
    statements: impl Iterator<Item = Sql>,
) -> Result<Vec<DeviceTarget>, DataError> {
    let mut devices = Vec::new();
    for select in statements {
        for row in connections.database.rows(&select).await? {
            let id = row.id(0)?;
            let secret = row.text(2)?;
            devices.push(DeviceTarget {
                id,
                uuid: row.some_text(1)?,
                secret: secret.and_then(|stored| {
                    supervisor_key(&connections.environment.keyring, id, &stored)
                }),
            });
        }
    }
    Ok(devices)
}

/// Decrypts the stored key of a device's supervisor. A key that cannot be decrypted does not affect other devices: the
/// request is sent without a key and refused, until the device reports its key again.
pub fn supervisor_key(keyring: &Keyring, device: i64, stored: &str) -> Option<String> {
    let place = SecretLocation::from_row("device", "api_secret", device);
    keyring
        .open(&place, stored)
        .inspect_err(unreadable::log)
        .ok()
}

/// A request to a device.
#[derive(Debug, Clone)]
pub struct DeviceRequest {
    pub method: Method,
    /// As in the device's own API, starting with a slash, without a query.
    pub path: String,
    /// Without a key.
    pub query: Option<String>,
    /// JSON.
    pub body: Option<Bytes>,
}

/// Why a device did not answer.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The device has no tunnel.
    #[error("the device is not connected")]
    Away,
    /// The tunnel broke.
    #[error("the connection to the device was lost")]
    Broken(#[source] hyper::Error),
    /// The tunnel broke, at another replica.
    #[error("the connection to the device was lost")]
    Lost,
    /// Perhaps another replica holds its tunnel.
    #[error(transparent)]
    NotReached(CallError),
    /// It took too long.
    #[error("the device did not answer within {0:?}")]
    TooLate(Duration),
    /// The data is not a valid request.
    #[error("the request cannot be sent to the device: {0}")]
    NoRequest(#[from] http::Error),
}

impl From<CallError> for DeviceError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Away => DeviceError::Away,
            error => DeviceError::NotReached(error),
        }
    }
}

/// Sends a request to a device, whichever replica it is connected to, and waits this long for the head of its answer.
///
/// # Errors
/// If there is no answer.
pub async fn send(
    connections: &DeviceConnections,
    device: &DeviceTarget,
    request_parts: &DeviceRequest,
    patience: Duration,
) -> Result<Response<Incoming>, DeviceError> {
    let answer = async {
        match connections.open.to(device.id) {
            Some(tunnel) => through(tunnel, device, request_parts).await,
            None => {
                through(
                    connections.bus.call(device.id).await?,
                    device,
                    request_parts,
                )
                .await
            }
        }
    };
    let answer = match timeout(patience, answer).await {
        Ok(answer) => answer?,
        Err(_) => return Err(DeviceError::TooLate(patience)),
    };
    if answer.headers().contains_key(NO_ANSWER) {
        Err(DeviceError::Lost)
    } else {
        Ok(answer)
    }
}

async fn through(
    mut tunnel: DeviceClient,
    device: &DeviceTarget,
    request_parts: &DeviceRequest,
) -> Result<Response<Incoming>, DeviceError> {
    let request = request(device, request_parts)?;
    tunnel.ready().await.map_err(DeviceError::Broken)?;
    let answer = tunnel.send_request(request).await;
    answer.map_err(DeviceError::Broken)
}

fn request(
    device: &DeviceTarget,
    request_parts: &DeviceRequest,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let mut target = request_parts.path.clone();
    let mut separator = '?';
    let mut add = |text: &str| {
        target.push(separator);
        target.push_str(text);
        separator = '&';
    };
    if let Some(query) = &request_parts.query {
        add(query);
    }
    if let Some(secret) = &device.secret {
        let key = form_urlencoded::byte_serialize(secret.as_bytes()).collect::<String>();
        add(&format!("apikey={key}"));
    }
    let uri = Uri::builder()
        .scheme("http")
        .authority(device.uuid.as_str())
        .path_and_query(target)
        .build()?;
    let request = Request::builder().method(&request_parts.method).uri(uri);
    match &request_parts.body {
        None => request.body(Full::default()),
        Some(body) => request
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_query_of_the_caller_and_the_key_of_the_device() {
        let device = |secret: Option<&str>| DeviceTarget {
            id: 7,
            uuid: "ab12".to_owned(),
            secret: secret.map(str::to_owned),
        };
        for (query, secret, target) in [
            (None, None, "/v1/x%2Fy"),
            (None, Some("s&1"), "/v1/x%2Fy?apikey=s%261"),
            (Some("a=1&b=%20"), None, "/v1/x%2Fy?a=1&b=%20"),
            (Some("a=1"), Some("s"), "/v1/x%2Fy?a=1&apikey=s"),
        ] {
            let request_parts = DeviceRequest {
                method: Method::GET,
                path: "/v1/x%2Fy".to_owned(),
                query: query.map(str::to_owned),
                body: None,
            };
            let request = request(&device(secret), &request_parts).expect("a request");
            assert_eq!(request.uri().to_string(), format!("http://ab12{target}"));
            assert!(!request.headers().contains_key(header::CONTENT_TYPE));
        }
    }
}

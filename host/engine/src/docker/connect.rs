//! The connection to a Docker engine: its address, the version that both sides speak, and requests
//! that bollard does not support as we need them (bodies that we read piece by piece, fields of
//! older versions).

use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::ClientVersion;
use bollard::errors::Error;
use bollard::models::ErrorResponse;
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use model::EngineKind;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

use crate::{EngineError, EngineInfo};

/// How long an engine may take before it begins its answer, unless the request itself waits for
/// something.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that is read into memory here, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// Docker's API 1.`minor`; it has had no other major version.
pub(super) const fn api_1(minor: usize) -> ClientVersion {
    ClientVersion {
        major_version: 1,
        minor_version: minor,
    }
}

fn parse_version(text: &str) -> Option<ClientVersion> {
    let (major, minor) = text.split_once('.')?;
    Some(ClientVersion {
        major_version: major.parse().ok()?,
        minor_version: minor.parse().ok()?,
    })
}

#[derive(Debug)]
enum Address {
    Unix(PathBuf),
    Tcp { host: String, port: u16 },
}

/// One engine's address, and the negotiated version.
pub(super) struct Connection {
    uri: String,
    address: Address,
    agreed: Mutex<Option<NegotiatedClient>>,
}

/// A client that speaks the newest version that both sides know.
#[derive(Clone)]
pub(super) struct NegotiatedClient {
    pub(super) api: bollard::Docker,
    pub(super) version: ClientVersion,
}

impl Connection {
    pub(super) fn to(uri: &str) -> Result<Self, EngineError> {
        let over_tcp = uri
            .strip_prefix("tcp://")
            .or_else(|| uri.strip_prefix("http://"));
        let wrong = || {
            EngineError::Invalid(format!(
                "`{uri}` is not the address of a Docker engine: give `unix:///path` or `tcp://host:port`"
            ))
        };
        let address = match (uri.strip_prefix("unix://"), over_tcp) {
            (Some(path), _) if Path::new(path).is_absolute() => Address::Unix(path.into()),
            (_, Some(place)) => tcp(place).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        };
        Ok(Connection {
            uri: uri.to_owned(),
            address,
            agreed: Mutex::default(),
        })
    }

    /// Returns the client. Negotiates a version first if that has not been done since the engine
    /// was last out of reach.
    pub(super) async fn client(&self) -> Result<NegotiatedClient, EngineError> {
        if let Some(agreed) = self.agreed.lock().clone() {
            return Ok(agreed);
        }
        self.agree().await
    }

    /// Returns whether the engine is reached through a socket of this machine.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.address, Address::Unix(_))
    }

    pub(super) async fn info(&self) -> Result<EngineInfo, EngineError> {
        let mut agreed = self.client().await?;
        let answer = agreed.api.version().await;
        let engine =
            answer.map_err(|error| self.failed("ask the engine for its version", error))?;
        let newest = *bollard::API_DEFAULT_VERSION;
        let speaks = engine.api_version.as_deref().and_then(parse_version);
        let common = speaks.map(|theirs| if theirs < newest { theirs } else { newest });
        if common != Some(agreed.version) {
            // The engine was replaced by another version in between.
            agreed = self.agree().await?;
        }
        Ok(EngineInfo {
            version: engine.version.unwrap_or_default(),
            api_version: agreed.version.to_string(),
        })
    }

    async fn agree(&self) -> Result<NegotiatedClient, EngineError> {
        let newest = bollard::API_DEFAULT_VERSION;
        let timeout = ANSWER_TIMEOUT.as_secs();
        let connected = match &self.address {
            Address::Unix(path) => {
                bollard::Docker::connect_with_unix(&path.to_string_lossy(), timeout, newest)
            }
            Address::Tcp { host, port } => {
                // The client would resolve a name on the runtime's threads.
                let place = first_address(host, *port)
                    .await
                    .map_err(|error| self.failed("find the engine", error.into()))?;
                bollard::Docker::connect_with_http(&place.to_string(), timeout, newest)
            }
        };
        let failed = |error| self.failed("agree with the engine on an API version", error);
        let api = connected
            .map_err(failed)?
            .with_request_modifier(with_url_safe_auth)
            .negotiate_version()
            .await
            .map_err(failed)?;
        let version = api.client_version();
        let agreed = NegotiatedClient { api, version };
        *self.agreed.lock() = Some(agreed.clone());
        Ok(agreed)
    }

    /// Translates a failure of the engine, or of the connection to it, for our caller.
    pub(super) fn failed(&self, action: impl Into<String>, error: Error) -> EngineError {
        if is_version_refused(&error) {
            // The engine was replaced by an older one.
            *self.agreed.lock() = None;
        }
        if is_unreachable(&error) {
            *self.agreed.lock() = None;
            return EngineError::Unreachable {
                engine: EngineKind::Docker,
                address: self.uri.clone(),
                source: error.into(),
            };
        }
        let source: Box<dyn StdError + Send + Sync> = match error {
            // The engine's own message, without bollard's additions.
            Error::DockerResponseServerError { message, .. } => message.into(),
            Error::DockerStreamError { error } => error.into(),
            other => other.into(),
        };
        EngineError::failed(action, source)
    }

    /// Sends one request on its own connection; dropping the answer closes it. `path` begins after
    /// the version.
    pub(super) async fn send(
        &self,
        version: ClientVersion,
        method: Method,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> Result<Response<Incoming>, Error> {
        let payload = match body {
            Some(body) => serde_json::to_vec(body)?,
            None => Vec::new(),
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("/v{version}{path}"))
            .header(header::HOST, "docker")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(payload)))?;
        let exchange = async {
            match &self.address {
                Address::Unix(path) => exchange(UnixStream::connect(path), request).await,
                Address::Tcp { host, port } => exchange(names::connect(host, *port), request).await,
            }
        };
        let response = within(ANSWER_TIMEOUT, exchange).await??;
        if response.status().is_success() {
            return Ok(response);
        }
        let status_code = response.status().as_u16();
        let body = collect(response).await?;
        let message = match serde_json::from_slice::<ErrorResponse>(&body) {
            Ok(refusal) => refusal.message,
            Err(_) => String::from_utf8_lossy(&body).trim().to_owned(),
        };
        Err(Error::DockerResponseServerError {
            status_code,
            message,
        })
    }

    /// Does what [`Self::send`] does, and parses the answer.
    pub(super) async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        version: ClientVersion,
        method: Method,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> Result<T, Error> {
        let response = self.send(version, method, path, body).await?;
        Ok(serde_json::from_slice(&collect(response).await?)?)
    }
}

/// Parses `host:port`.
fn tcp(place: &str) -> Option<Address> {
    let (host, port) = place.trim_end_matches('/').rsplit_once(':')?;
    let port = port.parse().ok()?;
    (!host.is_empty()).then(|| Address::Tcp {
        host: host.to_owned(),
        port,
    })
}

/// Returns the engine's address: of the addresses of its name, the first that accepts a connection.
async fn first_address(host: &str, port: u16) -> io::Result<SocketAddr> {
    match tokio::time::timeout(CONNECT_TIMEOUT, names::connect(host, port)).await {
        Ok(stream) => stream?.peer_addr(),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn exchange<S>(
    connecting: impl Future<Output = io::Result<S>>,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(within(CONNECT_TIMEOUT, connecting).await??);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    // Ends when the answer's body has been read or dropped; a failure shows up in the body.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

async fn collect(response: Response<Incoming>) -> Result<Bytes, Error> {
    let body = Limited::new(response.into_body(), MAX_ANSWER);
    match body.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => Err(io::Error::other(error).into()),
    }
}

async fn within<F: Future>(limit: Duration, future: F) -> Result<F::Output, Error> {
    tokio::time::timeout(limit, future)
        .await
        .map_err(|_| Error::RequestTimeoutError)
}

/// Returns the engine's answer, if it is a failure.
pub(super) fn refusal(error: &Error) -> Option<(u16, &str)> {
    match error {
        Error::DockerResponseServerError {
            status_code,
            message,
        } => Some((*status_code, message)),
        _ => None,
    }
}

pub(super) fn is_not_found(error: &Error) -> bool {
    matches!(refusal(error), Some((404, _)))
}

fn is_unreachable(error: &Error) -> bool {
    matches!(
        error,
        Error::RequestTimeoutError
            | Error::IOError { .. }
            | Error::HyperResponseError { .. }
            | Error::HyperLegacyError { .. }
            | Error::SocketNotFoundError(_)
    )
}

fn is_version_refused(error: &Error) -> bool {
    refusal(error).is_some_and(|(status, message)| {
        status == 400 && message.contains("client version") && message.contains("is too")
    })
}

/// Replaces the alphabet of the credentials' header: the engine reads it in base64's URL alphabet
/// and silently ignores what it cannot decode; bollard writes the other alphabet.
fn with_url_safe_auth(mut request: bollard::BollardRequest) -> bollard::BollardRequest {
    if let Some(value) = request.headers_mut().get_mut("X-Registry-Auth")
        && let Ok(text) = value.to_str()
        && let Ok(safe) = text.replace('+', "-").replace('/', "_").parse()
    {
        *value = safe;
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_engines_are_unix_sockets_or_tcp_ports() {
        for address in [
            "unix:///var/run/docker.sock",
            "tcp://127.0.0.1:2375",
            "tcp://[::1]:2375",
            "http://h:1/",
        ] {
            assert!(Connection::to(address).is_ok(), "{address}");
        }
        for refused in [
            "",
            "/var/run/docker.sock",
            "unix://",
            "unix://here",
            "tcp://h",
            "tcp://:1",
            "https://h",
            "ssh://h",
        ] {
            assert!(Connection::to(refused).is_err(), "{refused}");
        }
    }
}

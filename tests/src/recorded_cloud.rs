//! A small cloud that answers from recordings: only requests for the target and for tags of a device. It records all
//! requests, and can be made to answer as badly as a cloud can.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use flate2::write::GzDecoder;
use futures::StreamExt;
use held_port::HeldPort;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tunnel::Pings;
use tunnel::RequestSender;

use crate::until::until;

/// The uuid of the device in the recordings.
pub const DEVICE: &str = "8e4f1b0c9d2a4f6e8b1c3d5e7f901234";
/// The key of that device.
pub const DEVICE_KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
/// The key that a new device registers with.
pub const PROVISIONING_KEY: &str = "b1946ac92492d2347c6235b4d2611184";
/// The number of the device.
const DEVICE_ID: u64 = 7;

/// How the cloud answers requests that it supports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CloudBehaviour {
    #[default]
    Works,
    /// With this status, and `Retry-After` if set.
    Refuses(u16, Option<String>),
    /// Not at all, on an open connection.
    Stalls,
    /// 200 with these bytes.
    Sends(Vec<u8>),
    /// 200 with this many bytes of JSON.
    Floods(usize),
    /// 200 with JSON that does not end.
    Endless,
    /// 200 with a shorter body than announced.
    Truncates,
}

/// One request that a device made.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: String,
    /// The path with the query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
    pub at: Duration,
    /// The status of the answer; 0 if there was none.
    pub status: u16,
}

impl RecordedRequest {
    /// Returns a header's value; empty if there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

struct Contents {
    /// The device's part of the target.
    state: Value,
    /// The uuid and the key of the one device.
    device: (String, String),
    behaviour: CloudBehaviour,
    requests: Vec<RecordedRequest>,
    /// Received lines of logs.
    logs: Vec<Value>,
    /// The device's newest tunnel, and the number of tunnels so far.
    tunnel: Option<RequestSender<Full<Bytes>>>,
    tunnels: usize,
    /// Cancelled when the cloud goes away.
    gone: CancellationToken,
    /// Ends the tunnel with a reason.
    farewell: Arc<Notify>,
}

/// A cloud on a free port of 127.0.0.1, which ends when it is dropped.
pub struct RecordedCloud {
    port: HeldPort,
    contents: Arc<Mutex<Contents>>,
    server: Option<AbortHandle>,
}

impl RecordedCloud {
    /// Starts a cloud that has the recorded release for the device, with `component` as its image.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start(component: &Path) -> Self {
        let recorded = include_str!("../recordings/state.json");
        let image = format!("file:{}", component.display());
        let recorded = recorded.replace("IMAGE", &image);
        let mut recorded: Value = serde_json::from_str(&recorded).expect("a recorded state");
        let contents = Arc::new(Mutex::new(Contents {
            state: recorded["DEVICE"].take(),
            device: (DEVICE.to_owned(), DEVICE_KEY.to_owned()),
            behaviour: CloudBehaviour::Works,
            requests: Vec::new(),
            logs: Vec::new(),
            tunnel: None,
            tunnels: 0,
            gone: CancellationToken::new(),
            farewell: Arc::default(),
        }));
        let mut cloud = RecordedCloud {
            port: HeldPort::new().expect("a free port"),
            contents,
            server: None,
        };
        cloud.listen().await;
        cloud
    }

    async fn listen(&mut self) {
        // The previous listener may not have released it yet.
        let address = self.port.address();
        let listener = until("the port", || TcpListener::bind(address)).await;
        self.lock().gone = CancellationToken::new();
        let router = Router::new()
            .route("/device/v2/{uuid}/log-stream", post(take_logs))
            .route("/device/v3/{uuid}/tunnel", get(open_tunnel))
            .fallback(answer)
            .with_state(self.contents.clone());
        let server = tokio::spawn(async move {
            // The server ends with the test.
            let _ = axum::serve(listener, router).await;
        });
        self.server = Some(server.abort_handle());
    }

    /// The config.json of a device that is registered with this cloud.
    #[must_use]
    pub fn config_json(&self) -> Value {
        json!({
            "apiEndpoint": format!("http://{}", self.port.address()),
            "uuid": DEVICE,
            "deviceApiKey": DEVICE_KEY,
            "deviceId": DEVICE_ID,
            "registered_at": 1_700_000_000_000_u64,
        })
    }

    /// The config.json of a device that is not registered with this cloud.
    #[must_use]
    pub fn new_config_json(&self) -> Value {
        json!({
            "apiEndpoint": format!("http://{}", self.port.address()),
            "apiKey": PROVISIONING_KEY,
            "applicationId": 4,
            "deviceType": "board",
            "bootstrapRetryDelay": 200,
        })
    }

    /// Returns the known device, by uuid and key.
    #[must_use]
    pub fn device(&self) -> (String, String) {
        self.lock().device.clone()
    }

    /// Replaces the known device.
    pub fn know(&self, uuid: &str, key: &str) {
        self.lock().device = (uuid.to_owned(), key.to_owned());
    }

    /// Sets how it answers from now on.
    pub fn behave(&self, behaviour: CloudBehaviour) {
        self.lock().behaviour = behaviour;
    }

    /// Changes the device's part of the target: `name`, `config`, `apps`.
    pub fn change(&self, change: impl FnOnce(&mut Value)) {
        change(&mut self.lock().state);
    }

    /// Changes the only service of the recorded release, and the release's name.
    ///
    /// # Panics
    /// If the recording has none.
    pub fn release(&self, commit: &str, change: impl FnOnce(&mut Value)) {
        self.change(|device| {
            let apps = device["apps"].as_object_mut().expect("apps");
            let app = apps.values_mut().next().expect("an app");
            let releases = app["releases"].as_object_mut().expect("releases");
            let mut release = std::mem::take(releases)
                .into_iter()
                .next()
                .expect("a release")
                .1;
            change(&mut release["services"]["main"]);
            releases.insert(commit.to_owned(), release);
        });
    }

    /// Returns the requests so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.lock().requests.clone()
    }

    /// Returns the requests for the target so far.
    #[must_use]
    pub fn polls(&self) -> Vec<RecordedRequest> {
        let requests = self.requests().into_iter();
        requests
            .filter(|request| request.method == "GET" && request.path.ends_with("/state"))
            .collect()
    }

    /// Returns the accepted reports of the device's state so far: the device's part of each.
    ///
    /// # Panics
    /// If a report is not about the device.
    #[must_use]
    pub fn reports(&self) -> Vec<Value> {
        let (uuid, _) = self.device();
        let requests = self.requests().into_iter();
        let accepted = requests.filter(|request| {
            (
                request.method.as_str(),
                request.path.as_str(),
                request.status,
            ) == ("PATCH", "/device/v3/state", 200)
        });
        accepted
            .map(|request| {
                let mut body: Value = serde_json::from_str(&request.body).expect("a report");
                body[&uuid].take()
            })
            .collect()
    }

    /// Returns the device's state, as reported so far.
    ///
    /// # Panics
    /// If a report is invalid.
    #[must_use]
    pub fn reported_state(&self) -> Value {
        let mut state = json!({});
        for report in self.reports() {
            for (name, value) in report.as_object().expect("fields") {
                state[name] = value.clone();
            }
        }
        state
    }

    /// Waits until there were this many requests for the target.
    pub async fn until_polls(&self, count: usize) -> Vec<RecordedRequest> {
        until("requests for the target", || async {
            let polls = self.polls();
            if polls.len() >= count {
                Ok(polls)
            } else {
                Err(polls.len())
            }
        })
        .await
    }

    /// Returns the received lines of logs so far, in order.
    #[must_use]
    pub fn logs(&self) -> Vec<Value> {
        self.lock().logs.clone()
    }

    /// Waits until a line with this message has been received.
    pub async fn until_logged(&self, message: &str) -> Vec<Value> {
        until("a line of a log", || async {
            let logs = self.logs();
            if logs.iter().any(|line| line["message"] == message) {
                Ok(logs)
            } else {
                Err((message.to_owned(), logs))
            }
        })
        .await
    }

    /// Returns how many tunnels the device has opened so far.
    #[must_use]
    pub fn tunnels(&self) -> usize {
        self.lock().tunnels
    }

    /// Waits until the device has opened this many tunnels.
    pub async fn until_tunnels(&self, count: usize) {
        until("a tunnel", || async {
            let found = self.tunnels();
            if found >= count { Ok(()) } else { Err(found) }
        })
        .await;
    }

    /// Sends a request to the device through its tunnel; returns the head of the answer, and its body.
    ///
    /// # Errors
    /// If there is no tunnel, or it has ended.
    ///
    /// # Panics
    /// If the request is invalid.
    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> Result<axum::http::Response<Incoming>, String> {
        let mut tunnel = self.lock().tunnel.clone().ok_or("there is no tunnel")?;
        let request = axum::http::Request::builder()
            .method(method)
            .uri(format!("http://device{path}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body.to_string()))
            .expect("a request");
        tunnel.ready().await.map_err(|error| error.to_string())?;
        let answer = tunnel.send_request(request).await;
        answer.map_err(|error| error.to_string())
    }

    /// As [`RecordedCloud::ask`]; returns status and text.
    ///
    /// # Errors
    /// As [`RecordedCloud::ask`], or if the answer ends early.
    pub async fn ask_for_text(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> Result<(u16, String), String> {
        let answer = self.ask(method, path, body).await?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Ends the tunnel and reports that it is going away, like a replica that is being stopped.
    pub fn say_that_it_goes_away(&self) {
        self.lock().farewell.notify_one();
    }

    /// Makes the cloud unreachable: connections are refused from now on.
    pub fn go(&mut self) {
        self.lock().gone.cancel();
        if let Some(server) = self.server.take() {
            server.abort();
        }
    }

    /// Makes the cloud reachable again, at the same address.
    pub async fn come_back(&mut self) {
        self.listen().await;
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock()
    }
}

impl Drop for RecordedCloud {
    fn drop(&mut self) {
        self.go();
    }
}

async fn open_tunnel(
    State(contents): State<Arc<Mutex<Contents>>>,
    mut request: axum::extract::Request,
) -> Response {
    let recorded = RecordedRequest {
        method: "GET".to_owned(),
        path: request.uri().to_string(),
        headers: request.headers().clone(),
        body: String::new(),
        at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
        status: 0,
    };
    match respond(&contents, request.uri(), recorded) {
        None => return std::future::pending().await,
        Some(other) if other.status() != StatusCode::SWITCHING_PROTOCOLS => return other,
        Some(_) => {}
    }
    let Ok(headers) = tunnel::accept(request.headers(), "h2.platform") else {
        return StatusCode::UPGRADE_REQUIRED.into_response();
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let (gone, farewell) = {
        let contents = contents.lock();
        (contents.gone.clone(), contents.farewell.clone())
    };
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let (pipe, parting) = tunnel::over(TokioIo::new(upgraded), tunnel::End::Cloud).await;
        let Ok((client, mut connection)) = tunnel::connect(pipe, Pings::default()).await else {
            return;
        };
        {
            let mut contents = contents.lock();
            contents.tunnel = Some(client);
            contents.tunnels += 1;
        }
        tokio::select! {
            _ = connection.ended() => {}
            () = gone.cancelled() => {}
            () = farewell.notified() => {
                parting.set_reason(tunnel::CloseReason::GoingAway);
                connection.cut().await;
                parting.close().await;
            }
        }
        let mut contents = contents.lock();
        contents.tunnel = None;
    });
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Handles one long request with lines, each recorded when it arrives.
async fn take_logs(
    State(contents): State<Arc<Mutex<Contents>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let request = RecordedRequest {
        method: "POST".to_owned(),
        path: uri.to_string(),
        headers,
        body: String::new(),
        at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
        status: 0,
    };
    let gone = {
        let contents = contents.lock();
        contents.gone.clone()
    };
    match respond(&contents, &uri, request) {
        None => return std::future::pending().await,
        Some(refusal) if refusal.status() != StatusCode::CREATED => return refusal,
        Some(_) => {}
    }
    let mut decoder = GzDecoder::new(Vec::new());
    let mut body = body.into_data_stream();
    loop {
        let piece = tokio::select! {
            piece = body.next() => piece,
            () = gone.cancelled() => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        };
        let Some(Ok(piece)) = piece else {
            return StatusCode::CREATED.into_response();
        };
        if decoder
            .write_all(&piece)
            .and_then(|()| decoder.flush())
            .is_err()
        {
            return StatusCode::BAD_REQUEST.into_response();
        }
        let plain = decoder.get_mut();
        while let Some(end) = plain.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = plain.drain(..=end).collect();
            let line = serde_json::from_slice(&line).expect("a line of JSON");
            let mut contents = contents.lock();
            contents.logs.push(line);
        }
    }
}

async fn answer(
    State(contents): State<Arc<Mutex<Contents>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = String::from_utf8_lossy(&body).into_owned();
    let request = RecordedRequest {
        method: method.to_string(),
        path: uri.to_string(),
        headers,
        body,
        at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
        status: 0,
    };
    let response = respond(&contents, &uri, request);
    match response {
        Some(response) => response,
        None => std::future::pending().await,
    }
}

fn respond(
    contents: &Mutex<Contents>,
    uri: &Uri,
    mut request: RecordedRequest,
) -> Option<Response> {
    let mut contents = contents.lock();
    let response = match contents.behaviour.clone() {
        CloudBehaviour::Works => Some(accept(&mut contents, uri, &request)),
        CloudBehaviour::Stalls => None,
        CloudBehaviour::Refuses(status, retry_after) => {
            let status = StatusCode::from_u16(status).expect("a status");
            let mut response = (status, "not now").into_response();
            if let Some(value) = retry_after {
                let value = value.parse().expect("a header's value");
                response.headers_mut().insert(header::RETRY_AFTER, value);
            }
            Some(response)
        }
        CloudBehaviour::Sends(bytes) => Some(Body::from(bytes).into_response()),
        CloudBehaviour::Floods(length) => {
            let mut bytes = vec![b' '; length];
            bytes.splice(0..1, *b"{");
            Some(Body::from(bytes).into_response())
        }
        CloudBehaviour::Endless => {
            let begin = futures::stream::iter([Bytes::from_static(b"{")]);
            let rest = futures::stream::repeat(Bytes::from(vec![b' '; 64 << 10]));
            let body = begin.chain(rest).map(Ok::<_, std::convert::Infallible>);
            Some(Body::from_stream(body).into_response())
        }
        CloudBehaviour::Truncates => {
            let half = futures::stream::iter([Ok::<_, std::convert::Infallible>("{\"d\": [")]);
            let mut response = Body::from_stream(half).into_response();
            let length = header::HeaderValue::from_static("1000");
            response
                .headers_mut()
                .insert(header::CONTENT_LENGTH, length);
            Some(response)
        }
    };
    let status = response.as_ref().map(|response| response.status().as_u16());
    request.status = status.unwrap_or_default();
    contents.requests.push(request);
    response
}

fn accept(contents: &mut Contents, uri: &Uri, request: &RecordedRequest) -> Response {
    let (uuid, device_key) = contents.device.clone();
    let bearer = request.header("authorization").strip_prefix("Bearer ");
    let bearer = bearer.unwrap_or_default().to_owned();
    let query = uri.query().unwrap_or_default();
    let provisions = bearer == PROVISIONING_KEY;
    match (request.method.as_str(), uri.path()) {
        ("POST", "/device/register") if provisions => {
            let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let field = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
            if field("uuid") == uuid {
                return (StatusCode::CONFLICT, "\"uuid\" must be unique.").into_response();
            }
            contents.device = (field("uuid"), field("api_key"));
            let answer =
                json!({ "id": DEVICE_ID, "uuid": field("uuid"), "api_key": field("api_key") });
            return (StatusCode::CREATED, answer.to_string()).into_response();
        }
        // The cloud shows a device only to its own key.
        ("GET", "/v7/device") if provisions => {
            return json!({ "d": [] }).to_string().into_response();
        }
        _ if bearer != device_key => return StatusCode::UNAUTHORIZED.into_response(),
        _ => {}
    }
    match (request.method.as_str(), uri.path()) {
        ("GET", path) if path == format!("/device/v3/{uuid}/state") => {
            let body = json!({ uuid: contents.state }).to_string();
            let etag = format!("\"{}\"", hex::encode(&Sha256::digest(&body)[..8]));
            if request.header("if-none-match") == etag {
                StatusCode::NOT_MODIFIED.into_response()
            } else {
                ([(header::ETAG, etag)], body).into_response()
            }
        }
        ("GET", "/v7/device") => json!({ "d": [{ "id": DEVICE_ID }] })
            .to_string()
            .into_response(),
        ("GET", "/v7/device_tag") if query.contains(&format!("device%20eq%20{DEVICE_ID}")) => {
            include_str!("../recordings/tags.json").into_response()
        }
        ("GET", path) if path == format!("/device/v3/{uuid}/tunnel") => {
            StatusCode::SWITCHING_PROTOCOLS.into_response()
        }
        ("POST", path) if path == format!("/device/v2/{uuid}/log-stream") => {
            let packed = request.header("content-encoding") == "gzip";
            if packed && request.header("content-type") == "application/x-ndjson" {
                StatusCode::CREATED.into_response()
            } else {
                StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response()
            }
        }
        ("POST", "/v7/device_config_variable") => (StatusCode::CREATED, "{}").into_response(),
        ("PATCH", "/device/v3/tags" | "/device/v3/state" | "/v7/device(7)") => {
            StatusCode::OK.into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

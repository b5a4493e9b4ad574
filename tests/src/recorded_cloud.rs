//! A small cloud that answers from recordings, as far as a device asks for its target and its tags. It
//! notes what it is asked, and can be told to answer as badly as a cloud can.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::until::until;

/// The uuid of the device that the recordings are of.
pub const DEVICE: &str = "8e4f1b0c9d2a4f6e8b1c3d5e7f901234";
/// The key that the device comes with.
pub const DEVICE_KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
/// Its number.
const DEVICE_ID: u64 = 7;

/// How the cloud answers what it would otherwise answer well.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Mood {
    #[default]
    Well,
    /// With this status, and `Retry-After` where there is one.
    Refuses(u16, Option<String>),
    /// Not at all, on an open connection.
    Stalls,
    /// 200 with these bytes.
    Says(Vec<u8>),
    /// 200 with this many bytes of JSON.
    Floods(usize),
}

/// One request that a device made.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    /// With the query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
    pub at: Duration,
    /// How it was answered; 0 where it was not.
    pub status: u16,
}

impl Asked {
    /// A header's value; empty where there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

struct Contents {
    state: Value,
    mood: Mood,
    asked: Vec<Asked>,
}

/// A cloud on a free port of 127.0.0.1, which ends when it is dropped.
pub struct RecordedCloud {
    address: SocketAddr,
    contents: Arc<Mutex<Contents>>,
    server: Option<AbortHandle>,
}

impl RecordedCloud {
    /// Starts one that has the recorded release for the device, with `component` as its image.
    ///
    /// # Panics
    /// Where no port can be had.
    pub async fn start(component: &Path) -> Self {
        let recorded = include_str!("../recordings/state.json");
        let image = format!("file:{}", component.display());
        let recorded = recorded.replace("DEVICE", DEVICE).replace("IMAGE", &image);
        let contents = Arc::new(Mutex::new(Contents {
            state: serde_json::from_str(&recorded).expect("a recorded state"),
            mood: Mood::Well,
            asked: Vec::new(),
        }));
        let mut cloud = RecordedCloud {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            contents,
            server: None,
        };
        cloud.listen().await;
        cloud
    }

    async fn listen(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("a port");
        self.address = listener.local_addr().expect("an address");
        let router = Router::new()
            .fallback(answer)
            .with_state(self.contents.clone());
        let server = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, router).await;
        });
        self.server = Some(server.abort_handle());
    }

    /// The config.json of a device that is registered with this cloud.
    #[must_use]
    pub fn config_json(&self) -> Value {
        json!({
            "apiEndpoint": format!("http://{}", self.address),
            "uuid": DEVICE,
            "deviceApiKey": DEVICE_KEY,
            "deviceId": DEVICE_ID,
            "registered_at": 1_700_000_000_000_u64,
        })
    }

    /// How it answers from now on.
    pub fn be(&self, mood: Mood) {
        self.lock().mood = mood;
    }

    /// Changes the device's part of the target: `name`, `config`, `apps`.
    pub fn change(&self, change: impl FnOnce(&mut Value)) {
        change(&mut self.lock().state[DEVICE]);
    }

    /// Changes the one service of the recorded release, and the release's name with it.
    ///
    /// # Panics
    /// Where the recording has none.
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

    /// What was asked so far, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.lock().asked.clone()
    }

    /// Requests for the target so far.
    #[must_use]
    pub fn polls(&self) -> Vec<Asked> {
        let asked = self.asked().into_iter();
        asked
            .filter(|asked| asked.path.ends_with("/state"))
            .collect()
    }

    /// Waits until the target has been asked for this often.
    pub async fn until_polls(&self, count: usize) -> Vec<Asked> {
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

    /// Is gone: connections are refused from now on.
    pub fn go(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
        }
    }

    /// Is there again, at the same address.
    pub async fn come_back(&mut self) {
        self.listen().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RecordedCloud {
    fn drop(&mut self) {
        self.go();
    }
}

async fn answer(
    State(contents): State<Arc<Mutex<Contents>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (mood, state) = {
        let contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
        (contents.mood.clone(), contents.state.clone())
    };
    let response = match mood {
        Mood::Well => well(&method, &uri, &headers, &state),
        Mood::Stalls => None,
        Mood::Refuses(status, retry_after) => {
            let status = StatusCode::from_u16(status).expect("a status");
            let mut response = (status, "not now").into_response();
            if let Some(value) = retry_after {
                let value = value.parse().expect("a header's value");
                response.headers_mut().insert(header::RETRY_AFTER, value);
            }
            Some(response)
        }
        Mood::Says(bytes) => Some(Body::from(bytes).into_response()),
        Mood::Floods(length) => {
            let mut bytes = vec![b' '; length];
            bytes.splice(0..1, *b"{");
            Some(Body::from(bytes).into_response())
        }
    };
    let asked = Asked {
        method: method.to_string(),
        path: uri.to_string(),
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
        status: response
            .as_ref()
            .map_or(0, |response| response.status().as_u16()),
    };
    contents
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .asked
        .push(asked);
    match response {
        Some(response) => response,
        None => std::future::pending().await,
    }
}

fn well(method: &Method, uri: &Uri, headers: &HeaderMap, state: &Value) -> Option<Response> {
    let bearer = format!("Bearer {DEVICE_KEY}");
    if headers
        .get(header::AUTHORIZATION)
        .is_none_or(|sent| sent.as_bytes() != bearer.as_bytes())
    {
        return Some(StatusCode::UNAUTHORIZED.into_response());
    }
    let query = uri.query().unwrap_or_default();
    let response = match (method.as_str(), uri.path()) {
        ("GET", path) if path == format!("/device/v3/{DEVICE}/state") => {
            let body = state.to_string();
            let etag = format!("\"{}\"", hex::encode(&Sha256::digest(&body)[..8]));
            if headers
                .get(header::IF_NONE_MATCH)
                .is_some_and(|held| held.as_bytes() == etag.as_bytes())
            {
                StatusCode::NOT_MODIFIED.into_response()
            } else {
                ([(header::ETAG, etag)], body).into_response()
            }
        }
        ("GET", "/v7/device_tag") if query.contains(&format!("device%20eq%20{DEVICE_ID}")) => {
            include_str!("../recordings/tags.json").into_response()
        }
        ("PATCH", "/device/v3/tags") => StatusCode::OK.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    };
    Some(response)
}

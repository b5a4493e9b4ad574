//! A device, its plugins and its keys as plain values, for tests of the router without a socket.

mod device;
mod endpoints;
mod status;

use std::sync::Arc;

use http_body_util::BodyExt;
use model::AppId;
use serde_json::Value;
use store::Store;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::client_connection::ClientConnection;
use crate::message::{Request, Response};
use crate::{App, Body, LocalModeAuth, Settings};

pub(crate) use device::FakeDevice;
pub(crate) use endpoints::FakeEndpoints;
pub(crate) use status::two_apps;

/// The API over a device, with its plugin.
pub(crate) struct Fixture {
    pub(crate) app: App,
    pub(crate) device: Arc<FakeDevice>,
    pub(crate) endpoints: Arc<FakeEndpoints>,
    pub(crate) stopping: CancellationToken,
    /// The device's own key.
    pub(crate) key: String,
    /// The connection over which requests come.
    pub(crate) connection: ClientConnection,
    /// The key of a service of app 1.
    pub(crate) shop_key: String,
    _folder: TempDir,
}

pub(crate) fn fixture(device: FakeDevice, local_mode_auth: LocalModeAuth) -> Fixture {
    fixture_with(device, local_mode_auth, Settings::default())
}

pub(crate) fn fixture_with(
    device: FakeDevice,
    local_mode_auth: LocalModeAuth,
    settings: Settings,
) -> Fixture {
    let device = Arc::new(device);
    let endpoints = Arc::new(FakeEndpoints::default());
    let stopping = CancellationToken::new();
    let folder = tempfile::tempdir().unwrap();
    let keys = Store::open(folder.path()).unwrap().store;
    Fixture {
        key: keys.global_key().unwrap().reveal().to_owned(),
        shop_key: {
            let web = "web".parse().unwrap();
            keys.service_key(AppId(1), &web)
                .unwrap()
                .reveal()
                .to_owned()
        },
        _folder: folder,
        app: App::new(
            settings,
            device.clone(),
            endpoints.clone(),
            keys,
            stopping.clone(),
        ),
        device,
        endpoints,
        stopping,
        connection: ClientConnection::without_socket(local_mode_auth, true),
    }
}

/// The answer, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestAnswer {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) allow: Option<String>,
    pub(crate) body: String,
}

impl Fixture {
    pub(crate) async fn ask(&self, request: Request) -> TestAnswer {
        let connection = &self.connection;
        let response: Response = self.app.answer_from(connection, request).await;
        let header = |name| {
            response
                .headers()
                .get(name)
                .map(|value: &http::HeaderValue| value.to_str().unwrap().to_owned())
        };
        TestAnswer {
            status: response.status().as_u16(),
            content_type: header(http::header::CONTENT_TYPE),
            allow: header(http::header::ALLOW),
            body: {
                let bytes = response.into_body().collect().await.unwrap().to_bytes();
                String::from_utf8(bytes.to_vec()).unwrap()
            },
        }
    }

    /// Requests the path with the global key.
    pub(crate) async fn get(&self, path: &str) -> TestAnswer {
        self.ask(request("GET", path, &self.key)).await
    }

    /// Requests the path with the global key, as JSON.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(
            answer.content_type.as_deref(),
            Some("application/json; charset=utf-8")
        );
        serde_json::from_str(&answer.body).unwrap()
    }
}

/// Returns a request without a body; an empty `key` means none.
pub(crate) fn request(method: &str, path: &str, key: &str) -> Request {
    let mut request = http::Request::builder().method(method).uri(path);
    if !key.is_empty() {
        request = request.header(http::header::AUTHORIZATION, format!("Bearer {key}"));
    }
    request.body(Body::empty()).unwrap()
}

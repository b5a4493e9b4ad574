//! The pages of a device, with a fake device that reports, writes lines, and answers through its
//! tunnel.

mod actions;
mod log;
mod plugins;
mod settings;
mod shown;
mod variables;

use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::fake_device::{KnownDevice, connect};
use crate::harness::Cloud;
use crate::shop::{Device, until};

/// Returns the address of a device's page.
pub(super) fn page(device: &Device<'_>) -> String {
    format!("/dashboard/devices/{}", device.uuid)
}

/// A fake supervisor that records requests.
#[derive(Clone)]
pub(super) struct Supervisor {
    /// The path of each request, and the relevant body.
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    /// Whether an update lock is held.
    locked: Arc<Mutex<bool>>,
    /// Each answer uses up one permit.
    turns: Arc<Semaphore>,
}

impl Supervisor {
    /// Connects one for a device.
    pub(super) async fn connect(cloud: &Cloud, device: &Device<'_>) -> Self {
        let supervisor = Supervisor {
            requests: Arc::default(),
            locked: Arc::default(),
            turns: Arc::new(Semaphore::new(1000)),
        };
        let answering = supervisor.clone();
        let router = Router::new().fallback(move |request: Request| {
            let supervisor = answering.clone();
            async move { supervisor.answer(request).await }
        });
        let known = KnownDevice {
            id: device.id,
            actor: 0,
            uuid: device.uuid.clone(),
            key: device.signed.token.clone(),
        };
        connect(cloud, &known, router).await;
        let ann = cloud.sign_in().await;
        until("the tunnel is known", || async {
            let path = format!("/v7/device({})?$select=is_online", device.id);
            ann.rows(&path).await[0]["is_online"] == true
        })
        .await;
        supervisor
    }

    async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = parts.uri.path().to_owned();
        let force = body["force"] == true;
        // The cloud pushes by itself; only requests from a page name the app.
        if body.get("appId").is_none() && body.get("serviceName").is_none() {
            return StatusCode::NO_CONTENT.into_response();
        }
        self.requests.lock().expect("a list").push((path, body));
        let _turn = self.turns.acquire().await;
        if *self.locked.lock().expect("a flag") && !force {
            let answer = json!({ "Data": "", "Error": "Updates are locked by <b>main</b>" });
            (StatusCode::LOCKED, Json(answer)).into_response()
        } else {
            (StatusCode::OK, "OK").into_response()
        }
    }

    /// Returns the requests since the last call, in order.
    pub(super) fn take_requests(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.requests.lock().expect("a list"))
    }
}

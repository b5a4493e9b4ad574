//! What the cloud asks through the tunnel, handed to the device's own API: it has the routes, the keys and the
//! bounds that any other client has.

use std::sync::Arc;
use std::time::Duration;

use api::{App, Body};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::json;
use tokio::sync::Semaphore;

/// After this an action answers that it goes on, before the cloud gives up at 50 s
/// (docs/spec/device.md#cloud-requests).
const ANSWER_WITHIN: Duration = Duration::from_secs(45);
/// Actions that go on at a time, whether somebody waits for them or not.
const ACTIONS: usize = 32;

/// The API, as the tunnel asks it.
#[derive(Clone)]
pub(crate) struct Proxy {
    app: App,
    actions: Arc<Semaphore>,
}

impl Proxy {
    pub(crate) fn new(app: App) -> Self {
        Proxy {
            app,
            actions: Arc::new(Semaphore::new(ACTIONS)),
        }
    }

    /// An action that was begun is finished, whoever waits for it.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        let request = request.map(Body::new);
        let what = format!("{} {}", request.method(), request.uri().path());
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            let answer = tokio::time::timeout(ANSWER_WITHIN, self.app.answer(request)).await;
            return answer.unwrap_or_else(|_| unavailable(&format!("{what} takes too long")));
        }
        let Ok(place) = self.actions.try_acquire_owned() else {
            return unavailable("too many requests are in progress");
        };
        let app = self.app;
        let action = tokio::spawn(async move {
            let answer = app.answer(request).await;
            drop(place);
            answer
        });
        match tokio::time::timeout(ANSWER_WITHIN, action).await {
            Ok(Ok(answer)) => answer,
            // The API answers for panics itself: the supervisor ends.
            Ok(Err(_)) => unavailable("the supervisor is stopping"),
            Err(_) => unavailable(&format!("{what} is still in progress, and continues")),
        }
    }
}

fn unavailable(message: &str) -> Response<Body> {
    let body = json!({ "status": "failed", "message": message });
    let mut answer = Response::new(Body::from(body.to_string()));
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let json = http::HeaderValue::from_static("application/json; charset=utf-8");
    answer
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    answer
}

//! Passes the cloud's requests through the tunnel to the device's own API, with the same routes, keys and limits as for
//! any other client.

use std::sync::Arc;
use std::time::Duration;

use api::{App, Body};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::json;
use tokio::sync::Semaphore;

/// After this time an unfinished action is answered as still in progress, before the cloud gives up
/// at 50 s (docs/spec/device.md#cloud-requests).
const ANSWER_WITHIN: Duration = Duration::from_secs(45);
/// The maximum number of simultaneous actions, whether their clients still wait or not.
const ACTIONS: usize = 32;

/// The API for requests from the tunnel.
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

    /// Answers a request. An action that was begun is finished, even if no client waits for it.
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
            // The API itself handles panics: the supervisor ends.
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

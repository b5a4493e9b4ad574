//! Requests to the address of `run`: for the routes of the plugin, `POST /v1/blink`, and the steps in `steps.rs`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{Method, Request, StatusCode};
use http_body::Body as _;
use plugin_manifest::match_path;
use plugin_test_host::CallerScope;
use plugin_test_host::protocol::CallUsage;
use request_site::ForeignSite;
use tokio::sync::RwLock;

use super::answer_stream::AnswerStream;
use super::call_lines::{AnsweredRequest, EndedStream};
use super::refusal::refusal;
use super::served_plugin::ServedPlugin;
use super::steps::StepRoutes;
use super::terminal_log::with_failure;
use crate::output::Output;

/// The route of the supervisor's own that is served here: it calls a plugin.
const BLINK: &str = "/v1/blink";

/// Answers requests.
pub(super) struct Requests {
    served: Arc<RwLock<ServedPlugin>>,
    steps: StepRoutes,
    output: Output,
}

impl Requests {
    pub(super) fn new(served: Arc<RwLock<ServedPlugin>>, output: Output) -> Requests {
        Requests {
            served,
            steps: StepRoutes::default(),
            output,
        }
    }

    /// Answers a request of this client, and shows it to the author.
    pub(super) async fn answer(&self, client: SocketAddr, mut request: Request<Body>) -> Response {
        let started = Instant::now();
        let what = format!("{} {}", request.method(), request.uri().path());
        let usage = Arc::<CallUsage>::default();
        request.extensions_mut().insert(Arc::clone(&usage));
        let (response, failure) = with_failure(self.response(client, request)).await;
        let status = response.status();
        let is_stream = response.body().size_hint().exact().is_none();
        let answered = AnsweredRequest {
            request: &what,
            status,
            time: started.elapsed(),
            used: usage.read(),
            is_stream,
            failure,
        };
        self.output.event(answered.line(), &answered.document());
        if status == StatusCode::NOT_FOUND && response.headers().is_empty() {
            return refusal(
                status,
                "this plugin has no such route, and of the supervisor's own routes only `POST /v1/blink` is served here",
            );
        }
        if !is_stream {
            return response;
        }
        let output = self.output;
        let ended = move |end| {
            let stream = EndedStream {
                request: &what,
                end,
                time: started.elapsed(),
                used: usage.read(),
            };
            output.event(stream.line(), &stream.document());
        };
        response.map(|body| Body::new(AnswerStream::new(body, ended)))
    }

    async fn response(&self, client: SocketAddr, request: Request<Body>) -> Response {
        // As on a device, so that no page in a browser of this machine uses what the plugin reaches.
        if let Err(error) = request_site::check(request.uri(), request.headers(), Vec::new) {
            return refusal(StatusCode::FORBIDDEN, &site_message(&error));
        }
        if StepRoutes::contain(request.uri().path()) {
            return self.steps.answer(&self.served, client, request).await;
        }
        let served = self.served.read().await;
        let device = match served.device() {
            Ok(device) => device,
            Err(reason) => return refusal(StatusCode::SERVICE_UNAVAILABLE, reason),
        };
        if *request.method() == Method::POST && match_path(BLINK, request.uri().path()).is_some() {
            device.identify.start(&device.host);
            return StatusCode::OK.into_response();
        }
        device
            .host
            .call_by(CallerScope::DeviceKey, request)
            .await
            .map(Body::new)
    }
}

fn site_message(error: &ForeignSite) -> String {
    match error {
        ForeignSite::Name(_) => format!("{error}: use an address or `localhost`"),
        ForeignSite::Origin | ForeignSite::Contradiction => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn status(path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from("{\"start\":true}")).unwrap();
        let nothing = Arc::new(RwLock::new(ServedPlugin::Nothing));
        let client = "127.0.0.1:40000".parse().unwrap();
        let response = Requests::new(nothing, Output::new(false))
            .answer(client, request)
            .await;
        response.status().as_u16()
    }

    /// A page can send forms without a preflight, with any of these content types, and under DNS rebinding anything.
    #[tokio::test]
    async fn a_page_of_another_site_reaches_neither_the_plugin_nor_a_step_nor_blink() {
        let host = ("host", "localhost:48484");
        let json = ("content-type", "application/json");
        let rebound = ("host", "evil.example:48484");
        let origin = ("origin", "http://evil.example");
        for path in ["/v3/rails", BLINK, "/@run/event", "/@run/action"] {
            for headers in [
                vec![host, json, origin],
                vec![host, json, ("origin", "null")],
                vec![host, json, ("origin", "http://localhost:5173")],
                vec![rebound, json],
                vec![rebound, json, ("origin", "http://evil.example:48484")],
            ] {
                assert_eq!(status(path, &headers).await, 403, "{path} {headers:?}");
            }
        }
        for path in ["/v3/rails", BLINK, "/@run/event"] {
            // The plugin is being built.
            assert_eq!(status(path, &[host, json]).await, 503, "{path}");
        }
    }
}

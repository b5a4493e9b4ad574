//! `POST /@run/event` and `POST /@run/action`: what only the device or another plugin does on a device, as the steps of a
//! test do it. The body has the keys of such a step, as JSON, and the answer is what `answer` of the step would be.
//!
//! Plugins cannot have these paths: `@` is not in patterns of routes.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use plugin_manifest::FormError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::{RwLock, Semaphore};

use super::refusal::refusal;
use super::served_plugin::ServedPlugin;
use crate::commands::test::{ActionOutcome, EventOutcome, EventToml, GateAnswer, PluginCallToml};

const EVENT: &str = "/@run/event";
const ACTION: &str = "/@run/action";
/// The first segment of their paths.
const FOLDER: &str = "/@run";

/// The maximum length of a body, in bytes: that of an action's longest input, each byte of which may be escaped.
const BODY: usize = 4 << 20;
/// The time in which a body must arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// The maximum number of steps at a time.
const STEPS: usize = 16;

/// The routes of steps.
pub(super) struct StepRoutes {
    places: Semaphore,
}

/// Why a step was not performed.
#[derive(Debug)]
struct StepRefusal(StatusCode, String);

impl Default for StepRoutes {
    fn default() -> Self {
        StepRoutes {
            places: Semaphore::new(STEPS),
        }
    }
}

impl StepRoutes {
    /// Returns whether a path is for steps.
    pub(super) fn contain(path: &str) -> bool {
        path.strip_prefix(FOLDER)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Performs the step that a request describes.
    pub(super) async fn answer(
        &self,
        served: &RwLock<ServedPlugin>,
        client: SocketAddr,
        request: Request<Body>,
    ) -> Response {
        match self.perform(served, client, request).await {
            Ok(answer) => axum::Json(answer).into_response(),
            Err(StepRefusal(status, message)) => refusal(status, &message),
        }
    }

    async fn perform(
        &self,
        served: &RwLock<ServedPlugin>,
        client: SocketAddr,
        request: Request<Body>,
    ) -> Result<Value, StepRefusal> {
        check(client, &request)?;
        let Ok(_place) = self.places.try_acquire() else {
            return Err(StepRefusal(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{STEPS} steps are in progress: wait until one of them has ended"),
            ));
        };
        let is_event = request.uri().path() == EVENT;
        let body = whole_body(request.into_body()).await?;
        if is_event {
            event(served, &body).await
        } else {
            action(served, &body).await
        }
    }
}

/// Checks a request before its body is read.
///
/// # Errors
/// It is not a step, or somebody else's than the author's.
fn check(client: SocketAddr, request: &Request<Body>) -> Result<(), StepRefusal> {
    let path = request.uri().path();
    if ![EVENT, ACTION].contains(&path) {
        let message = format!("`{path}` does not exist: there are `{EVENT}` and `{ACTION}`");
        return Err(StepRefusal(StatusCode::NOT_FOUND, message));
    }
    // `--listen` may have opened the plugin's routes to others.
    if !client.ip().to_canonical().is_loopback() {
        let message = format!("only programs on the machine of `run` may use `{path}`");
        return Err(StepRefusal(StatusCode::FORBIDDEN, message));
    }
    if *request.method() != Method::POST {
        let message = format!("`{path}` accepts only `POST`");
        return Err(StepRefusal(StatusCode::METHOD_NOT_ALLOWED, message));
    }
    // A browser sends this type to another site only after a preflight, which is refused.
    if !is_json(request.headers()) {
        let message = format!(
            "`{path}` accepts only `Content-Type: application/json`, which `curl --json` sends"
        );
        return Err(StepRefusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    Ok(())
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

async fn whole_body(body: Body) -> Result<Bytes, StepRefusal> {
    let reading = Limited::new(body, BODY).collect();
    match tokio::time::timeout(BODY_TIME, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("the body has more than {} MiB", BODY >> 20);
            Err(StepRefusal(StatusCode::PAYLOAD_TOO_LARGE, message))
        }
        Ok(Err(error)) => Err(bad(format!("the body cannot be read: {error}"))),
        Err(_) => {
            let message = format!("the body did not arrive within {} s", BODY_TIME.as_secs());
            Err(StepRefusal(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

fn bad(message: String) -> StepRefusal {
    StepRefusal(StatusCode::BAD_REQUEST, message)
}

/// Reads a step from a body.
fn parse<T: DeserializeOwned>(table: &str, body: &[u8]) -> Result<T, StepRefusal> {
    let step: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| bad(format!("the body is not an object in JSON: {error}")))?;
    T::deserialize(Value::Object(step)).map_err(|error| {
        let reason = FormError::in_words(&error.to_string());
        bad(format!(
            "the body must have the keys of {table} of a test: {reason}"
        ))
    })
}

/// Refuses the expected answer of a step, which nothing would be compared with.
fn check_no_answer<T>(answer: Option<T>) -> Result<(), StepRefusal> {
    match answer {
        None => Ok(()),
        Some(_) => Err(bad(
            "it has an `answer`, which only `supervisor-plugin test` compares: leave it out"
                .to_owned(),
        )),
    }
}

fn unavailable(reason: &str) -> StepRefusal {
    StepRefusal(StatusCode::SERVICE_UNAVAILABLE, reason.to_owned())
}

async fn event(served: &RwLock<ServedPlugin>, body: &[u8]) -> Result<Value, StepRefusal> {
    let event: EventToml = parse("[[event]]", body)?;
    let (event, answer) = event
        .into_event()
        .map_err(|error| bad(format!("{error:#}")))?;
    check_no_answer(answer)?;
    let served = served.read().await;
    let device = served.device().map_err(unavailable)?;
    let outcome = event.outcome(&device.host, &device.manifest).await;
    let (outcome, missed) = outcome.map_err(bad)?;
    Ok(with_missed(event_answer(outcome), missed))
}

async fn action(served: &RwLock<ServedPlugin>, body: &[u8]) -> Result<Value, StepRefusal> {
    let call: PluginCallToml = parse("[[action]]", body)?;
    let (call, answer) = call
        .into_call()
        .map_err(|error| bad(format!("{error:#}")))?;
    check_no_answer(answer)?;
    let served = served.read().await;
    let device = served.device().map_err(unavailable)?;
    let outcome = call.outcome(&device.host, &device.manifest).await;
    let (outcome, missed) = outcome.map_err(bad)?;
    Ok(with_missed(action_answer(outcome), missed))
}

/// Returns an answer as a test would write it.
fn event_answer(outcome: EventOutcome) -> Value {
    match outcome {
        EventOutcome::Gate(GateAnswer::GoOn) | EventOutcome::Answered => json!({}),
        EventOutcome::Gate(GateAnswer::Postpone(reason, delay)) => {
            json!({ "postpone": reason, "seconds": delay.as_secs() })
        }
        EventOutcome::Gate(GateAnswer::Refuse(reason)) => json!({ "refuse": reason }),
        EventOutcome::Failed(reason) | EventOutcome::Late(reason) => json!({ "failed": reason }),
    }
}

/// Returns an outcome as a test would write it.
fn action_answer(outcome: ActionOutcome) -> Value {
    let output = match outcome {
        ActionOutcome::Output(output) => output,
        ActionOutcome::Refused(reason) => return json!({ "refused": reason }),
        ActionOutcome::Failed(reason) => return json!({ "failed": reason }),
    };
    if output.is_empty() {
        return json!({});
    }
    if let Ok(output) = serde_json::from_slice::<Value>(&output) {
        return json!({ "json": output });
    }
    match String::from_utf8(output) {
        Ok(text) => json!({ "text": text }),
        Err(error) => json!({ "base64": STANDARD.encode(error.as_bytes()) }),
    }
}

/// Adds the edge that the plugin did not wait for.
fn with_missed(mut answer: Value, missed: Option<String>) -> Value {
    if let (Value::Object(answer), Some(missed)) = (&mut answer, missed) {
        answer.insert("missed".to_owned(), missed.into());
    }
    answer
}

#[cfg(test)]
mod tests;

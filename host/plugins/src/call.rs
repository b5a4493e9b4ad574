//! The path of one call: body, turn, guest, answer.
//!
//! All of it runs on the caller's task. Dropping the future, or the body of the answer, drops the
//! instance and everything that it holds.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use plugin_manifest::route_method;
use plugin_protocol::text::{self, one_line};
use plugin_protocol::{
    AnswerBody, CallUsage, CallerScope, Failure, GuestAnswer, GuestError, GuestRequest, Origin,
    Outcome, RequestHead, ServedCall,
};
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;

use crate::answer_body::AnswerPieces;
use crate::body::{self, Body};
use crate::failure::{failed, failed_response};
use crate::loaded::LoadedPlugin;
use crate::request_body::{self, RequestFault};
use crate::route_match::RouteMatch;

/// The longest error code that is logged, in bytes.
const CODE: usize = 64;

/// Calls the plugin of `matched` for a caller of this scope, and answers in its place if it fails.
pub(crate) async fn call<B>(
    matched: RouteMatch,
    scope: CallerScope,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let span = tracing::info_span!(
        "plugin_call",
        plugin = matched.plugin.manifest.name,
        method = request.method().as_str(),
        route = matched.pattern(),
    );
    answer(matched, scope, request).instrument(span).await
}

async fn answer<B>(matched: RouteMatch, scope: CallerScope, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let plugin = Arc::clone(&matched.plugin);
    let name = plugin.manifest.name.as_str();
    let _timed = plugin.counters.called();
    let head_only = request.method() == Method::HEAD;
    let called = outcome(matched, scope, request).await;
    let responded = called.and_then(|called| match called.outcome {
        Outcome::Answer(answer) => {
            let streaming = (called.fault, called.permit);
            respond(&plugin, answer, streaming, head_only)
        }
        Outcome::Error(error) => Ok(error_response(name, error)),
    });
    responded.unwrap_or_else(|failure| {
        plugin.failed(&failure);
        failed_response(&failure, name, plugin.context.is_developers)
    })
}

/// The result of a call, and what it holds while it lasts.
struct CallResult {
    outcome: Outcome,
    fault: Arc<RequestFault>,
    permit: OwnedSemaphorePermit,
}

async fn outcome<B>(
    mut matched: RouteMatch,
    scope: CallerScope,
    request: Request<B>,
) -> Result<CallResult, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let params = std::mem::take(&mut matched.params);
    let plugin = &matched.plugin;
    let (parts, body) = request.into_parts();
    let fault = Arc::<RequestFault>::default();
    let (wall, limit) = (plugin.limits.wall, plugin.limits.body);
    let body = tokio::time::timeout(wall, request_body::read(body, limit, &fault))
        .await
        .map_err(|_| {
            Failure::BodyIncomplete(format!("it did not arrive within {} ms", wall.as_millis()))
        })??;
    let permit = plugin.permit().await?;
    plugin.make_folders().await;
    let head = guest_request(&parts, matched.pattern(), params);
    // Set if a plugin calls the device's own API; requests from outside never have this extension.
    let origin = parts.extensions.get::<Origin>().cloned();
    let serving = ServedCall {
        // Set by programs that show it; requests from outside never have this extension either.
        usage: parts.extensions.get::<Arc<CallUsage>>().cloned(),
        ..ServedCall::next(origin.unwrap_or_else(|| Origin::outside(scope)))
    };
    let mut answered = pin!(plugin.guest.call(serving, GuestRequest { head, body }));
    let answered = poll_fn(|context| {
        let polled = answered.as_mut().poll(context);
        // An answer to a request that was cut short is not valid.
        match fault.get() {
            Some(failure) => Poll::Ready(Err(failure.clone())),
            None => polled,
        }
    });
    let answered = tokio::time::timeout(wall, answered).await;
    let outcome = answered.unwrap_or(Err(Failure::Wall { limit: wall }))?;
    Ok(CallResult {
        outcome,
        fault,
        permit,
    })
}

fn respond(
    plugin: &Arc<LoadedPlugin>,
    answer: GuestAnswer,
    (fault, permit): (Arc<RequestFault>, OwnedSemaphorePermit),
    head_only: bool,
) -> Result<Response<Body>, Failure> {
    let GuestAnswer { head, body } = answer;
    let mut response = Response::new(Body::default());
    (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
    let bodiless = matches!(
        head.status,
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
    );
    match body {
        AnswerBody::Whole(bytes) if bytes.len() > plugin.limits.body => {
            return Err(Failure::answer_too_large(bytes.len(), plugin.limits.body));
        }
        AnswerBody::Whole(bytes) if head_only && !bodiless => {
            response
                .headers_mut()
                .insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        }
        _ if bodiless || head_only => {}
        AnswerBody::Whole(bytes) => *response.body_mut() = body::whole(bytes),
        AnswerBody::Stream(stream) => {
            *response.body_mut() = Body::new(AnswerPieces {
                stream: Some(stream),
                plugin: Arc::clone(plugin),
                fault,
                _permit: permit,
            });
        }
        AnswerBody::Journal(answer) => {
            if let Some(journal) = plugin.instances.journal(&answer) {
                *response.body_mut() = Body::new(journal);
            }
        }
    }
    Ok(response)
}

/// Returns the response for a plugin's own error.
fn error_response(plugin: &str, error: GuestError) -> Response<Body> {
    let status = StatusCode::from_u16(error.status)
        .ok()
        .filter(|status| status.is_client_error() || status.is_server_error());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // Escaped in JSON, it may be six times as long.
    let message = text::cut(error.message);
    tracing::debug!(
        plugin,
        "answered {status} (`{}`): {}",
        one_line(&error.code, CODE),
        one_line(&message, text::LONGEST)
    );
    failed(status, &message)
}

/// Converts the request for the guest, without the body.
fn guest_request(
    parts: &http::request::Parts,
    route: &str,
    params: Vec<(String, String)>,
) -> RequestHead {
    // `wit/types.wit` promises that no plugin sees a key. The API has removed it already, but not everybody who calls
    // plugins is the API: the tool for their authors is another.
    let headers = parts
        .headers
        .iter()
        .filter(|(name, _)| *name != header::AUTHORIZATION);
    let query = model::query_without_key(parts.uri.query().unwrap_or_default());
    RequestHead {
        method: route_method(&parts.method).as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        route: route.to_owned(),
        params,
        query: query.into_owned(),
        headers: headers
            .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
            .collect(),
    }
}

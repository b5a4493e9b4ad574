//! The way of one call: body, slot, instance, guest, answer.
//!
//! All of it runs on the caller's task. Dropping the future, or the body of the answer, drops the
//! instance with all that it holds.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use plugin_protocol::CallerScope;

use crate::Body;
use crate::answer::{Answer, AnswerBody};
use crate::bindings::platform::supervisor::types::{self, Body as GuestBody};
use crate::failure::{Failure, failed};
use crate::instance::Instance;
use crate::loaded::Loaded;
use crate::origin::Origin;
use crate::plugins::RouteMatch;
use crate::pool::Pool;
use crate::request_body::{RequestBody, Trouble};
use crate::running::{GuestStream, Outcome, Running};
use crate::spares::Spares;
use crate::text::{self, one_line};

/// The most of an error's code that is logged, in bytes.
const CODE: usize = 64;

/// What calls share.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) pool: Arc<Pool>,
    pub(crate) spares: Arc<Spares>,
}

impl Calls {
    /// Calls the plugin of `matched` for a caller of this scope, and answers for it where it fails.
    pub(crate) async fn call<B>(
        &self,
        matched: RouteMatch,
        scope: CallerScope,
        request: Request<B>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let RouteMatch {
            plugin,
            route,
            params,
        } = matched;
        let name = plugin.manifest.name.as_str();
        let _timed = plugin.counters.called();
        let head_only = request.method() == Method::HEAD;
        let outcome = self.outcome(&plugin, (route, params), scope, request).await;
        match outcome {
            Ok(Outcome::Answer(answer)) => self.respond(&plugin, answer, head_only),
            Ok(Outcome::Streaming((head, pieces), running)) => {
                let mut response = Response::new(Body::empty());
                if !head_only {
                    let stream = GuestStream::new(Arc::clone(&plugin), running, pieces);
                    *response.body_mut() = Body::stream(stream);
                }
                (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
                response
            }
            // Only a stream that has begun ends so.
            Ok(Outcome::Streamed) => Response::new(Body::empty()),
            Ok(Outcome::Error(error)) => {
                let status = StatusCode::from_u16(error.status)
                    .ok()
                    .filter(|status| status.is_client_error() || status.is_server_error());
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                // Escaped into JSON it may be six times as long.
                let message = text::cut(error.message);
                tracing::debug!(
                    plugin = name,
                    "answered {status} (`{}`): {}",
                    one_line(&error.code, CODE),
                    one_line(&message, text::LONGEST)
                );
                failed(status, &message)
            }
            Err(failure) => {
                plugin.failed(&failure);
                failure.response(name)
            }
        }
    }

    async fn outcome<B>(
        &self,
        plugin: &Arc<Loaded>,
        (route, params): (usize, Vec<(String, String)>),
        scope: CallerScope,
        request: Request<B>,
    ) -> Result<Outcome, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let trouble = Arc::<Trouble>::default();
        let (wall, limit) = (plugin.limits.wall, plugin.limits.body);
        let body = tokio::time::timeout(wall, RequestBody::read(body, limit, &trouble))
            .await
            .map_err(|_| {
                Failure::BodyIncomplete(format!("it did not come within {} ms", wall.as_millis()))
            })??;
        let permit = plugin.permit().await?;
        let pattern = plugin
            .manifest
            .routes
            .get(route)
            .map_or("", |route| route.pattern.as_str());
        let request = guest_request(&parts, pattern, params);
        let answered = tokio::time::timeout(wall, async {
            let mut instance = self.instance(plugin).await?;
            instance.serve(Origin::outside(scope));
            let request = (request, body, Arc::clone(&trouble));
            Running::new(self, plugin, instance, request, permit)
                .until_head()
                .await
        });
        let outcome = answered.await.unwrap_or(Err(Failure::Wall { limit: wall }));
        if outcome.is_err() {
            self.spares.replace(plugin, None);
        }
        outcome
    }

    /// One that is ready, or else a fresh one.
    async fn instance(&self, plugin: &Arc<Loaded>) -> Result<Instance, Failure> {
        if let Some(mut ready) = self.spares.take(plugin) {
            ready.wake();
            return Ok(ready);
        }
        // Where none is free, a spare of some other plugin's is less urgent than this call.
        let slot = match self.pool.try_slot().or_else(|| self.spares.give_up_one()) {
            Some(slot) => slot,
            None => {
                let slot = self.pool.slot().await;
                slot.ok_or_else(|| Failure::Busy(self.pool.full()))?
            }
        };
        let share = &plugin.around.memory_share;
        // The same of memory.
        while !share.has_room() && self.spares.give_up_one().is_some() {}
        share.room().await.map_err(Failure::Busy)?;
        let begun = Instant::now();
        let started = Instance::new(&self.pool, plugin, slot).await;
        let took = started.is_ok().then(|| begun.elapsed());
        self.spares.started(plugin, took);
        started
    }

    fn respond(&self, plugin: &Arc<Loaded>, answer: Answer, head_only: bool) -> Response<Body> {
        let Answer { head, body } = answer;
        let mut response = Response::new(Body::empty());
        (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
        let bodiless = matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
        match body {
            _ if bodiless => {}
            AnswerBody::Whole(bytes) if head_only => {
                response
                    .headers_mut()
                    .insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            }
            _ if head_only => {}
            AnswerBody::Whole(bytes) => *response.body_mut() = Body::from(bytes),
            AnswerBody::Spliced(stream) => {
                *response.body_mut() =
                    Body::stream(stream.into_body(Arc::clone(&plugin.around.name)));
            }
            AnswerBody::Journal(stream) => *response.body_mut() = Body::stream(stream),
        }
        response
    }
}

/// The request as the guest gets it, but for the body.
fn guest_request(
    parts: &http::request::Parts,
    route: &str,
    params: Vec<(String, String)>,
) -> types::Request {
    let method = if parts.method == Method::HEAD {
        Method::GET
    } else {
        parts.method.clone()
    };
    // The API has taken the key out already; no plugin sees one even if it had not.
    let headers = parts
        .headers
        .iter()
        .filter(|(name, _)| *name != header::AUTHORIZATION);
    let query = parts.uri.query().unwrap_or_default();
    let query = if query.contains("apikey") {
        query
            .split('&')
            .filter(|pair| !pair.starts_with("apikey="))
            .collect::<Vec<_>>()
            .join("&")
    } else {
        query.to_owned()
    };
    types::Request {
        method: method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        route: route.to_owned(),
        params,
        query,
        headers: headers
            .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
            .collect(),
        body: GuestBody::Empty,
    }
}

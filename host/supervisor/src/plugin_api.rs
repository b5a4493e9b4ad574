//! Requests of plugins to the device's own API, answered in this process.

use std::sync::Arc;
use std::time::Duration;

use api::{App, Requester};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use model::AppId;
use parking_lot::Mutex;
use plugins::{ApiError, ApiResponse, CallerScope, DeviceApi, PluginApiRequest};

use crate::request_places::RequestPlaces;

/// The maximum duration of a whole request, including its answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The API, once it is attached. Cloning shares it.
#[derive(Clone)]
pub(crate) struct PluginApi(Arc<ApiSlot>);

struct ApiSlot {
    app: Mutex<Option<App>>,
    under_way: RequestPlaces,
}

impl Default for PluginApi {
    fn default() -> Self {
        PluginApi(Arc::new(ApiSlot {
            app: Mutex::default(),
            under_way: RequestPlaces::default(),
        }))
    }
}

impl PluginApi {
    /// Attaches the API; from now on requests are answered.
    pub(crate) fn attach(&self, app: App) {
        *self.0.app.lock() = Some(app);
    }

    /// Drops the API, which in turn holds this.
    pub(crate) fn detach(&self) {
        *self.0.app.lock() = None;
    }

    async fn exchange(&self, call: PluginApiRequest) -> Result<ApiResponse, ApiError> {
        let unavailable = |why: &str| ApiError::Unavailable(why.to_owned());
        let starting = || unavailable("the supervisor is starting or stopping");
        let app = self.0.app.lock().clone().ok_or_else(starting)?;
        let requester = requester(&call.origin.caller.scope)
            .ok_or_else(|| unavailable("the plugin is not serving a call"))?;
        // Refused without waiting: the requests in progress may be waiting for this plugin.
        let place = self.0.under_way.take(&call.plugin);
        let _place = place.map_err(ApiError::Unavailable)?;
        let mut request = call.request.map(api::Body::from);
        // Tells the answering plugin who waits for it.
        request.extensions_mut().insert(call.origin);
        let answer = app.answer_as(requester, request).await;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, call.longest_answer).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                let most = call.longest_answer >> 10;
                ApiError::TooLarge(format!("the answer has more than {most} KiB"))
            } else {
                ApiError::Unavailable(format!("the answer ended early: {error}"))
            }
        })?;
        let content_type = parts.headers.get(CONTENT_TYPE);
        Ok(ApiResponse {
            status: parts.status.as_u16(),
            content_type: content_type
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            body: body.to_bytes().into(),
        })
    }
}

impl DeviceApi for PluginApi {
    fn send(&self, call: PluginApiRequest) -> BoxFuture<'_, Result<ApiResponse, ApiError>> {
        async move {
            match tokio::time::timeout(ANSWER_WITHIN, self.exchange(call)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(ApiError::Unavailable(format!(
                    "there was no answer within {} s",
                    ANSWER_WITHIN.as_secs()
                ))),
            }
        }
        .boxed()
    }
}

/// Returns the privileges of a request that a plugin makes while it serves a call of this scope.
fn requester(scope: &CallerScope) -> Option<Requester> {
    Some(match scope {
        // The device is the caller of events; only the policy decides what the plugin may request then.
        CallerScope::Device | CallerScope::DeviceKey => Requester::DeviceKey,
        CallerScope::LocalMode => Requester::LocalMode,
        CallerScope::Service { app_id, service } => Requester::Service {
            app: AppId(*app_id),
            service: service.parse().ok()?,
        },
        CallerScope::NoCall => return None,
    })
}

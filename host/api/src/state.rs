//! The state that handlers get from axum. [`crate::App`] creates it; through it no handler reaches the dispatcher.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRef;
use model::Branding;
use store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access_log::AccessLog;
use crate::cached_json::{CachedJson, StateVersion};
use crate::caller::Caller;
use crate::device::{Device, Endpoints};
use crate::large_body::LargeBodies;
use crate::metrics::requests::Requests;
use crate::openapi::description::Description;
use crate::service_keys::ServiceKeys;

/// The settings of the API.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The names that a vendor can change.
    pub branding: Branding,
    /// Further names by which clients may call the device, in lower case.
    pub host_names: Vec<String>,
    /// The access rights of service keys.
    pub service_keys: ServiceKeys,
    /// Returns free memory of the heap to the system; called after a large body.
    pub return_memory: Option<fn()>,
}

/// The state that handlers share.
pub(crate) type Api = Arc<ApiState>;

/// The state of handlers apart from their request.
pub(crate) struct ApiState {
    pub(crate) settings: Settings,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) endpoints: Arc<dyn Endpoints>,
    pub(crate) keys: Store,
    /// Answers of `GET /v1/device` and `GET /v2/applications/state`, serialized once per state.
    pub(crate) device_state: CachedJson<StateVersion>,
    pub(crate) applications: CachedJson<StateVersion>,
    pub(crate) description: Description,
    /// One permit per reader of the log stream.
    pub(crate) log_readers: Arc<Semaphore>,
    pub(crate) large_bodies: LargeBodies,
    pub(crate) requests: Requests,
    /// When the supervisor began to answer requests.
    pub(crate) begun: Instant,
    pub(crate) access_log: AccessLog,
    /// Cancelled when the API is about to stop: endless streams then close.
    pub(crate) stopping: CancellationToken,
}

/// The input of a handler in addition to its request: the state of axum's handlers. Extensions of the request would
/// work too, but cost a map on the heap for each request.
#[derive(Clone)]
pub(crate) struct RouteState {
    pub(crate) api: Api,
    /// The admitted caller; `None` on a route that needs no key.
    pub(crate) caller: Option<Caller>,
    /// The values of the `:names` in the route's path, percent-decoded.
    pub(crate) parameters: Vec<String>,
}

impl FromRef<RouteState> for Api {
    fn from_ref(state: &RouteState) -> Api {
        state.api.clone()
    }
}

impl FromRef<RouteState> for LargeBodies {
    fn from_ref(state: &RouteState) -> Self {
        state.api.large_bodies.clone()
    }
}

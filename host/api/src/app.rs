//! [`App`] answers one request: the layers of the API in their order, and the two ways out of them, a
//! core route or a plugin's.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use http::{Method, StatusCode};
use model::Branding;
use store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access_log::{self, AccessLog};
use crate::answer::{self, Failure};
use crate::auth::{self, Credentials};
use crate::cached_json::CachedJson;
use crate::call::Call;
use crate::connection::ClientConnection;
use crate::device::{Device, EndpointMatch, Endpoints, Request, Requester, Response};
use crate::large_body::LargeBodies;
use crate::metrics::{Metrics, RouteLabel};
use crate::routes::{self, Core, Handler, Outcome};
use crate::service_keys::ServiceKeys;
use crate::v2::local_logs::MAX_READERS;
use crate::{ping, sites, v1};

/// The settings of the API.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The names that a vendor can change.
    pub branding: Branding,
    /// Further names by which clients may call the device, in lower case.
    pub host_names: Vec<String>,
    /// What the keys of services give access to.
    pub service_keys: ServiceKeys,
    /// Returns free memory of the heap to the system; called after a large body.
    pub return_memory: Option<fn()>,
}

/// The state that handlers share.
#[derive(Clone)]
pub(crate) struct Api(Arc<Parts>);

/// The parts of [`Api`].
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) endpoints: Arc<dyn Endpoints>,
    pub(crate) keys: Store,
    /// Answers of `GET /v1/device` and `GET /v2/applications/state`, written once for each state.
    pub(crate) device_state: CachedJson,
    pub(crate) applications: CachedJson,
    /// One permit for each reader of the log stream.
    pub(crate) log_readers: Arc<Semaphore>,
    pub(crate) large_bodies: LargeBodies,
    pub(crate) metrics: Metrics,
    pub(crate) access_log: AccessLog,
    /// The routes that are answered before any is looked up.
    ping: RouteLabel,
    health: RouteLabel,
    /// Cancelled when the API is about to stop: streams without an end close.
    stopping: CancellationToken,
}

impl Api {
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }
}

impl std::ops::Deref for Api {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The whole API, without a socket.
#[derive(Clone)]
pub struct App {
    api: Api,
}

impl App {
    /// Creates the API from its parts. Cancelling `stopping` closes endless streams and ends
    /// [`crate::serve`].
    #[must_use]
    pub fn new(
        settings: Settings,
        device: Arc<dyn Device>,
        endpoints: Arc<dyn Endpoints>,
        keys: Store,
        stopping: CancellationToken,
    ) -> Self {
        let seen =
            |path| routes::place_of(&Method::GET, path).map_or(RouteLabel::None, RouteLabel::Core);
        App {
            api: Api(Arc::new(Parts {
                large_bodies: LargeBodies::new(settings.return_memory),
                settings,
                device,
                endpoints,
                keys,
                device_state: CachedJson::default(),
                applications: CachedJson::default(),
                log_readers: Arc::new(Semaphore::new(MAX_READERS)),
                metrics: Metrics::new(),
                access_log: AccessLog::new(),
                ping: seen(ping::PATH),
                health: seen(v1::health::PATH),
                stopping,
            })),
        }
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    /// Answers any request: failures, also a handler's panic, become answers too.
    pub async fn answer(&self, request: Request) -> Response {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let begun = Instant::now();
        let mut seen = RouteLabel::None;
        let response = self.answer_unlogged(request, &mut seen).await;
        let (status, time) = (response.status(), begun.elapsed());
        self.api.metrics.requests.count(seen, status, time);
        if !(reads && status.is_success()) || access_log::wants_reads() {
            let log = &self.api.access_log;
            log.write(&method, uri.path(), status, time);
        }
        response
    }

    async fn answer_unlogged(&self, request: Request, seen: &mut RouteLabel) -> Response {
        match AssertUnwindSafe(self.dispatch(request, seen))
            .catch_unwind()
            .await
        {
            Ok(Ok(response)) => response,
            Ok(Err(failure)) => failure.answer(),
            // The panic hook has logged where it happened.
            Err(_) => answer::failed(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the supervisor failed to answer this request; its log says why",
            ),
        }
    }

    /// `seen` is told the route as soon as it is found.
    async fn dispatch(&self, request: Request, seen: &mut RouteLabel) -> Outcome {
        // The cloud's requests come through its tunnel, without a browser and without a connection.
        let came_by_connection = request.extensions().get::<ClientConnection>().is_some();
        if came_by_connection {
            sites::check(&request, || self.names())?;
        }
        if let Some(response) = self.before_keys(&request, seen) {
            return Ok(response);
        }
        let caller = Credentials::of(&self.api, &request).admit().await?;
        if let Some(connection) = request.extensions().get::<ClientConnection>() {
            connection.is_admitted();
        }
        match routes::find(request.method(), request.uri().path()) {
            Core::Route(place, route, params) => {
                *seen = RouteLabel::Core(place);
                self.api.settings.service_keys.check(&caller, Some(route))?;
                let call = Call {
                    caller,
                    params,
                    request,
                };
                match route.handler {
                    Handler::Now(answer) => answer(&self.api, &call),
                    Handler::Later(answer) => answer(self.api.clone(), call).await,
                }
            }
            Core::OtherMethods(methods) => {
                self.api.settings.service_keys.check(&caller, None)?;
                self.ask_plugins(caller.requester(), request, methods, seen)
                    .await
            }
        }
    }

    /// Answers the requests that need no key.
    fn before_keys(&self, request: &Request, seen: &mut RouteLabel) -> Option<Response> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let path = request.uri().path();
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.eq_ignore_ascii_case(ping::PATH) {
            *seen = self.api.ping.clone();
            return Some(ping::ping());
        }
        path.eq_ignore_ascii_case(v1::health::PATH).then(|| {
            *seen = self.api.health.clone();
            v1::health::health(&self.api)
        })
    }

    /// The names by which clients may call the device.
    fn names(&self) -> Vec<String> {
        let mut names = self.api.settings.host_names.clone();
        names.extend(self.api.device.host_names());
        names
    }

    async fn ask_plugins(
        &self,
        requester: Requester,
        request: Request,
        mut methods: Vec<Method>,
        seen: &mut RouteLabel,
    ) -> Outcome {
        let endpoints = &self.api.endpoints;
        let (method, path) = (request.method(), request.uri().path());
        let mut found = endpoints.find(method, path);
        if let EndpointMatch::Loading(_) = found {
            endpoints.served(method, path).await;
            found = endpoints.find(method, path);
        }
        match found {
            EndpointMatch::Route { pattern, call } => {
                *seen = RouteLabel::Plugin(method.clone(), pattern);
                return Ok(call(requester, auth::without_key(request)).await);
            }
            EndpointMatch::Loading(what) => return Err(Failure::Loading(what)),
            EndpointMatch::OtherMethods(more) => methods.extend(more),
            EndpointMatch::Nothing => {}
        }
        if methods.is_empty() {
            return Err(Failure::Refused(
                StatusCode::NOT_FOUND,
                format!("no such endpoint: {} {path}", request.method()),
            ));
        }
        Err(Failure::MethodNotAllowed(methods))
    }
}

//! [`App`] answers one request: the layers of the API in their order, and the two kinds of routes behind them, those of
//! the core and those of plugins.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::response::IntoResponse;
use futures::FutureExt;
use http::{Method, StatusCode};
use store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access_log::{self, AccessLog};
use crate::answer::Failure;
use crate::auth::{self, Credentials};
use crate::bounds::LONG_TURN;
use crate::cached_json::CachedJson;
use crate::caller::{Caller, Requester};
use crate::client_connection::ClientConnection;
use crate::device::{Device, EndpointMatch, Endpoints};
use crate::large_body::LargeBodies;
use crate::message::{Request, Response};
use crate::metrics::requests::{Requests, RouteLabel};
use crate::openapi;
use crate::openapi::description::Description;
use crate::routes::{self, CoreMatch};
use crate::state::{Api, ApiState, RouteState, Settings};
use crate::v2::local_logs::MAX_READERS;

/// The origin of a request.
enum Client<'a> {
    Connection(&'a ClientConnection),
    /// The cloud.
    Tunnel,
    /// The device itself, which has already determined the rights of the request.
    Admitted(Caller),
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
        let core = routes::core_routes().map(|route| (&route.method, route.path));
        App {
            api: Arc::new(ApiState {
                large_bodies: LargeBodies::new(settings.return_memory),
                settings,
                device,
                endpoints,
                keys,
                device_state: CachedJson::default(),
                applications: CachedJson::default(),
                description: Description::new(openapi::describe),
                log_readers: Arc::new(Semaphore::new(MAX_READERS)),
                requests: Requests::new(core),
                begun: Instant::now(),
                access_log: AccessLog::new(),
                stopping,
            }),
        }
    }

    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.api.stopping
    }

    /// Answers any request that comes through the cloud's tunnel: failures, including a handler's panic, become answers
    /// too.
    pub async fn answer(&self, request: Request) -> Response {
        self.answer_client(Client::Tunnel, request).await
    }

    /// Answers a request of this device itself, with the rights of `requester`. It needs no key.
    pub async fn answer_as(&self, requester: Requester, request: Request) -> Response {
        let client = Client::Admitted(Caller::from(requester));
        self.answer_client(client, request).await
    }

    /// Answers a request that comes over a connection.
    pub(crate) async fn answer_from(
        &self,
        connection: &ClientConnection,
        request: Request,
    ) -> Response {
        let client = Client::Connection(connection);
        self.answer_client(client, request).await
    }

    async fn answer_client(&self, client: Client<'_>, request: Request) -> Response {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let begun = Instant::now();
        let mut label = RouteLabel::None;
        let result = AssertUnwindSafe(self.dispatch(client, request, &mut label)).catch_unwind();
        // The panic hook has logged the location.
        let result = result.await.unwrap_or_else(|_| {
            Err(Failure::Refused(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the supervisor failed to answer this request; its log says why".into(),
            ))
        });
        let response = result.into_response();
        let (status, time) = (response.status(), begun.elapsed());
        self.api.requests.count(label, status, time);
        if !(reads && status.is_success()) || access_log::wants_reads() {
            let log = &self.api.access_log;
            log.write(&method, uri.path(), status, time);
        }
        if time > LONG_TURN {
            // If a client sends many requests at once, its next one is ready already: let others go first.
            tokio::task::yield_now().await;
        }
        response
    }

    /// Finds and runs the handler. `label` is set as soon as the route is found and its caller admitted.
    async fn dispatch(
        &self,
        client: Client<'_>,
        request: Request,
        label: &mut RouteLabel,
    ) -> Result<Response, Failure> {
        // All other requests come without a browser.
        if let Client::Connection(_) = client {
            let (uri, headers) = (request.uri(), request.headers());
            request_site::check(uri, headers, || self.names())?;
        }
        let core = match routes::find(request.method(), request.uri().path()) {
            CoreMatch::Route(place, route, _) if route.is_open => {
                *label = RouteLabel::Core(place);
                return Ok(route.call(request, self.state_for(None, Vec::new())).await);
            }
            core => core,
        };
        let connection = match client {
            Client::Connection(connection) => Some(connection),
            Client::Tunnel | Client::Admitted(_) => None,
        };
        let caller = match client {
            Client::Admitted(caller) => caller,
            Client::Connection(_) | Client::Tunnel => {
                let credentials = Credentials::from_request(&self.api, &request, connection);
                credentials.admit().await?
            }
        };
        if let Some(connection) = connection {
            connection.is_admitted();
        }
        let service_keys = self.api.settings.service_keys;
        match core {
            CoreMatch::Route(place, route, parameters) => {
                *label = RouteLabel::Core(place);
                service_keys.check(&caller, Some((&route.method, route.path)))?;
                let state = self.state_for(Some(caller), parameters);
                Ok(route.call(request, state).await)
            }
            CoreMatch::OtherMethods(methods) => {
                service_keys.check(&caller, None)?;
                self.ask_plugins(caller.requester(), request, methods, label)
                    .await
            }
        }
    }

    fn state_for(&self, caller: Option<Caller>, parameters: Vec<String>) -> RouteState {
        RouteState {
            api: self.api.clone(),
            caller,
            parameters,
        }
    }

    /// Returns the names by which clients may call the device.
    fn names(&self) -> Vec<String> {
        let mut names = self.api.settings.host_names.clone();
        names.extend(self.api.device.host_names());
        names
    }

    /// Passes the request to a plugin. `core_methods` are the core's methods at the path.
    async fn ask_plugins(
        &self,
        requester: Requester,
        request: Request,
        core_methods: Vec<Method>,
        label: &mut RouteLabel,
    ) -> Result<Response, Failure> {
        let endpoints = &self.api.endpoints;
        let (method, path) = (request.method(), request.uri().path());
        let mut endpoint = endpoints.find(method, path);
        if let EndpointMatch::Loading(_) = endpoint {
            endpoints.wait_until_served(method, path).await;
            endpoint = endpoints.find(method, path);
        }
        let mut methods = core_methods;
        match endpoint {
            EndpointMatch::Route { pattern, call } => {
                *label = RouteLabel::Plugin(method.clone(), pattern);
                return Ok(call(requester, auth::without_key(request)).await);
            }
            EndpointMatch::Loading(what) => return Err(Failure::Loading(what)),
            EndpointMatch::OtherMethods(more) => methods.extend(more),
            EndpointMatch::Nothing => {}
        }
        if methods.is_empty() {
            return Err(Failure::Refused(
                StatusCode::NOT_FOUND,
                format!("no such endpoint: {method} {path}"),
            ));
        }
        Err(Failure::MethodNotAllowed(methods))
    }
}

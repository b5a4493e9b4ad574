//! Every address of the cloud.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, patch, post, put};
use http::StatusCode;
use tower::ServiceExt as _;
use tower_http::compression::CompressionLayer;

use crate::accounts::{
    cloud_administrators, invitations, keys, organization_quotas, sessions, users, whoami,
};
use crate::clients::{access, device_types, download_config, settings, tunnel_server};
use crate::connections::RequestHandler;
use crate::device::{logs, register, report, state, tags, tunnel};
use crate::registry::token;
use crate::release_asset::{download, part};
use crate::state::ServerState;
use crate::{body_token, cors, data_api, forwarded, health, request_log, supervisor_proxy};
use dashboard::DashboardState;

/// The handler of all requests.
///
/// The steps common to all requests are plain code here rather than layers of the router, each of which would clone the
/// route and allocate a future for every request.
#[derive(Clone)]
pub(crate) struct App {
    server: ServerState,
    router: Router,
}

impl App {
    pub(crate) fn new(server: ServerState) -> Self {
        App {
            router: router(server.clone()),
            server,
        }
    }
}

impl RequestHandler for App {
    async fn answer(&self, mut request: Request) -> Response {
        let configuration = &self.server.cloud.configuration;
        let mut response = match forwarded::look(configuration, &mut request) {
            Some(redirect) => redirect,
            None => {
                let routed = |request| async {
                    let Ok(response) = self.router.clone().oneshot(request).await;
                    response
                };
                request_log::note(request, routed).await
            }
        };
        forwarded::keep_encrypted(configuration, &mut response);
        response
    }
}

fn router(server: ServerState) -> Router {
    Router::new()
        .route("/ping", get(|| async { "OK" }))
        .route("/health", get(health::serve))
        .route("/health/ready", get(health::serve))
        .route("/health/live", get(health::live))
        .route(
            "/connectivity-check",
            any(|| async { StatusCode::NO_CONTENT }),
        )
        .route("/login_", post(sessions::login))
        .route(
            "/user/v1/refresh-token",
            get(sessions::refresh).post(sessions::refresh),
        )
        .route("/user/v1/sign-out", post(sessions::sign_out))
        .route("/user/v1/change-password", post(users::change_password))
        .route("/user/register", post(users::register))
        .route("/user/v1/invitation/{token}", post(invitations::accept))
        // Some clients use this address for organizations' invitations; the token determines the target.
        .route("/org/v1/invitation/{token}", post(invitations::accept))
        .route(
            "/cloud/v1/system-organization",
            post(cloud_administrators::join_system_organization),
        )
        .route(
            "/cloud/v1/organization/{id}/quotas",
            get(organization_quotas::read).patch(organization_quotas::change),
        )
        .route("/cloud/v1/users", get(cloud_administrators::users))
        .route("/cloud/v1/users/{id}", patch(cloud_administrators::mark))
        .route("/user/v1/whoami", get(whoami::user))
        .route("/actor/v1/whoami", get(whoami::actor))
        .merge(with_and_without_slash())
        .route("/auth/v1/token", get(token::give))
        .route("/config", get(settings::config))
        .route("/config/vars", get(settings::variables))
        .route("/device-types/v1/{slug}", get(device_types::one))
        .route(
            "/device-types/v1/{slug}/images/{version}/download-size",
            get(device_types::download_size),
        )
        .route(
            "/download-config",
            get(download_config::make).post(download_config::make),
        )
        .route("/auth/v1/public-keys/{username}", get(access::public_keys))
        .route("/access/v1/hostos/{uuid}", get(access::host))
        .route("/services/vpn/auth/{uuid}", get(access::tunnel))
        .route(
            "/services/vpn/client-connect",
            post(tunnel_server::connected),
        )
        .route(
            "/services/vpn/client-disconnect",
            post(tunnel_server::disconnected),
        )
        .route("/device/register", post(register::register))
        .route(
            "/device/v2/{uuid}/state",
            get(state::get_v2_state).patch(report::patch_v2),
        )
        .route("/device/v3/{uuid}/state", get(state::current))
        .route("/device/v3/state", patch(report::patch))
        .route("/device/v3/tags", patch(tags::patch))
        .fallback(elsewhere)
        .layer(CompressionLayer::new())
        // Streams are not delayed by compression, nor are files that are requested in ranges.
        .route("/release-asset/v1/{file}", get(download::serve))
        .route("/release-asset/v1/upload/{uuid}/{part}", put(part::put))
        .route("/supervisor/{*path}", post(supervisor_proxy::serve))
        .route("/application/{id}/restart", post(supervisor_proxy::restart))
        .route("/device/v3/{uuid}/tunnel", get(tunnel::accept))
        .route(
            "/device/v2/{uuid}/logs",
            get(logs::read::read).post(logs::ingest::batch),
        )
        .route("/device/v2/{uuid}/log-stream", post(logs::upload::stream))
        .layer(from_fn(for_programs))
        // Pages are only for people at this origin.
        .merge(dashboard::routes(DashboardState::new(server.cloud.clone())))
        .with_state(server)
}

/// Returns the routes of addresses that some clients write with a slash at the end.
fn with_and_without_slash() -> Router<ServerState> {
    let routes: [(&str, MethodRouter<ServerState>); 8] = [
        ("/api-key/user/full", post(keys::user)),
        (
            "/api-key/application/{id}/provisioning",
            post(keys::provisioning),
        ),
        ("/api-key/device/{id}/device-key", post(keys::device)),
        ("/api-key/v1", post(keys::undated)),
        ("/api-key/v2", post(keys::dated)),
        ("/os/v1/config", get(settings::get_host_configuration)),
        ("/device-types/v1", get(device_types::all)),
        ("/device/v3/fleet/{uuid}/state", get(state::get_fleet_state)),
    ];
    let mut router = Router::new();
    for (path, methods) in routes {
        let with_slash = format!("{path}/");
        router = router
            .route(path, methods.clone())
            .route(&with_slash, methods);
    }
    router
}

/// Applies the steps for requests that are not for pages.
async fn for_programs(request: Request, next: Next) -> Response {
    let origin = cors::Origin::from_request(&request);
    let mut response = if origin.is_preflight() {
        StatusCode::OK.into_response()
    } else {
        match body_token::take(request).await {
            Ok(request) => next.run(request).await,
            Err(refusal) => refusal.into_response(),
        }
    };
    origin.allow(&mut response);
    response
}

/// Handles the data API, whose paths are unsuitable for a router; and unknown addresses.
async fn elsewhere(server: State<ServerState>, request: Request) -> Response {
    let path = request.uri().path();
    let version = path
        .strip_prefix("/v")
        .and_then(|rest| rest.split('/').next());
    if version.is_some_and(|version| version.parse::<u8>().is_ok()) {
        data_api::serve(server, request).await
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
}

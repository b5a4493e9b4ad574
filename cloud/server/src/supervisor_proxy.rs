//! `POST /supervisor/<url>` and `POST /application/:id/restart`: requests that are passed on to devices
//! (docs/spec/cloud.md#supervisor-proxy).

use axum::extract::{Path, Request, State};
use cloud_core::answer::{Answer, Refusal};
use cloud_core::body;
use cloud_core::cloud::SharedCloud;
use cloud_core::tunnels::proxy;

/// Passes a request on.
pub(crate) async fn serve(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    if identity.actor().is_none() {
        return Err(Refusal::Unauthorized);
    }
    let body = body::object(&parts.headers, body, cloud.configuration.limits.body).await?;
    proxy::pass_on(cloud, &identity, &parts.uri, &body).await
}

/// `POST /application/:id/restart`: makes every connected device of a fleet restart the fleet's services.
pub(crate) async fn restart(
    State(cloud): State<SharedCloud>,
    Path(fleet): Path<String>,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    if identity.actor().is_none() {
        return Err(Refusal::Unauthorized);
    }
    let fleet: i64 = fleet
        .parse()
        .map_err(|_| Refusal::Wrong("a fleet is named by its number".to_owned()))?;
    proxy::restart(cloud, &identity, fleet).await
}

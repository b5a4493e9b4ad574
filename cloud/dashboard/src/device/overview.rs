//! A device's first page: how it is, its services, what it can be asked, and its log.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cloud_core::cloud::{Cloud, SharedCloud};
use futures::FutureExt as _;
use maud::html;

use super::facts::Facts;
use super::{Device, Tab, Uuid, actions, logs, services, settings};
use crate::live::{LiveFragment, follow_with};
use crate::problem::PageError;
use crate::state::DashboardState;
use crate::visitor::SessionUser;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/devices/{uuid}", get(page))
        .route("/devices/{uuid}/live", get(live))
}

async fn page(
    State(cloud): State<SharedCloud>,
    visitor: SessionUser,
    uuid: Uuid,
) -> Result<Response, PageError> {
    let device = Device::find(&cloud, &visitor, &uuid).await?;
    let [head, facts, services] = parts(&cloud, &visitor, &device, &uuid).await?;
    let main = html! {
        (settings::rename_in_place(&device))
        section.card aria-label="State" { (facts.placed()) }
        section.stack aria-labelledby="services" {
            h2 id="services" { "Services" }
            (services.placed())
        }
        (actions::panel(&device))
        (logs::panel(&cloud, &visitor, &device).await?)
    };
    let live = Some(format!("{}/live", device.place()));
    Ok(device
        .page(&visitor, Tab::Overview, live, &head, &main)
        .into_response())
}

async fn live(
    State(state): State<DashboardState>,
    visitor: SessionUser,
    uuid: Uuid,
) -> Result<Response, PageError> {
    let device = Device::find(&state.cloud, &visitor, &uuid).await?;
    let lines = logs::events(&state.cloud, &visitor, &device).await?;
    let look = move |cloud: SharedCloud, visitor: SessionUser| {
        let uuid = uuid.clone();
        async move {
            let device = Device::find(&cloud, &visitor, &uuid).await?;
            let parts = parts(&cloud, &visitor, &device, &uuid).await?;
            Ok(Vec::from(parts))
        }
        .boxed()
    };
    follow_with(state, visitor, look, lines).await
}

async fn parts(
    cloud: &Cloud,
    visitor: &SessionUser,
    device: &Device,
    uuid: &Uuid,
) -> Result<[LiveFragment; 3], PageError> {
    let facts = Facts::of(cloud, visitor, uuid).await?;
    let services = services::part(cloud, visitor, device).await?;
    Ok([facts.head(device), facts.part(), services])
}

//! A device's first page: how it is, its services, what it can be asked, and its log.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use futures::FutureExt as _;
use maud::html;

use super::facts::Facts;
use super::{Device, Tab, Uuid, actions, logs, services, settings};
use crate::live::{LiveFragment, follow_with};
use crate::problem::PageResult;
use crate::state::DashboardState;
use crate::visitor::SessionUser;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/devices/{uuid}", get(page))
        .route("/devices/{uuid}/live", get(live))
}

async fn page(visitor: SessionUser, uuid: Uuid) -> PageResult {
    let device = Device::find(&visitor, &uuid).await?;
    let [head, facts, services] = parts(&visitor, &device, &uuid).await?;
    let main = html! {
        (settings::rename_in_place(&device))
        section.card aria-label="State" { (facts.placed()) }
        section.stack aria-labelledby="services" {
            h2 id="services" { "Services" }
            (services.placed())
        }
        (actions::panel(&device))
        (logs::panel(&visitor, &device).await?)
    };
    let live = Some(format!("{}/live", device.place()));
    Ok(device
        .page(&visitor, Tab::Overview, live, &head, &main)
        .into_response())
}

async fn live(State(state): State<DashboardState>, visitor: SessionUser, uuid: Uuid) -> PageResult {
    let device = Device::find(&visitor, &uuid).await?;
    let lines = logs::events(&visitor, &device).await?;
    let look = move |visitor: SessionUser| {
        let uuid = uuid.clone();
        async move {
            let device = Device::find(&visitor, &uuid).await?;
            let parts = parts(&visitor, &device, &uuid).await?;
            Ok(Vec::from(parts))
        }
        .boxed()
    };
    follow_with(state, visitor, look, lines).await
}

async fn parts(
    visitor: &SessionUser,
    device: &Device,
    uuid: &Uuid,
) -> PageResult<[LiveFragment; 3]> {
    let facts = Facts::of(visitor, uuid).await?;
    let services = services::part(visitor, device).await?;
    Ok([facts.head(device), facts.part(), services])
}

//! A fleet's variables: those that its services find in their environment, and settings of its devices.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use maud::html;
use serde::Deserialize;

use super::{Fleet, Tab};
use crate::form::Number;
use crate::key_values::{AddForm, KeyValueKind, KeyValueRow, KeyValueTable, list, of_services};
use crate::live::{LiveFragment, stream_fragments};
use crate::problem::PageResult;
use crate::state::DashboardState;
use crate::visitor::SessionUser;

/// Services on the page.
const MOST: usize = 1000;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/fleets/{id}/variables", get(page))
        .route("/fleets/{id}/variables/live", get(live))
}

#[derive(Deserialize)]
struct Service {
    id: i64,
    service_name: String,
}

async fn page(visitor: SessionUser, Number(id): Number) -> PageResult {
    let fleet = Fleet::find(&visitor, id).await?;
    let at = format!("{}/variables", fleet.place());
    let services = services(&visitor, id).await?;
    let [variables, settings] = parts(&visitor, &fleet, &services).await?;
    let all = (KeyValueKind::FleetVariable, id, "All services".to_owned());
    let each = services.iter().map(|service| {
        let name = service.service_name.clone();
        (KeyValueKind::ServiceVariable, service.id, name)
    });
    let variable = AddForm {
        back: &at,
        choices: std::iter::once(all).chain(each).collect(),
    };
    let setting = AddForm {
        back: &at,
        choices: vec![(KeyValueKind::FleetSetting, id, String::new())],
    };
    let main = html! {
        section.stack aria-labelledby="variables" {
            h2 id="variables" { "Variables" }
            p.faint {
                "The environment variables of services on every device, unless a device has its own value. "
                "A change restarts the services concerned."
            }
            (variables.placed())
            @if fleet.may_change { (variable.markup()) }
        }
        section.stack aria-labelledby="settings" {
            h2 id="settings" { "Settings of devices" }
            p.faint {
                "Settings of supervisors and hosts. Names begin with "
                code { (visitor.cloud.configuration.branding.env_prefix) } "."
            }
            (settings.placed())
            @if fleet.may_change { (setting.markup()) }
        }
    };
    let live = Some(format!("{at}/live"));
    Ok(fleet
        .page(&visitor, Tab::Variables, live, &main)
        .into_response())
}

async fn live(
    State(state): State<DashboardState>,
    visitor: SessionUser,
    Number(id): Number,
) -> PageResult {
    stream_fragments(state, visitor, move |visitor| async move {
        let fleet = Fleet::find(&visitor, id).await?;
        let services = services(&visitor, id).await?;
        let parts = parts(&visitor, &fleet, &services).await?;
        Ok(parts.into())
    })
    .await
}

async fn services(visitor: &SessionUser, id: i64) -> PageResult<Vec<Service>> {
    let query = format!(
        "$select=id,service_name&$filter=application eq {id}&$orderby=service_name asc&$top={MOST}"
    );
    visitor.rows("/service", &query).await
}

async fn parts(
    visitor: &SessionUser,
    fleet: &Fleet,
    services: &[Service],
) -> PageResult<[LiveFragment; 2]> {
    let back = format!("{}/variables", fleet.place());
    let own = list(visitor, KeyValueKind::FleetVariable, fleet.id).await?;
    let of_services = of_services(visitor, fleet.id).await?;
    let own = own
        .into_iter()
        .map(|it| KeyValueRow::own(KeyValueKind::FleetVariable, it));
    let of_services = of_services.into_iter().map(|it| {
        let service = services.iter().find(|one| one.id == it.service.id);
        KeyValueRow {
            service: service.map(|one| one.service_name.clone()),
            ..KeyValueRow::own(KeyValueKind::ServiceVariable, it.pair)
        }
    });
    let variables = KeyValueTable {
        caption: "Variables",
        empty: "No variables.",
        back: &back,
        rows: own.chain(of_services).collect(),
    };
    let settings = list(visitor, KeyValueKind::FleetSetting, fleet.id).await?;
    let settings = settings.into_iter();
    let settings = KeyValueTable {
        caption: "Settings of devices",
        empty: "No settings. The defaults apply.",
        back: &back,
        rows: settings
            .map(|it| KeyValueRow::own(KeyValueKind::FleetSetting, it))
            .collect(),
    };
    Ok([
        LiveFragment::new("variables", variables.markup()),
        LiveFragment::new("settings", settings.markup()),
    ])
}

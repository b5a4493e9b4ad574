//! A fleet's variables: those that its services find in their environment, and settings of its devices.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::html;
use serde::Deserialize;

use super::{Fleet, Tab};
use crate::cloud::{Cloud, Shared};
use crate::dashboard::form::Number;
use crate::dashboard::live::{Part, follow};
use crate::dashboard::pairs::{Adder, Kind, Row, Table, of_services, pairs};
use crate::dashboard::problem::Problem;
use crate::dashboard::visitor::Visitor;

/// Services on the page.
const MOST: usize = 1000;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/fleets/{id}/variables", get(page))
        .route("/fleets/{id}/variables/live", get(live))
}

#[derive(Deserialize)]
struct Service {
    id: i64,
    service_name: String,
}

async fn page(
    State(cloud): State<Shared>,
    visitor: Visitor,
    Number(id): Number,
) -> Result<Response, Problem> {
    let fleet = Fleet::find(&cloud, &visitor, id).await?;
    let at = format!("{}/variables", fleet.place());
    let services = services(&cloud, &visitor, id).await?;
    let [variables, settings] = parts(&cloud, &visitor, &fleet, &services).await?;
    let all = (Kind::FleetVariable, id, "All services".to_owned());
    let each = services.iter().map(|service| {
        let name = service.service_name.clone();
        (Kind::ServiceVariable, service.id, name)
    });
    let variable = Adder {
        back: &at,
        choices: std::iter::once(all).chain(each).collect(),
    };
    let setting = Adder {
        back: &at,
        choices: vec![(Kind::FleetSetting, id, String::new())],
    };
    let main = html! {
        section.stack aria-labelledby="variables" {
            h2 id="variables" { "Variables" }
            p.faint {
                "What services find in their environment on every device, unless a device has another value of its own. "
                "A change restarts those that it is for."
            }
            (variables.placed())
            @if fleet.may_change { (variable.markup()) }
        }
        section.stack aria-labelledby="settings" {
            h2 id="settings" { "Settings of devices" }
            p.faint {
                "What supervisors and hosts go by. Names begin with "
                code { (cloud.configuration.branding.env_prefix) } "."
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
    State(cloud): State<Shared>,
    visitor: Visitor,
    Number(id): Number,
) -> Result<Response, Problem> {
    follow(cloud, visitor, move |cloud, visitor| async move {
        let fleet = Fleet::find(&cloud, &visitor, id).await?;
        let services = services(&cloud, &visitor, id).await?;
        let parts = parts(&cloud, &visitor, &fleet, &services).await?;
        Ok(parts.into())
    })
    .await
}

async fn services(cloud: &Cloud, visitor: &Visitor, id: i64) -> Result<Vec<Service>, Problem> {
    let query = format!(
        "$select=id,service_name&$filter=application eq {id}&$orderby=service_name asc&$top={MOST}"
    );
    visitor.rows(cloud, "/service", &query).await
}

async fn parts(
    cloud: &Cloud,
    visitor: &Visitor,
    fleet: &Fleet,
    services: &[Service],
) -> Result<[Part; 2], Problem> {
    let back = format!("{}/variables", fleet.place());
    let own = pairs(cloud, visitor, Kind::FleetVariable, fleet.id).await?;
    let of_services = of_services(cloud, visitor, fleet.id).await?;
    let own = own.into_iter().map(|it| Row::own(Kind::FleetVariable, it));
    let of_services = of_services.into_iter().map(|it| {
        let service = services.iter().find(|one| one.id == it.service.id);
        Row {
            service: service.map(|one| one.service_name.clone()),
            ..Row::own(Kind::ServiceVariable, it.pair)
        }
    });
    let variables = Table {
        caption: "Variables",
        empty: "No variables.",
        back: &back,
        rows: own.chain(of_services).collect(),
    };
    let settings = pairs(cloud, visitor, Kind::FleetSetting, fleet.id).await?;
    let settings = settings.into_iter();
    let settings = Table {
        caption: "Settings of devices",
        empty: "No settings: devices go by their own.",
        back: &back,
        rows: settings
            .map(|it| Row::own(Kind::FleetSetting, it))
            .collect(),
    };
    Ok([
        Part::new("variables", variables.markup()),
        Part::new("settings", settings.markup()),
    ])
}

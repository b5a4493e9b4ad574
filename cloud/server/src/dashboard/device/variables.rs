//! A device's variables: those of its services, its own and its fleet's, and its settings.

use std::collections::HashSet;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::html;
use serde::Deserialize;

use super::facts::Facts;
use super::{Device, Tab, Uuid};
use crate::cloud::{Cloud, Shared};
use crate::dashboard::live::{Part, follow};
use crate::dashboard::pairs::{
    Adder, Inherited, Kind, OfService, Pair, Row, Table, of_services, pairs,
};
use crate::dashboard::problem::Problem;
use crate::dashboard::visitor::Visitor;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/devices/{uuid}/variables", get(page))
        .route("/devices/{uuid}/variables/live", get(live))
}

/// A service that the device is to run.
#[derive(Deserialize)]
struct Install {
    id: i64,
    #[serde(rename = "installs__service")]
    services: Vec<Service>,
    device_service_environment_variable: Vec<Pair>,
}

#[derive(Deserialize)]
struct Service {
    id: i64,
    service_name: String,
}

async fn page(
    State(cloud): State<Shared>,
    visitor: Visitor,
    uuid: Uuid,
) -> Result<Response, Problem> {
    let device = Device::find(&cloud, &visitor, &uuid).await?;
    let facts = Facts::of(&cloud, &visitor, &uuid).await?;
    let installs = installs(&cloud, &visitor, &device).await?;
    let [variables, settings] = parts(&cloud, &visitor, &device).await?;
    let at = format!("{}/variables", device.place());
    let all = (Kind::DeviceVariable, device.id, "All services".to_owned());
    let each = installs.iter().flat_map(|install| {
        let services = install.services.iter();
        services.map(|it| {
            (
                Kind::DeviceServiceVariable,
                install.id,
                it.service_name.clone(),
            )
        })
    });
    let adder = Adder {
        back: &at,
        choices: std::iter::once(all).chain(each).collect(),
    };
    let setting = Adder {
        back: &at,
        choices: vec![(Kind::DeviceSetting, device.id, String::new())],
    };
    let main = html! {
        section.stack aria-labelledby="variables" {
            h2 id="variables" { "Variables" }
            p.faint { "What its services find in their environment. A change restarts those that it is for." }
            (variables.placed())
            (adder.markup())
        }
        section.stack aria-labelledby="settings" {
            h2 id="settings" { "Settings" }
            p.faint {
                "What its supervisor and its host go by. Names begin with "
                code { (cloud.configuration.branding.env_prefix) } "."
            }
            (settings.placed())
            (setting.markup())
        }
    };
    Ok(device
        .page(
            &visitor,
            Tab::Variables,
            Some(format!("{at}/live")),
            &facts.head(&device),
            &main,
        )
        .into_response())
}

async fn live(
    State(cloud): State<Shared>,
    visitor: Visitor,
    uuid: Uuid,
) -> Result<Response, Problem> {
    follow(cloud, visitor, move |cloud, visitor| {
        let uuid = uuid.clone();
        async move {
            let device = Device::find(&cloud, &visitor, &uuid).await?;
            let head = Facts::of(&cloud, &visitor, &uuid).await?.head(&device);
            let [variables, settings] = parts(&cloud, &visitor, &device).await?;
            Ok(vec![head, variables, settings])
        }
    })
    .await
}

async fn installs(
    cloud: &Cloud,
    visitor: &Visitor,
    device: &Device,
) -> Result<Vec<Install>, Problem> {
    let query = format!(
        "$select=id&$expand=installs__service($select=id,service_name),\
         device_service_environment_variable($select=id,name,value,is_secret;$orderby=name asc;$top=500)\
         &$filter=device eq {}&$top=200",
        device.id
    );
    visitor.rows(cloud, "/service_install", &query).await
}

async fn parts(cloud: &Cloud, visitor: &Visitor, device: &Device) -> Result<[Part; 2], Problem> {
    let back = format!("{}/variables", device.place());
    let own = pairs(cloud, visitor, Kind::DeviceVariable, device.id).await?;
    let installs = installs(cloud, visitor, device).await?;
    let own_settings = pairs(cloud, visitor, Kind::DeviceSetting, device.id).await?;
    let (of_fleet, fleet_settings, of_services) = match device.fleet() {
        None => (Vec::new(), Vec::new(), Vec::new()),
        Some(fleet) => (
            pairs(cloud, visitor, Kind::FleetVariable, fleet).await?,
            pairs(cloud, visitor, Kind::FleetSetting, fleet).await?,
            of_services(cloud, visitor, fleet).await?,
        ),
    };
    let rows = variables(device, own, &installs, of_fleet, of_services);
    let settings = settings(device, own_settings, fleet_settings);
    Ok([
        Part::new(
            "variables",
            table("Variables", "No variables.", &back, rows),
        ),
        Part::new(
            "settings",
            table(
                "Settings",
                "No settings: it goes by its own.",
                &back,
                settings,
            ),
        ),
    ])
}

fn table(caption: &str, empty: &str, back: &str, rows: Vec<Row>) -> maud::Markup {
    Table {
        caption,
        empty,
        back,
        rows,
    }
    .markup()
}

/// Its own first, then its fleet's. Of one name the device's wins over the fleet's, and at each of them that of
/// the service over that of all services (cloud behaviour 4.2).
fn variables(
    device: &Device,
    own: Vec<Pair>,
    installs: &[Install],
    of_fleet: Vec<Pair>,
    of_services: Vec<OfService>,
) -> Vec<Row> {
    let names: HashSet<String> = own.iter().map(|pair| pair.name.clone()).collect();
    let mut rows: Vec<Row> = own
        .into_iter()
        .map(|pair| Row::own(Kind::DeviceVariable, pair))
        .collect();
    for install in installs {
        let service = install.services.first();
        let service = service.map(|service| service.service_name.clone());
        for pair in &install.device_service_environment_variable {
            rows.push(Row {
                service: service.clone(),
                ..Row::own(Kind::DeviceServiceVariable, pair.clone())
            });
        }
    }
    for pair in of_fleet {
        rows.push(Row {
            kind: Kind::FleetVariable,
            service: None,
            inherited: Some(Inherited {
                from: "The fleet".to_owned(),
                to: (Kind::DeviceVariable, device.id),
                overridden: names.contains(&pair.name),
            }),
            pair,
        });
    }
    for OfService { service, pair } in of_services {
        let install = installs.iter().find(|install| {
            let mut services = install.services.iter();
            services.any(|it| it.id == service.id)
        });
        // Of a service that this device does not run.
        let Some(install) = install else { continue };
        let mut here = install.device_service_environment_variable.iter();
        rows.push(Row {
            kind: Kind::ServiceVariable,
            service: install.services.first().map(|it| it.service_name.clone()),
            inherited: Some(Inherited {
                from: "The fleet".to_owned(),
                to: (Kind::DeviceServiceVariable, install.id),
                overridden: names.contains(&pair.name) || here.any(|it| it.name == pair.name),
            }),
            pair,
        });
    }
    rows
}

fn settings(device: &Device, own: Vec<Pair>, of_fleet: Vec<Pair>) -> Vec<Row> {
    let names: HashSet<String> = own.iter().map(|pair| pair.name.clone()).collect();
    let own = own
        .into_iter()
        .map(|pair| Row::own(Kind::DeviceSetting, pair));
    let of_fleet = of_fleet.into_iter().map(|pair| Row {
        kind: Kind::FleetSetting,
        service: None,
        inherited: Some(Inherited {
            from: "The fleet".to_owned(),
            to: (Kind::DeviceSetting, device.id),
            overridden: names.contains(&pair.name),
        }),
        pair,
    });
    own.chain(of_fleet).collect()
}

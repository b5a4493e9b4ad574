//! A device's variables: those of its services, its own and its fleet's, and its settings.

use std::collections::HashSet;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use maud::html;
use serde::Deserialize;

use super::facts::Facts;
use super::{Device, Tab, Uuid};
use crate::key_values::{
    AddForm, Inheritance, KeyValue, KeyValueKind, KeyValueRow, KeyValueTable, ServiceKeyValue,
    list, of_services,
};
use crate::live::{LiveFragment, stream_fragments};
use crate::problem::PageResult;
use crate::state::DashboardState;
use crate::visitor::SessionUser;

pub(super) fn routes() -> Router<DashboardState> {
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
    device_service_environment_variable: Vec<KeyValue>,
}

#[derive(Deserialize)]
struct Service {
    id: i64,
    service_name: String,
}

async fn page(visitor: SessionUser, uuid: Uuid) -> PageResult {
    let device = Device::find(&visitor, &uuid).await?;
    let facts = Facts::of(&visitor, &uuid).await?;
    let installs = installs(&visitor, &device).await?;
    let [variables, settings] = parts(&visitor, &device).await?;
    let at = format!("{}/variables", device.place());
    let all = (
        KeyValueKind::DeviceVariable,
        device.id,
        "All services".to_owned(),
    );
    let each = installs.iter().flat_map(|install| {
        let services = install.services.iter();
        services.map(|it| {
            (
                KeyValueKind::DeviceServiceVariable,
                install.id,
                it.service_name.clone(),
            )
        })
    });
    let adder = AddForm {
        back: &at,
        choices: std::iter::once(all).chain(each).collect(),
    };
    let setting = AddForm {
        back: &at,
        choices: vec![(KeyValueKind::DeviceSetting, device.id, String::new())],
    };
    let main = html! {
        section.stack aria-labelledby="variables" {
            h2 id="variables" { "Variables" }
            p.faint { "The environment variables of its services. A change restarts the services concerned." }
            (variables.placed())
            (adder.markup())
        }
        section.stack aria-labelledby="settings" {
            h2 id="settings" { "Settings" }
            p.faint {
                "Settings of its supervisor and its host. Names begin with "
                code { (visitor.cloud.configuration.branding.env_prefix) } "."
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

async fn live(State(state): State<DashboardState>, visitor: SessionUser, uuid: Uuid) -> PageResult {
    stream_fragments(state, visitor, move |visitor| {
        let uuid = uuid.clone();
        async move {
            let device = Device::find(&visitor, &uuid).await?;
            let head = Facts::of(&visitor, &uuid).await?.head(&device);
            let [variables, settings] = parts(&visitor, &device).await?;
            Ok(vec![head, variables, settings])
        }
    })
    .await
}

async fn installs(visitor: &SessionUser, device: &Device) -> PageResult<Vec<Install>> {
    let query = format!(
        "$select=id&$expand=installs__service($select=id,service_name),\
         device_service_environment_variable($select=id,name,value,is_secret;$orderby=name asc;$top=500)\
         &$filter=device eq {}&$top=200",
        device.id
    );
    visitor.rows("/service_install", &query).await
}

async fn parts(visitor: &SessionUser, device: &Device) -> PageResult<[LiveFragment; 2]> {
    let back = format!("{}/variables", device.place());
    let own = list(visitor, KeyValueKind::DeviceVariable, device.id).await?;
    let installs = installs(visitor, device).await?;
    let own_settings = list(visitor, KeyValueKind::DeviceSetting, device.id).await?;
    let (of_fleet, fleet_settings, of_services) = match device.fleet() {
        None => (Vec::new(), Vec::new(), Vec::new()),
        Some(fleet) => (
            list(visitor, KeyValueKind::FleetVariable, fleet).await?,
            list(visitor, KeyValueKind::FleetSetting, fleet).await?,
            of_services(visitor, fleet).await?,
        ),
    };
    let rows = variables(device, own, &installs, of_fleet, of_services);
    let settings = settings(device, own_settings, fleet_settings);
    Ok([
        LiveFragment::new(
            "variables",
            table("Variables", "No variables.", &back, rows),
        ),
        LiveFragment::new(
            "settings",
            table(
                "Settings",
                "No settings. The defaults apply.",
                &back,
                settings,
            ),
        ),
    ])
}

fn table(caption: &str, empty: &str, back: &str, rows: Vec<KeyValueRow>) -> maud::Markup {
    KeyValueTable {
        caption,
        empty,
        back,
        rows,
    }
    .markup()
}

/// Its own first, then its fleet's. Of one name the device's wins over the fleet's, and at each of them that of
/// the service over that of all services (docs/spec/cloud.md#device-state).
fn variables(
    device: &Device,
    own: Vec<KeyValue>,
    installs: &[Install],
    of_fleet: Vec<KeyValue>,
    of_services: Vec<ServiceKeyValue>,
) -> Vec<KeyValueRow> {
    let names: HashSet<String> = own.iter().map(|pair| pair.name.clone()).collect();
    let mut rows: Vec<KeyValueRow> = own
        .into_iter()
        .map(|pair| KeyValueRow::own(KeyValueKind::DeviceVariable, pair))
        .collect();
    for install in installs {
        let service = install.services.first();
        let service = service.map(|service| service.service_name.clone());
        for pair in &install.device_service_environment_variable {
            rows.push(KeyValueRow {
                service: service.clone(),
                ..KeyValueRow::own(KeyValueKind::DeviceServiceVariable, pair.clone())
            });
        }
    }
    for pair in of_fleet {
        rows.push(KeyValueRow {
            kind: KeyValueKind::FleetVariable,
            service: None,
            inherited: Some(Inheritance {
                from: "The fleet".to_owned(),
                to: (KeyValueKind::DeviceVariable, device.id),
                overridden: names.contains(&pair.name),
            }),
            pair,
        });
    }
    for ServiceKeyValue { service, pair } in of_services {
        let install = installs.iter().find(|install| {
            let mut services = install.services.iter();
            services.any(|it| it.id == service.id)
        });
        // Of a service that this device does not run.
        let Some(install) = install else { continue };
        let mut here = install.device_service_environment_variable.iter();
        rows.push(KeyValueRow {
            kind: KeyValueKind::ServiceVariable,
            service: install.services.first().map(|it| it.service_name.clone()),
            inherited: Some(Inheritance {
                from: "The fleet".to_owned(),
                to: (KeyValueKind::DeviceServiceVariable, install.id),
                overridden: names.contains(&pair.name) || here.any(|it| it.name == pair.name),
            }),
            pair,
        });
    }
    rows
}

fn settings(device: &Device, own: Vec<KeyValue>, of_fleet: Vec<KeyValue>) -> Vec<KeyValueRow> {
    let names: HashSet<String> = own.iter().map(|pair| pair.name.clone()).collect();
    let own = own
        .into_iter()
        .map(|pair| KeyValueRow::own(KeyValueKind::DeviceSetting, pair));
    let of_fleet = of_fleet.into_iter().map(|pair| KeyValueRow {
        kind: KeyValueKind::FleetSetting,
        service: None,
        inherited: Some(Inheritance {
            from: "The fleet".to_owned(),
            to: (KeyValueKind::DeviceSetting, device.id),
            overridden: names.contains(&pair.name),
        }),
        pair,
    });
    own.chain(of_fleet).collect()
}

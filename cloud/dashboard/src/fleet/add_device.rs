//! How a device joins a fleet: a `config.json` for its disk, or a key for programs that create such files.

use axum::response::IntoResponse;
use cloud_core::accounts::keys::{self, KeyDescription};
use cloud_core::answer::Refusal;
use cloud_core::download_config;
use http::{HeaderMap, header};
use maud::{Markup, html};
use resources::Role;
use serde_json::{Map, json};

use super::tabs::{DEVICES, DeviceType, Fleet};
use crate::form::{Form, Number};
use crate::page::Page;
use crate::page_error::{PageError, PageResult};
use crate::rows::fleet_place;
use crate::session_user::SessionUser;

pub(super) async fn ask(user: SessionUser, Number(id): Number) -> PageResult<Markup> {
    let fleet = Fleet::find(&user, id).await?;
    // The device types that can run software for the fleet's own type.
    let query = format!(
        "$select=slug,name&$orderby=name asc&$filter=is_of__cpu_architecture/any(c:\
         c/device_type/any(t:t/is_default_for__application/any(a:a/id eq {id})))"
    );
    let kinds: Vec<DeviceType> = user.rows("/device_type", &query).await?;
    let own = fleet.device_type.first().map(|kind| kind.slug.as_str());
    let config = format!("{}/config.json", fleet.place());
    let key = format!("{}/key", fleet.place());
    let main = html! {
        section.cards {
            form.card.stack method="post" action=(config) {
                h2 { "Download config.json" }
                p.faint {
                    "Put it on the device's boot partition, or give its path to the supervisor. The device registers with "
                    "the key in the file, and appears here."
                }
                label { "Device type"
                    select name="deviceType" {
                        @for kind in &kinds {
                            option value=(kind.slug) selected[Some(kind.slug.as_str()) == own] { (kind.name) }
                        }
                    }
                }
                details {
                    summary { "Wi-Fi and other options" }
                    div.stack {
                        label { "Wi-Fi name (SSID)" input name="wifiSsid" maxlength="64" autocomplete="off"; }
                        label { "Wi-Fi password" input name="wifiKey" maxlength="128" autocomplete="off"; }
                        div {
                            label { "The key in the file is valid until"
                                input type="date" name="expires" aria-describedby="expires-hint";
                            }
                            small id="expires-hint" { "Without a date, it is valid until somebody deletes it." }
                        }
                        label.tick { input type="checkbox" name="developmentMode" value="true"; "Development mode" }
                    }
                }
                div.buttons { button.primary type="submit" { "Download config.json" } }
            }
            form.card.stack method="post" action=(key) hx-post=(key) hx-target="find .answer" hx-sync="this:drop" {
                h2 { "Create a provisioning key" }
                p.faint { "Anybody who has the key can add devices to this fleet, and nothing else. It is shown once." }
                label { "What it is for" input name="name" maxlength="50" autocomplete="off"; }
                div.answer role="status" {}
                div.buttons { button type="submit" { "Create key" } }
            }
        }
    };
    let page = Page {
        live: None,
        ..fleet.page(DEVICES, &main)
    };
    Ok(page.markup(&user))
}

/// Answers a form that uses no script, because the answer is a file.
pub(super) async fn config(
    user: SessionUser,
    Number(id): Number,
    headers: HeaderMap,
    form: Form,
) -> PageResult {
    let mut options = Map::from_iter([("appId".to_owned(), json!(id))]);
    for name in ["deviceType", "wifiSsid", "wifiKey", "developmentMode"] {
        if let Some(value) = form.filled(name) {
            options.insert(name.to_owned(), json!(value));
        }
    }
    if let Some(day) = form.end_of_day("expires") {
        options.insert("provisioningKeyExpiryDate".to_owned(), json!(day));
    }
    let config = download_config::made(&user.cloud, &user.identity, &headers, &options).await?;
    let text = serde_json::to_string_pretty(&config)
        .map_err(|error| PageError(Refusal::Fault(error.into())))?;
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"config.json\"",
        ),
    ];
    Ok((headers, text).into_response())
}

pub(super) async fn key(user: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let actor = keys::find_permitted_actor(&user.cloud, &user.identity, "application", id).await?;
    let description = KeyDescription {
        name: form.filled("name").map(str::to_owned),
        description: Some("created in the dashboard".to_owned()),
        ..KeyDescription::default()
    };
    let place = fleet_place(id);
    let back = (&*place, "Back to the fleet");
    user.make_key(actor, Role::ProvisioningKey, description, back)
        .await
}

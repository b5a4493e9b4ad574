//! What people decide about a device: its name, note and tags, its release, its fleet, and its end.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::facts::Facts;
use super::{Device, Tab, Uuid};
use crate::cloud::{Cloud, Shared};
use crate::dashboard::fleet::Destination;
use crate::dashboard::form::Form;
use crate::dashboard::live::{Part, follow};
use crate::dashboard::pairs::{Adder, Kind, pairs, tags};
use crate::dashboard::problem::Problem;
use crate::dashboard::show::{exact, release_name};
use crate::dashboard::switch::{OVERRIDE_LOCKS, REMOTE_ACCESS};
use crate::dashboard::visitor::Visitor;

/// Releases that a device can be pinned on here: the latest.
const RELEASES: usize = 100;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/devices/{uuid}/settings", get(page))
        .route("/devices/{uuid}/settings/live", get(live))
        .route("/devices/{uuid}/rename", post(rename))
        .route("/devices/{uuid}/note", post(note))
        .route("/devices/{uuid}/pin", post(pin))
        .route("/devices/{uuid}/move", post(move_elsewhere))
        .route("/devices/{uuid}/active", post(activate))
        .route("/devices/{uuid}/delete", post(delete))
}

async fn page(
    State(cloud): State<Shared>,
    visitor: Visitor,
    uuid: Uuid,
) -> Result<Response, Problem> {
    let device = Device::find(&cloud, &visitor, &uuid).await?;
    let facts = Facts::of(&cloud, &visitor, &uuid).await?;
    let [tags, switches] = parts(&cloud, &visitor, &device).await?;
    let at = format!("{}/settings", device.place());
    let adder = Adder {
        back: &at,
        choices: vec![(Kind::DeviceTag, device.id, String::new())],
    };
    let main = html! {
        div.cards {
            section.card.stack aria-labelledby="name" {
                h2 id="name" { "Name and note" }
                (form(&device, "rename", html! {
                    label { "Name"
                        input name="name" value=(device.device_name) required maxlength="255" autocomplete="off";
                    }
                    button type="submit" { "Rename" }
                }))
                (form(&device, "note", html! {
                    label { "Note" textarea name="note" maxlength="100000" { (facts.note()) } }
                    button type="submit" { "Save the note" }
                }))
            }
            div.stack {
                section.card.stack aria-labelledby="release" {
                    h2 id="release" { "Release" }
                    (choose_release(&cloud, &visitor, &device, &facts).await?)
                }
                section.card.stack aria-labelledby="switches" {
                    h2 id="switches" { "Switches" }
                    (switches.placed())
                }
            }
        }
        section.stack aria-labelledby="tags" {
            h2 id="tags" { "Tags" }
            (tags.placed())
            (adder.markup())
        }
        div.cards {
            section.card.stack aria-labelledby="fleet" {
                h2 id="fleet" { "Fleet" }
                (choose_fleet(&cloud, &visitor, &device).await?)
            }
            section.card.stack aria-labelledby="use" {
                h2 id="use" { "In use" }
                (in_use(&device, &facts))
            }
            section.card.stack aria-labelledby="end" {
                h2 id="end" { "Delete" }
                p { "The cloud forgets the device and its key. A device that still runs has to be made known anew." }
                details {
                    summary { "Delete this device …" }
                    (form(&device, "delete", html! {
                        label { "Type its name to be sure: " strong { (device.device_name) }
                            input name="name" required autocomplete="off" aria-label="Its name, to be sure";
                        }
                        button.danger type="submit" { "Delete the device" }
                    }))
                }
            }
        }
    };
    Ok(device
        .page(
            &visitor,
            Tab::Settings,
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
            let [tags, switches] = parts(&cloud, &visitor, &device).await?;
            Ok(vec![head, tags, switches])
        }
    })
    .await
}

/// Another name, from its first page.
pub(super) fn rename_in_place(device: &Device) -> Markup {
    html! {
        details.rename {
            summary { "Rename …" }
            (form(device, "rename", html! {
                div.line {
                    label { "Name"
                        input name="name" value=(device.device_name) required maxlength="255" autocomplete="off";
                    }
                    button type="submit" { "Rename" }
                }
            }))
        }
    }
}

/// A form whose answer stands in it.
fn form(device: &Device, deed: &str, fields: Markup) -> Markup {
    let place = format!("{}/{deed}", device.place());
    html! {
        form.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop" {
            (fields)
            div.answer role="status" {}
        }
    }
}

async fn parts(cloud: &Cloud, visitor: &Visitor, device: &Device) -> Result<[Part; 2], Problem> {
    let at = format!("{}/settings", device.place());
    let own = pairs(cloud, visitor, Kind::DeviceSetting, device.id).await?;
    let fleet = match device.fleet() {
        Some(fleet) => pairs(cloud, visitor, Kind::FleetSetting, fleet).await?,
        None => Vec::new(),
    };
    let branding = &cloud.configuration.branding;
    let of = (Kind::DeviceSetting, device.id);
    let switches = html! {
        @for switch in [&OVERRIDE_LOCKS, &REMOTE_ACCESS] {
            (switch.markup(branding, of, &own, &fleet, &at))
        }
    };
    Ok([
        tags(cloud, visitor, Kind::DeviceTag, device.id, &at).await?,
        Part::new("switches", switches),
    ])
}

#[derive(Deserialize)]
struct Release {
    id: i64,
    commit: String,
    raw_version: String,
    created_at: String,
}

async fn choose_release(
    cloud: &Cloud,
    visitor: &Visitor,
    device: &Device,
    facts: &Facts,
) -> Result<Markup, Problem> {
    let Some(fleet) = device.fleet() else {
        return Ok(html! { p.faint { "It is in no fleet." } });
    };
    let query = format!(
        "$select=id,commit,raw_version,created_at&$filter=belongs_to__application eq {fleet} and status eq 'success' \
         and is_invalidated eq false&$orderby=created_at desc&$top={RELEASES}"
    );
    let releases: Vec<Release> = visitor.rows(cloud, "/release", &query).await?;
    let pinned = facts.pin();
    Ok(form(
        device,
        "pin",
        html! {
            label { "Runs"
                select name="release" {
                    option value="" selected[pinned.is_none()] { "What its fleet runs" }
                    @for release in &releases {
                        option value=(release.id) selected[pinned == Some(release.id)] {
                            (release_name(&release.commit, &release.raw_version)) ", " (exact(&release.created_at))
                        }
                    }
                    @if let Some(other) = pinned.filter(|id| releases.iter().all(|it| it.id != *id)) {
                        option value=(other) selected { "Release " (other) }
                    }
                }
            }
            small { "Pinned on a release, it stays there whatever its fleet does." }
            button type="submit" { "Set its release" }
        },
    ))
}

/// Whether it counts: a device in a drawer is nobody's outage.
fn in_use(device: &Device, facts: &Facts) -> Markup {
    let (explained, to, word) = match facts.is_active() {
        true => (
            "Deactivated, it is shown as inactive rather than as disconnected. It goes on with what it runs.",
            "no",
            "Deactivate the device",
        ),
        false => (
            "It is deactivated: whatever it tells, it is shown as inactive.",
            "yes",
            "Activate the device",
        ),
    };
    form(
        device,
        "active",
        html! {
            p { (explained) }
            button type="submit" name="active" value=(to) { (word) }
        },
    )
}

async fn choose_fleet(
    cloud: &Cloud,
    visitor: &Visitor,
    device: &Device,
) -> Result<Markup, Problem> {
    let fleets = Destination::all(cloud, visitor, None).await?;
    let current = device.fleet();
    Ok(form(
        device,
        "move",
        html! {
            label { "Belongs to"
                select name="fleet" required {
                    @for fleet in &fleets {
                        option value=(fleet.id) selected[current == Some(fleet.id)] {
                            (fleet.app_name) " (" (fleet.slug) ")"
                        }
                    }
                }
            }
            small { "It runs what its new fleet runs. A pin does not move with it." }
            button type="submit" { "Move it" }
        },
    ))
}

async fn rename(
    State(cloud): State<Shared>,
    visitor: Visitor,
    uuid: Uuid,
    form: Form,
) -> Result<Response, Problem> {
    let name = form.text("name");
    if name.is_empty() {
        return Err(Problem::wrong("Give it a name."));
    }
    let word = format!("It is called {name} now.");
    patched(
        &cloud,
        &visitor,
        &uuid,
        json!({ "device_name": name }),
        &word,
    )
    .await
}

async fn note(
    State(cloud): State<Shared>,
    visitor: Visitor,
    uuid: Uuid,
    form: Form,
) -> Result<Response, Problem> {
    let note = form.text("note");
    let note = if note.is_empty() {
        Value::Null
    } else {
        json!(note)
    };
    patched(&cloud, &visitor, &uuid, json!({ "note": note }), "Saved.").await
}

async fn pin(
    State(cloud): State<Shared>,
    visitor: Visitor,
    uuid: Uuid,
    form: Form,
) -> Result<Response, Problem> {
    let (release, word) = match form.text("release") {
        "" => (Value::Null, "It runs what its fleet runs."),
        _ => (
            json!(form.number("release")?),
            "It is pinned on this release.",
        ),
    };
    patched(
        &cloud,
        &visitor,
        &uuid,
        json!({ "is_pinned_on__release": release }),
        word,
    )
    .await
}

async fn activate(
    State(cloud): State<Shared>,
    visitor: Visitor,
    uuid: Uuid,
    form: Form,
) -> Result<Response, Problem> {
    let (active, word) = match form.text("active") {
        "yes" => (true, "It is active now."),
        "no" => (false, "It is deactivated now."),
        _ => return Err(Problem::nothing_here()),
    };
    let body = json!({ "is_active": active });
    patched(&cloud, &visitor, &uuid, body, word).await
}

/// Changes its row; the page that it came from shows the rest.
async fn patched(
    cloud: &Cloud,
    visitor: &Visitor,
    uuid: &Uuid,
    body: Value,
    word: &str,
) -> Result<Response, Problem> {
    let device = Device::find(cloud, visitor, uuid).await?;
    visitor.patch(cloud, &device.path(), body).await?;
    Ok(visitor.done(word, &format!("{}/settings", device.place())))
}

async fn move_elsewhere(
    State(cloud): State<Shared>,
    visitor: Visitor,
    uuid: Uuid,
    form: Form,
) -> Result<Response, Problem> {
    let device = Device::find(&cloud, &visitor, &uuid).await?;
    let body = json!({ "belongs_to__application": form.number("fleet")? });
    visitor.patch(&cloud, &device.path(), body).await?;
    Ok(visitor.go(&format!("{}/settings", device.place())))
}

async fn delete(
    State(cloud): State<Shared>,
    visitor: Visitor,
    uuid: Uuid,
    form: Form,
) -> Result<Response, Problem> {
    let device = Device::find(&cloud, &visitor, &uuid).await?;
    if form.text("name") != device.device_name.trim() {
        return Err(Problem::wrong(
            "This is not its name, so nothing was deleted.",
        ));
    }
    visitor.delete(&cloud, &device.path()).await?;
    let fleet = device.fleet();
    let place = fleet.map_or("/dashboard".to_owned(), |id| {
        format!("/dashboard/fleets/{id}")
    });
    Ok(visitor.go(&place))
}

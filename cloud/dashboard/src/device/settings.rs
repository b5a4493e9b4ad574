//! What people decide about a device: its name, note and tags, its release, its fleet, and its end.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::facts::Facts;
use super::{Device, Tab, Uuid};
use crate::fleet::Destination;
use crate::form::Form;
use crate::key_values::{AddForm, KeyValueKind, list as key_values, tags};
use crate::live::{LiveFragment, stream_fragments};
use crate::problem::{PageError, PageResult};
use crate::release_picker::ReleasePicker;
use crate::state::DashboardState;
use crate::switch::{OVERRIDE_LOCKS, REMOTE_ACCESS};
use crate::visitor::SessionUser;

pub(super) fn routes() -> Router<DashboardState> {
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

async fn page(visitor: SessionUser, uuid: Uuid) -> PageResult {
    let device = Device::find(&visitor, &uuid).await?;
    let facts = Facts::of(&visitor, &uuid).await?;
    let [tags, switches] = parts(&visitor, &device).await?;
    let at = format!("{}/settings", device.place());
    let adder = AddForm {
        back: &at,
        choices: vec![(KeyValueKind::DeviceTag, device.id, String::new())],
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
                    (choose_release(&visitor, &device, &facts).await?)
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
                (choose_fleet(&visitor, &device).await?)
            }
            section.card.stack aria-labelledby="use" {
                h2 id="use" { "In use" }
                (in_use(&device, &facts))
            }
            section.card.stack aria-labelledby="end" {
                h2 id="end" { "Delete" }
                p { "The cloud deletes the device and its key. A device that still runs has to be registered again." }
                details {
                    summary { "Delete this device …" }
                    (form(&device, "delete", html! {
                        label { "Type its name to confirm: " strong { (device.device_name) }
                            input name="name" required autocomplete="off" aria-label="Its name, to confirm";
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

async fn live(State(state): State<DashboardState>, visitor: SessionUser, uuid: Uuid) -> PageResult {
    stream_fragments(state, visitor, move |visitor| {
        let uuid = uuid.clone();
        async move {
            let device = Device::find(&visitor, &uuid).await?;
            let head = Facts::of(&visitor, &uuid).await?.head(&device);
            let [tags, switches] = parts(&visitor, &device).await?;
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
fn form(device: &Device, action: &str, fields: Markup) -> Markup {
    let place = format!("{}/{action}", device.place());
    html! {
        form.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop" {
            (fields)
            div.answer role="status" {}
        }
    }
}

async fn parts(visitor: &SessionUser, device: &Device) -> PageResult<[LiveFragment; 2]> {
    let at = format!("{}/settings", device.place());
    let own = key_values(visitor, KeyValueKind::DeviceSetting, device.id).await?;
    let fleet = match device.fleet() {
        Some(fleet) => key_values(visitor, KeyValueKind::FleetSetting, fleet).await?,
        None => Vec::new(),
    };
    let branding = &visitor.cloud.configuration.branding;
    let of = (KeyValueKind::DeviceSetting, device.id);
    let switches = html! {
        @for switch in [&OVERRIDE_LOCKS, &REMOTE_ACCESS] {
            (switch.markup(branding, of, &own, &fleet, &at))
        }
    };
    Ok([
        tags(visitor, KeyValueKind::DeviceTag, device.id, &at).await?,
        LiveFragment::new("switches", switches),
    ])
}

async fn choose_release(
    visitor: &SessionUser,
    device: &Device,
    facts: &Facts,
) -> PageResult<Markup> {
    let Some(fleet) = device.fleet() else {
        return Ok(html! { p.faint { "This device is not in a fleet." } });
    };
    let releases = ReleasePicker::of(visitor, fleet).await?;
    let pinned = facts.pin();
    Ok(form(
        device,
        "pin",
        html! {
            label { "Runs"
                select name="release" {
                    option value="" selected[pinned.is_none()] { "What its fleet runs" }
                    (releases.options(pinned))
                }
            }
            small { "A pinned device keeps its release, whatever its fleet runs." }
            button type="submit" { "Set the release" }
        },
    ))
}

/// Whether it counts: a device in a drawer is nobody's outage.
fn in_use(device: &Device, facts: &Facts) -> Markup {
    let (explained, to, word) = if facts.is_active() {
        (
            "A deactivated device is shown as inactive instead of disconnected. It continues to run its services.",
            "no",
            "Deactivate the device",
        )
    } else {
        (
            "This device is deactivated: it is shown as inactive, whatever it reports.",
            "yes",
            "Activate the device",
        )
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

async fn choose_fleet(visitor: &SessionUser, device: &Device) -> PageResult<Markup> {
    let fleets = Destination::all(visitor, None).await?;
    let current = device.fleet();
    Ok(form(
        device,
        "move",
        html! {
            label { "Belongs to"
                select name="fleet" required {
                    (Destination::options(&fleets, current))
                }
            }
            small { "It will run the release of its new fleet. A pin does not move with it." }
            button type="submit" { "Move device" }
        },
    ))
}

async fn rename(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let name = form.text("name");
    if name.is_empty() {
        return Err(PageError::wrong("Enter a name."));
    }
    let word = format!("Renamed to {name}.");
    patched(&visitor, &uuid, json!({ "device_name": name }), &word).await
}

async fn note(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let note = form.text("note");
    let note = if note.is_empty() {
        Value::Null
    } else {
        json!(note)
    };
    patched(&visitor, &uuid, json!({ "note": note }), "Saved.").await
}

async fn pin(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let (release, word) = match form.text("release") {
        "" => (Value::Null, "The device follows its fleet."),
        _ => (
            json!(form.number("release")?),
            "The device is pinned to this release.",
        ),
    };
    patched(
        &visitor,
        &uuid,
        json!({ "is_pinned_on__release": release }),
        word,
    )
    .await
}

async fn activate(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let (active, word) = match form.text("active") {
        "yes" => (true, "The device is active."),
        "no" => (false, "The device is deactivated."),
        _ => return Err(PageError::nothing_here()),
    };
    let body = json!({ "is_active": active });
    patched(&visitor, &uuid, body, word).await
}

/// Changes its row; the page that it came from shows the rest.
async fn patched(visitor: &SessionUser, uuid: &Uuid, body: Value, word: &str) -> PageResult {
    let device = Device::find(visitor, uuid).await?;
    visitor.patch(&device.path(), body).await?;
    Ok(visitor.done(word, &format!("{}/settings", device.place())))
}

async fn move_elsewhere(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let device = Device::find(&visitor, &uuid).await?;
    let body = json!({ "belongs_to__application": form.number("fleet")? });
    visitor.patch(&device.path(), body).await?;
    Ok(visitor.go(&format!("{}/settings", device.place())))
}

async fn delete(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let device = Device::find(&visitor, &uuid).await?;
    if form.text("name") != device.device_name.trim() {
        return Err(PageError::wrong(
            "That is not the device's name; nothing was deleted.",
        ));
    }
    visitor.delete(&device.path()).await?;
    let fleet = device.fleet();
    let place = fleet.map_or("/dashboard".to_owned(), |id| {
        format!("/dashboard/fleets/{id}")
    });
    Ok(visitor.go(&place))
}

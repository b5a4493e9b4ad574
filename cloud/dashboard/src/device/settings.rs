//! What people decide about a device: its name, note and tags, its release, its fleet, and its
//! deletion.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::facts::Facts;
use super::tabs::{Device, SETTINGS, Uuid};
use crate::form::Form;
use crate::key_values::{KeyValueKind, list as key_values, tags, tags_section};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::{PageError, PageResult};
use crate::pickers::{FleetPicker, ReleasePicker};
use crate::rows::fleet_place;
use crate::session_user::SessionUser;
use crate::show::card;
use crate::switch::{OVERRIDE_LOCKS, REMOTE_ACCESS};

pub(super) struct DeviceSettingsPage(Facts);

impl LivePage for DeviceSettingsPage {
    type Address = Uuid;
    type Parts = [LiveFragment; 3];

    async fn load(visitor: &SessionUser, uuid: Uuid) -> PageResult<Self> {
        Ok(DeviceSettingsPage(Facts::find(visitor, &uuid).await?))
    }

    async fn parts(&self, visitor: &SessionUser) -> PageResult<Self::Parts> {
        let device = &self.0.device;
        let place = device.settings_place();
        let own = key_values(visitor, KeyValueKind::DeviceSetting, device.id).await?;
        let fleet = match device.fleet() {
            Some(fleet) => key_values(visitor, KeyValueKind::FleetSetting, fleet).await?,
            None => Vec::new(),
        };
        let branding = &visitor.cloud.configuration.branding;
        let of = (KeyValueKind::DeviceSetting, device.id);
        let switches = html! {
            @for switch in [&OVERRIDE_LOCKS, &REMOTE_ACCESS] {
                (switch.markup(branding, of, &own, &fleet, &place))
            }
        };
        Ok([
            self.0.head(),
            tags(visitor, KeyValueKind::DeviceTag, device.id, &place).await?,
            LiveFragment::new("switches", switches),
        ])
    }

    async fn page(&self, visitor: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
        let [head, tags, switches] = parts;
        let device = &self.0.device;
        let names = html! {
            (rename_form(device, false))
            (form(device, "note", html! {
                label { "Note" textarea name="note" maxlength="100000" { (self.0.note()) } }
                button type="submit" { "Save the note" }
            }))
        };
        let delete = html! {
            p { "The cloud deletes the device and its key. A device that still runs has to be registered again." }
            details {
                summary { "Delete this device …" }
                (form(device, "delete", html! {
                    label { "Type its name to confirm: " strong { (device.device_name) }
                        input name="name" required autocomplete="off" aria-label="Its name, to confirm";
                    }
                    button.danger type="submit" { "Delete the device" }
                }))
            }
        };
        let place = device.settings_place();
        let main = html! {
            div.cards {
                (card("name", "Name and note", &names))
                div.stack {
                    (card("release", "Release", &choose_release(visitor, &self.0).await?))
                    (card("switches", "Switches", &switches.placed()))
                }
            }
            (tags_section(&tags, true, KeyValueKind::DeviceTag, device.id, &place))
            div.cards {
                (card("fleet", "Fleet", &choose_fleet(visitor, device).await?))
                (card("use", "In use", &in_use(&self.0)))
                (card("end", "Delete", &delete))
            }
        };
        Ok(device.page(SETTINGS, &head, &main))
    }
}

/// The form that renames it on its first page.
pub(super) fn rename_in_place(device: &Device) -> Markup {
    html! {
        details.rename {
            summary { "Rename …" }
            (rename_form(device, true))
        }
    }
}

fn rename_form(device: &Device, in_line: bool) -> Markup {
    let fields = html! {
        label { "Name"
            input name="name" value=(device.device_name) required maxlength="255" autocomplete="off";
        }
        button type="submit" { "Rename" }
    };
    let fields = if in_line {
        html! { div.line { (fields) } }
    } else {
        fields
    };
    form(device, "rename", fields)
}

/// A form that shows its answer within itself.
fn form(device: &Device, action: &str, fields: Markup) -> Markup {
    let place = format!("{}/{action}", device.place());
    html! {
        form.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop" {
            (fields)
            div.answer role="status" {}
        }
    }
}

async fn choose_release(visitor: &SessionUser, facts: &Facts) -> PageResult<Markup> {
    let Some(fleet) = facts.device.fleet() else {
        return Ok(html! { p.faint { "This device is not in a fleet." } });
    };
    let releases = ReleasePicker::load(visitor, fleet).await?;
    let pin = facts.releases.pinned_on.map(|release| release.id);
    let fields = html! {
        label { "Runs"
            select name="release" {
                option value="" selected[pin.is_none()] { "What its fleet runs" }
                (releases.options(pin))
            }
        }
        small { "A pinned device keeps its release, whatever its fleet runs." }
        button type="submit" { "Set the release" }
    };
    Ok(form(&facts.device, "pin", fields))
}

/// Whether the device is in use: one in a drawer that is offline is not an outage.
fn in_use(facts: &Facts) -> Markup {
    let (explained, to, word) = if facts.is_active {
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
    let fields = html! {
        p { (explained) }
        button type="submit" name="active" value=(to) { (word) }
    };
    form(&facts.device, "active", fields)
}

async fn choose_fleet(visitor: &SessionUser, device: &Device) -> PageResult<Markup> {
    let fleets = FleetPicker::load(visitor, None).await?;
    let fields = html! {
        label { "Belongs to"
            select name="fleet" required {
                (fleets.options(device.fleet()))
            }
        }
        small { "It will run the release of its new fleet. A pin does not move with it." }
        button type="submit" { "Move device" }
    };
    Ok(form(device, "move", fields))
}

pub(super) async fn rename(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let name = form.text("name");
    if name.is_empty() {
        return Err(PageError::wrong("Enter a name."));
    }
    let message = format!("Renamed to {name}.");
    patch(&visitor, &uuid, json!({ "device_name": name }), &message).await
}

pub(super) async fn note(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let note = form.filled("note");
    patch(&visitor, &uuid, json!({ "note": note }), "Saved.").await
}

pub(super) async fn pin(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let (release, message) = match form.text("release") {
        "" => (None, "The device follows its fleet."),
        _ => (
            Some(form.number("release")?),
            "The device is pinned to this release.",
        ),
    };
    let body = json!({ "is_pinned_on__release": release });
    patch(&visitor, &uuid, body, message).await
}

pub(super) async fn activate(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let (active, message) = match form.text("active") {
        "yes" => (true, "The device is active."),
        "no" => (false, "The device is deactivated."),
        _ => return Err(PageError::nothing_here()),
    };
    patch(&visitor, &uuid, json!({ "is_active": active }), message).await
}

/// Changes its row; the page with the form shows the result.
async fn patch(visitor: &SessionUser, uuid: &Uuid, body: Value, message: &str) -> PageResult {
    let device = Device::find(visitor, uuid).await?;
    visitor.patch(&device.path(), body).await?;
    Ok(visitor.done(message, &device.settings_place()))
}

pub(super) async fn move_elsewhere(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let device = Device::find(&visitor, &uuid).await?;
    let body = json!({ "belongs_to__application": form.number("fleet")? });
    visitor.patch(&device.path(), body).await?;
    Ok(visitor.go(&device.settings_place()))
}

pub(super) async fn delete(visitor: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let device = Device::find(&visitor, &uuid).await?;
    if form.text("name") != device.device_name.trim() {
        return Err(PageError::wrong(
            "That is not the device's name; nothing was deleted.",
        ));
    }
    visitor.delete(&device.path()).await?;
    let place = device.fleet().map_or("/dashboard".to_owned(), fleet_place);
    Ok(visitor.go(&place))
}

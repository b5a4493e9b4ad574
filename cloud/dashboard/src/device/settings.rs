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

    async fn load(user: &SessionUser, uuid: Uuid) -> PageResult<Self> {
        Ok(DeviceSettingsPage(Facts::find(user, &uuid).await?))
    }

    async fn parts(&self, user: &SessionUser) -> PageResult<Self::Parts> {
        let device = &self.0.device;
        let place = device.settings_place();
        let own = key_values(user, KeyValueKind::DeviceSetting, device.id).await?;
        let fleet = match device.fleet() {
            Some(fleet) => key_values(user, KeyValueKind::FleetSetting, fleet).await?,
            None => Vec::new(),
        };
        let branding = &user.cloud.configuration.branding;
        let of = (KeyValueKind::DeviceSetting, device.id);
        let switches = html! {
            @for switch in [&OVERRIDE_LOCKS, &REMOTE_ACCESS] {
                (switch.markup(branding, of, &own, &fleet, &place))
            }
        };
        Ok([
            self.0.head(),
            tags(user, KeyValueKind::DeviceTag, device.id, &place).await?,
            LiveFragment::new("switches", switches),
        ])
    }

    async fn page(&self, user: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
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
            p { "The cloud deletes the device and its key. A device that still runs must be registered again." }
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
                    (card("release", "Release", &choose_release(user, &self.0).await?))
                    (card("switches", "Switches", &switches.placed()))
                }
            }
            (tags_section(&tags, true, KeyValueKind::DeviceTag, device.id, &place))
            div.cards {
                (card("fleet", "Fleet", &choose_fleet(user, device).await?))
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

async fn choose_release(user: &SessionUser, facts: &Facts) -> PageResult<Markup> {
    let Some(fleet) = facts.device.fleet() else {
        return Ok(html! { p.faint { "This device is not in a fleet." } });
    };
    let releases = ReleasePicker::load(user, fleet).await?;
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

async fn choose_fleet(user: &SessionUser, device: &Device) -> PageResult<Markup> {
    let fleets = FleetPicker::load(user, None).await?;
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

pub(super) async fn rename(user: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let name = form.text("name");
    if name.is_empty() {
        return Err(PageError::wrong("Enter a name."));
    }
    let message = format!("Renamed to {name}.");
    patch(&user, &uuid, json!({ "device_name": name }), &message).await
}

pub(super) async fn note(user: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let note = form.filled("note");
    patch(&user, &uuid, json!({ "note": note }), "Saved.").await
}

pub(super) async fn pin(user: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let (release, message) = match form.text("release") {
        "" => (None, "The device follows its fleet."),
        _ => (
            Some(form.number("release")?),
            "The device is pinned to this release.",
        ),
    };
    let body = json!({ "is_pinned_on__release": release });
    patch(&user, &uuid, body, message).await
}

pub(super) async fn activate(user: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let (active, message) = match form.text("active") {
        "yes" => (true, "The device is active."),
        "no" => (false, "The device is deactivated."),
        _ => return Err(PageError::nothing_here()),
    };
    patch(&user, &uuid, json!({ "is_active": active }), message).await
}

/// Changes its row; the page with the form shows the result.
async fn patch(user: &SessionUser, uuid: &Uuid, body: Value, message: &str) -> PageResult {
    let device = Device::find(user, uuid).await?;
    user.patch(&device.path(), body).await?;
    Ok(user.done(message, &device.settings_place()))
}

pub(super) async fn move_elsewhere(user: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let device = Device::find(&user, &uuid).await?;
    let body = json!({ "belongs_to__application": form.number("fleet")? });
    user.patch(&device.path(), body).await?;
    Ok(user.go(&device.settings_place()))
}

pub(super) async fn delete(user: SessionUser, uuid: Uuid, form: Form) -> PageResult {
    let device = Device::find(&user, &uuid).await?;
    if form.text("name") != device.device_name.trim() {
        return Err(PageError::wrong(
            "That is not the device's name; nothing was deleted.",
        ));
    }
    user.delete(&device.path()).await?;
    let place = device.fleet().map_or("/dashboard".to_owned(), fleet_place);
    Ok(user.go(&place))
}

//! Actions for several devices at once: those that are ticked, or all of the fleet.

use axum::body::Body;
use axum::response::Response;
use cloud_core::answer::Refusal;
use data::write::{Verb, WriteOutcome};
use futures::{StreamExt as _, stream};
use http::StatusCode;
use http_body_util::{BodyExt as _, Limited};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tabs::Fleet;
use crate::actions::ACTIONS;
use crate::form::{Form, Number};
use crate::key_values::{self, KeyValueKind};
use crate::page_error::{PageError, PageResult};
use crate::pickers::{FleetPicker, ReleasePicker};
use crate::session_user::SessionUser;
use crate::show::card;

/// The number of devices that are asked concurrently.
const AT_A_TIME: usize = 16;
/// The maximum number of bytes of the combined answers of a fleet's devices.
const ANSWERS: usize = 64 << 20;

/// The suffix of an action's name that overrides update locks.
const OVERRIDING: &str = "-overriding";

/// The actions for the ticked devices. The bar is shown once one is ticked.
pub(super) async fn bar(user: &SessionUser, fleet: &Fleet) -> PageResult<Markup> {
    let releases = ReleasePicker::load(user, fleet.id).await?;
    let others = FleetPicker::load(user, Some(fleet.id)).await?;
    Ok(html! {
        div.actions role="group" aria-label="Action for the selected devices" {
            label { span.hidden { "Action for the selected devices" }
                select name="action" {
                    @for action in &ACTIONS {
                        @for overriding in action.together {
                            @if *overriding {
                                option value={ (action.name) (OVERRIDING) } { (action.label) ", overriding locks" }
                            } @else {
                                option value=(action.name) { (action.label) }
                            }
                        }
                    }
                    option value="pin" { "Pin to a release" }
                    option value="follow" { "Follow the fleet's release" }
                    option value="tag" { "Add a tag" }
                    @if !others.is_empty() { option value="move" { "Move to another fleet" } }
                    option value="deactivate" { "Deactivate" }
                    option value="activate" { "Activate" }
                }
            }
            label.for-pin { span.hidden { "Release to pin to" }
                select name="release" {
                    (releases.options(None))
                }
            }
            label.for-move { span.hidden { "Fleet to move to" }
                select name="fleet" {
                    (others.options(None))
                }
            }
            label.for-tag { span.hidden { "Tag" } input name="key" placeholder="tag" maxlength="100" autocomplete="off"; }
            label.for-tag { span.hidden { "Value of the tag" } input name="value" placeholder="value" maxlength="1000" autocomplete="off"; }
            button.primary type="submit" { "Apply" span.working aria-hidden="true" {} }
        }
        div.answer role="status" {}
    })
}

/// The results for several devices.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    done: usize,
    away: usize,
    locked: usize,
    failed: usize,
}

impl Outcome {
    fn count(&mut self, status: StatusCode) {
        match status {
            StatusCode::LOCKED => self.locked += 1,
            status if status.is_success() => self.done += 1,
            _ => self.failed += 1,
        }
    }

    fn words(&self) -> String {
        let parts = [
            (self.done, "done"),
            (self.locked, "held by an update lock"),
            (self.away, "not connected"),
            (self.failed, "failed"),
        ];
        let sentences: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        if sentences.is_empty() {
            "No device is connected, so nothing was sent.".to_owned()
        } else {
            format!("{}.", sentences.join(", "))
        }
    }

    /// Shows the results at the form, or as a page of its own.
    fn answer(&self, user: &SessionUser, place: &str) -> Response {
        let kind = match (self.done > 0, self.away + self.locked + self.failed > 0) {
            (true, false) => "good",
            _ => "wary",
        };
        let notice = html! { p.notice.(kind) { (self.words()) } };
        let title = "Sent to the devices";
        user.answer(title, Some(title), notice, (place, "Back to the fleet"))
    }
}

/// `POST /dashboard/fleets/<id>/together`: `action` with each `device`.
pub(super) async fn together(user: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let fleet = Fleet::find(&user, id).await?;
    let devices: Vec<i64> = form
        .all("device")
        .filter_map(|device| device.parse().ok())
        .collect();
    if devices.is_empty() {
        return Err(PageError::wrong("Select some devices first."));
    }
    let mut outcome = Outcome::default();
    match form.text("action") {
        "tag" => outcome.done = tag(&user, &devices, &form).await?,
        action => match fields(action, &form)? {
            Some(fields) => outcome.done = change(&user, id, &devices, fields).await?,
            None => outcome = ask(&user, id, devices, action).await?,
        },
    }
    Ok(outcome.answer(&user, &fleet.place()))
}

/// Returns the fields that an action writes into the rows of the devices, if it does so.
fn fields(action: &str, form: &Form) -> PageResult<Option<Value>> {
    Ok(Some(match action {
        "pin" => json!({ "is_pinned_on__release": form.number("release")? }),
        "follow" => json!({ "is_pinned_on__release": null }),
        "move" => json!({ "belongs_to__application": form.number("fleet")? }),
        "activate" | "deactivate" => json!({ "is_active": action == "activate" }),
        _ => return Ok(None),
    }))
}

/// Changes those of these devices that belong to the fleet, and returns their number.
async fn change(
    user: &SessionUser,
    fleet: i64,
    devices: &[i64],
    fields: Value,
) -> PageResult<usize> {
    let devices: Vec<String> = devices.iter().map(i64::to_string).collect();
    let query = format!(
        "$filter=belongs_to__application eq {fleet} and id in ({})",
        devices.join(",")
    );
    let change = user.change(Verb::Patch, "/device", &query, fields);
    match change.await? {
        WriteOutcome::Changed(0) => Err(PageError::nothing_here()),
        WriteOutcome::Changed(rows) => Ok(usize::try_from(rows).unwrap_or_default()),
        WriteOutcome::Created { .. } => Ok(1),
    }
}

/// Sets a tag on each of them, and returns their number.
async fn tag(user: &SessionUser, devices: &[i64], form: &Form) -> PageResult<usize> {
    let (key, value) = (form.text("key"), form.text("value"));
    if key.is_empty() {
        return Err(PageError::wrong("Enter a name for the tag."));
    }
    for device in devices {
        key_values::set(user, KeyValueKind::DeviceTag, *device, key, value).await?;
    }
    Ok(devices.len())
}

/// Sends the request to each of them, and counts the answers.
async fn ask(user: &SessionUser, fleet: i64, devices: Vec<i64>, name: &str) -> PageResult<Outcome> {
    let (name, force) = match name.strip_suffix(OVERRIDING) {
        Some(name) => (name, true),
        None => (name, false),
    };
    let action = ACTIONS
        .iter()
        .find(|action| action.name == name && action.together.contains(&force));
    let path = &action.ok_or_else(PageError::nothing_here)?.path();
    let answers = stream::iter(devices)
        .map(async |device| {
            let data = json!({ "appId": fleet, "force": force });
            user.ask(path, ("deviceId", json!(device)), data).await
        })
        .buffer_unordered(AT_A_TIME);
    let mut answers = std::pin::pin!(answers);
    let mut outcome = Outcome::default();
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(answer) => outcome.count(answer.status()),
            Err(Refusal::Missing(_)) => outcome.away += 1,
            Err(Refusal::Unreached(_)) => outcome.failed += 1,
            Err(error) => return Err(PageError(error)),
        }
    }
    Ok(outcome)
}

/// The buttons that make all devices of a fleet check for updates.
pub(super) fn update_now(fleet: &Fleet) -> Markup {
    let place = format!("{}/update", fleet.place());
    let buttons = html! {
        p.faint { "Connected devices check for their target now, instead of at their next poll." }
        form.buttons method="post" action=(place) hx-post=(place) hx-target="next .answer" hx-sync="this:drop" {
            button type="submit" { "Update all now" span.working aria-hidden="true" {} }
            button.danger type="submit" name="force" value="yes" { "Update all now, overriding locks" }
        }
        div.answer role="status" {}
    };
    card("update", "Update now", &buttons)
}

/// `POST /dashboard/fleets/<id>/update`, with `force`.
pub(super) async fn update(user: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let fleet = Fleet::find(&user, id).await?;
    let data = json!({ "force": form.has("force") });
    let whom = ("appId", json!(id));
    let answer = user.ask("/v1/update", whom, data).await;
    let mut outcome = Outcome::default();
    match answer {
        // The answers of several devices, each with its own status.
        Ok(answer) if answer.status() == StatusCode::MULTI_STATUS => {
            for status in each(answer.into_body()).await? {
                outcome.count(status);
            }
        }
        Ok(answer) => outcome.count(answer.status()),
        Err(Refusal::Missing(_)) => {}
        Err(Refusal::Unreached(_)) => outcome.failed += 1,
        Err(error) => return Err(PageError(error)),
    }
    Ok(outcome.answer(&user, &fleet.settings_place()))
}

async fn each(body: Body) -> PageResult<Vec<StatusCode>> {
    #[derive(Deserialize)]
    struct Entry {
        #[serde(rename = "statusCode")]
        status: u16,
    }
    let fault = |error: anyhow::Error| PageError(Refusal::Fault(error));
    let body = Limited::new(body, ANSWERS).collect().await;
    let body = body.map_err(|error| fault(anyhow::anyhow!("answers of a fleet: {error}")))?;
    let entries: Vec<Entry> =
        serde_json::from_slice(&body.to_bytes()).map_err(|error| fault(error.into()))?;
    let statuses = entries.iter().map(|entry| {
        StatusCode::from_u16(entry.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    });
    Ok(statuses.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_is_stated_in_numbers() {
        let mut outcome = Outcome::default();
        assert_eq!(
            outcome.words(),
            "No device is connected, so nothing was sent."
        );
        for status in [200, 202, 423, 500] {
            outcome.count(StatusCode::from_u16(status).expect("a status"));
        }
        outcome.away = 3;
        assert_eq!(
            outcome.words(),
            "2 done, 1 held by an update lock, 3 not connected, 1 failed."
        );
    }
}

//! Actions of the device itself, sent through the tunnel as the user (docs/spec/cloud.md#supervisor-proxy).
//!
//! The answer appears at the button. An action that an update lock blocks can be forced; one that is in progress is not
//! started a second time.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use cloud_core::answer::Refusal;
use http::StatusCode;
use http_body_util::{BodyExt as _, Limited};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::tabs::{Device, Uuid};
use crate::actions::{ACTIONS, DeviceAction, SERVICE_ACTIONS};
use crate::form::Form;
use crate::page_error::{PageError, PageResult, notice};
use crate::session_user::SessionUser;
use crate::state::DashboardState;

/// The maximum number of bytes of a device's answer that are read.
const MOST: usize = 64 << 10;
/// The maximum number of characters of it that are shown.
const SHOWN: usize = 400;

/// The buttons of a device.
pub(super) fn panel(device: &Device) -> Markup {
    let simple = ACTIONS.iter().filter(|action| action.careful.is_none());
    let careful = ACTIONS
        .iter()
        .filter_map(|action| Some((action, action.careful?)));
    html! {
        section.card.stack aria-labelledby="actions" {
            h2 id="actions" { "Actions" }
            div.buttons {
                @for action in simple {
                    (button(device, action, None, false, "#result"))
                    @if action.name == "update" { (button(device, action, None, true, "#result")) }
                }
            }
            div.buttons.careful {
                @for (action, warning) in careful {
                    details {
                        summary.button { (action.label) " …" }
                        div.card.stack {
                            p { (warning) }
                            (button(device, action, None, false, "#result"))
                        }
                    }
                }
            }
            div.answer id="result" role="status" {}
        }
    }
}

/// The buttons of one of its services.
pub(super) fn render_service(device: &Device, service: &str) -> Markup {
    let id = format!("result-of-{service}");
    html! {
        div.buttons {
            @for action in &SERVICE_ACTIONS { (button(device, action, Some(service), false, "next .answer")) }
        }
        div.answer id=(id) role="status" data-keep {}
    }
}

/// A form with one button. While the action is in progress a second press does nothing, and the button keeps the focus.
fn button(
    device: &Device,
    action: &DeviceAction,
    service: Option<&str>,
    force: bool,
    answer: &str,
) -> Markup {
    let button = html! {
        button.small[service.is_some()].danger[action.careful.is_some()] type="submit" {
            (action.label)
            @if force { ", overriding locks" }
            @if let Some(service) = service { span.hidden { " " (service) } }
            span.working aria-hidden="true" {}
        }
    };
    form(device, action, service, force, answer, &button)
}

/// The button that repeats the request and overrides the locks.
fn retry(device: &Device, action: &DeviceAction, service: Option<&str>) -> Markup {
    let button = html! {
        button.small.danger type="submit" {
            "Override locks and retry" span.working aria-hidden="true" {}
        }
    };
    form(device, action, service, true, "closest .answer", &button)
}

fn form(
    device: &Device,
    action: &DeviceAction,
    service: Option<&str>,
    force: bool,
    answer: &str,
    button: &Markup,
) -> Markup {
    let place = format!("{}/ask", device.place());
    html! {
        form.ask method="post" action=(place) hx-post=(place) hx-target=(answer) hx-sync="this:drop" {
            input type="hidden" name="action" value=(action.name);
            @if let Some(service) = service { input type="hidden" name="service" value=(service); }
            @if force { input type="hidden" name="force" value="yes"; }
            (button)
        }
    }
}

/// `POST /dashboard/devices/<uuid>/ask`: `action`, of a `service`, with `force`.
pub(super) async fn ask(
    State(state): State<DashboardState>,
    user: SessionUser,
    uuid: Uuid,
    form: Form,
) -> PageResult {
    let device = Device::find(&user, &uuid).await?;
    let name = form.text("action");
    let of_service = SERVICE_ACTIONS.iter().find(|action| action.name == name);
    let action = of_service.or_else(|| ACTIONS.iter().find(|action| action.name == name));
    let action = action.ok_or_else(PageError::nothing_here)?;
    let service = form.filled("service");
    let force = form.has("force");
    let key = format!("{} {name} {}", device.uuid, service.unwrap_or_default());
    let Some(_permit) = state.live.actions.begin(key) else {
        let notice = html! { p.notice.wary { "This action is already in progress." } };
        return Ok(answered(&user, &device, StatusCode::CONFLICT, notice));
    };
    let Some(fleet) = device.fleet() else {
        return Err(PageError::wrong(
            "The device is not in a fleet, so it has no services.",
        ));
    };
    let path = of_service.map_or_else(|| action.path(), |it| it.path_of_service(fleet));
    let data = match service {
        Some(service) => json!({ "serviceName": service, "force": force }),
        None => json!({ "appId": fleet, "force": force }),
    };
    let whom = ("uuid", json!(device.uuid));
    let (status, notice) = match user.ask(&path, whom, data).await {
        Ok(answer) => {
            let status = answer.status();
            if status.is_success() && !user.in_place {
                return Ok(Redirect::to(&device.place()).into_response());
            }
            let text = answer_text(answer).await;
            (status, outcome(&device, action, service, status, &text))
        }
        Err(Refusal::Missing(_)) => {
            let why = "The device is not connected. Try again when it is back.";
            (StatusCode::NOT_FOUND, notice(why))
        }
        Err(Refusal::Unreached(why)) => {
            let why = format!("The device did not answer: {why}.");
            (StatusCode::BAD_GATEWAY, notice(&why))
        }
        Err(error) => return Err(PageError(error)),
    };
    Ok(answered(&user, &device, status, notice))
}

/// The result, at the button or on a page of its own.
fn answered(user: &SessionUser, device: &Device, status: StatusCode, notice: Markup) -> Response {
    let back = (&*device.place(), "Back to the device");
    let heading = Some(device.device_name.as_str());
    let answer = user.answer("Sent to the device", heading, notice, back);
    (status, answer).into_response()
}

fn outcome(
    device: &Device,
    action: &DeviceAction,
    service: Option<&str>,
    status: StatusCode,
    answer_text: &str,
) -> Markup {
    if status.is_success() {
        return match (action.name, status) {
            ("update", StatusCode::ACCEPTED) => html! {
                p.notice.wary { "Instant updates are disabled on this device; nothing was changed. " (answer_text) }
            },
            _ => html! { p.notice.good { (action.done) } },
        };
    }
    if status == StatusCode::LOCKED {
        return html! {
            p.notice.wary {
                "An update lock is held, so nothing was changed."
                @if !answer_text.is_empty() { " The device says: " (answer_text) }
            }
            @if action.locked { (retry(device, action, service)) }
        };
    }
    html! {
        p.notice.bad {
            "The device answered " (status.as_u16())
            @if answer_text.is_empty() { "." } @else { ": " (answer_text) }
        }
    }
}

/// Returns a device's answer as one line; it is not trusted, and bounded.
async fn answer_text(answer: Response) -> String {
    let Ok(body) = Limited::new(answer.into_body(), MOST).collect().await else {
        return String::new();
    };
    let body = body.to_bytes();
    let text = match serde_json::from_slice::<Value>(&body) {
        Ok(Value::Object(fields)) => ["Error", "message", "error", "Data"]
            .iter()
            .filter_map(|name| fields.get(*name)?.as_str())
            .find(|text| !text.is_empty())
            .unwrap_or_default()
            .to_owned(),
        Ok(Value::String(text)) => text,
        _ => String::from_utf8_lossy(&body).into_owned(),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(SHOWN).collect()
}

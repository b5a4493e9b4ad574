//! What a device itself is asked: through the tunnel, as the visitor (cloud behaviour 4.6).
//!
//! The answer comes to the button. What an update lock holds can be done all the same; what is under way is not
//! begun a second time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use http::StatusCode;
use http_body_util::{BodyExt as _, Limited};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::{Device, Uuid};
use crate::answer::Refusal;
use crate::cloud::Shared;
use crate::dashboard::form::Form;
use crate::dashboard::page;
use crate::dashboard::problem::Problem;
use crate::dashboard::visitor::Visitor;

/// Bytes of a device's answer that are looked at.
const MOST: usize = 64 << 10;
/// Characters of it that are shown.
const SHOWN: usize = 400;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/devices/{uuid}/ask", post(ask))
}

/// Something that a device can be asked to do.
#[derive(Debug)]
struct Deed {
    /// In forms.
    name: &'static str,
    /// On the button.
    label: &'static str,
    /// What is asked, on the device's own API; `{fleet}` is the number of its fleet.
    path: &'static str,
    /// What it did, once it has.
    done: &'static str,
    /// Update locks may be in the way, and can be overridden.
    locked: bool,
    /// What people are told before they press, where there is something to lose.
    careful: Option<&'static str>,
}

const DEEDS: [Deed; 6] = [
    Deed {
        name: "blink",
        label: "Blink",
        path: "/v1/blink",
        done: "It blinks.",
        locked: false,
        careful: None,
    },
    Deed {
        name: "update",
        label: "Update now",
        path: "/v1/update",
        done: "It looks for its target now.",
        locked: true,
        careful: None,
    },
    Deed {
        name: "restart",
        label: "Restart services",
        path: "/v1/restart",
        done: "Its services were restarted.",
        locked: true,
        careful: None,
    },
    Deed {
        name: "reboot",
        label: "Reboot",
        path: "/v1/reboot",
        done: "It reboots.",
        locked: true,
        careful: Some("All services stop, and start again once it is up."),
    },
    Deed {
        name: "shutdown",
        label: "Shut down",
        path: "/v1/shutdown",
        done: "It switches itself off.",
        locked: true,
        careful: Some("It stays off until somebody at the device switches it on."),
    },
    Deed {
        name: "purge",
        label: "Purge data",
        path: "/v1/purge",
        done: "The data of its services is gone, and they have started anew.",
        locked: true,
        careful: Some("The volumes of its services are emptied. That cannot be undone."),
    },
];

/// The same for one of its services.
const OF_SERVICES: [Deed; 3] = [
    Deed {
        name: "start-service",
        label: "Start",
        path: "/v2/applications/{fleet}/start-service",
        done: "Started.",
        locked: true,
        careful: None,
    },
    Deed {
        name: "stop-service",
        label: "Stop",
        path: "/v2/applications/{fleet}/stop-service",
        done: "Stopped.",
        locked: true,
        careful: None,
    },
    Deed {
        name: "restart-service",
        label: "Restart",
        path: "/v2/applications/{fleet}/restart-service",
        done: "Restarted.",
        locked: true,
        careful: None,
    },
];

/// The buttons of a device.
pub(super) fn panel(device: &Device) -> Markup {
    let [careful, simple]: [Vec<&Deed>; 2] = [true, false].map(|careful| {
        DEEDS
            .iter()
            .filter(|it| it.careful.is_some() == careful)
            .collect()
    });
    html! {
        section.card.stack aria-labelledby="actions" {
            h2 id="actions" { "Actions" }
            div.buttons {
                @for deed in simple {
                    (button(device, deed, None, false, "#said"))
                    @if deed.name == "update" { (button(device, deed, None, true, "#said")) }
                }
            }
            div.buttons.careful {
                @for deed in careful {
                    details {
                        summary.button { (deed.label) " …" }
                        div.card.stack {
                            @if let Some(careful) = deed.careful { p { (careful) } }
                            (button(device, deed, None, false, "#said"))
                        }
                    }
                }
            }
            div.answer id="said" role="status" {}
        }
    }
}

/// The buttons of one of its services.
pub(super) fn of_service(device: &Device, service: &str) -> Markup {
    let id = format!("said-of-{service}");
    html! {
        div.buttons {
            @for deed in &OF_SERVICES { (button(device, deed, Some(service), false, "next .answer")) }
        }
        div.answer id=(id) role="status" data-keep {}
    }
}

/// A form with one button. While it is under way a second press does nothing, and the button keeps the focus.
fn button(
    device: &Device,
    deed: &Deed,
    service: Option<&str>,
    force: bool,
    answer: &str,
) -> Markup {
    let place = format!("{}/ask", device.place());
    html! {
        form.ask method="post" action=(place) hx-post=(place) hx-target=(answer) hx-sync="this:drop" {
            input type="hidden" name="deed" value=(deed.name);
            @if let Some(service) = service { input type="hidden" name="service" value=(service); }
            @if force { input type="hidden" name="force" value="yes"; }
            button.small[service.is_some()].danger[deed.careful.is_some()] type="submit" {
                (deed.label)
                @if force { ", overriding locks" }
                @if let Some(service) = service { span.hidden { " " (service) } }
                span.working aria-hidden="true" {}
            }
        }
    }
}

/// What devices are being asked at this moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asking(Arc<Mutex<HashSet<String>>>);

impl Asking {
    /// Begins, unless the same is under way.
    fn begin(&self, what: String) -> Option<ActionPermit> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.insert(what.clone()).then(|| ActionPermit {
            asking: self.clone(),
            what,
        })
    }
}

/// To do one action; it is under way until the value is dropped.
struct ActionPermit {
    asking: Asking,
    what: String,
}

impl Drop for ActionPermit {
    fn drop(&mut self) {
        let mut under_way = self.asking.0.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.remove(&self.what);
    }
}

/// `POST /dashboard/devices/<uuid>/ask`: `deed`, of a `service`, with `force`.
async fn ask(
    State(cloud): State<Shared>,
    visitor: Visitor,
    uuid: Uuid,
    form: Form,
) -> Result<Response, Problem> {
    let device = Device::find(&cloud, &visitor, &uuid).await?;
    let name = form.text("deed");
    let deed = DEEDS
        .iter()
        .chain(&OF_SERVICES)
        .find(|deed| deed.name == name);
    let deed = deed.ok_or_else(Problem::nothing_here)?;
    let service = Some(form.text("service")).filter(|service| !service.is_empty());
    let force = form.has("force");
    let key = format!("{} {name} {}", device.uuid, service.unwrap_or_default());
    let Some(_permit) = cloud.live.asking.begin(key) else {
        let said = html! { p.notice.wary { "It is being asked this already." } };
        return Ok(answered(&visitor, &device, StatusCode::CONFLICT, said));
    };
    let Some(fleet) = device.fleet() else {
        return Err(Problem::wrong(
            "The device is in no fleet, so it has nothing to do this with.",
        ));
    };
    let path = deed.path.replace("{fleet}", &fleet.to_string());
    let data = match service {
        Some(service) => json!({ "serviceName": service, "force": force }),
        None => json!({ "appId": fleet, "force": force }),
    };
    let whom = ("uuid", json!(device.uuid));
    match visitor.ask(&cloud, &path, whom, data).await {
        Ok(answer) => {
            let status = answer.status();
            let said = said(answer).await;
            let markup = outcome(&device, deed, service, status, &said);
            if status.is_success() && !visitor.in_place {
                return Ok(Redirect::to(&device.place()).into_response());
            }
            Ok(answered(&visitor, &device, status, markup))
        }
        Err(Refusal::Missing(_)) => {
            let said = html! { p.notice.bad {
                "The device is not connected, so it cannot be asked. Try again when it is back."
            } };
            Ok(answered(&visitor, &device, StatusCode::NOT_FOUND, said))
        }
        Err(Refusal::Unreached(why)) => {
            let said = html! { p.notice.bad { "The device gave no answer: " (why) "." } };
            Ok(answered(&visitor, &device, StatusCode::BAD_GATEWAY, said))
        }
        Err(error) => Err(Problem(error)),
    }
}

/// What came of it, at the button or on a page of its own.
fn answered(visitor: &Visitor, device: &Device, status: StatusCode, said: Markup) -> Response {
    match visitor.in_place {
        true => (status, said).into_response(),
        false => {
            let page = page::bare(
                "Asked the device",
                html! {
                    h1 { (device.device_name) }
                    (said)
                    p { a.button href=(device.place()) { "Back to the device" } }
                },
            );
            (status, page).into_response()
        }
    }
}

fn outcome(
    device: &Device,
    deed: &Deed,
    service: Option<&str>,
    status: StatusCode,
    said: &str,
) -> Markup {
    if status.is_success() {
        return match (deed.name, status) {
            ("update", StatusCode::ACCEPTED) => html! {
                p.notice.wary { "It takes updates in its own time: nothing was done. " (said) }
            },
            _ => html! { p.notice.good { (deed.done) } },
        };
    }
    if status == StatusCode::LOCKED {
        return html! {
            p.notice.wary {
                "An update lock holds it, so nothing was done."
                @if !said.is_empty() { " The device says: " (said) }
            }
            @if deed.locked { (all_the_same(device, deed, service)) }
        };
    }
    html! {
        p.notice.bad {
            "The device answered " (status.as_u16())
            @if said.is_empty() { "." } @else { ": " (said) }
        }
    }
}

fn all_the_same(device: &Device, deed: &Deed, service: Option<&str>) -> Markup {
    let place = format!("{}/ask", device.place());
    html! {
        form.ask method="post" action=(place) hx-post=(place) hx-target="closest .answer" hx-sync="this:drop" {
            input type="hidden" name="deed" value=(deed.name);
            @if let Some(service) = service { input type="hidden" name="service" value=(service); }
            input type="hidden" name="force" value="yes";
            button.small.danger type="submit" {
                "Do it all the same (override locks)" span.working aria-hidden="true" {}
            }
        }
    }
}

/// What a device said, as one line; it is hostile, and bounded.
async fn said(answer: Response) -> String {
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

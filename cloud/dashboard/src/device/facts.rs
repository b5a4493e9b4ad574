//! How a device is: what it runs and should run, whether it is there, and what it says of its host.

use maud::{Markup, html};
use serde::Deserialize;

use super::{Device, Uuid};
use crate::data::Id;
use crate::live::LiveFragment;
use crate::problem::PageResult;
use crate::show::{self, badge, progress, status};
use crate::visitor::SessionUser;

/// A device, as its pages show it.
#[derive(Debug, Deserialize)]
pub(super) struct Facts {
    device_name: String,
    uuid: String,
    note: Option<String>,
    is_active: bool,
    is_online: bool,
    api_heartbeat_state: String,
    last_connectivity_event: Option<String>,
    #[serde(rename = "changed_api_heartbeat_state_on__date")]
    heartbeat_changed: Option<String>,
    overall_status: String,
    overall_progress: Option<i64>,
    status: Option<String>,
    update_status: Option<String>,
    os_version: Option<String>,
    os_variant: Option<String>,
    supervisor_version: Option<String>,
    ip_address: Option<String>,
    mac_address: Option<String>,
    public_address: Option<String>,
    memory_usage: Option<i64>,
    memory_total: Option<i64>,
    storage_usage: Option<i64>,
    storage_total: Option<i64>,
    storage_block_device: Option<String>,
    cpu_usage: Option<i64>,
    cpu_temp: Option<i64>,
    cpu_id: Option<String>,
    is_undervolted: bool,
    created_at: String,
    #[serde(rename = "is_pinned_on__release")]
    pinned_on: Option<Id>,
    #[serde(rename = "is_of__device_type")]
    device_type: Vec<DeviceTypeName>,
    #[serde(rename = "is_running__release")]
    running: Vec<Release>,
    #[serde(rename = "should_be_running__release")]
    target: Vec<Release>,
    device_tag: Vec<Tag>,
}

#[derive(Debug, Deserialize)]
struct DeviceTypeName {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Release {
    id: i64,
    commit: String,
    raw_version: String,
}

#[derive(Debug, Deserialize)]
struct Tag {
    tag_key: String,
    value: String,
}

impl Facts {
    /// Of a device.
    ///
    /// # Errors
    /// 404 where the visitor does not see it.
    pub(super) async fn of(visitor: &SessionUser, uuid: &Uuid) -> PageResult<Self> {
        let query = "$select=device_name,uuid,note,is_active,is_online,api_heartbeat_state,last_connectivity_event,\
            changed_api_heartbeat_state_on__date,overall_status,overall_progress,status,update_status,os_version,\
            os_variant,supervisor_version,ip_address,mac_address,public_address,memory_usage,memory_total,\
            storage_usage,storage_total,storage_block_device,cpu_usage,cpu_temp,cpu_id,is_undervolted,created_at,\
            is_pinned_on__release\
            &$expand=is_of__device_type($select=name),is_running__release($select=id,commit,raw_version),\
            should_be_running__release($select=id,commit,raw_version),\
            device_tag($select=tag_key,value;$orderby=tag_key asc;$top=20)";
        let path = format!("/device(uuid='{}')", uuid.0);
        visitor.row(&path, query).await
    }

    /// The release that it is pinned on.
    pub(super) fn pin(&self) -> Option<i64> {
        self.pinned_on.map(|release| release.id)
    }

    /// Whether it is in use.
    pub(super) fn is_active(&self) -> bool {
        self.is_active
    }

    pub(super) fn note(&self) -> &str {
        self.note.as_deref().unwrap_or_default()
    }

    /// Its name and how it fares; what each of its pages begins with.
    pub(super) fn head(&self, device: &Device) -> LiveFragment {
        LiveFragment::new(
            "head",
            html! {
                header.head {
                    div {
                        h1 { (self.device_name) }
                        p.state {
                            (status(&self.overall_status)) " "
                            (self.connection())
                            @if let Some(percent) = self.overall_progress { " " (progress("Progress", percent)) }
                            @if !self.is_active { " " (badge("wary", "Deactivated")) }
                        }
                    }
                    p.faint {
                        @for kind in &self.device_type { (kind.name) " · " }
                        @match device.fleets.first() {
                            Some(fleet) => a href={ "/dashboard/fleets/" (fleet.id) } { (fleet.app_name) },
                            None => "in no fleet",
                        }
                    }
                }
            },
        )
    }

    /// Whether it can be reached, in words.
    fn connection(&self) -> Markup {
        match (self.is_online, self.api_heartbeat_state.as_str()) {
            (true, _) => badge("good", "Connected"),
            (false, "online") => badge("wary", "Polling, not connected"),
            (false, "timeout") => badge("bad", "Stopped polling"),
            _ => badge("none", "Away"),
        }
    }

    /// When the cloud last heard of it.
    fn seen(&self) -> Markup {
        match (self.is_online, self.api_heartbeat_state.as_str()) {
            (true, _) | (_, "online") => html! { "Now" },
            _ => {
                let last = [
                    self.last_connectivity_event.as_deref(),
                    self.heartbeat_changed.as_deref(),
                ];
                // Both are written in one form, so the later one is the greater text.
                show::time(last.into_iter().flatten().max())
            }
        }
    }

    /// All of it.
    pub(super) fn part(&self) -> LiveFragment {
        let fact = |name: &str, value: Markup| html! { div { dt { (name) } dd { (value) } } };
        let text = |name: &str, value: Option<&str>| {
            let value = value.filter(|value| !value.is_empty());
            fact(
                name,
                html! { @if let Some(value) = value { (value) } @else { span.none { "Unknown" } } },
            )
        };
        let system = self
            .os_version
            .as_ref()
            .map(|version| match &self.os_variant {
                Some(variant) => format!("{version} ({variant})"),
                None => version.clone(),
            });
        let release = |of: &[Release]| {
            html! {
                @match of.first() {
                    Some(one) => a href={ "/dashboard/releases/" (one.id) } {
                        (show::release_name(&one.commit, &one.raw_version))
                    },
                    None => span.none { "None" },
                }
            }
        };
        LiveFragment::new(
            "facts",
            html! {
                dl.facts {
                    (fact("Last seen", self.seen()))
                    (fact("Current release", release(&self.running)))
                    (fact("Target release", html! {
                        (release(&self.target)) " "
                        span.faint { @if self.pinned_on.is_some() { "(pinned)" } @else { "(from its fleet)" } }
                    }))
                    (text("Status", self.status.as_deref()))
                    @if let Some(update) = self.update_status.as_deref() { (text("Update", Some(update))) }
                    (text("Supervisor", self.supervisor_version.as_deref()))
                    (text("Operating system", system.as_deref()))
                    (fact("Memory", meter("Memory used", self.memory_usage, self.memory_total)))
                    (fact("Storage", html! {
                        (meter("Storage used", self.storage_usage, self.storage_total))
                        @if let Some(of) = &self.storage_block_device { span.under { (of) } }
                    }))
                    (fact("Processor", html! {
                        @match (self.cpu_usage, self.cpu_temp) {
                        (Some(percent), Some(degrees)) => { (percent) " %, " (degrees) " °C" }
                        (Some(percent), None) => { (percent) " %" }
                        (None, Some(degrees)) => { (degrees) " °C" }
                        (None, None) => span.none { "Unknown" }
                    }
                    @if self.is_undervolted { " " (badge("wary", "Undervolted")) }
                        @if let Some(id) = &self.cpu_id { span.under { code { (id) } } }
                    }))
                    (fact("Addresses", words(self.ip_address.as_deref())))
                    (text("Public address", self.public_address.as_deref()))
                    (fact("MAC addresses", words(self.mac_address.as_deref())))
                    (fact("Created", show::time(Some(&self.created_at))))
                    (fact("Uuid", html! {
                        code { (self.uuid) } " "
                        button.quiet.small type="button" data-copy=(self.uuid) { "Copy" span.hidden { " uuid" } }
                    }))
                }
                @if !self.device_tag.is_empty() {
                    ul.tags aria-label="Tags" {
                        @for tag in &self.device_tag {
                            li.tag { (tag.tag_key) @if !tag.value.is_empty() { ": " (tag.value) } }
                        }
                    }
                }
                @if !self.note().is_empty() { p.note { (self.note()) } }
            },
        )
    }
}

/// How much of something is in use, in MB.
fn meter(name: &str, used: Option<i64>, total: Option<i64>) -> Markup {
    match (used, total) {
        (Some(used), Some(total)) if total > 0 => html! {
            meter min="0" max=(total) high=(total / 10 * 9) value=(used.clamp(0, total)) aria-label=(name) {}
            span.under.number { (used) " of " (total) " MB" }
        },
        (Some(used), _) => html! { (used) " MB" },
        _ => html! { span.none { "Unknown" } },
    }
}

/// Values with spaces between them, below each other.
fn words(text: Option<&str>) -> Markup {
    let words: Vec<&str> = text.unwrap_or_default().split_whitespace().collect();
    html! {
        @if words.is_empty() { span.none { "Unknown" } }
        @for word in words { code.address { (word) } " " }
    }
}

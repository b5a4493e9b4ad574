//! The state of a device: its current and target release, its connection, and what it reports about
//! its host.

use maud::{Markup, html};
use serde::Deserialize;

use super::tabs::{Device, Uuid};
use crate::live::LiveFragment;
use crate::page_error::PageResult;
use crate::rows::{Connectivity, Id, ReleaseName, Tag, fleet_place};
use crate::session_user::SessionUser;
use crate::show::{self, badge, progress, status};

/// A device, as its pages show it.
#[derive(Debug, Deserialize)]
pub(super) struct Facts {
    #[serde(flatten)]
    pub(super) device: Device,
    note: Option<String>,
    /// Whether it is in use.
    pub(super) is_active: bool,
    #[serde(flatten)]
    connectivity: Connectivity,
    #[serde(flatten)]
    work: Work,
    #[serde(flatten)]
    software: Software,
    #[serde(flatten)]
    addresses: Addresses,
    #[serde(flatten)]
    measurements: Measurements,
    created_at: String,
    #[serde(flatten)]
    pub(super) releases: Releases,
    #[serde(rename = "is_of__device_type")]
    device_type: Vec<DeviceTypeName>,
    device_tag: Vec<Tag>,
}

/// What it is doing.
#[derive(Debug, Deserialize)]
struct Work {
    overall_status: String,
    overall_progress: Option<i64>,
    status: Option<String>,
    update_status: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Software {
    os_version: Option<String>,
    os_variant: Option<String>,
    supervisor_version: Option<String>,
}

/// Lists of addresses separated by spaces, except for the public one.
#[derive(Debug, Deserialize)]
struct Addresses {
    ip_address: Option<String>,
    mac_address: Option<String>,
    public_address: Option<String>,
}

/// Memory and storage in MB, the processor in percent and degrees Celsius.
#[derive(Debug, Deserialize)]
struct Measurements {
    memory_usage: Option<i64>,
    memory_total: Option<i64>,
    storage_usage: Option<i64>,
    storage_total: Option<i64>,
    storage_block_device: Option<String>,
    cpu_usage: Option<i64>,
    cpu_temp: Option<i64>,
    cpu_id: Option<String>,
    is_undervolted: bool,
}

/// The device's current release, its target release, and the one it is pinned to.
#[derive(Debug, Deserialize)]
pub(super) struct Releases {
    #[serde(rename = "is_pinned_on__release")]
    pub(super) pinned_on: Option<Id>,
    #[serde(rename = "is_running__release")]
    running: Vec<ReleaseName>,
    #[serde(rename = "should_be_running__release")]
    target: Vec<ReleaseName>,
}

#[derive(Debug, Deserialize)]
struct DeviceTypeName {
    name: String,
}

impl Facts {
    /// Finds the device of a uuid.
    ///
    /// # Errors
    /// 404 if the user does not see it.
    pub(super) async fn find(user: &SessionUser, uuid: &Uuid) -> PageResult<Self> {
        let query = "$select=id,uuid,device_name,note,is_active,is_online,api_heartbeat_state,last_connectivity_event,\
            changed_api_heartbeat_state_on__date,overall_status,overall_progress,status,update_status,os_version,\
            os_variant,supervisor_version,ip_address,mac_address,public_address,memory_usage,memory_total,\
            storage_usage,storage_total,storage_block_device,cpu_usage,cpu_temp,cpu_id,is_undervolted,created_at,\
            is_pinned_on__release\
            &$expand=belongs_to__application($select=id,app_name),is_of__device_type($select=name),\
            is_running__release($select=id,commit,raw_version),\
            should_be_running__release($select=id,commit,raw_version),\
            device_tag($select=tag_key,value;$orderby=tag_key asc;$top=20)";
        let path = format!("/device(uuid='{}')", uuid.0);
        user.row(&path, query).await
    }

    pub(super) fn note(&self) -> &str {
        self.note.as_deref().unwrap_or_default()
    }

    /// Its name and status, at the top of each of its pages.
    pub(super) fn head(&self) -> LiveFragment {
        let markup = html! {
            header.head {
                div {
                    h1 { (self.device.device_name) }
                    p.state {
                        (status(&self.work.overall_status)) " "
                        (self.connectivity.badge())
                        @if let Some(percent) = self.work.overall_progress { " " (progress("Progress", percent)) }
                        @if !self.is_active { " " (badge("wary", "Deactivated")) }
                    }
                }
                p.faint {
                    @for kind in &self.device_type { (kind.name) " · " }
                    @match self.device.fleets.first() {
                        Some(fleet) => a href=(fleet_place(fleet.id)) { (fleet.app_name) },
                        None => "in no fleet",
                    }
                }
            }
        };
        LiveFragment::new("head", markup)
    }

    /// All facts.
    pub(super) fn part(&self) -> LiveFragment {
        let fact = |name: &str, value: Markup| html! { div { dt { (name) } dd { (value) } } };
        let text = |name: &str, value: Option<&str>| {
            let value = value.filter(|value| !value.is_empty());
            fact(
                name,
                html! { @if let Some(value) = value { (value) } @else { span.none { "Unknown" } } },
            )
        };
        let system = match (&self.software.os_version, &self.software.os_variant) {
            (Some(version), Some(variant)) => Some(format!("{version} ({variant})")),
            (version, _) => version.clone(),
        };
        let markup = html! {
            dl.facts {
                (fact("Last seen", self.connectivity.last_seen("Now", "Now")))
                (fact("Current release", ReleaseName::link_of(&self.releases.running)))
                (fact("Target release", html! {
                    (ReleaseName::link_of(&self.releases.target)) " "
                    span.faint { @if self.releases.pinned_on.is_some() { "(pinned)" } @else { "(from its fleet)" } }
                }))
                (text("Status", self.work.status.as_deref()))
                @if let Some(update) = self.work.update_status.as_deref() { (text("Update", Some(update))) }
                (text("Supervisor", self.software.supervisor_version.as_deref()))
                (text("Operating system", system.as_deref()))
                (fact("Memory", meter("Memory used", self.measurements.memory_usage, self.measurements.memory_total)))
                (fact("Storage", html! {
                    (meter("Storage used", self.measurements.storage_usage, self.measurements.storage_total))
                    @if let Some(of) = &self.measurements.storage_block_device { span.under { (of) } }
                }))
                (fact("Processor", html! {
                    @match (self.measurements.cpu_usage, self.measurements.cpu_temp) {
                        (Some(percent), Some(degrees)) => { (percent) " %, " (degrees) " °C" }
                        (Some(percent), None) => { (percent) " %" }
                        (None, Some(degrees)) => { (degrees) " °C" }
                        (None, None) => span.none { "Unknown" }
                    }
                    @if self.measurements.is_undervolted { " " (badge("wary", "Undervolted")) }
                    @if let Some(id) = &self.measurements.cpu_id { span.under { code { (id) } } }
                }))
                (fact("Addresses", words(self.addresses.ip_address.as_deref())))
                (text("Public address", self.addresses.public_address.as_deref()))
                (fact("MAC addresses", words(self.addresses.mac_address.as_deref())))
                (fact("Created", show::time(Some(&self.created_at))))
                (fact("Uuid", html! {
                    code { (self.device.uuid) } " "
                    button.quiet.small type="button" data-copy=(self.device.uuid) { "Copy" span.hidden { " uuid" } }
                }))
            }
            @if !self.device_tag.is_empty() {
                ul.tags aria-label="Tags" {
                    @for tag in &self.device_tag {
                        li.tag { (tag.text()) }
                    }
                }
            }
            @if !self.note().is_empty() { p.note { (self.note()) } }
        };
        LiveFragment::new("facts", markup)
    }
}

/// Shows how much of something is in use, in MB.
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

/// Shows values that are separated by spaces, one per line.
fn words(text: Option<&str>) -> Markup {
    let words: Vec<&str> = text.unwrap_or_default().split_whitespace().collect();
    html! {
        @if words.is_empty() { span.none { "Unknown" } }
        @for word in words { code.address { (word) } " " }
    }
}

//! A fleet's devices in their current state.

use maud::{Markup, html};
use serde::Deserialize;

use super::device_filter::{DeviceFilter, ORDERS};
use super::tabs::{DEVICES, Fleet};
use super::together;
use crate::form::{Number, Search};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::PageResult;
use crate::rows::{Connectivity, Id, ReleaseName, Tag, device_place};
use crate::session_user::SessionUser;
use crate::show::{STATUSES, progress, status};

/// The number of devices on a page.
const AT_ONCE: usize = 100;

#[derive(Deserialize)]
struct DeviceRow {
    id: i64,
    uuid: String,
    device_name: String,
    overall_status: String,
    overall_progress: Option<i64>,
    #[serde(flatten)]
    connectivity: Connectivity,
    #[serde(rename = "is_running__release")]
    running: Vec<ReleaseName>,
    #[serde(rename = "should_be_running__release")]
    target: Vec<ReleaseName>,
    #[serde(rename = "is_pinned_on__release")]
    pinned: Option<Id>,
    device_tag: Vec<Tag>,
}

pub(super) struct DevicesPage {
    fleet: Fleet,
    filter: DeviceFilter,
}

impl LivePage for DevicesPage {
    type Address = (Number, Search);
    type Parts = [LiveFragment; 2];

    async fn load(
        user: &SessionUser,
        (Number(id), Search(search)): Self::Address,
    ) -> PageResult<Self> {
        Ok(DevicesPage {
            fleet: Fleet::find(user, id).await?,
            filter: DeviceFilter::from_search(&search),
        })
    }

    async fn parts(&self, user: &SessionUser) -> PageResult<Self::Parts> {
        let DevicesPage { fleet, filter } = self;
        let condition = filter.filter(fleet.id);
        let count = user
            .count("/device", &format!("$filter={condition}"))
            .await?;
        let query = format!(
            "$select=id,uuid,device_name,overall_status,overall_progress,is_online,api_heartbeat_state,\
             last_connectivity_event,changed_api_heartbeat_state_on__date,is_pinned_on__release\
             &$expand=is_running__release($select=id,commit,raw_version),\
             should_be_running__release($select=id,commit,raw_version),\
             device_tag($select=tag_key,value;$orderby=tag_key asc;$top=6)\
             &$filter={condition}&$orderby={}&$top={AT_ONCE}&$skip={}",
            filter.order_by(),
            filter.page.saturating_mul(AT_ONCE)
        );
        let devices: Vec<DeviceRow> = user.rows("/device", &query).await?;
        let count = usize::try_from(count).unwrap_or_default();
        Ok([
            LiveFragment::new("devices", list(fleet, filter, &devices)),
            LiveFragment::new("pages", pages(fleet, filter, count)),
        ])
    }

    async fn page(&self, user: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
        let [devices, pages] = parts;
        let DevicesPage { fleet, filter } = self;
        let place = fleet.place();
        let main = html! {
            form.filters role="search" action=(place) {
                label { span.hidden { "Search devices by name, uuid or tag" }
                    input type="search" name="search" value=(filter.search) maxlength="100" data-search
                        placeholder="Search name, uuid, tag ( / )";
                }
                label { span.hidden { "Status" }
                    select name="status" {
                        option value="" { "Any status" }
                        @for (state, _, word) in STATUSES {
                            option value=(state) selected[state == filter.status] { (word) }
                        }
                    }
                }
                label { span.hidden { "Tag, or tag=value" }
                    input name="tag" value=(filter.tag) maxlength="200" placeholder="tag or tag=value" size="14";
                }
                label { span.hidden { "Order" }
                    select name="sort" {
                        @for (name, _, word) in ORDERS {
                            option value=(name) selected[name == filter.order] { "By " (word.to_lowercase()) }
                        }
                    }
                }
                button type="submit" { "Show" }
                @if filter.is_anything() { a.button.quiet href=(place) { "Show all" } }
            }
            form.together method="post" action={ (place) "/together" } hx-post={ (place) "/together" }
                hx-target="find .answer" hx-sync="this:drop" aria-label="Devices" {
                @if fleet.may_change { (together::bar(user, fleet).await?) }
                (devices.placed()) (pages.placed())
            }
        };
        Ok(Page {
            live: Some(format!("{place}/live?{}", filter.query(filter.page))),
            ..fleet.page(DEVICES, &main)
        })
    }
}

fn list(fleet: &Fleet, filter: &DeviceFilter, devices: &[DeviceRow]) -> Markup {
    html! {
        @if devices.is_empty() && filter.is_anything() {
            p.empty { "No devices match these filters." }
        } @else if devices.is_empty() {
            div.empty {
                p { "No devices yet. A device joins with the " code { "config.json" } " of its fleet." }
                p { a.button href={ (fleet.place()) "/add-device" } { "Add a device" } }
            }
        } @else {
            table.rows {
                caption.hidden { "Devices of " (fleet.app_name) }
                thead { tr {
                    @if fleet.may_change {
                        th.pick scope="col" { input type="checkbox" data-all="device" aria-label="Select all"; }
                    }
                    th scope="col" { "Device" } th scope="col" { "Status" } th scope="col" { "Release" }
                    th scope="col" { "Last seen" } th scope="col" { "Tags" }
                } }
                tbody { @for device in devices { (row(fleet, device)) } }
            }
        }
    }
}

fn row(fleet: &Fleet, device: &DeviceRow) -> Markup {
    html! {
        tr id={ "device-" (device.id) } {
            @if fleet.may_change {
                td.pick {
                    input type="checkbox" name="device" value=(device.id) id={ "pick-" (device.id) }
                        aria-label={ "Choose " (device.device_name) };
                }
            }
            th scope="row" {
                a href=(device_place(&device.uuid)) { (device.device_name) }
                span.under { code { (device.uuid.chars().take(7).collect::<String>()) } }
            }
            td data-label="Status" {
                (status(&device.overall_status))
                @if let Some(percent) = device.overall_progress { " " (progress("Progress", percent)) }
            }
            td data-label="Release" { (releases(device)) }
            td data-label="Last seen" { (device.connectivity.last_seen("Connected", "Polls")) }
            td data-label="Tags" {
                @for tag in &device.device_tag { span.tag { (tag.text()) } " " }
            }
        }
    }
}

fn releases(device: &DeviceRow) -> Markup {
    let running = device.running.first().map(|release| release.id);
    let target = device.target.first();
    html! {
        (ReleaseName::link_of(&device.running))
        @if let Some(target) = target.filter(|target| running != Some(target.id)) {
            span.under { "target " (target.link()) }
        }
        @if device.pinned.is_some() { span.under { "Pinned" } }
    }
}

fn pages(fleet: &Fleet, filter: &DeviceFilter, count: usize) -> Markup {
    let last = count.saturating_sub(1) / AT_ONCE;
    let place = |page: usize| format!("{}?{}", fleet.place(), filter.query(page));
    html! {
        p.faint.pages {
            (count) @if count == 1 { " device" } @else { " devices" }
            @if filter.is_anything() { " found" }
            @if last > 0 {
                ", page " (filter.page + 1) " of " (last + 1) " "
                @if filter.page > 0 { a href=(place(filter.page - 1)) rel="prev" { "Previous" } " " }
                @if filter.page < last { a href=(place(filter.page + 1)) rel="next" { "Next" } }
            }
        }
    }
}

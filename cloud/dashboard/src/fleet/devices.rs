//! A fleet's devices, as they are at this moment.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Fleet, Tab, together};
use crate::data::{Id, literal};
use crate::form::{Form, Number, Search};
use crate::live::{LiveFragment, stream_fragments};
use crate::problem::PageResult;
use crate::show::{self, progress, status};
use crate::state::DashboardState;
use crate::visitor::SessionUser;

/// Devices on a page.
const AT_ONCE: usize = 100;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/fleets/{id}", get(page))
        .route("/fleets/{id}/live", get(live))
}

/// The states that devices are looked for by: as the API has them, and for people.
const STATES: [(&str, &str); 7] = [
    ("operational", "Operational"),
    ("updating", "Updating"),
    ("configuring", "Configuring"),
    ("reduced-functionality", "Reduced functionality"),
    ("disconnected", "Disconnected"),
    ("inactive", "Inactive"),
    ("post-provisioning", "Setting up"),
];

/// What they are ordered by: in the address, as the API has it, and for people.
const ORDERS: [(&str, &str, &str); 5] = [
    ("name", "device_name asc", "Name"),
    ("status", "overall_status asc,device_name asc", "Status"),
    ("seen", "last_connectivity_event desc", "Last seen"),
    (
        "release",
        "is_running__release/commit asc,device_name asc",
        "Release",
    ),
    ("newest", "created_at desc", "Newest"),
];

/// Which devices are looked for.
#[derive(Debug, Clone)]
struct DeviceFilter {
    search: String,
    status: String,
    tag: String,
    order: &'static str,
    /// From 0.
    page: usize,
}

impl DeviceFilter {
    fn of(search: &Form) -> Self {
        let order = search.text("sort");
        let order = ORDERS.iter().find(|(name, _, _)| *name == order);
        let status = search.text("status");
        let is_state = STATES.iter().any(|(state, _)| *state == status);
        DeviceFilter {
            search: search.text("search").chars().take(100).collect(),
            status: if is_state {
                status.to_owned()
            } else {
                String::new()
            },
            tag: search.text("tag").chars().take(200).collect(),
            order: order.map_or("name", |(name, _, _)| name),
            page: search
                .text("page")
                .parse::<usize>()
                .unwrap_or_default()
                .min(100_000),
        }
    }

    fn is_anything(&self) -> bool {
        !(self.search.is_empty() && self.status.is_empty() && self.tag.is_empty())
    }

    /// As the query of an address.
    fn query(&self, page: usize) -> String {
        form_urlencoded::Serializer::new(String::new())
            .append_pair("search", &self.search)
            .append_pair("status", &self.status)
            .append_pair("tag", &self.tag)
            .append_pair("sort", self.order)
            .append_pair("page", &page.to_string())
            .finish()
    }

    fn filter(&self, fleet: i64) -> String {
        let mut filter = format!("belongs_to__application eq {fleet}");
        if !self.search.is_empty() {
            let text = literal(&self.search.to_lowercase());
            filter.push_str(&format!(
                " and (contains(tolower(device_name),{text}) or startswith(uuid,{text}) \
                 or device_tag/any(t:contains(tolower(t/tag_key),{text}) or contains(tolower(t/value),{text})))"
            ));
        }
        if !self.status.is_empty() {
            filter.push_str(&format!(" and overall_status eq {}", literal(&self.status)));
        }
        if !self.tag.is_empty() {
            let condition = match self.tag.split_once('=') {
                None => format!("t/tag_key eq {}", literal(self.tag.trim())),
                Some((key, value)) => format!(
                    "t/tag_key eq {} and t/value eq {}",
                    literal(key.trim()),
                    literal(value.trim())
                ),
            };
            filter.push_str(&format!(" and device_tag/any(t:{condition})"));
        }
        filter
    }

    fn order_by(&self) -> &'static str {
        let order = ORDERS.iter().find(|(name, _, _)| *name == self.order);
        order.map_or("device_name asc", |(_, by, _)| by)
    }
}

#[derive(Deserialize)]
struct Device {
    id: i64,
    uuid: String,
    device_name: String,
    overall_status: String,
    overall_progress: Option<i64>,
    is_online: bool,
    api_heartbeat_state: String,
    last_connectivity_event: Option<String>,
    #[serde(rename = "changed_api_heartbeat_state_on__date")]
    last_heartbeat_event: Option<String>,
    #[serde(rename = "is_running__release")]
    running: Vec<Release>,
    #[serde(rename = "should_be_running__release")]
    target: Vec<Release>,
    #[serde(rename = "is_pinned_on__release")]
    pinned: Option<Id>,
    device_tag: Vec<Tag>,
}

#[derive(Deserialize)]
struct Release {
    id: i64,
    commit: String,
    raw_version: String,
}

#[derive(Deserialize)]
struct Tag {
    tag_key: String,
    value: String,
}

async fn page(visitor: SessionUser, Number(id): Number, Search(search): Search) -> PageResult {
    let fleet = Fleet::find(&visitor, id).await?;
    let filter = DeviceFilter::of(&search);
    let parts = parts(&visitor, &fleet, &filter).await?;
    let place = fleet.place();
    let bar = if fleet.may_change {
        Some(together::bar(&visitor, &fleet).await?)
    } else {
        None
    };
    let main = html! {
        form.filters role="search" action=(place) {
            label { span.hidden { "Search devices by name, uuid or tag" }
                input type="search" name="search" value=(filter.search) maxlength="100" data-search
                    placeholder="Search name, uuid, tag ( / )";
            }
            label { span.hidden { "Status" }
                select name="status" {
                    option value="" { "Any status" }
                    @for (state, word) in STATES {
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
            @if let Some(bar) = bar { (bar) }
            @for part in &parts { (part.placed()) }
        }
    };
    let live = format!("{place}/live?{}", filter.query(filter.page));
    Ok(fleet
        .page(&visitor, Tab::Devices, Some(live), &main)
        .into_response())
}

async fn live(
    State(state): State<DashboardState>,
    visitor: SessionUser,
    Number(id): Number,
    Search(search): Search,
) -> PageResult {
    let device_filter = DeviceFilter::of(&search);
    stream_fragments(state, visitor, move |visitor| {
        let device_filter = device_filter.clone();
        async move {
            let fleet = Fleet::find(&visitor, id).await?;
            parts(&visitor, &fleet, &device_filter).await
        }
    })
    .await
}

async fn parts(
    visitor: &SessionUser,
    fleet: &Fleet,
    device_filter: &DeviceFilter,
) -> PageResult<Vec<LiveFragment>> {
    let filter = device_filter.filter(fleet.id);
    let count = visitor
        .count("/device", &format!("$filter={filter}"))
        .await?;
    let query = format!(
        "$select=id,uuid,device_name,overall_status,overall_progress,is_online,api_heartbeat_state,\
         last_connectivity_event,changed_api_heartbeat_state_on__date,is_pinned_on__release\
         &$expand=is_running__release($select=id,commit,raw_version),\
         should_be_running__release($select=id,commit,raw_version),\
         device_tag($select=tag_key,value;$orderby=tag_key asc;$top=6)\
         &$filter={filter}&$orderby={}&$top={AT_ONCE}&$skip={}",
        device_filter.order_by(),
        device_filter.page.saturating_mul(AT_ONCE)
    );
    let devices: Vec<Device> = visitor.rows("/device", &query).await?;
    let count = usize::try_from(count).unwrap_or_default();
    Ok(vec![
        LiveFragment::new("devices", list(fleet, device_filter, &devices)),
        LiveFragment::new("pages", pages(fleet, device_filter, count)),
    ])
}

fn list(fleet: &Fleet, filter: &DeviceFilter, devices: &[Device]) -> Markup {
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

fn row(fleet: &Fleet, device: &Device) -> Markup {
    let place = format!("/dashboard/devices/{}", device.uuid);
    html! {
        tr id={ "device-" (device.id) } {
            @if fleet.may_change {
                td.pick {
                    input type="checkbox" name="device" value=(device.id) id={ "pick-" (device.id) }
                        aria-label={ "Choose " (device.device_name) };
                }
            }
            th scope="row" {
                a href=(place) { (device.device_name) }
                span.under { code { (device.uuid.chars().take(7).collect::<String>()) } }
            }
            td data-label="Status" {
                (status(&device.overall_status))
                @if let Some(percent) = device.overall_progress { " " (progress("Progress", percent)) }
            }
            td data-label="Release" { (releases(device)) }
            td data-label="Last seen" { (seen(device)) }
            td data-label="Tags" {
                @for tag in &device.device_tag { span.tag { (tag.tag_key) @if !tag.value.is_empty() { ": " (tag.value) } } " " }
            }
        }
    }
}

fn releases(device: &Device) -> Markup {
    let running = device.running.first();
    let target = device.target.first();
    let name = |release: &Release| show::release_name(&release.commit, &release.raw_version);
    html! {
        @match running {
            Some(release) => a href={ "/dashboard/releases/" (release.id) } { (name(release)) },
            None => span.none { "None" },
        }
        @if let Some(target) = target.filter(|target| running.map(|it| it.id) != Some(target.id)) {
            span.under { "target " a href={ "/dashboard/releases/" (target.id) } { (name(target)) } }
        }
        @if device.pinned.is_some() { span.under { "Pinned" } }
    }
}

fn seen(device: &Device) -> Markup {
    match (device.is_online, device.api_heartbeat_state.as_str()) {
        (true, _) => html! { "Connected" },
        (false, "online") => html! { "Polls" },
        _ => {
            let last = [
                device.last_connectivity_event.as_deref(),
                device.last_heartbeat_event.as_deref(),
            ];
            // Both are written in one form, so the later one is the greater text.
            show::time(last.into_iter().flatten().max())
        }
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

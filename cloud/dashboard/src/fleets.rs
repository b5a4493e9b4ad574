//! The first page: every fleet that the user sees, and a form that creates one.

use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::data::literal;
use super::form::{Form, Search};
use super::live::{LiveFragment, LivePage, live_page, show};
use super::page::{Page, Section};
use super::page_error::PageResult;
use super::rows::{NamedRow, ReleaseName, fleet_place};
use super::session_user::SessionUser;
use super::show::{badge, table};
use super::state::Routes;

/// The maximum number of fleets on the page; a search finds the others.
const MOST: usize = 200;

pub(super) fn routes() -> Routes {
    Routes::new()
        .merge(live_page::<FleetsPage>("/fleets"))
        .route("/", get(show::<FleetsPage>))
        .route("/fleets", post(create))
        .route("/new-fleet", get(new))
}

#[derive(Deserialize)]
struct FleetRow {
    id: i64,
    app_name: String,
    slug: String,
    is_public: bool,
    should_track_latest_release: bool,
    #[serde(rename = "is_for__device_type")]
    device_type: Vec<NamedRow>,
    #[serde(rename = "should_be_running__release")]
    release: Vec<ReleaseName>,
    #[serde(rename = "owns__device")]
    devices: i64,
}

#[derive(Deserialize)]
struct OnlineCount {
    id: i64,
    #[serde(rename = "owns__device")]
    devices: i64,
}

/// The page of the fleets that match a search.
struct FleetsPage(String);

impl LivePage for FleetsPage {
    type Address = Search;
    type Parts = [LiveFragment; 1];

    async fn load(_: &SessionUser, Search(search): Search) -> PageResult<Self> {
        Ok(FleetsPage(search.text("search").to_owned()))
    }

    async fn parts(&self, user: &SessionUser) -> PageResult<Self::Parts> {
        let FleetsPage(search_text) = self;
        let mut filter = "is_of__class eq 'fleet' and is_host eq false".to_owned();
        if !search_text.is_empty() {
            let search_text = literal(&search_text.to_lowercase());
            filter.push_str(&format!(
                " and (contains(tolower(app_name),{search_text}) or contains(slug,{search_text}))"
            ));
        }
        let one_more = MOST + 1;
        let query = format!(
            "$select=id,app_name,slug,is_public,should_track_latest_release\
             &$expand=is_for__device_type($select=id,name),should_be_running__release($select=id,commit,raw_version),owns__device/$count\
             &$filter={filter}&$orderby=app_name asc&$top={one_more}"
        );
        let mut fleets: Vec<FleetRow> = user.rows("/application", &query).await?;
        let more = fleets.len() > MOST;
        fleets.truncate(MOST);
        let query = format!(
            "$select=id&$expand=owns__device/$count($filter={ONLINE})&$filter={filter}\
             &$orderby=app_name asc&$top={MOST}"
        );
        let online: Vec<OnlineCount> = user.rows("/application", &query).await?;
        let rows = fleets.iter().map(|fleet| {
            let online = online.iter().find(|online| online.id == fleet.id);
            row(fleet, online.map_or(0, |online| online.devices))
        });
        let fleets = html! {
            @if fleets.is_empty() && search_text.is_empty() {
                div.empty {
                    p { "No fleets yet. A fleet is a set of devices that run the same services." }
                    p { a.button href="/dashboard/new-fleet" { "Create the first one" } }
                }
            } @else if fleets.is_empty() {
                p.empty { "No fleets match your search." }
            } @else {
                (table("Fleets", &["Fleet", "Devices online", "Release", "Device type"], None, rows))
            }
            @if more { p.faint { "Only the first " (MOST) " are shown: search for the others." } }
        };
        Ok([LiveFragment::new("fleets", fleets)])
    }

    async fn page(&self, _: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
        let [fleets] = parts;
        let query: String = form_urlencoded::byte_serialize(self.0.as_bytes()).collect();
        let main = html! {
            header.head {
                h1 { "Fleets" }
                a.button.primary href="/dashboard/new-fleet" { "New fleet" }
            }
            form.filters role="search" action="/dashboard/fleets" {
                label { span.hidden { "Search fleets" }
                    input type="search" name="search" value=(self.0) placeholder="Search fleets ( / )" maxlength="100" data-search;
                }
                button type="submit" { "Search" }
            }
            (fleets.placed())
        };
        let live = format!("/dashboard/fleets/live?search={query}");
        Ok(Page::first(Section::Fleets, live, main))
    }
}

/// The condition for online devices: they hold a tunnel or poll.
const ONLINE: &str = "is_online eq true or api_heartbeat_state eq 'online'";

fn row(fleet: &FleetRow, online: i64) -> Markup {
    html! {
        tr id={ "fleet-" (fleet.id) } {
            th scope="row" {
                a href=(fleet_place(fleet.id)) { (fleet.app_name) }
                @if fleet.is_public { " " (badge("none", "Public")) }
                span.under { (fleet.slug) }
            }
            td data-label="Devices online" { (online) " of " (fleet.devices) }
            td data-label="Release" {
                @match fleet.release.first() {
                    Some(release) => {
                        (release.link())
                        span.under { @if fleet.should_track_latest_release { "Latest" } @else { "Pinned" } }
                    }
                    None => span.none { "None" }
                }
            }
            td data-label="Device type" {
                @for kind in &fleet.device_type { (kind.name) }
            }
        }
    }
}

async fn new(user: SessionUser) -> PageResult<Markup> {
    let query = "$select=id,name&$orderby=name asc";
    let organizations: Vec<NamedRow> = user.rows("/organization", query).await?;
    let types: Vec<NamedRow> = user.rows("/device_type", query).await?;
    let main = html! {
        h1 { "New fleet" }
        form.card.stack method="post" action="/dashboard/fleets" hx-post="/dashboard/fleets"
            hx-target="find .answer" hx-disabled-elt="find button" {
            label { "Name"
                input name="name" required minlength="4" maxlength="100" autocomplete="off" autofocus;
            }
            div {
                label { "Device type"
                    select name="device type" required aria-describedby="type-hint" {
                        option value="" { "Choose …" }
                        @for kind in &types { option value=(kind.id) { (kind.name) } }
                    }
                }
                small id="type-hint" { "The type of most of its devices. Others with the same architecture can join as well." }
            }
            @if organizations.len() == 1 {
                @for one in &organizations { input type="hidden" name="organization" value=(one.id); }
            } @else {
                label { "Organization"
                    select name="organization" required {
                        @for one in &organizations { option value=(one.id) { (one.name) } }
                    }
                }
            }
            div.answer role="alert" {}
            div.buttons {
                button.primary type="submit" { "Create fleet" }
                a.button href="/dashboard" { "Cancel" }
            }
        }
    };
    Ok(Page::below(Section::Fleets, "New fleet", main).markup(&user))
}

async fn create(user: SessionUser, form: Form) -> PageResult {
    let body = json!({
        "app_name": form.text("name"),
        "is_for__device_type": form.number("device type")?,
        "organization": form.number("organization")?,
    });
    let id = user.create("/application", body).await?;
    Ok(user.go(&fleet_place(id)))
}

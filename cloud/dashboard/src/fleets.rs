//! The first page: every fleet that the visitor sees, and making one.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::data::literal;
use super::form::{Form, Search};
use super::live::{LiveFragment, stream_fragments};
use super::page::{Page, Section};
use super::problem::PageResult;
use super::show::{self, badge};
use super::state::DashboardState;
use super::visitor::SessionUser;

/// Fleets on the page; a search finds the others.
const MOST: usize = 200;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/", get(list))
        .route("/fleets", get(list).post(create))
        .route("/fleets/live", get(live))
        .route("/new-fleet", get(new))
}

#[derive(Deserialize)]
struct Fleet {
    id: i64,
    app_name: String,
    slug: String,
    is_public: bool,
    should_track_latest_release: bool,
    #[serde(rename = "is_for__device_type")]
    device_type: Vec<DeviceTypeName>,
    #[serde(rename = "should_be_running__release")]
    release: Vec<Release>,
    #[serde(rename = "owns__device")]
    devices: i64,
}

#[derive(Deserialize)]
struct DeviceTypeName {
    id: i64,
    name: String,
}

#[derive(Deserialize)]
struct Release {
    id: i64,
    commit: String,
    raw_version: String,
}

#[derive(Deserialize)]
struct OnlineCount {
    id: i64,
    #[serde(rename = "owns__device")]
    devices: i64,
}

async fn list(visitor: SessionUser, Search(search): Search) -> PageResult {
    let search_text = search.text("search").to_owned();
    let part = table(&visitor, &search_text).await?;
    let query: String = form_urlencoded::byte_serialize(search_text.as_bytes()).collect();
    let main = html! {
        header.head {
            h1 { "Fleets" }
            a.button.primary href="/dashboard/new-fleet" { "New fleet" }
        }
        form.filters role="search" action="/dashboard/fleets" {
            label { span.hidden { "Search fleets" }
                input type="search" name="search" value=(search_text) placeholder="Search fleets ( / )" maxlength="100" data-search;
            }
            button type="submit" { "Search" }
        }
        (part.placed())
    };
    Ok(Page {
        visitor: &visitor,
        section: Section::Fleets,
        title: "Fleets",
        above: Vec::new(),
        live: Some(format!("/dashboard/fleets/live?search={query}")),
        main,
    }
    .into_response())
}

async fn live(
    State(state): State<DashboardState>,
    visitor: SessionUser,
    Search(search): Search,
) -> PageResult {
    let search_text = search.text("search").to_owned();
    stream_fragments(state, visitor, move |visitor| {
        let search_text = search_text.clone();
        async move { Ok(vec![table(&visitor, &search_text).await?]) }
    })
    .await
}

async fn table(visitor: &SessionUser, search_text: &str) -> PageResult<LiveFragment> {
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
    let mut fleets: Vec<Fleet> = visitor.rows("/application", &query).await?;
    let more = fleets.len() > MOST;
    fleets.truncate(MOST);
    let query = format!(
        "$select=id&$expand=owns__device/$count($filter={ONLINE})&$filter={filter}\
         &$orderby=app_name asc&$top={MOST}"
    );
    let online: Vec<OnlineCount> = visitor.rows("/application", &query).await?;
    let online = |id: i64| {
        let found = online.iter().find(|fleet| fleet.id == id);
        found.map_or(0, |fleet| fleet.devices)
    };
    Ok(LiveFragment::new(
        "fleets",
        html! {
            @if fleets.is_empty() && search_text.is_empty() {
                div.empty {
                    p { "No fleets yet. A fleet is a set of devices that run the same services." }
                    p { a.button href="/dashboard/new-fleet" { "Create the first one" } }
                }
            } @else if fleets.is_empty() {
                p.empty { "No fleets match your search." }
            } @else {
                table.rows {
                    caption.hidden { "Fleets" }
                    thead { tr {
                        th scope="col" { "Fleet" } th scope="col" { "Devices online" }
                        th scope="col" { "Release" } th scope="col" { "Device type" }
                    } }
                    tbody { @for fleet in &fleets { (row(fleet, online(fleet.id))) } }
                }
            }
            @if more { p.faint { "Only the first " (MOST) " are shown: search for the others." } }
        },
    ))
}

/// Who counts as online: who holds a tunnel or polls.
pub(super) const ONLINE: &str = "is_online eq true or api_heartbeat_state eq 'online'";

fn row(fleet: &Fleet, online: i64) -> Markup {
    html! {
        tr id={ "fleet-" (fleet.id) } {
            th scope="row" {
                a href={ "/dashboard/fleets/" (fleet.id) } { (fleet.app_name) }
                @if fleet.is_public { " " (badge("none", "Public")) }
                span.under { (fleet.slug) }
            }
            td data-label="Devices online" { (online) " of " (fleet.devices) }
            td data-label="Release" {
                @match fleet.release.first() {
                    Some(release) => {
                        a href={ "/dashboard/releases/" (release.id) } {
                            (show::release_name(&release.commit, &release.raw_version))
                        }
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

async fn new(visitor: SessionUser) -> PageResult {
    let organizations: Vec<DeviceTypeName> = visitor
        .rows("/organization", "$select=id,name&$orderby=name asc")
        .await?;
    let types: Vec<DeviceTypeName> = visitor
        .rows("/device_type", "$select=id,name&$orderby=name asc")
        .await?;
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
    Ok(Page {
        visitor: &visitor,
        section: Section::Fleets,
        title: "New fleet",
        above: vec![("Fleets", "/dashboard".to_owned())],
        live: None,
        main,
    }
    .into_response())
}

async fn create(visitor: SessionUser, form: Form) -> PageResult {
    let body = json!({
        "app_name": form.text("name"),
        "is_for__device_type": form.number("device type")?,
        "organization": form.number("organization")?,
    });
    let id = visitor.create("/application", body).await?;
    Ok(visitor.go(&format!("/dashboard/fleets/{id}")))
}

//! A fleet's releases: which there are, and which of them the fleet runs.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::{Fleet, Tab};
use crate::data::Id;
use crate::form::{Form, Number};
use crate::live::{LiveFragment, stream_fragments};
use crate::problem::PageResult;
use crate::show::{self, badge};
use crate::state::DashboardState;
use crate::visitor::SessionUser;

/// Releases on the page, the latest first.
const MOST: usize = 100;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/fleets/{id}/releases", get(page))
        .route("/fleets/{id}/releases/live", get(live))
        .route("/fleets/{id}/target", axum::routing::post(target))
}

/// What the fleet is to run.
#[derive(Deserialize)]
struct Target {
    should_track_latest_release: bool,
    #[serde(rename = "should_be_running__release")]
    release: Option<Id>,
}

#[derive(Deserialize)]
struct Release {
    id: i64,
    commit: String,
    raw_version: String,
    status: String,
    is_final: bool,
    is_invalidated: bool,
    is_passing_tests: bool,
    start_timestamp: Option<String>,
    #[serde(rename = "is_running_on__device")]
    devices: i64,
}

async fn page(visitor: SessionUser, Number(id): Number) -> PageResult {
    let fleet = Fleet::find(&visitor, id).await?;
    let part = part(&visitor, &fleet).await?;
    let main = html! {
        (part.placed())
        div.answer id="said" role="status" {}
    };
    let live = format!("{}/releases/live", fleet.place());
    Ok(fleet
        .page(&visitor, Tab::Releases, Some(live), &main)
        .into_response())
}

async fn live(
    State(state): State<DashboardState>,
    visitor: SessionUser,
    Number(id): Number,
) -> PageResult {
    stream_fragments(state, visitor, move |visitor| async move {
        let fleet = Fleet::find(&visitor, id).await?;
        Ok(vec![part(&visitor, &fleet).await?])
    })
    .await
}

async fn part(visitor: &SessionUser, fleet: &Fleet) -> PageResult<LiveFragment> {
    let path = format!("/application({})", fleet.id);
    let query = "$select=should_track_latest_release,should_be_running__release";
    let target: Target = visitor.row(&path, query).await?;
    let one_more = MOST + 1;
    let query = format!(
        "$select=id,commit,raw_version,status,is_final,is_invalidated,is_passing_tests,start_timestamp\
         &$expand=is_running_on__device/$count\
         &$filter=belongs_to__application eq {}&$orderby=start_timestamp desc,id desc&$top={one_more}",
        fleet.id
    );
    let mut releases: Vec<Release> = visitor.rows("/release", &query).await?;
    let more = releases.len() > MOST;
    releases.truncate(MOST);
    Ok(LiveFragment::new(
        "releases",
        html! {
            @if releases.is_empty() {
                div.empty {
                    p { "No releases yet. A release is one version of all services of the fleet." }
                    p { code { "fleet deploy compose.yml --fleet " (fleet.slug) } }
                }
            } @else {
                (tracking(fleet, &target))
                table.rows {
                    caption.hidden { "Releases of " (fleet.app_name) }
                    thead { tr {
                        th scope="col" { "Release" } th scope="col" { "State" } th scope="col" { "Created" }
                        th scope="col" { "Devices that run it" } th scope="col" { span.hidden { "Change" } }
                    } }
                    tbody { @for release in &releases { (row(fleet, &target, release)) } }
                }
                @if more { p.faint { "Only the latest " (MOST) " are shown." } }
            }
        },
    ))
}

fn tracking(fleet: &Fleet, target: &Target) -> Markup {
    let place = format!("{}/target", fleet.place());
    html! {
        @if target.should_track_latest_release {
            p { "The fleet " strong { "follows its latest release" } ": each new one that succeeds becomes the target." }
        } @else {
            form.line method="post" action=(place) hx-post=(place) hx-target="#said" hx-sync="this:drop" {
                p {
                    @if target.release.is_some() { "The fleet is " strong { "pinned" } " to one release." }
                    @else { "The fleet follows no release." }
                }
                @if fleet.may_change {
                    button.small type="submit" name="latest" value="yes" { "Follow the latest release" }
                }
            }
        }
    }
}

fn row(fleet: &Fleet, target: &Target, release: &Release) -> Markup {
    let name = show::release_name(&release.commit, &release.raw_version);
    let is_target = target.release == Some(Id { id: release.id });
    let place = format!("{}/target", fleet.place());
    let can_be = release.status == "success" && !release.is_invalidated;
    html! {
        tr id={ "release-" (release.id) } {
            th scope="row" {
                a href={ "/dashboard/releases/" (release.id) } { (name) }
                @if !release.commit.starts_with(&name) { span.under { (show::short(&release.commit)) } }
            }
            td data-label="State" {
                span {
                    (build(&release.status))
                    @if is_target { " " (badge("good", "Target")) }
                    @if release.is_invalidated { " " (badge("bad", "Invalidated")) }
                    @if !release.is_final { " " (badge("none", "Draft")) }
                    @if !release.is_passing_tests { " " (badge("wary", "Tests fail")) }
                }
            }
            td data-label="Created" { (show::time(release.start_timestamp.as_deref())) }
            td data-label="Devices that run it" { (release.devices) }
            td.act {
                @if fleet.may_change && can_be && (target.should_track_latest_release || !is_target) {
                    form method="post" action=(place) hx-post=(place) hx-target="#said" hx-sync="this:drop" {
                        input type="hidden" name="release" value=(release.id);
                        button.small type="submit" { "Pin" span.hidden { " the fleet to " (name) } }
                    }
                }
            }
        }
    }
}

/// How a build ended.
pub(crate) fn build(status: &str) -> Markup {
    let (kind, word) = match status {
        "success" => ("good", "Success"),
        "running" => ("busy", "Building"),
        "failed" => ("bad", "Failed"),
        "error" => ("bad", "Error"),
        "cancelled" => ("wary", "Cancelled"),
        "interrupted" => ("wary", "Interrupted"),
        other => ("none", other),
    };
    badge(kind, word)
}

/// `POST /dashboard/fleets/<id>/target`: `latest`, or the number of a `release`.
async fn target(visitor: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let (body, word) = if form.has("latest") {
        (
            json!({ "should_track_latest_release": true }),
            "The fleet follows its latest release.",
        )
    } else {
        (
            json!({
                "should_be_running__release": form.number("release")?,
                "should_track_latest_release": false,
            }),
            "The fleet is pinned to this release, and its devices are notified.",
        )
    };
    let path = format!("/application({id})");
    visitor.patch(&path, body).await?;
    Ok(visitor.done(word, &format!("/dashboard/fleets/{id}/releases")))
}

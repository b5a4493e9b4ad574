//! A fleet's releases, and which of them the fleet runs.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::tabs::{Fleet, RELEASES};
use crate::form::{Form, Number};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::PageResult;
use crate::rows::{Id, ReleaseName, ReleaseState, fleet_place};
use crate::session_user::SessionUser;
use crate::show::{self, table};

/// The number of releases on the page, the latest first.
const MOST: usize = 100;

/// The release that the fleet should run.
#[derive(Deserialize)]
struct Target {
    should_track_latest_release: bool,
    #[serde(rename = "should_be_running__release")]
    release: Option<Id>,
}

#[derive(Deserialize)]
struct ReleaseRow {
    #[serde(flatten)]
    name: ReleaseName,
    #[serde(flatten)]
    state: ReleaseState,
    start_timestamp: Option<String>,
    #[serde(rename = "is_running_on__device")]
    devices: i64,
}

pub(super) struct ReleasesPage(Fleet);

impl LivePage for ReleasesPage {
    type Address = Number;
    type Parts = [LiveFragment; 1];

    async fn load(user: &SessionUser, Number(id): Number) -> PageResult<Self> {
        Ok(ReleasesPage(Fleet::find(user, id).await?))
    }

    async fn parts(&self, user: &SessionUser) -> PageResult<Self::Parts> {
        let ReleasesPage(fleet) = self;
        let query = "$select=should_track_latest_release,should_be_running__release";
        let target: Target = user.row(&fleet.path(), query).await?;
        let one_more = MOST + 1;
        let query = format!(
            "$select=id,commit,raw_version,status,is_final,is_invalidated,is_passing_tests,start_timestamp\
             &$expand=is_running_on__device/$count\
             &$filter=belongs_to__application eq {}&$orderby=start_timestamp desc,id desc&$top={one_more}",
            fleet.id
        );
        let mut releases: Vec<ReleaseRow> = user.rows("/release", &query).await?;
        let more = releases.len() > MOST;
        releases.truncate(MOST);
        let caption = format!("Releases of {}", fleet.app_name);
        let rows = releases.iter().map(|release| row(fleet, &target, release));
        let releases = html! {
            @if releases.is_empty() {
                div.empty {
                    p { "No releases yet. A release is one version of all services of the fleet." }
                    p { code { "fleet deploy compose.yml --fleet " (fleet.slug) } }
                }
            } @else {
                (tracking(fleet, &target))
                (table(&caption, &["Release", "State", "Created", "Devices that run it"], Some("Change"), rows))
                @if more { p.faint { "Only the latest " (MOST) " are shown." } }
            }
        };
        Ok([LiveFragment::new("releases", releases)])
    }

    async fn page(&self, _: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
        let [releases] = parts;
        let main = html! {
            (releases.placed())
            div.answer id="result" role="status" {}
        };
        Ok(self.0.page(RELEASES, &main))
    }
}

fn tracking(fleet: &Fleet, target: &Target) -> Markup {
    let place = format!("{}/target", fleet.place());
    html! {
        @if target.should_track_latest_release {
            p { "The fleet " strong { "follows its latest release" } ": each new one that succeeds becomes the target." }
        } @else {
            form.line method="post" action=(place) hx-post=(place) hx-target="#result" hx-sync="this:drop" {
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

fn row(fleet: &Fleet, target: &Target, release: &ReleaseRow) -> Markup {
    let name = release.name.text();
    let is_target = target
        .release
        .is_some_and(|link| link.id == release.name.id);
    let place = format!("{}/target", fleet.place());
    html! {
        tr id={ "release-" (release.name.id) } {
            th scope="row" {
                (release.name.link())
                @if !release.name.commit.starts_with(&name) { span.under { (show::short(&release.name.commit)) } }
            }
            td data-label="State" { span { (release.state.badges(is_target)) } }
            td data-label="Created" { (show::time(release.start_timestamp.as_deref())) }
            td data-label="Devices that run it" { (release.devices) }
            td.act {
                @if fleet.may_change && release.state.can_be_target() && (target.should_track_latest_release || !is_target) {
                    form method="post" action=(place) hx-post=(place) hx-target="#result" hx-sync="this:drop" {
                        input type="hidden" name="release" value=(release.name.id);
                        button.small type="submit" { "Pin" span.hidden { " the fleet to " (name) } }
                    }
                }
            }
        }
    }
}

/// `POST /dashboard/fleets/<id>/target`: `latest`, or the number of a `release`.
pub(super) async fn target(user: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let (body, message) = if form.has("latest") {
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
    user.patch(&format!("/application({id})"), body).await?;
    Ok(user.done(message, &format!("{}/releases", fleet_place(id))))
}

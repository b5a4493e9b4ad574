//! A release: its services and their images, its metadata, and the devices on it.

mod edit;
mod head;
mod row;

use axum::routing::post;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use self::row::Release;
use super::fleet::Fleet;
use super::form::{Number, delete_form};
use super::key_values::{KeyValueKind, tags, tags_section};
use super::live::{LiveFragment, LivePage, live_page};
use super::page::{Page, Section};
use super::page_error::{PageError, PageResult};
use super::rows::device_place;
use super::session_user::SessionUser;
use super::show::{self, short, status, table};
use super::state::Routes;

/// The maximum number of devices that are listed.
const MOST: usize = 100;
/// What is deleted together with a release.
const CONSEQUENCES: &str =
    "Its images are deleted too, unless other releases use them. This cannot be undone.";

pub(super) fn routes() -> Routes {
    live_page::<ReleasePage>("/releases/{id}")
        .route("/releases/{id}", post(edit::change))
        .route("/releases/{id}/delete", post(edit::delete))
}

#[derive(Deserialize)]
struct RunningDevice {
    uuid: String,
    device_name: String,
    overall_status: String,
}

struct ReleasePage {
    release: Release,
    fleet: Fleet,
}

impl LivePage for ReleasePage {
    type Address = Number;
    type Parts = [LiveFragment; 3];

    async fn load(user: &SessionUser, Number(id): Number) -> PageResult<Self> {
        let release = Release::find(user, id).await?;
        // Empty if the user does not see it.
        let fleet = release.fleet.first().ok_or_else(PageError::nothing_here)?;
        let fleet = Fleet::find(user, fleet.id).await?;
        Ok(ReleasePage { release, fleet })
    }

    async fn parts(&self, user: &SessionUser) -> PageResult<Self::Parts> {
        let ReleasePage { release, fleet } = self;
        let id = release.name.id;
        let filter = format!("is_running__release eq {id}");
        let count = user.count("/device", &format!("$filter={filter}")).await?;
        let query = format!(
            "$select=uuid,device_name,overall_status&$filter={filter}&$orderby=device_name asc&$top={MOST}"
        );
        let devices: Vec<RunningDevice> = user.rows("/device", &query).await?;
        Ok([
            LiveFragment::new("head", head::head(fleet, release)),
            LiveFragment::new("devices", running_devices(&devices, count)),
            tags(user, KeyValueKind::ReleaseTag, id, &release.name.place()).await?,
        ])
    }

    async fn page(&self, _: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
        let [head, devices, tags] = parts;
        let ReleasePage { release, fleet } = self;
        let place = release.name.place();
        let may_change = fleet.may_change;
        let word = html! { "commit, " code { (release.name.commit) } };
        let main = html! {
            (head.placed())
            div.answer id="result" role="status" {}
            section.stack aria-labelledby="services" {
                h2 id="services" { "Services" }
                (services(release))
            }
            section.stack aria-labelledby="devices" {
                h2 id="devices" { "Devices that run it" }
                (devices.placed())
            }
            (tags_section(&tags, may_change, KeyValueKind::ReleaseTag, release.name.id, &place))
            @if may_change { (edit::edit(release)) }
            details.card {
                summary { "Composition" }
                pre tabindex="0" { (serde_json::to_string_pretty(&release.composition).unwrap_or_default()) }
            }
            @if may_change { (delete_form("release", &place, CONSEQUENCES, &word)) }
        };
        let mut page = Page::below(Section::Fleets, &release.name.text(), main);
        page.above.extend([
            (fleet.app_name.clone(), fleet.place()),
            ("Releases".to_owned(), format!("{}/releases", fleet.place())),
        ]);
        page.live = Some(format!("{place}/live"));
        Ok(page)
    }
}

fn services(release: &Release) -> Markup {
    let images = release.images.iter().flat_map(|one| &one.image);
    let rows = images.map(|image| {
        html! {
            tr {
                th scope="row" { @for service in &image.service { (service.service_name) } }
                td data-label="Image" {
                    code { (image.location) }
                    @if let Some(hash) = &image.content_hash {
                        span.under { (short(hash.trim_start_matches("sha256:"))) }
                    }
                }
                td data-label="Size" { (size(image.image_size.as_ref())) }
                td data-label="Build" { (show::build(&image.status)) }
            }
        }
    });
    html! {
        @if release.images.is_empty() {
            p.empty { "This release has no services." }
        } @else {
            (table("Services of this release", &["Service", "Image", "Size", "Build"], None, rows))
        }
    }
}

/// Shows a size; large numbers arrive as text.
fn size(bytes: Option<&Value>) -> Markup {
    let bytes = match bytes {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(digits)) => digits.parse().ok(),
        _ => None,
    };
    html! {
        @match bytes {
            Some(bytes) => (show::bytes(bytes)),
            None => span.none { "Unknown" },
        }
    }
}

fn running_devices(devices: &[RunningDevice], count: i64) -> Markup {
    let rows = devices.iter().map(|device| {
        html! {
            tr id={ "device-" (device.uuid) } {
                th scope="row" { a href=(device_place(&device.uuid)) { (device.device_name) } }
                td data-label="Status" { (status(&device.overall_status)) }
            }
        }
    });
    html! {
        @if devices.is_empty() {
            p.empty { "No device runs this release." }
        } @else {
            (table("Devices that run this release", &["Device", "Status"], None, rows))
            @if usize::try_from(count).is_ok_and(|count| count > devices.len()) {
                p.faint { (count) " devices run this release; the first " (MOST) " are shown." }
            }
        }
    }
}

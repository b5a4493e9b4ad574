//! A release: its services and their images, what it says of itself, and the devices on it.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use signed_targets::{SignedText, Statement};

use super::fleet::{Fleet, build};
use super::form::{DeleteForm, Form, Number};
use super::key_values::{AddForm, KeyValueKind, tags};
use super::live::{LiveFragment, stream_fragments};
use super::page::{Page, Section};
use super::problem::{PageError, PageResult};
use super::show::{self, badge, short, status};
use super::state::DashboardState;
use super::visitor::SessionUser;

/// Devices that are listed.
const MOST: usize = 100;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/releases/{id}", get(page).post(change))
        .route("/releases/{id}/live", get(live))
        .route("/releases/{id}/delete", post(delete))
}

#[derive(Deserialize)]
struct Release {
    id: i64,
    commit: String,
    raw_version: String,
    semver: String,
    status: String,
    source: String,
    is_final: bool,
    is_invalidated: bool,
    is_passing_tests: bool,
    invalidation_reason: Option<String>,
    note: Option<String>,
    signed_statement: Option<String>,
    start_timestamp: Option<String>,
    end_timestamp: Option<String>,
    composition: Value,
    #[serde(rename = "belongs_to__application")]
    fleet: Vec<Owner>,
    #[serde(rename = "is_created_by__user")]
    author: Vec<Author>,
    #[serde(rename = "release_image")]
    images: Vec<ReleaseImage>,
}

#[derive(Deserialize)]
struct Owner {
    id: i64,
    #[serde(rename = "should_be_running__release")]
    target: Option<super::data::Id>,
    should_track_latest_release: bool,
}

#[derive(Deserialize)]
struct Author {
    username: String,
}

#[derive(Deserialize)]
struct ReleaseImage {
    image: Vec<Image>,
}

#[derive(Deserialize)]
struct Image {
    status: String,
    image_size: Option<Value>,
    content_hash: Option<String>,
    #[serde(rename = "is_stored_at__image_location")]
    location: String,
    #[serde(rename = "is_a_build_of__service")]
    service: Vec<Service>,
}

#[derive(Deserialize)]
struct Service {
    service_name: String,
}

#[derive(Deserialize)]
struct Device {
    uuid: String,
    device_name: String,
    overall_status: String,
}

impl Release {
    async fn find(visitor: &SessionUser, id: i64) -> PageResult<Self> {
        let query = "$select=id,commit,raw_version,semver,status,source,is_final,is_invalidated,is_passing_tests,\
             invalidation_reason,note,signed_statement,start_timestamp,end_timestamp,composition\
             &$expand=belongs_to__application($select=id,should_be_running__release,should_track_latest_release),\
             is_created_by__user($select=username),\
             release_image($select=id;$orderby=id asc;$top=200;$expand=image($select=status,image_size,content_hash,\
             is_stored_at__image_location;$expand=is_a_build_of__service($select=service_name)))";
        let path = format!("/release({id})");
        visitor.row(&path, query).await
    }

    fn name(&self) -> String {
        show::release_name(&self.commit, &self.raw_version)
    }

    fn place(&self) -> String {
        format!("/dashboard/releases/{}", self.id)
    }

    fn is_target(&self) -> bool {
        let mut fleets = self.fleet.iter();
        fleets.any(|fleet| fleet.target.is_some_and(|target| target.id == self.id))
    }

    fn is_pin(&self) -> bool {
        self.is_target()
            && self
                .fleet
                .iter()
                .all(|fleet| !fleet.should_track_latest_release)
    }
}

/// Its fleet, as far as the visitor sees that.
async fn fleet(visitor: &SessionUser, release: &Release) -> PageResult<Fleet> {
    let fleet = release.fleet.first().ok_or_else(PageError::nothing_here)?;
    Fleet::find(visitor, fleet.id).await
}

async fn page(visitor: SessionUser, Number(id): Number) -> PageResult {
    let release = Release::find(&visitor, id).await?;
    let fleet = fleet(&visitor, &release).await?;
    let [head, devices, tags] = parts(&visitor, &fleet, &release).await?;
    let name = release.name();
    let place = release.place();
    let tag = AddForm {
        back: &place,
        choices: vec![(KeyValueKind::ReleaseTag, id, String::new())],
    };
    let main = html! {
        (head.placed())
        div.answer id="said" role="status" {}
        section.stack aria-labelledby="services" {
            h2 id="services" { "Services" }
            (services(&release))
        }
        section.stack aria-labelledby="devices" {
            h2 id="devices" { "Devices that run it" }
            (devices.placed())
        }
        section.stack aria-labelledby="tags" {
            h2 id="tags" { "Tags" }
            (tags.placed())
            @if fleet.may_change { (tag.markup()) }
        }
        @if fleet.may_change { (edit(&release)) }
        details.card {
            summary { "Composition" }
            pre tabindex="0" { (serde_json::to_string_pretty(&release.composition).unwrap_or_default()) }
        }
        @if fleet.may_change { (delete_form(&release, &place)) }
    };
    Ok(Page {
        visitor: &visitor,
        section: Section::Fleets,
        title: &name,
        above: vec![
            ("Fleets", "/dashboard".to_owned()),
            (&fleet.app_name, fleet.place()),
            ("Releases", format!("{}/releases", fleet.place())),
        ],
        live: Some(format!("{place}/live")),
        main,
    }
    .into_response())
}

async fn live(
    State(state): State<DashboardState>,
    visitor: SessionUser,
    Number(id): Number,
) -> PageResult {
    stream_fragments(state, visitor, move |visitor| async move {
        let release = Release::find(&visitor, id).await?;
        let fleet = fleet(&visitor, &release).await?;
        Ok(parts(&visitor, &fleet, &release).await?.into())
    })
    .await
}

async fn parts(
    visitor: &SessionUser,
    fleet: &Fleet,
    release: &Release,
) -> PageResult<[LiveFragment; 3]> {
    let filter = format!("is_running__release eq {}", release.id);
    let count = visitor
        .count("/device", &format!("$filter={filter}"))
        .await?;
    let query = format!(
        "$select=uuid,device_name,overall_status&$filter={filter}&$orderby=device_name asc&$top={MOST}"
    );
    let devices: Vec<Device> = visitor.rows("/device", &query).await?;
    let place = release.place();
    Ok([
        LiveFragment::new("head", head(fleet, release)),
        LiveFragment::new("devices", on_it(&devices, count)),
        tags(visitor, KeyValueKind::ReleaseTag, release.id, &place).await?,
    ])
}

fn head(fleet: &Fleet, release: &Release) -> Markup {
    let place = format!("{}/target", fleet.place());
    html! {
        header.head {
            div {
                h1 { "Release " (release.name()) }
                p {
                    (build(&release.status))
                    @if release.is_target() { " " (badge("good", "Target")) }
                    @if release.is_invalidated { " " (badge("bad", "Invalidated")) }
                    @if !release.is_final { " " (badge("none", "Draft")) }
                    @if !release.is_passing_tests { " " (badge("wary", "Tests fail")) }
                }
            }
            @if fleet.may_change && release.status == "success" && !release.is_invalidated && !release.is_pin() {
                form method="post" action=(place) hx-post=(place) hx-target="#said" hx-sync="this:drop" {
                    input type="hidden" name="release" value=(release.id);
                    button.primary type="submit" { "Pin the fleet to this release" }
                }
            }
        }
        @if release.is_invalidated {
            p.notice.bad {
                "It can no longer become a target."
                @if let Some(why) = release.invalidation_reason.as_deref().filter(|why| !why.is_empty()) { " " (why) }
            }
        }
        dl.facts.card {
            div { dt { "Commit" } dd { code { (release.commit) } } }
            div { dt { "Version" } dd { (release.semver) } }
            div { dt { "Created" } dd { (show::time(release.start_timestamp.as_deref())) } }
            @if release.end_timestamp.is_some() {
                div { dt { "Ended" } dd { (show::time(release.end_timestamp.as_deref())) } }
            }
            @for author in &release.author { div { dt { "By" } dd { (author.username) } } }
            @if let Some(text) = &release.signed_statement { div { dt { "Signed" } dd { (signed(text)) } } }
            div { dt { "Built" } dd { @if release.source == "local" { "Locally" } @else { "In the cloud" } } }
        }
    }
}

/// By which key, and until when. Whether the signature is good, devices alone can tell: the cloud has no key of owners.
fn signed(text: &str) -> Markup {
    let parts = SignedText::parse(text).ok();
    let key = parts.and_then(|parts| parts.key_id());
    let statement = parts.and_then(|parts| Statement::parse(parts.statement).ok());
    let (Some(key), Some(statement)) = (key, statement) else {
        return html! { (badge("bad", "Unreadable")) " devices that require a signature refuse it" };
    };
    let time = |ms: u64| {
        let time = i64::try_from(ms).ok()?;
        Some(Timestamp::from_millisecond(time).ok()?.to_string())
    };
    html! {
        "By the key " code { (key) }
        @if let Some(expires) = statement.expires_ms {
            ", valid until " (show::time(time(expires).as_deref()))
        }
        span.under { "Devices check it; the cloud does not" }
    }
}

fn services(release: &Release) -> Markup {
    html! {
        @if release.images.is_empty() {
            p.empty { "This release has no services." }
        } @else {
            table.rows {
                caption.hidden { "Services of this release" }
                thead { tr {
                    th scope="col" { "Service" } th scope="col" { "Image" } th scope="col" { "Size" }
                    th scope="col" { "Build" }
                } }
                tbody {
                    @for image in release.images.iter().flat_map(|one| &one.image) {
                        tr {
                            th scope="row" { @for service in &image.service { (service.service_name) } }
                            td data-label="Image" {
                                code { (image.location) }
                                @if let Some(hash) = &image.content_hash {
                                    span.under { (short(hash.trim_start_matches("sha256:"))) }
                                }
                            }
                            td data-label="Size" { (size(image.image_size.as_ref())) }
                            td data-label="Build" { (build(&image.status)) }
                        }
                    }
                }
            }
        }
    }
}

/// Large numbers come as text.
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

fn on_it(devices: &[Device], count: i64) -> Markup {
    html! {
        @if devices.is_empty() {
            p.empty { "No device runs this release." }
        } @else {
            table.rows {
                caption.hidden { "Devices that run this release" }
                thead { tr { th scope="col" { "Device" } th scope="col" { "Status" } } }
                tbody {
                    @for device in devices {
                        tr id={ "device-" (device.uuid) } {
                            th scope="row" { a href={ "/dashboard/devices/" (device.uuid) } { (device.device_name) } }
                            td data-label="Status" { (status(&device.overall_status)) }
                        }
                    }
                }
            }
            @if usize::try_from(count).is_ok_and(|count| count > devices.len()) {
                p.faint { (count) " devices run this release; the first " (MOST) " are shown." }
            }
        }
    }
}

fn edit(release: &Release) -> Markup {
    let place = release.place();
    html! {
        section.cards {
            form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop" {
                h2 { "Version and note" }
                div {
                    label { "Version"
                        input name="semver" value=(release.semver) maxlength="255" spellcheck="false" autocomplete="off"
                            aria-describedby="version-hint";
                    }
                    small id="version-hint" { "For example 1.4.2. Without a version, the release is shown by its commit." }
                }
                label { "Note" textarea name="note" maxlength="100000" { (release.note.as_deref().unwrap_or_default()) } }
                @if !release.is_final {
                    label.tick { input type="checkbox" name="final"; "Finalize this draft (this cannot be undone)" }
                }
                div.answer role="status" {}
                div.buttons { button type="submit" { "Save" } }
            }
            form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop" {
                @if release.is_invalidated {
                    h2 { "Mark as valid" }
                    p.faint { "The release can become the target of its fleet again." }
                    input type="hidden" name="validity" value="valid";
                    div.answer role="status" {}
                    div.buttons { button type="submit" { "Mark as valid" } }
                } @else {
                    h2 { "Invalidate" }
                    p.faint { "It can no longer become a target. Devices that run it keep it until they get another." }
                    input type="hidden" name="validity" value="invalid";
                    label { "Why" input name="reason" maxlength="255" autocomplete="off"; }
                    div.answer role="status" {}
                    div.buttons { button.danger type="submit" { "Invalidate" } }
                }
            }
        }
    }
}

fn delete_form(release: &Release, place: &str) -> Markup {
    let end = DeleteForm {
        what: "release",
        place,
        with_it: "Its images are deleted too, unless other releases use them. This cannot be undone.",
    };
    end.markup(&html! { "commit, " code { (release.commit) } })
}

/// `POST /dashboard/releases/<id>`: `validity` with a `reason`; or `semver`, `note` and `final`.
async fn change(visitor: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let path = format!("/release({id})");
    let place = format!("/dashboard/releases/{id}");
    if form.has("validity") {
        let invalid = form.text("validity") == "invalid";
        let mut body = json!({ "is_invalidated": invalid });
        if invalid && !form.text("reason").is_empty() {
            body["invalidation_reason"] = json!(form.text("reason"));
        }
        visitor.patch(&path, body).await?;
        // The form is another one now.
        return Ok(visitor.go(&place));
    }
    let release = Release::find(&visitor, id).await?;
    let mut body = json!({ "note": form.exact("note") });
    let version = form.text("semver");
    if !version.is_empty() && version != release.semver {
        body["semver"] = json!(version);
    }
    if form.has("final") {
        body["is_final"] = json!(true);
    }
    visitor.patch(&path, body).await?;
    if form.has("final") {
        Ok(visitor.go(&place))
    } else {
        Ok(visitor.done("Saved.", &place))
    }
}

async fn delete(visitor: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let release = Release::find(&visitor, id).await?;
    form.confirms(&release.commit)?;
    visitor.delete(&format!("/release({id})")).await?;
    let fleet = release.fleet.first().map_or(0, |fleet| fleet.id);
    Ok(visitor.go(&format!("/dashboard/fleets/{fleet}/releases")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item9_a_release_says_by_which_key_it_is_signed_and_until_when() {
        // Ed, the number of the key from its last byte on, and a signature.
        let signature = "untrusted comment: of a release\nRUQBAgMEBQYHCAAAAAAAAAAA\ntrusted comment: now\nAAAA\n";
        let statement = json!({
            "format": "signed-target/1", "app": { "uuid": "1", "id": 1, "class": "fleet" },
            "release": { "commit": "c1", "id": 2 }, "version": 3, "expires_ms": 1_900_000_000_000_u64,
            "services": {}, "volumes": {}, "networks": {}, "settings": {}, "open_settings": [],
        });
        let text = signed(&format!("{signature}{statement}")).into_string();
        assert!(text.contains("<code>0807060504030201</code>"), "{text}");
        assert!(text.contains("2030-03-17 17:46 UTC"), "{text}");
        let text = signed("<script>").into_string();
        assert!(
            text.contains("Unreadable") && !text.contains("script"),
            "{text}"
        );
    }
}

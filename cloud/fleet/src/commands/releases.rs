//! `releases` and `release …`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::notes;
use crate::arguments::releases::{ReleaseArguments, ReleaseCommand};
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find::{self, Release};
use crate::output::{CloudBehaviour, Output, plain, quiet, short, size, when};
use crate::rows::{self, ServiceName, Slug, Tag};

/// A release, as the API returns it and as it is printed.
#[derive(Deserialize, Serialize)]
struct ReleaseSummary {
    id: i64,
    commit: String,
    #[serde(rename(deserialize = "raw_version"))]
    version: String,
    status: String,
    #[serde(rename(serialize = "final"))]
    is_final: bool,
    #[serde(rename(deserialize = "is_invalidated"))]
    invalidated: bool,
    invalidation_reason: Option<String>,
    note: Option<String>,
    /// The number of devices that run it.
    #[serde(rename(deserialize = "is_running_on__device"))]
    devices: i64,
    /// Whether it is its fleet's target.
    #[serde(rename(deserialize = "should_be_running_on__application"))]
    #[serde(deserialize_with = "is_of_a_fleet")]
    target: bool,
    created_at: String,
}

fn is_of_a_fleet<'de, D: Deserializer<'de>>(fleets: D) -> Result<bool, D::Error> {
    let fleets: Vec<Slug> = Vec::deserialize(fleets)?;
    Ok(fleets.iter().any(|fleet| !fleet.slug.is_empty()))
}

impl ReleaseSummary {
    fn status(&self) -> (String, CloudBehaviour) {
        match self.status.as_str() {
            "success" if self.invalidated => ("invalidated".to_owned(), CloudBehaviour::Warning),
            "success" if !self.is_final => ("draft".to_owned(), CloudBehaviour::Warning),
            "success" => ("success".to_owned(), CloudBehaviour::Good),
            "running" => ("running".to_owned(), CloudBehaviour::Warning),
            other => (other.to_owned(), CloudBehaviour::Bad),
        }
    }
}

const SELECT: &str =
    "id,commit,raw_version,status,is_final,is_invalidated,invalidation_reason,note,created_at";
const EXPAND: &str = "is_running_on__device/$count,should_be_running_on__application($select=slug)";

pub(crate) async fn list(cloud: &Cloud, output: &Output, fleet: &str) -> Result<()> {
    let fleet = find::fleet(cloud, fleet).await?;
    let query = format!(
        "$select={SELECT}&$expand={EXPAND}&$filter=belongs_to__application eq {}&$orderby=start_timestamp desc,id desc",
        fleet.id
    );
    let releases: Vec<ReleaseSummary> = cloud.rows("release", &query).await?;
    output.rows(
        &releases,
        &[
            ("COMMIT", |release| plain(&short(&release.commit))),
            ("VERSION", |release| plain(&release.version)),
            ("STATUS", ReleaseSummary::status),
            ("TARGET", |release| {
                if release.target {
                    ("yes".to_owned(), CloudBehaviour::Good)
                } else {
                    (String::new(), CloudBehaviour::Quiet)
                }
            }),
            ("DEVICES", |release| plain(&release.devices.to_string())),
            ("MADE", |release| quiet(&when(&release.created_at))),
            ("NOTE", |release| {
                let note = release.note.as_deref().unwrap_or_default();
                quiet(&note.lines().next().map(str::to_owned))
            }),
        ],
        "the fleet has no releases yet; `fleet deploy compose.yml --fleet F` creates one",
    );
    Ok(())
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, command: ReleaseCommand) -> Result<()> {
    match command {
        ReleaseCommand::Show(one) => show(cloud, output, &one).await,
        ReleaseCommand::Finalize(one) => {
            let body = json!({ "is_final": true });
            let fields = json!({ "final": true });
            change(cloud, output, &one, &body, "is now final", fields).await
        }
        ReleaseCommand::Invalidate { release, reason } => {
            let body = json!({ "is_invalidated": true, "invalidation_reason": reason });
            let fields = json!({ "invalidated": true, "invalidation_reason": reason });
            change(cloud, output, &release, &body, "is invalidated", fields).await
        }
        ReleaseCommand::Validate(one) => {
            let body = json!({ "is_invalidated": false, "invalidation_reason": null });
            let fields = json!({ "invalidated": false, "invalidation_reason": null });
            change(cloud, output, &one, &body, "is valid again", fields).await
        }
        ReleaseCommand::Note {
            release,
            text: None,
        } => {
            let release = found(cloud, &release).await?;
            let identity = ("release", release.commit.as_str());
            let name = format!("the release {}", release.name());
            notes::show(cloud, output, &release.address(), identity, &name).await
        }
        ReleaseCommand::Note {
            release,
            text: Some(text),
        } => {
            let (note, sentence) = notes::parsed(text);
            let body = json!({ "note": note });
            change(cloud, output, &release, &body, sentence, body.clone()).await
        }
    }
}

/// Finds the release that the arguments name, within a fleet if one is given.
pub(super) async fn found(cloud: &Cloud, one: &ReleaseArguments) -> Result<Release> {
    let fleet = find::optional_fleet(cloud, one.fleet.as_deref()).await?;
    find::release(cloud, &one.release, fleet.map(|fleet| fleet.id)).await
}

async fn change(
    cloud: &Cloud,
    output: &Output,
    one: &ReleaseArguments,
    body: &Value,
    sentence: &str,
    fields: Value,
) -> Result<()> {
    let release = found(cloud, one).await?;
    cloud.change(&release.address(), body).await?;
    // A draft gets another name when it is finalized.
    let release = find::release(cloud, &release.id.to_string(), Some(release.fleet.id)).await?;
    output.done(
        format!("the release {} {sentence}", release.name()),
        &json!({ "release": release.commit, "id": release.id, "version": release.raw_version, "changed": fields }),
    );
    Ok(())
}

/// A release, with details that only `release show` prints.
#[derive(Deserialize, Serialize)]
struct ReleaseDetails {
    #[serde(flatten)]
    release: ReleaseSummary,
    #[serde(rename(deserialize = "release_image"), deserialize_with = "services")]
    services: Vec<ReleaseService>,
    #[serde(rename(deserialize = "release_tag"))]
    tags: Vec<Tag>,
    composition: Value,
}

/// A service of a release, and its image.
#[derive(Deserialize, Serialize)]
struct ReleaseService {
    #[serde(rename(deserialize = "is_a_build_of__service"))]
    #[serde(deserialize_with = "service_name")]
    service: String,
    #[serde(rename(deserialize = "is_stored_at__image_location"))]
    image: String,
    content_hash: Option<String>,
    /// Its size in bytes.
    #[serde(rename(deserialize = "image_size"), deserialize_with = "image_size")]
    size: Option<u64>,
    status: String,
}

/// Parses the services, sorted by name.
fn services<'de, D: Deserializer<'de>>(images: D) -> Result<Vec<ReleaseService>, D::Error> {
    #[derive(Deserialize)]
    struct ReleaseImage {
        image: Vec<ReleaseService>,
    }
    let images: Vec<ReleaseImage> = Vec::deserialize(images)?;
    let mut services: Vec<ReleaseService> = images.into_iter().flat_map(|one| one.image).collect();
    services.sort_by(|one, other| one.service.cmp(&other.service));
    Ok(services)
}

fn service_name<'de, D: Deserializer<'de>>(link: D) -> Result<String, D::Error> {
    let service = rows::first::<ServiceName, D>(link)?;
    Ok(service.map(|it| it.service_name).unwrap_or_default())
}

/// Parses the size, which the API returns as text.
fn image_size<'de, D: Deserializer<'de>>(size: D) -> Result<Option<u64>, D::Error> {
    let size: Option<String> = Option::deserialize(size)?;
    Ok(size.and_then(|size| size.parse().ok()))
}

async fn show(cloud: &Cloud, output: &Output, one: &ReleaseArguments) -> Result<()> {
    let target = found(cloud, one).await?;
    let query = format!(
        "$select={SELECT},composition&$expand={EXPAND},release_tag($select=tag_key,value;$orderby=tag_key asc),\
         release_image($select=id;$expand=image($select=is_stored_at__image_location,content_hash,image_size,status;\
         $expand=is_a_build_of__service($select=service_name)))"
    );
    let row: Option<Value> = cloud.row(&target.address(), &query).await?;
    let row =
        row.ok_or_else(|| Failure::not_found(format!("there is no release `{}`", one.release)))?;
    let more: ReleaseDetails = serde_json::from_value(row).map_err(|error| {
        Failure::failed("the cloud's answer lacks fields of a release").because(error)
    })?;
    let release = &more.release;
    let devices = match release.devices {
        1 => "1 device".to_owned(),
        devices => format!("{devices} devices"),
    };
    output.details(
        &more,
        &[
            ("commit", Some(release.commit.clone())),
            ("version", Some(release.version.clone())),
            ("id", Some(release.id.to_string())),
            ("status", Some(release.status().0)),
            ("because", release.invalidation_reason.clone()),
            ("target", release.target.then(|| "of its fleet".to_owned())),
            ("runs on", Some(devices)),
            ("tags", Some(Tag::in_a_line(&more.tags))),
            ("note", release.note.clone()),
            ("created", Some(when(&release.created_at))),
        ],
    );
    if !output.json && !more.services.is_empty() {
        output.text("");
        output.rows(
            &more.services,
            &[
                ("SERVICE", |service| plain(&service.service)),
                ("IMAGE", |service| {
                    let hash = service.content_hash.as_deref().unwrap_or_default();
                    let hash: String = hash.chars().take(19).collect();
                    quiet(&format!("{}@{hash}", service.image))
                }),
                ("SIZE", |service| plain(&service.size.map(size))),
            ],
            "",
        );
    }
    Ok(())
}

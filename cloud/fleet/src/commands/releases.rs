//! `releases` and `release …`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments::{OneRelease, ReleaseCommand};
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find::{self, Release as Found};
use crate::output::{Mood, Output, short, when};
use crate::rows::{ServiceName, Slug, Tag};

/// A release as the API gives it.
#[derive(Deserialize)]
struct Row {
    id: i64,
    commit: String,
    raw_version: String,
    status: String,
    is_final: bool,
    is_invalidated: bool,
    invalidation_reason: Option<String>,
    note: Option<String>,
    created_at: String,
    #[serde(rename = "is_running_on__device")]
    devices: i64,
    #[serde(rename = "should_be_running_on__application")]
    target_of: Vec<Slug>,
}

/// A release as it is told.
#[derive(Serialize)]
struct Release {
    id: i64,
    commit: String,
    version: String,
    status: String,
    #[serde(rename = "final")]
    is_final: bool,
    invalidated: bool,
    invalidation_reason: Option<String>,
    note: Option<String>,
    /// How many devices run it.
    devices: i64,
    /// Whether it is its fleet's target.
    target: bool,
    created_at: String,
}

impl From<Row> for Release {
    fn from(row: Row) -> Self {
        Release {
            id: row.id,
            commit: row.commit,
            version: row.raw_version,
            status: row.status,
            is_final: row.is_final,
            invalidated: row.is_invalidated,
            invalidation_reason: row.invalidation_reason,
            note: row.note,
            devices: row.devices,
            target: row.target_of.iter().any(|fleet| !fleet.slug.is_empty()),
            created_at: row.created_at,
        }
    }
}

impl Release {
    fn status(&self) -> (String, Mood) {
        match self.status.as_str() {
            "success" if self.invalidated => ("invalidated".to_owned(), Mood::Warning),
            "success" if !self.is_final => ("draft".to_owned(), Mood::Warning),
            "success" => ("success".to_owned(), Mood::Good),
            "running" => ("running".to_owned(), Mood::Warning),
            other => (other.to_owned(), Mood::Bad),
        }
    }
}

const SELECT: &str =
    "id,commit,raw_version,status,is_final,is_invalidated,invalidation_reason,note,created_at";
const EXPAND: &str = "is_running_on__device/$count,should_be_running_on__application($select=slug)";

pub(crate) async fn list(cloud: &Cloud, output: &Output, fleet: &str) -> Result<()> {
    let fleet = find::fleet(cloud, fleet).await?;
    let filter = format!("belongs_to__application eq {}", fleet.id);
    let options = [
        ("$select", SELECT),
        ("$expand", EXPAND),
        ("$filter", &filter),
        ("$orderby", "start_timestamp desc,id desc"),
    ];
    let rows: Vec<Row> = cloud.rows("release", &options).await?;
    let releases: Vec<Release> = rows.into_iter().map(Release::from).collect();
    output.rows(
        &releases,
        &[
            ("COMMIT", |release| (short(&release.commit), Mood::Plain)),
            ("VERSION", |release| (release.version.clone(), Mood::Plain)),
            ("STATUS", Release::status),
            ("TARGET", |release| {
                if release.target {
                    ("yes".to_owned(), Mood::Good)
                } else {
                    (String::new(), Mood::Quiet)
                }
            }),
            ("DEVICES", |release| {
                (release.devices.to_string(), Mood::Plain)
            }),
            ("MADE", |release| (when(&release.created_at), Mood::Quiet)),
            ("NOTE", |release| {
                let note = release.note.as_deref().unwrap_or_default();
                (
                    note.lines().next().unwrap_or_default().to_owned(),
                    Mood::Quiet,
                )
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
        } => note(cloud, output, &release).await,
        ReleaseCommand::Note {
            release,
            text: Some(text),
        } => {
            let (text, said) = if text.is_empty() {
                (None, "no longer has a note")
            } else {
                (Some(text), "now has a note")
            };
            let body = json!({ "note": text });
            change(cloud, output, &release, &body, said, body.clone()).await
        }
    }
}

/// The release that is meant, perhaps in a fleet.
pub(super) async fn found(cloud: &Cloud, one: &OneRelease) -> Result<Found> {
    let fleet = match &one.fleet {
        Some(fleet) => Some(find::fleet(cloud, fleet).await?.id),
        None => None,
    };
    find::release(cloud, &one.release, fleet).await
}

async fn change(
    cloud: &Cloud,
    output: &Output,
    one: &OneRelease,
    body: &Value,
    said: &str,
    told: Value,
) -> Result<()> {
    let release = found(cloud, one).await?;
    cloud
        .change(&format!("release({})", release.id), body)
        .await?;
    // A draft that is made final is called otherwise from then on.
    let release = find::release(cloud, &release.id.to_string(), Some(release.fleet.id)).await?;
    output.done(
        format!("the release {} {said}", release.name()),
        &json!({ "release": release.commit, "id": release.id, "version": release.raw_version, "changed": told }),
    );
    Ok(())
}

/// The note that a release has.
async fn note(cloud: &Cloud, output: &Output, one: &OneRelease) -> Result<()> {
    #[derive(Deserialize)]
    struct NoteRow {
        note: Option<String>,
    }
    let release = found(cloud, one).await?;
    let row: Option<NoteRow> = cloud
        .row(&format!("release({})", release.id), &[("$select", "note")])
        .await?;
    let note = row.and_then(|row| row.note);
    match (output.json, &note) {
        (true, _) => output.value(&json!({ "release": release.commit, "note": note })),
        (false, Some(note)) => output.text(note),
        (false, None) => output.note(format!("the release {} has no note", release.name())),
    }
    Ok(())
}

#[derive(Deserialize)]
struct Images {
    #[serde(rename = "release_image")]
    images: Vec<ReleaseImage>,
    #[serde(rename = "release_tag")]
    tags: Vec<Tag>,
    composition: Value,
}

#[derive(Deserialize)]
struct ReleaseImage {
    image: Vec<Image>,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "is_stored_at__image_location")]
    location: String,
    content_hash: Option<String>,
    image_size: Option<String>,
    status: String,
    #[serde(rename = "is_a_build_of__service")]
    service: Vec<ServiceName>,
}

/// What runs one of its services.
#[derive(Serialize)]
struct Service {
    service: String,
    image: String,
    content_hash: Option<String>,
    /// Bytes.
    size: Option<u64>,
    status: String,
}

async fn show(cloud: &Cloud, output: &Output, one: &OneRelease) -> Result<()> {
    let found = found(cloud, one).await?;
    let select = format!("{SELECT},composition");
    let expand = format!(
        "{EXPAND},release_tag($select=tag_key,value;$orderby=tag_key asc),\
         release_image($select=id;$expand=image($select=is_stored_at__image_location,content_hash,image_size,status;\
         $expand=is_a_build_of__service($select=service_name)))"
    );
    let options = [("$select", select.as_str()), ("$expand", &expand)];
    let row: Option<Value> = cloud
        .row(&format!("release({})", found.id), &options)
        .await?;
    let row =
        row.ok_or_else(|| Failure::not_found(format!("there is no release `{}`", one.release)))?;
    let parsed = serde_json::from_value::<Row>(row.clone())
        .and_then(|first| Ok((Release::from(first), serde_json::from_value::<Images>(row)?)));
    let (release, more) = parsed.map_err(|error| {
        Failure::failed("the cloud's answer lacks fields of a release").because(error)
    })?;
    let mut services: Vec<Service> = more
        .images
        .into_iter()
        .flat_map(|one| one.image)
        .map(|image| Service {
            service: image
                .service
                .into_iter()
                .next()
                .map(|named| named.service_name)
                .unwrap_or_default(),
            image: image.location,
            content_hash: image.content_hash,
            size: image.image_size.and_then(|size| size.parse().ok()),
            status: image.status,
        })
        .collect();
    services.sort_by(|one, other| one.service.cmp(&other.service));
    let mut json = serde_json::to_value(&release).unwrap_or_default();
    if let Some(object) = json.as_object_mut() {
        object.insert("services".to_owned(), json!(services));
        object.insert("tags".to_owned(), json!(more.tags));
        object.insert("composition".to_owned(), more.composition);
    }
    output.details(
        &json,
        &[
            ("commit", Some(release.commit.clone())),
            ("version", Some(release.version.clone())),
            ("id", Some(release.id.to_string())),
            ("status", Some(release.status().0)),
            ("because", release.invalidation_reason.clone()),
            ("target", release.target.then(|| "of its fleet".to_owned())),
            (
                "runs on",
                Some(match release.devices {
                    1 => "1 device".to_owned(),
                    devices => format!("{devices} devices"),
                }),
            ),
            ("tags", Some(Tag::in_a_line(&more.tags))),
            ("note", release.note.clone()),
            ("made", Some(when(&release.created_at))),
        ],
    );
    if !output.json && !services.is_empty() {
        output.text("");
        output.rows(
            &services,
            &[
                ("SERVICE", |service| (service.service.clone(), Mood::Plain)),
                ("IMAGE", |service| {
                    let hash = service.content_hash.as_deref().unwrap_or_default();
                    let hash: String = hash.chars().take(19).collect();
                    (format!("{}@{hash}", service.image), Mood::Quiet)
                }),
                ("SIZE", |service| {
                    let size = service
                        .size
                        .map(|size| indicatif::HumanBytes(size).to_string());
                    (size.unwrap_or_default(), Mood::Plain)
                }),
            ],
            "",
        );
    }
    Ok(())
}

//! Uploads of a release's file in parts, as clients send large ones: `POST /v7/release_asset(7)/beginUpload`, a `PUT`
//! for each part (`release_asset::part`), and `commitUpload` or `cancelUpload`.

use std::collections::{BTreeMap, HashMap};

use axum::body::Body;
use axum::response::IntoResponse as _;
use cloud_core::answer::{Answer, Refusal, ok};
use cloud_core::body;
use cloud_core::clock::now;
use cloud_core::cloud::Cloud;
use cloud_core::credential::Identity;
use cloud_core::public_url::public_url;
use data::file::{File, PIECE};
use data::query;
use data::upload::{Announcement, Upload};
use data::write::{Verb, Write};
use http::StatusCode;
use http::request::Parts;
use odata::{Address, Tail};
use resources::{Method, Version};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::change::change;
use crate::release_asset::{disposition, is_addressed, media_type, plain_name};
use crate::state::Server;

/// The default bytes of a part, and the minimum that a client may choose for several parts.
const CHUNK: u64 = 5 << 20;
/// Maximum number of parts of one file.
const MAX_PARTS: u64 = 1000;

/// An operation on an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Begin,
    Commit,
    Cancel,
}

impl Action {
    /// Splits a path that ends with an action into the address before it, and the action.
    pub(super) fn behind(path: &str) -> Option<(&str, Self)> {
        let (before, name) = path.rsplit_once('/')?;
        let action = match name {
            "beginUpload" => Action::Begin,
            "commitUpload" => Action::Commit,
            "cancelUpload" => Action::Cancel,
            _ => return None,
        };
        Some((before, action))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BeginUpload {
    asset: AssetProperties,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AssetProperties {
    filename: String,
    content_type: String,
    size: u64,
    chunk_size: Option<u64>,
}

#[derive(Deserialize)]
struct CommitUpload {
    uuid: String,
    #[serde(rename = "providerCommitData")]
    sent: CommitData,
}

#[derive(Deserialize)]
struct CommitData {
    #[serde(rename = "Parts")]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "PartNumber")]
    number: u64,
    #[serde(rename = "ETag")]
    etag: String,
}

#[derive(Deserialize)]
struct CancelUpload {
    uuid: String,
}

/// Performs the action, for a caller who may change the asset.
pub(super) async fn serve(
    server: &Server,
    identity: &Identity,
    version: Version,
    of: &str,
    action: Action,
    parts: &Parts,
    body: Body,
) -> Answer {
    let cloud = &*server.cloud;
    let base = version.path();
    let request = odata::parse_behind(base, of, None)?;
    let keyed = match &request.address {
        Address::Resource(path) => {
            path.key.is_some() && path.links.is_empty() && path.tail == Tail::Records
        }
        Address::Metadata => false,
    };
    if !keyed || !is_addressed(version, &request) {
        return Err(Refusal::Wrong(
            "upload a file in parts to one release asset, by its key: `release_asset(7)/beginUpload`"
                .to_owned(),
        ));
    }
    let share = server.share(identity, parts).await?;
    let setting = cloud.setting_of(&identity.caller, version);
    let database = cloud.database_of(&identity.caller);
    let rights = database.rights(&setting, &request, Method::Update);
    let rights = rights.await?;
    let right = rights.first().ok_or(Refusal::Unauthorized)?;
    let asset = right.id();
    // The request's body may take longer than other requests wait for a turn.
    drop(share);
    let most = cloud.configuration.limits.body;
    match action {
        Action::Begin => {
            let BeginUpload { asset: announced } = body::typed(&parts.headers, body, most).await?;
            let announced = checked(announced, cloud.configuration.limits.release_asset)?;
            let quotas = &cloud.environment.quotas;
            let upload = database
                .begin_upload(quotas, right, announced, now())
                .await?;
            let origin = public_url(cloud, &parts.headers);
            Ok(ok(&begun(&upload, &origin)))
        }
        Action::Cancel => {
            let CancelUpload { uuid } = body::typed(&parts.headers, body, most).await?;
            let upload = find_upload(cloud, &uuid, asset).await?;
            database.drop_file(upload.file).await?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Action::Commit => {
            let CommitUpload { uuid, sent } = body::typed(&parts.headers, body, most).await?;
            let upload = find_upload(cloud, &uuid, asset).await?;
            let digests = database.whole_parts(&upload).await?;
            check_parts(&upload, &sent.parts, &digests)?;
            let Announcement {
                filename,
                content_type,
                size,
                ..
            } = &upload.announced;
            let file = File {
                id: upload.file,
                filename: Some(filename.clone()),
                content_type: content_type.clone(),
                content_disposition: disposition(Some(filename)),
                size: *size,
                parts: Some(digests),
            };
            let origin = public_url(cloud, &parts.headers);
            let body = Map::from_iter([("asset".to_owned(), Value::Object(Map::new()))]);
            let write = Write {
                version,
                verb: Verb::Patch,
                request: &request,
                body: &body,
                file: Some(&file),
            };
            let _share = server.share(identity, parts).await?;
            change(cloud, &identity.caller, write, &origin).await?;
            let setting = query::QueryContext {
                origin: &origin,
                ..setting
            };
            let row = query::record(&setting, "release_asset", asset)?;
            let text = database.texts(&row).await?.into_iter().flatten().next();
            let row: Value = serde_json::from_str(&text.ok_or(Refusal::Unauthorized)?)
                .map_err(|error| Refusal::Fault(error.into()))?;
            Ok(ok(&row["asset"]))
        }
    }
}

/// Checks an announced file.
fn checked(announced: AssetProperties, most: u64) -> Result<Announcement, Refusal> {
    let AssetProperties {
        filename,
        content_type,
        size,
        chunk_size,
    } = announced;
    if size > most {
        return Err(Refusal::TooLarge(
            usize::try_from(most).unwrap_or(usize::MAX),
        ));
    }
    if size == 0 {
        return Err(Refusal::Wrong(
            "`size` is 0: an empty file is sent in one form".to_owned(),
        ));
    }
    let chunk_size =
        chunk_size.unwrap_or(CHUNK.max(size.div_ceil(MAX_PARTS).next_multiple_of(PIECE as u64)));
    let is_one_part = chunk_size >= size;
    if !is_one_part && (chunk_size < CHUNK || !chunk_size.is_multiple_of(PIECE as u64)) {
        return Err(Refusal::Wrong(format!(
            "`chunk_size` is {chunk_size}; it is {CHUNK} or more and a multiple of {PIECE}"
        )));
    }
    if size.div_ceil(chunk_size) > MAX_PARTS {
        return Err(Refusal::Wrong(format!(
            "with `chunk_size` {chunk_size} the file has more than {MAX_PARTS} parts; choose a larger one"
        )));
    }
    Ok(Announcement {
        filename: plain_name(&filename),
        content_type: media_type(Some(content_type)),
        size,
        chunk_size,
    })
}

/// Returns the addresses to which the parts are sent.
fn begun(upload: &Upload, origin: &str) -> Value {
    let parts: Vec<Value> = (1..=upload.announced.parts())
        .map(|part| {
            json!({
                "url": format!("{origin}/release-asset/v1/upload/{}/{part}", upload.uuid),
                "chunkSize": upload.announced.bytes_of(part),
                "partNumber": part,
            })
        })
        .collect();
    json!({ "asset": { "uuid": upload.uuid, "uploadParts": parts } })
}

async fn find_upload(cloud: &Cloud, uuid: &str, asset: i64) -> Result<Upload, Refusal> {
    let upload = cloud.database.upload(uuid).await?;
    upload.filter(|upload| upload.asset == asset).ok_or_else(|| {
        Refusal::Missing("this asset has no upload with this uuid; it may have taken more than a day, or another upload was started".to_owned())
    })
}

/// Checks that each part has arrived, and is what the client sent.
fn check_parts(
    upload: &Upload,
    sent: &[Part],
    whole: &BTreeMap<u64, String>,
) -> Result<(), Refusal> {
    let parts = upload.announced.parts();
    let named: HashMap<u64, &str> = sent
        .iter()
        .map(|part| (part.number, part.etag.trim_matches('"')))
        .collect();
    for number in 1..=parts {
        let Some(etag) = whole.get(&number) else {
            return Err(Refusal::Wrong(format!(
                "part {number} did not come; send it, and commit again"
            )));
        };
        if named.get(&number) != Some(&etag.as_str()) {
            return Err(Refusal::Wrong(format!(
                "`Parts` must name part {number} with the ETag that its upload was answered with"
            )));
        }
    }
    if sent.len() as u64 != parts {
        return Err(Refusal::Wrong(format!(
            "`Parts` names {} parts; the file has {parts}",
            sent.len()
        )));
    }
    Ok(())
}

//! `fleets`, `create`, `show` and `delete`.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::organizations;
use crate::arguments::fleets::{Create, DeleteFleet};
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Kind, Result};
use crate::find;
use crate::odata::literal;
use crate::output::{Output, plain, quiet, short, when};
use crate::rows::{self, Id, ReleaseName, Slug};

/// A fleet, as the API returns it and as it is printed.
#[derive(Deserialize, Serialize)]
struct FleetSummary {
    id: i64,
    uuid: String,
    #[serde(rename(deserialize = "app_name"))]
    name: String,
    slug: String,
    #[serde(rename(deserialize = "is_for__device_type"))]
    #[serde(deserialize_with = "rows::slug")]
    device_type: Option<String>,
    #[serde(rename(deserialize = "owns__device"))]
    devices: i64,
    /// The number of these devices that hold their tunnel, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    online: Option<i64>,
    #[serde(flatten)]
    release: TargetRelease,
    #[serde(rename(deserialize = "should_track_latest_release"))]
    tracks_latest: bool,
    #[serde(rename(deserialize = "is_public"))]
    public: bool,
    created_at: String,
}

#[derive(Deserialize)]
struct TargetRow {
    #[serde(
        rename = "should_be_running__release",
        deserialize_with = "rows::first"
    )]
    release: Option<ReleaseName>,
}

/// The release that its devices should run, if there is one.
#[derive(Deserialize, Serialize)]
#[serde(from = "TargetRow")]
struct TargetRelease {
    commit: Option<String>,
    version: Option<String>,
}

impl From<TargetRow> for TargetRelease {
    fn from(row: TargetRow) -> Self {
        let (commit, version) = row.release.map(|it| (it.commit, it.raw_version)).unzip();
        TargetRelease { commit, version }
    }
}

impl FleetSummary {
    /// Describes what its devices should run.
    fn target(&self) -> String {
        let release = match (&self.release.commit, &self.release.version) {
            (Some(commit), Some(version)) => format!("{} {version}", short(commit)),
            _ => return "none yet".to_owned(),
        };
        if self.tracks_latest {
            release
        } else {
            format!("{release} (pinned)")
        }
    }
}

/// The fields of a [`FleetSummary`].
const FIELDS: &str = "$select=id,uuid,app_name,slug,is_public,should_track_latest_release,created_at\
    &$expand=is_for__device_type($select=slug),\
    should_be_running__release($select=commit,raw_version),owns__device/$count";

pub(crate) async fn list(cloud: &Cloud, output: &Output) -> Result<()> {
    let query =
        format!("{FIELDS}&$filter=is_directly_accessible_by__user/any(dau:true)&$orderby=slug asc");
    let fleets: Vec<FleetSummary> = cloud.rows("application", &query).await?;
    output.rows(
        &fleets,
        &[
            ("SLUG", |fleet| plain(&fleet.slug)),
            ("TYPE", |fleet| plain(&fleet.device_type)),
            ("DEVICES", |fleet| plain(&fleet.devices.to_string())),
            ("RELEASE", |fleet| match fleet.release.commit {
                Some(_) => plain(&fleet.target()),
                None => quiet(&fleet.target()),
            }),
            ("ID", |fleet| quiet(&fleet.id.to_string())),
        ],
        "there are no fleets yet; `fleet create NAME --type SLUG` creates one",
    );
    Ok(())
}

pub(crate) async fn create(cloud: &Cloud, output: &Output, create: Create) -> Result<()> {
    let kind = board(cloud, &create.device_type).await?;
    let organization = organizations::meant(cloud, create.organization.as_deref()).await?;
    let body = json!({
        "app_name": create.name,
        "organization": organization.id,
        "is_for__device_type": kind,
    });
    let id = cloud
        .create("application", &body)
        .await
        .map_err(|failure| {
            if failure.is_duplicate() {
                Failure::failed(format!("a fleet `{}` already exists", create.name))
                    .hint("`fleet fleets` lists the fleets that you can see; choose another name")
            } else {
                failure
            }
        })?;
    match read(cloud, id).await? {
        Some(fleet) => output.done(
            format!("created the fleet {} (id {})", fleet.slug, fleet.id),
            &serde_json::to_value(&fleet).unwrap_or_default(),
        ),
        None => output.done(format!("created the fleet {id}"), &json!({ "id": id })),
    }
    Ok(())
}

async fn read(cloud: &Cloud, id: i64) -> Result<Option<FleetSummary>> {
    cloud.row(&format!("application({id})"), FIELDS).await
}

/// Finds a device type by its slug or an alias, and returns its id.
///
/// # Errors
/// If there is none; the error lists similar ones.
pub(super) async fn board(cloud: &Cloud, slug: &str) -> Result<i64> {
    let query = format!(
        "$select=id&$filter=slug eq {0} or device_type_alias/any(a:a/is_referenced_by__alias eq {0})",
        literal(slug)
    );
    match cloud.row::<Id>("device_type", &query).await? {
        Some(kind) => Ok(kind.id),
        None => Err(no_such_type(cloud, slug).await?),
    }
}

async fn no_such_type(cloud: &Cloud, slug: &str) -> Result<Failure> {
    let query = "$select=slug&$orderby=slug asc";
    let kinds: Vec<Slug> = cloud.rows("device_type", query).await?;
    let lower = slug.to_lowercase();
    let near: Vec<&str> = kinds
        .iter()
        .map(|kind| kind.slug.as_str())
        .filter(|slug| slug.contains(&lower) || lower.contains(slug))
        .take(8)
        .collect();
    let mut hint = format!("`fleet device-types` lists all {}", kinds.len());
    if !near.is_empty() {
        hint = format!("there is {}; {hint}", near.join(", "));
    }
    Ok(Failure::not_found(format!("there is no device type `{slug}`")).hint(hint))
}

pub(crate) async fn show(cloud: &Cloud, output: &Output, text: &str) -> Result<()> {
    let target = find::fleet(cloud, text).await?;
    let mut fleet = read(cloud, target.id)
        .await?
        .ok_or_else(|| Failure::not_found(format!("there is no fleet `{text}`")))?;
    #[derive(Deserialize)]
    struct Count {
        d: i64,
    }
    let filter = format!(
        "/v7/device/$count?$filter=is_connected_to_vpn%20eq%20true%20and%20belongs_to__application%20eq%20{}",
        target.id
    );
    let online = cloud.get::<Count>(&filter).await?.d;
    fleet.online = Some(online);
    let devices = format!("{}, {online} of them connected", fleet.devices);
    let follows = if fleet.tracks_latest {
        "its latest release"
    } else {
        "no new releases"
    };
    output.details(
        &fleet,
        &[
            ("name", Some(fleet.name.clone())),
            ("slug", Some(fleet.slug.clone())),
            ("id", Some(fleet.id.to_string())),
            ("uuid", Some(fleet.uuid.clone())),
            ("type", fleet.device_type.clone()),
            ("devices", Some(devices)),
            ("release", Some(fleet.target())),
            ("follows", Some(follows.to_owned())),
            ("public", fleet.public.then(|| "yes".to_owned())),
            ("created", Some(when(&fleet.created_at))),
        ],
    );
    Ok(())
}

pub(crate) async fn rename(cloud: &Cloud, output: &Output, fleet: &str, name: &str) -> Result<()> {
    let fleet = find::fleet(cloud, fleet).await?;
    let body = json!({ "app_name": name });
    cloud.change(&fleet.address(), &body).await?;
    output.done(
        format!("the fleet {} is now called {name}", fleet.slug),
        &json!({ "id": fleet.id, "name": name }),
    );
    Ok(())
}

pub(crate) async fn restart(cloud: &Cloud, output: &Output, fleet: &str) -> Result<()> {
    let fleet = find::fleet(cloud, fleet).await?;
    let path = format!("/application/{}/restart", fleet.id);
    cloud
        .answer(Method::POST, &path, Some(&json!({})))
        .await
        .map_err(|failure| match failure.kind {
            Kind::NotFound => no_device_is_connected(&fleet.slug),
            _ => failure,
        })?;
    output.done(
        format!(
            "the connected devices of {} restart their services",
            fleet.slug
        ),
        &json!({ "id": fleet.id, "slug": fleet.slug }),
    );
    Ok(())
}

pub(super) fn no_device_is_connected(fleet: &str) -> Failure {
    Failure::failed(format!("no device of the fleet {fleet} is connected"))
        .hint("`fleet devices` shows which are")
}

pub(crate) async fn delete(cloud: &Cloud, output: &Output, delete: DeleteFleet) -> Result<()> {
    let fleet = find::fleet(cloud, &delete.fleet).await?;
    let what = format!(
        "delete the fleet {} with its devices and releases",
        fleet.slug
    );
    ask::confirmed(&what, delete.yes)?;
    cloud.delete(&fleet.address()).await?;
    output.done(
        format!("deleted the fleet {}", fleet.slug),
        &json!({ "deleted": { "id": fleet.id, "slug": fleet.slug } }),
    );
    Ok(())
}

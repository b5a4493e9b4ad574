//! `devices`.

use serde::{Deserialize, Serialize};

use crate::cloud::Cloud;
use crate::failure::Result;
use crate::find;
use crate::output::{CloudBehaviour, Output, plain, quiet, short};
use crate::rows::{self, ReleaseName};

/// A device as the API returns it, with its links expanded.
#[derive(Deserialize)]
struct DeviceRow {
    id: i64,
    uuid: String,
    device_name: String,
    overall_status: Option<String>,
    overall_progress: Option<i64>,
    is_connected_to_vpn: bool,
    api_heartbeat_state: String,
    os_version: Option<String>,
    supervisor_version: Option<String>,
    #[serde(rename = "belongs_to__application", deserialize_with = "rows::slug")]
    fleet: Option<String>,
    #[serde(rename = "is_of__device_type", deserialize_with = "rows::slug")]
    device_type: Option<String>,
    #[serde(rename = "is_running__release", deserialize_with = "rows::first")]
    running: Option<ReleaseName>,
    #[serde(rename = "is_pinned_on__release", deserialize_with = "rows::first")]
    pinned: Option<ReleaseName>,
}

/// A device as it is printed.
#[derive(Deserialize, Serialize)]
#[serde(from = "DeviceRow")]
pub(crate) struct DeviceSummary {
    pub(crate) id: i64,
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) fleet: Option<String>,
    pub(crate) device_type: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) progress: Option<i64>,
    pub(crate) connected: bool,
    pub(crate) heartbeat: String,
    pub(crate) running_commit: Option<String>,
    pub(crate) running_version: Option<String>,
    pub(crate) pinned_commit: Option<String>,
    pub(crate) pinned_version: Option<String>,
    pub(crate) os_version: Option<String>,
    pub(crate) supervisor_version: Option<String>,
}

pub(crate) const SELECT: &str = "id,uuid,device_name,overall_status,overall_progress,is_connected_to_vpn,\
    api_heartbeat_state,os_version,supervisor_version";
pub(crate) const EXPAND: &str = "belongs_to__application($select=slug),is_of__device_type($select=slug),\
    is_running__release($select=commit,raw_version),is_pinned_on__release($select=commit,raw_version)";

impl From<DeviceRow> for DeviceSummary {
    fn from(row: DeviceRow) -> Self {
        let parts = |release: ReleaseName| (release.commit, release.raw_version);
        let (running_commit, running_version) = row.running.map(parts).unzip();
        let (pinned_commit, pinned_version) = row.pinned.map(parts).unzip();
        DeviceSummary {
            id: row.id,
            uuid: row.uuid,
            name: row.device_name,
            fleet: row.fleet,
            device_type: row.device_type,
            status: row.overall_status,
            progress: row.overall_progress,
            connected: row.is_connected_to_vpn,
            heartbeat: row.api_heartbeat_state,
            running_commit,
            running_version,
            pinned_commit,
            pinned_version,
            os_version: row.os_version,
            supervisor_version: row.supervisor_version,
        }
    }
}

impl DeviceSummary {
    /// Returns its status in a word, with its progress if known.
    pub(crate) fn status(&self) -> (String, CloudBehaviour) {
        let status = self.status.clone().unwrap_or_default();
        let behaviour = match status.as_str() {
            "operational" => CloudBehaviour::Good,
            "updating" | "configuring" | "post-provisioning" => CloudBehaviour::Warning,
            "reduced-functionality" => CloudBehaviour::Bad,
            _ => CloudBehaviour::Quiet,
        };
        match self.progress {
            Some(percent) if percent < 100 => (format!("{status} {percent} %"), behaviour),
            _ => (status, behaviour),
        }
    }

    /// Returns the release that it runs.
    pub(crate) fn running(&self) -> Option<String> {
        let release = release_name(&self.running_commit, &self.running_version)?;
        Some(if self.pinned_commit.is_some() {
            format!("{release} (pinned)")
        } else {
            release
        })
    }

    /// Returns the release that it is pinned to.
    pub(crate) fn pinned(&self) -> Option<String> {
        release_name(&self.pinned_commit, &self.pinned_version)
    }
}

fn release_name(commit: &Option<String>, version: &Option<String>) -> Option<String> {
    Some(format!("{} {}", short(commit.as_ref()?), version.as_ref()?))
}

pub(crate) async fn list(cloud: &Cloud, output: &Output, fleet: Option<&str>) -> Result<()> {
    let fleet = find::optional_fleet(cloud, fleet).await?;
    let mut query = format!("$select={SELECT}&$expand={EXPAND}&$orderby=device_name asc");
    if let Some(fleet) = fleet {
        query.push_str(&format!("&$filter=belongs_to__application eq {}", fleet.id));
    }
    let devices: Vec<DeviceSummary> = cloud.rows("device", &query).await?;
    output.rows(
        &devices,
        &[
            ("UUID", |device| plain(&short(&device.uuid))),
            ("NAME", |device| plain(&device.name)),
            ("FLEET", |device| plain(&device.fleet)),
            ("STATUS", DeviceSummary::status),
            ("CONNECTED", |device| if device.connected { ("yes".to_owned(), CloudBehaviour::Good) } else { ("no".to_owned(), CloudBehaviour::Quiet) }),
            ("RELEASE", |device| plain(&device.running())),
            ("TYPE", |device| quiet(&device.device_type)),
        ],
        "there are no devices yet; `fleet keys provisioning FLEET` creates a key with which they join",
    );
    Ok(())
}

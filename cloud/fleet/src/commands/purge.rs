//! `purge`: empties the volumes of the services of a fleet's devices, with one request per device, so that failures are
//! reported per device.

use futures::StreamExt as _;
use serde::Serialize;
use serde_json::json;

use super::device_actions::{self, ActionKind};
use super::fleets::no_device_is_connected;
use crate::arguments::fleets::PurgeFleet;
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Kind, Result};
use crate::find;
use crate::output::{CloudBehaviour, Output, plain, short};

/// The number of concurrent requests to devices; one may take as long as its services take to stop.
const AT_A_TIME: usize = 16;

/// The result of one device.
#[derive(Serialize)]
struct PurgeResult {
    device: String,
    name: String,
    purged: bool,
    error: Option<String>,
    #[serde(skip)]
    refused: bool,
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, purge: PurgeFleet) -> Result<()> {
    let fleet = find::fleet(cloud, &purge.fleet).await?;
    let filter = format!(
        "belongs_to__application eq {} and is_connected_to_vpn eq true",
        fleet.id
    );
    let devices = find::devices_where(cloud, &filter).await?;
    if devices.is_empty() {
        return Err(no_device_is_connected(&fleet.slug));
    }
    let what = format!(
        "empty the volumes of the services of {} (connected devices of {})",
        devices.len(),
        fleet.slug
    );
    ask::confirmed(&what, purge.yes)?;
    let waiting = output.waiting(&format!("asking {} devices", devices.len()));
    let purged: Vec<PurgeResult> = futures::stream::iter(&devices)
        .map(async |device| {
            let result = device_actions::ask(cloud, device, &ActionKind::Purge, purge.force).await;
            let failure = result.err();
            PurgeResult {
                device: device.uuid.clone(),
                name: device.device_name.clone(),
                purged: failure.is_none(),
                refused: failure
                    .as_ref()
                    .is_some_and(|it| it.kind == Kind::NotAllowed),
                error: failure.map(|failure| failure.to_string()),
            }
        })
        .buffered(AT_A_TIME)
        .collect()
        .await;
    drop(waiting);
    let failed: Vec<&PurgeResult> = purged.iter().filter(|it| !it.purged).collect();
    if output.json {
        output.value(&json!({ "fleet": fleet.slug, "devices": purged }))
    } else {
        output.rows(
            &purged,
            &[
                ("UUID", |it| plain(&short(&it.device))),
                ("NAME", |it| plain(&it.name)),
                ("VOLUMES", |it| match &it.error {
                    None => ("emptied".to_owned(), CloudBehaviour::Good),
                    Some(error) => (error.clone(), CloudBehaviour::Bad),
                }),
            ],
            "",
        )
    }
    let sentence = format!(
        "{} of {} devices did not empty the volumes",
        failed.len(),
        purged.len()
    );
    match failed.as_slice() {
        [] => Ok(()),
        all if all.iter().all(|it| it.refused) => Err(Failure::not_allowed(sentence)),
        _ => Err(Failure::failed(sentence).hint("`--force` overrides update locks")),
    }
}

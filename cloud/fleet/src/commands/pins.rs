//! `pin` and `track`: which release devices are to run.

use serde_json::json;

use crate::cloud::Cloud;
use crate::failure::Result;
use crate::find::{self, Target};
use crate::output::{Output, short};

pub(crate) async fn pin(cloud: &Cloud, output: &Output, target: &str, release: &str) -> Result<()> {
    match find::target(cloud, target).await? {
        Target::Device(device) => {
            let release = find::release(cloud, release, Some(device.fleet()?)).await?;
            let body = json!({ "is_pinned_on__release": release.id });
            cloud
                .change(&format!("device({})", device.id), &body)
                .await?;
            output.done(
                format!(
                    "{} ({}) is pinned to {}",
                    device.device_name,
                    short(&device.uuid),
                    release.name()
                ),
                &json!({ "device": device.uuid, "pinned": release.commit, "version": release.raw_version }),
            );
        }
        Target::Fleet(fleet) => {
            let release = find::release(cloud, release, Some(fleet.id)).await?;
            let body = json!({
                "should_be_running__release": release.id,
                "should_track_latest_release": false,
            });
            cloud
                .change(&format!("application({})", fleet.id), &body)
                .await?;
            output.done(
                format!("the fleet {} is pinned to {}", fleet.slug, release.name()),
                &json!({ "fleet": fleet.slug, "pinned": release.commit, "version": release.raw_version }),
            );
        }
    }
    Ok(())
}

pub(crate) async fn track(cloud: &Cloud, output: &Output, target: &str) -> Result<()> {
    match find::target(cloud, target).await? {
        Target::Device(device) => {
            let body = json!({ "is_pinned_on__release": null });
            cloud
                .change(&format!("device({})", device.id), &body)
                .await?;
            output.done(
                format!(
                    "{} ({}) follows its fleet",
                    device.device_name,
                    short(&device.uuid)
                ),
                &json!({ "device": device.uuid, "pinned": null }),
            );
        }
        Target::Fleet(fleet) => {
            let body = json!({ "should_track_latest_release": true });
            cloud
                .change(&format!("application({})", fleet.id), &body)
                .await?;
            output.done(
                format!("the fleet {} follows its latest release", fleet.slug),
                &json!({ "fleet": fleet.slug, "pinned": null }),
            );
        }
    }
    Ok(())
}

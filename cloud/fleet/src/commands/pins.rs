//! `pin` and `track`: the release that devices should run.

use serde_json::json;

use crate::cloud::Cloud;
use crate::failure::Result;
use crate::find::{self, Target};
use crate::output::Output;

pub(crate) async fn pin(cloud: &Cloud, output: &Output, target: &str, release: &str) -> Result<()> {
    let target = find::target(cloud, target).await?;
    let fleet = match &target {
        Target::Device(device) => device.fleet()?,
        Target::Fleet(fleet) => fleet.id,
    };
    let release = find::release(cloud, release, Some(fleet)).await?;
    let body = match &target {
        Target::Device(_) => json!({ "is_pinned_on__release": release.id }),
        Target::Fleet(_) => json!({
            "should_be_running__release": release.id,
            "should_track_latest_release": false,
        }),
    };
    cloud.change(&target.address(), &body).await?;
    let (kind, identity) = target.identity();
    output.done(
        format!("{} is pinned to {}", target.name(), release.name()),
        &json!({ kind: identity, "pinned": release.commit, "version": release.raw_version }),
    );
    Ok(())
}

pub(crate) async fn track(cloud: &Cloud, output: &Output, target: &str) -> Result<()> {
    let target = find::target(cloud, target).await?;
    let (body, followed) = match &target {
        Target::Device(_) => (json!({ "is_pinned_on__release": null }), "its fleet"),
        Target::Fleet(_) => (
            json!({ "should_track_latest_release": true }),
            "its latest release",
        ),
    };
    cloud.change(&target.address(), &body).await?;
    let (kind, identity) = target.identity();
    output.done(
        format!("{} follows {followed}", target.name()),
        &json!({ kind: identity, "pinned": null }),
    );
    Ok(())
}

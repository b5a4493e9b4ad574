//! Requests for the target state.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::place::Kind;
use super::scene::{self, Scene, key, uuid};
use super::walk::{WalkEnd, walk};
use crate::figures::{Section, mebibytes};

const TIME: Duration = Duration::from_secs(5);

pub(crate) async fn measure(kinds: &[Kind], large: bool) -> Result<Section> {
    let mut section = Section::new("Polls of devices");
    scene::each(kinds, large, async |scene, name| {
        measure_scene(scene, name, &mut section).await
    })
    .await?;
    section.note(
        "16 connections with a request under way each, each request of the next device; client, cloud and database \
         on the same processors. The statement of an unchanged poll is the look at the numbers that writes raise.",
    );
    Ok(section)
}

async fn measure_scene(scene: &Scene, name: &str, section: &mut Section) -> Result<()> {
    let address = scene.address()?;
    let size = scene.devices;
    let all = |tags: &[Option<String>]| -> Vec<String> {
        (0..size)
            .map(|device| request(device, tags.get(device).and_then(Option::as_deref)))
            .collect()
    };
    let what = |what: &str| format!("{what}, {size} devices, {name}");
    let mut add = |what: String, figure: String| section.add(what, figure, "", "");
    let first = walk(&scene.cloud, address, all(&[]), 200, WalkEnd::Once).await?;
    add(what("the first poll of each device"), first.summary());
    let again = all(&first.tags);
    let unchanged = walk(
        &scene.cloud,
        address,
        again.clone(),
        304,
        WalkEnd::After(TIME),
    )
    .await?;
    add(what("unchanged (304)"), unchanged.summary());
    let variable = json!({ "application": scene.fleet.id, "name": "COLOUR", "value": "blue" });
    scene
        .admin
        .create("application_environment_variable", variable)
        .await?;
    let changed = walk(&scene.cloud, address, again, 200, WalkEnd::Once).await?;
    add(what("changed: a variable of the fleet"), changed.summary());
    add(
        what("resident memory of the cloud then"),
        mebibytes(scene.cloud.usage()?.resident),
    );
    Ok(())
}

fn request(device: usize, tag: Option<&str>) -> String {
    let (uuid, key) = (uuid(device), key(device));
    let tag = tag.map(|tag| format!("if-none-match: {tag}\r\n"));
    format!(
        "GET /device/v3/{uuid}/state HTTP/1.1\r\nhost: cloud\r\nauthorization: Bearer {key}\r\n\
         accept-encoding: gzip\r\n{}\r\n",
        tag.unwrap_or_default()
    )
}

//! Reports of devices.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::place::Kind;
use super::scene::{self, Scene, key, uuid};
use super::walk::{WalkEnd, walk};
use crate::figures::Section;

const TIME: Duration = Duration::from_secs(5);

pub(crate) async fn measure(kinds: &[Kind], large: bool) -> Result<Section> {
    let mut section = Section::new("Reports of devices");
    scene::each(kinds, large, async |scene, name| {
        measure_scene(scene, name, &mut section).await
    })
    .await?;
    section.note(
        "As the polls. Each write is a transaction of its own, on the disk before it is answered: SQLite takes one \
         at a time. The PostgreSQL server of this benchmark does not wait for the disk.",
    );
    Ok(section)
}

async fn measure_scene(scene: &Scene, name: &str, section: &mut Section) -> Result<()> {
    let size = scene.devices;
    let moved = |to: usize| {
        let (commit, image) = (&scene.commits[to], &scene.images[to]);
        let services = json!({ "main": { "image": image, "status": "Running" } });
        let release = json!({ "update_status": "done", "services": services });
        json!({ "apps": { scene.app.as_str(): {
            "release_uuid": commit, "releases": { commit.as_str(): release },
        } } })
    };
    let address = |to: usize| json!({ "ip_address": format!("10.0.0.{to}") });
    let stories = [
        ("nothing differs", vec![address(1)]),
        ("an address differs", vec![address(2), address(1)]),
        ("a release differs", vec![moved(1), moved(0)]),
    ];
    for (what, reports) in stories {
        let requests = reports
            .iter()
            .flat_map(|report| (0..size).map(move |device| request(device, report)))
            .collect();
        let address = scene.address()?;
        let walked = walk(&scene.cloud, address, requests, 200, WalkEnd::After(TIME)).await?;
        let what = format!("{what}, {size} devices, {name}");
        section.add(what, walked.summary(), "", "");
    }
    Ok(())
}

fn request(device: usize, report: &Value) -> String {
    let (uuid, key) = (uuid(device), key(device));
    let body = json!({ uuid.as_str(): report }).to_string();
    format!(
        "PATCH /device/v3/state HTTP/1.1\r\nhost: cloud\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

//! `config` and `device-types`: what it takes to have a new device join a fleet.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments::ConfigFile;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find;
use crate::output::{Mood, Output};
use crate::rows::Slug;

/// A kind of board as the API gives it.
#[derive(Deserialize)]
struct Row {
    slug: String,
    name: String,
    #[serde(rename = "is_of__cpu_architecture")]
    architecture: Vec<Slug>,
}

/// A kind of board as it is told.
#[derive(Serialize)]
struct Board {
    slug: String,
    name: String,
    architecture: Option<String>,
}

pub(crate) async fn device_types(cloud: &Cloud, output: &Output) -> Result<()> {
    let options = [
        ("$select", "slug,name"),
        ("$expand", "is_of__cpu_architecture($select=slug)"),
        ("$orderby", "slug asc"),
    ];
    let rows: Vec<Row> = cloud.rows("device_type", &options).await?;
    let boards: Vec<Board> = rows
        .into_iter()
        .map(|row| Board {
            slug: row.slug,
            name: row.name,
            architecture: row.architecture.into_iter().next().map(|it| it.slug),
        })
        .collect();
    output.rows(
        &boards,
        &[
            ("SLUG", |board| (board.slug.clone(), Mood::Plain)),
            ("NAME", |board| (board.name.clone(), Mood::Plain)),
            ("PROCESSOR", |board| {
                (board.architecture.clone().unwrap_or_default(), Mood::Quiet)
            }),
        ],
        "the cloud knows no kind of board",
    );
    Ok(())
}

pub(crate) async fn config(cloud: &Cloud, output: &Output, config: ConfigFile) -> Result<()> {
    let fleet = find::fleet(cloud, &config.fleet).await?;
    let mut body = json!({ "appId": fleet.id });
    if let (Some(kind), Some(body)) = (&config.device_type, body.as_object_mut()) {
        body.insert("deviceType".to_owned(), json!(kind));
    }
    let made: Value = cloud.post("/download-config", &body).await?;
    let Some(file) = config.output else {
        // The file alone on standard output, as it is to be on the device.
        output.note("it has a key with which devices join the fleet; keep it:");
        output.text(format!("{made:#}"));
        return Ok(());
    };
    write(&file, &format!("{made:#}\n")).map_err(|error| {
        Failure::failed(format!("{} cannot be written", file.display())).because(error)
    })?;
    output.done(
        format!(
            "wrote {}; put it on the device\u{2019}s boot partition",
            file.display()
        ),
        &json!({ "file": file, "fleet": fleet.id }),
    );
    Ok(())
}

/// Into a new file that nobody else may read: it holds a key.
fn write(file: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    file.write_all(text.as_bytes())
}

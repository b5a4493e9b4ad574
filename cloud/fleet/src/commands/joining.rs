//! `config`, `device register` and `device-types`: commands for new devices that are to join a fleet.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fleets::board;
use crate::arguments::device::RegisterDevice;
use crate::arguments::fleets::ConfigFile;
use crate::cloud::Cloud;
use crate::failure::{Failure, Kind, Result};
use crate::files::write_new;
use crate::find::{self, Link};
use crate::output::{Output, plain, quiet, short};
use crate::rows;

/// A device type, as the API returns it and as it is printed.
#[derive(Deserialize, Serialize)]
struct Board {
    slug: String,
    name: String,
    #[serde(rename(deserialize = "is_of__cpu_architecture"))]
    #[serde(deserialize_with = "rows::slug")]
    architecture: Option<String>,
}

pub(crate) async fn device_types(cloud: &Cloud, output: &Output) -> Result<()> {
    let query = "$select=slug,name&$expand=is_of__cpu_architecture($select=slug)&$orderby=slug asc";
    let boards: Vec<Board> = cloud.rows("device_type", query).await?;
    output.rows(
        &boards,
        &[
            ("SLUG", |board| plain(&board.slug)),
            ("NAME", |board| plain(&board.name)),
            ("PROCESSOR", |board| quiet(&board.architecture)),
        ],
        "the cloud has no device types",
    );
    Ok(())
}

pub(crate) async fn config(cloud: &Cloud, output: &Output, config: ConfigFile) -> Result<()> {
    let (made, key) = match (&config.fleet, &config.device) {
        (_, Some(device)) => (create_device_config(cloud, device).await?, "of the device"),
        (Some(fleet), None) => (
            create_fleet_config(cloud, fleet, config.device_type.as_deref()).await?,
            "with which devices join the fleet",
        ),
        (None, None) => return Err(Failure::usage("give a fleet or `--device`")),
    };
    let Some(file) = config.output else {
        // Only the file goes to standard output, exactly as the device needs it.
        output.note(format!("it has a key {key}; keep it safe:"));
        output.text(format!("{made:#}"));
        return Ok(());
    };
    // The file contains a key, so nobody else may read it.
    write_new(&file, &format!("{made:#}\n"), 0o600)?;
    output.done(
        format!(
            "wrote {}; put it on the device\u{2019}s boot partition",
            file.display()
        ),
        &json!({ "file": file, "fleet": made["applicationId"], "device": made["uuid"] }),
    );
    Ok(())
}

/// Creates a config.json with a key that can register devices of the fleet.
async fn create_fleet_config(
    cloud: &Cloud,
    fleet: &str,
    device_type: Option<&str>,
) -> Result<Value> {
    let fleet = find::fleet(cloud, fleet).await?;
    let mut body = json!({ "appId": fleet.id });
    if let Some(kind) = device_type {
        body["deviceType"] = json!(kind);
    }
    cloud.post("/download-config", &body).await
}

/// Creates a config.json that makes a board a device that is already registered. The key belongs to that device, and
/// cannot register others.
async fn create_device_config(cloud: &Cloud, device: &str) -> Result<Value> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Settings {
        api_url: String,
        registry2_url: Option<String>,
    }
    #[derive(Deserialize)]
    struct Kinds {
        #[serde(rename = "is_of__device_type", deserialize_with = "rows::slug")]
        kind: Option<String>,
    }
    let device = find::device(cloud, device).await?;
    let fleet = device.fleet()?;
    let query = "$select=id&$expand=is_of__device_type($select=slug)";
    let kinds: Option<Kinds> = cloud.row(&device.address(), query).await?;
    let settings: Settings = cloud.get("/config").await?;
    let described = json!({ "name": "config.json", "description": "made with a config.json" });
    let path = format!("/api-key/device/{}/device-key", device.id);
    let key: Result<String> = cloud.post(&path, &described).await;
    let key = key.map_err(|failure| match failure.kind {
        Kind::NotAllowed => failure.hint(format!(
            "only people who may change the device can create a key for it, and only within 20 minutes of signing in \
             with a password: `fleet login {}`",
            cloud.url
        )),
        _ => failure,
    })?;
    let mut made = json!({
        "applicationId": fleet,
        "deviceType": kinds.and_then(|row| row.kind),
        "apiEndpoint": settings.api_url,
        "uuid": device.uuid,
        "deviceId": device.id,
        "deviceApiKey": key,
        // The time of registration in milliseconds: the device need not register itself.
        "registered_at": jiff::Timestamp::now().as_millisecond(),
    });
    if let Some(registry) = settings.registry2_url {
        made["registryEndpoint"] = json!(registry);
    }
    Ok(made)
}

pub(crate) async fn register(
    cloud: &Cloud,
    output: &Output,
    register: RegisterDevice,
) -> Result<()> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "is_for__device_type")]
        kind: Link,
    }
    let fleet = find::fleet(cloud, &register.fleet).await?;
    let kind = match &register.device_type {
        Some(slug) => board(cloud, slug).await?,
        None => {
            let query = "$select=is_for__device_type";
            let of_fleet: Option<Kind> = cloud.row(&fleet.address(), query).await?;
            let gone = || Failure::not_found(format!("there is no fleet `{}`", register.fleet));
            of_fleet.ok_or_else(gone)?.kind.id
        }
    };
    let mut body = json!({ "belongs_to__application": fleet.id, "is_of__device_type": kind });
    for (field, value) in [("uuid", &register.uuid), ("device_name", &register.name)] {
        if let Some(value) = value {
            body[field] = json!(value);
        }
    }
    let id = cloud.create("device", &body).await.map_err(|failure| {
        if failure.is_duplicate() {
            Failure::failed("a device with that uuid already exists")
                .hint("leave `--uuid` out for a random one")
        } else {
            failure
        }
    })?;
    let device = find::device_of(cloud, id).await?;
    output.done(
        format!(
            "registered the device {} ({}) in {}",
            device.device_name, device.uuid, fleet.slug
        ),
        &json!({ "id": id, "uuid": device.uuid, "name": device.device_name, "fleet": fleet.slug }),
    );
    output.note(format!(
        "`fleet config --device {}` writes the config.json of its board",
        short(&device.uuid)
    ));
    Ok(())
}

//! `device show` and what changes a device's row; what asks the device itself is left to
//! [`super::device_actions`].

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::device_actions::{Action, ActionKind};
use super::devices::{Device, EXPAND, Row, SELECT};
use super::{joining, local_mode};
use crate::arguments::device::DeviceCommand;
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find;
use crate::output::{Mood, Output, short, when};
use crate::rows::{ReleaseName, ServiceName, Tag};

/// Does what the data API does; `Some` of what the device itself is to be asked.
///
/// # Errors
/// Where it is not done.
pub(crate) async fn changed(
    cloud: &Cloud,
    output: &Output,
    command: DeviceCommand,
) -> Result<Option<Action>> {
    let action = |device: String, force: bool, act: ActionKind| Action { device, force, act };
    Ok(Some(match command {
        DeviceCommand::Show(one) => {
            show(cloud, output, &one.device).await?;
            return Ok(None);
        }
        DeviceCommand::Register(register) => {
            joining::register(cloud, output, register).await?;
            return Ok(None);
        }
        DeviceCommand::LocalMode { device, switch } => {
            local_mode::run(cloud, output, &device, switch).await?;
            return Ok(None);
        }
        DeviceCommand::Rename { device, name } => {
            // The cloud would choose one.
            if name.trim().is_empty() {
                return Err(Failure::usage("the name is empty"));
            }
            let body = json!({ "device_name": name });
            let sentence = format!("is now called {name}");
            let fields = json!({ "name": name });
            change(cloud, output, &device, &body, &sentence, fields).await?;
            return Ok(None);
        }
        DeviceCommand::Note { device, text: None } => {
            note(cloud, output, &device).await?;
            return Ok(None);
        }
        DeviceCommand::Note {
            device,
            text: Some(text),
        } => {
            let (text, said) = if text.is_empty() {
                (None, "no longer has a note")
            } else {
                (Some(text), "now has a note")
            };
            let body = json!({ "note": text });
            change(cloud, output, &device, &body, said, body.clone()).await?;
            return Ok(None);
        }
        DeviceCommand::Activate(of) => {
            let body = json!({ "is_active": true });
            let fields = json!({ "active": true });
            change(cloud, output, &of.device, &body, "is now in use", fields).await?;
            return Ok(None);
        }
        DeviceCommand::Deactivate(of) => {
            let body = json!({ "is_active": false });
            let (said, told) = ("is no longer in use", json!({ "active": false }));
            change(cloud, output, &of.device, &body, said, told).await?;
            return Ok(None);
        }
        DeviceCommand::Move { device, fleet } => {
            let fleet = find::fleet(cloud, &fleet).await?;
            let body = json!({ "belongs_to__application": fleet.id });
            let sentence = format!("is now in {}", fleet.slug);
            let fields = json!({ "fleet": fleet.slug });
            change(cloud, output, &device, &body, &sentence, fields).await?;
            return Ok(None);
        }
        DeviceCommand::Delete { device, yes } => {
            delete(cloud, output, &device, yes).await?;
            return Ok(None);
        }
        DeviceCommand::Restart {
            device,
            service: None,
        } => action(device.device, device.force, ActionKind::Restart),
        DeviceCommand::Restart {
            device,
            service: Some(service),
        } => action(
            device.device,
            device.force,
            ActionKind::RestartService(service),
        ),
        DeviceCommand::Stop { device, service } => action(
            device.device,
            device.force,
            ActionKind::StopService(service),
        ),
        DeviceCommand::Start { device, service } => action(
            device.device,
            device.force,
            ActionKind::StartService(service),
        ),
        DeviceCommand::Reboot(of) => action(of.device, of.force, ActionKind::Reboot),
        DeviceCommand::Shutdown { device, yes } => {
            let what = format!(
                "shut down {}, which nobody can turn on again remotely",
                device.device
            );
            ask::confirmed(&what, yes)?;
            action(device.device, device.force, ActionKind::Shutdown)
        }
        DeviceCommand::Purge { device, yes } => {
            let what = format!("empty the volumes of the services of {}", device.device);
            ask::confirmed(&what, yes)?;
            action(device.device, device.force, ActionKind::Purge)
        }
        DeviceCommand::Blink(of) => action(of.device, false, ActionKind::Blink),
        DeviceCommand::Ping(of) => action(of.device, false, ActionKind::Ping),
        DeviceCommand::Update(of) => action(of.device, of.force, ActionKind::Update),
    }))
}

async fn change(
    cloud: &Cloud,
    output: &Output,
    device: &str,
    body: &Value,
    said: &str,
    told: Value,
) -> Result<()> {
    let device = find::device(cloud, device).await?;
    cloud
        .change(&format!("device({})", device.id), body)
        .await?;
    output.done(
        format!("{} ({}) {said}", device.device_name, short(&device.uuid)),
        &json!({ "device": device.uuid, "id": device.id, "changed": told }),
    );
    Ok(())
}

/// The note that a device has.
async fn note(cloud: &Cloud, output: &Output, device: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct NoteRow {
        note: Option<String>,
    }
    let device = find::device(cloud, device).await?;
    let row: Option<NoteRow> = cloud
        .row(&format!("device({})", device.id), &[("$select", "note")])
        .await?;
    let note = row.and_then(|row| row.note);
    match (output.json, &note) {
        (true, _) => output.value(&json!({ "device": device.uuid, "note": note })),
        (false, Some(note)) => output.text(note),
        (false, None) => output.note(format!("{} has no note", device.device_name)),
    }
    Ok(())
}

async fn delete(cloud: &Cloud, output: &Output, device: &str, yes: bool) -> Result<()> {
    let device = find::device(cloud, device).await?;
    let what = format!("delete the device {} ({})", device.device_name, device.uuid);
    ask::confirmed(&what, yes)?;
    cloud.delete(&format!("device({})", device.id)).await?;
    output.done(
        format!(
            "deleted the device {} ({})",
            device.device_name,
            short(&device.uuid)
        ),
        &json!({ "deleted": { "id": device.id, "uuid": device.uuid } }),
    );
    Ok(())
}

/// What more is told of one.
#[derive(Deserialize)]
struct DeviceDetails {
    note: Option<String>,
    ip_address: Option<String>,
    mac_address: Option<String>,
    public_address: Option<String>,
    last_connectivity_event: Option<String>,
    created_at: String,
    memory_usage: Option<i64>,
    memory_total: Option<i64>,
    storage_usage: Option<i64>,
    storage_total: Option<i64>,
    cpu_usage: Option<i64>,
    cpu_temp: Option<i64>,
    is_undervolted: bool,
    #[serde(rename = "image_install")]
    installs: Vec<Install>,
    #[serde(rename = "device_tag")]
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
struct Install {
    status: String,
    download_progress: Option<i64>,
    #[serde(rename = "installs__image")]
    image: Vec<Image>,
    #[serde(rename = "is_provided_by__release")]
    release: Vec<ReleaseName>,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "is_a_build_of__service")]
    service: Vec<ServiceName>,
}

#[derive(Serialize)]
struct Service {
    service: String,
    status: String,
    progress: Option<i64>,
    commit: Option<String>,
    version: Option<String>,
}

impl From<Install> for Service {
    fn from(install: Install) -> Self {
        let service = install
            .image
            .into_iter()
            .flat_map(|image| image.service)
            .next();
        let release = install.release.into_iter().next();
        Service {
            service: service.map(|named| named.service_name).unwrap_or_default(),
            status: install.status,
            progress: install.download_progress,
            version: release.as_ref().map(|release| release.raw_version.clone()),
            commit: release.map(|release| release.commit),
        }
    }
}

const MORE: &str = "note,ip_address,mac_address,public_address,last_connectivity_event,created_at,memory_usage,\
    memory_total,storage_usage,storage_total,cpu_usage,cpu_temp,is_undervolted";
const MORE_EXPANDED: &str = "image_install($select=status,download_progress;$filter=status ne 'deleted';\
    $expand=installs__image($select=id;$expand=is_a_build_of__service($select=service_name)),\
    is_provided_by__release($select=commit,raw_version)),device_tag($select=tag_key,value;$orderby=tag_key asc)";

async fn show(cloud: &Cloud, output: &Output, text: &str) -> Result<()> {
    let found = find::device(cloud, text).await?;
    let select = format!("{SELECT},{MORE}");
    let expand = format!("{EXPAND},{MORE_EXPANDED}");
    let options = [("$select", select.as_str()), ("$expand", &expand)];
    let row: Option<Value> = cloud
        .row(&format!("device({})", found.id), &options)
        .await?;
    let row = row.ok_or_else(|| Failure::not_found(format!("there is no device `{text}`")))?;
    let parsed = serde_json::from_value::<Row>(row.clone()).and_then(|first| {
        Ok((
            Device::from(first),
            serde_json::from_value::<DeviceDetails>(row)?,
        ))
    });
    let (device, more) = parsed.map_err(|error| {
        Failure::failed("the cloud's answer lacks fields of a device").because(error)
    })?;
    let mut services: Vec<Service> = more.installs.into_iter().map(Service::from).collect();
    services.sort_by(|one, other| one.service.cmp(&other.service));
    let used = |used: Option<i64>, of: Option<i64>| Some(format!("{} of {} MB", used?, of?));
    let mut json = serde_json::to_value(&device).unwrap_or_default();
    if let Some(object) = json.as_object_mut() {
        object.extend([
            ("note".to_owned(), json!(more.note)),
            ("ip_address".to_owned(), json!(more.ip_address)),
            ("mac_address".to_owned(), json!(more.mac_address)),
            ("public_address".to_owned(), json!(more.public_address)),
            ("created_at".to_owned(), json!(more.created_at)),
            ("memory_usage_mb".to_owned(), json!(more.memory_usage)),
            ("memory_total_mb".to_owned(), json!(more.memory_total)),
            ("storage_usage_mb".to_owned(), json!(more.storage_usage)),
            ("storage_total_mb".to_owned(), json!(more.storage_total)),
            ("cpu_usage_percent".to_owned(), json!(more.cpu_usage)),
            ("cpu_temperature_celsius".to_owned(), json!(more.cpu_temp)),
            ("undervolted".to_owned(), json!(more.is_undervolted)),
            ("services".to_owned(), json!(services)),
            ("tags".to_owned(), json!(more.tags)),
        ]);
    }
    let since = more.last_connectivity_event.as_deref().map(when);
    let connected = match (device.connected, since) {
        (true, Some(since)) => format!("yes, since {since}"),
        (true, None) => "yes".to_owned(),
        (false, Some(since)) => format!("no, since {since}"),
        (false, None) => "not yet".to_owned(),
    };
    output.details(
        &json,
        &[
            ("name", Some(device.name.clone())),
            ("uuid", Some(device.uuid.clone())),
            ("id", Some(device.id.to_string())),
            ("fleet", device.fleet.clone()),
            ("type", device.device_type.clone()),
            ("status", Some(device.status().0)),
            ("connected", Some(connected)),
            ("heartbeat", Some(device.heartbeat.clone())),
            ("runs", device.running()),
            ("pinned to", device.pinned()),
            ("system", device.os_version.clone()),
            ("supervisor", device.supervisor_version.clone()),
            ("addresses", more.ip_address),
            ("seen from", more.public_address),
            ("memory", used(more.memory_usage, more.memory_total)),
            ("storage", used(more.storage_usage, more.storage_total)),
            (
                "processor",
                more.cpu_usage.map(|percent| format!("{percent} %")),
            ),
            (
                "temperature",
                more.cpu_temp.map(|degrees| format!("{degrees} °C")),
            ),
            (
                "power",
                more.is_undervolted.then(|| "voltage too low".to_owned()),
            ),
            ("tags", Some(Tag::in_a_line(&more.tags))),
            ("note", more.note),
            ("made", Some(when(&more.created_at))),
        ],
    );
    if !output.json && !services.is_empty() {
        output.text("");
        output.rows(
            &services,
            &[
                ("SERVICE", |service| (service.service.clone(), Mood::Plain)),
                ("STATUS", |service| {
                    let mood = match service.status.as_str() {
                        "Running" => Mood::Good,
                        "exited" | "Dead" | "Stopped" => Mood::Bad,
                        _ => Mood::Warning,
                    };
                    match service.progress {
                        Some(percent) => (format!("{} {percent} %", service.status), mood),
                        None => (service.status.clone(), mood),
                    }
                }),
                ("RELEASE", |service| {
                    let commit = service.commit.as_deref().map(short).unwrap_or_default();
                    let version = service.version.clone().unwrap_or_default();
                    (format!("{commit} {version}"), Mood::Plain)
                }),
            ],
            "",
        );
    }
    Ok(())
}

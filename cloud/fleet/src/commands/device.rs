//! `device …`: shows and changes a device's data in the data API; requests to the device itself are in
//! [`super::device_actions`].

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::device_actions::{self, ActionKind};
use super::devices::{DeviceSummary, EXPAND, SELECT};
use super::{joining, local_mode, notes};
use crate::arguments::device::DeviceCommand;
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find;
use crate::output::{CloudBehaviour, Output, plain, short, when};
use crate::rows::{self, ReleaseName, ServiceName, Tag};

pub(crate) async fn run(cloud: &Cloud, output: &Output, command: DeviceCommand) -> Result<()> {
    let (device, act) = match command {
        DeviceCommand::Show(one) => return show(cloud, output, &one.device).await,
        DeviceCommand::Register(register) => {
            return joining::register(cloud, output, register).await;
        }
        DeviceCommand::LocalMode { device, switch } => {
            return local_mode::run(cloud, output, &device, switch).await;
        }
        DeviceCommand::Rename { device, name } => {
            // Without a name, the cloud would choose one.
            if name.trim().is_empty() {
                return Err(Failure::usage("the name is empty"));
            }
            let body = json!({ "device_name": name });
            let sentence = format!("is now called {name}");
            let fields = json!({ "name": name });
            return change(cloud, output, &device, &body, &sentence, fields).await;
        }
        DeviceCommand::Note { device, text: None } => {
            let device = find::device(cloud, &device).await?;
            let identity = ("device", device.uuid.as_str());
            return notes::show(
                cloud,
                output,
                &device.address(),
                identity,
                &device.device_name,
            )
            .await;
        }
        DeviceCommand::Note {
            device,
            text: Some(text),
        } => {
            let (note, sentence) = notes::parsed(text);
            let body = json!({ "note": note });
            return change(cloud, output, &device, &body, sentence, body.clone()).await;
        }
        DeviceCommand::Activate(of) => {
            let body = json!({ "is_active": true });
            let fields = json!({ "active": true });
            return change(cloud, output, &of.device, &body, "is now in use", fields).await;
        }
        DeviceCommand::Deactivate(of) => {
            let body = json!({ "is_active": false });
            let (sentence, fields) = ("is no longer in use", json!({ "active": false }));
            return change(cloud, output, &of.device, &body, sentence, fields).await;
        }
        DeviceCommand::Move { device, fleet } => {
            let fleet = find::fleet(cloud, &fleet).await?;
            let body = json!({ "belongs_to__application": fleet.id });
            let sentence = format!("is now in {}", fleet.slug);
            let fields = json!({ "fleet": fleet.slug });
            return change(cloud, output, &device, &body, &sentence, fields).await;
        }
        DeviceCommand::Delete { device, yes } => return delete(cloud, output, &device, yes).await,
        DeviceCommand::Restart {
            device,
            service: None,
        } => (device, ActionKind::Restart),
        DeviceCommand::Restart {
            device,
            service: Some(service),
        } => (device, ActionKind::RestartService(service)),
        DeviceCommand::Stop { device, service } => (device, ActionKind::StopService(service)),
        DeviceCommand::Start { device, service } => (device, ActionKind::StartService(service)),
        DeviceCommand::Reboot(device) => (device, ActionKind::Reboot),
        DeviceCommand::Shutdown { device, yes } => {
            let what = format!(
                "shut down {}, which nobody can turn on again remotely",
                device.device
            );
            ask::confirmed(&what, yes)?;
            (device, ActionKind::Shutdown)
        }
        DeviceCommand::Purge { device, yes } => {
            let what = format!("empty the volumes of the services of {}", device.device);
            ask::confirmed(&what, yes)?;
            (device, ActionKind::Purge)
        }
        DeviceCommand::Blink(of) => (of.unforced(), ActionKind::Blink),
        DeviceCommand::Ping(of) => (of.unforced(), ActionKind::Ping),
        DeviceCommand::Update(device) => (device, ActionKind::Update),
    };
    device_actions::run(cloud, output, &device, &act).await
}

async fn change(
    cloud: &Cloud,
    output: &Output,
    device: &str,
    body: &Value,
    sentence: &str,
    fields: Value,
) -> Result<()> {
    let device = find::device(cloud, device).await?;
    cloud.change(&device.address(), body).await?;
    output.done(
        format!("{} {sentence}", device.name()),
        &json!({ "device": device.uuid, "id": device.id, "changed": fields }),
    );
    Ok(())
}

async fn delete(cloud: &Cloud, output: &Output, device: &str, yes: bool) -> Result<()> {
    let device = find::device(cloud, device).await?;
    let what = format!("delete the device {} ({})", device.device_name, device.uuid);
    ask::confirmed(&what, yes)?;
    cloud.delete(&device.address()).await?;
    output.done(
        format!("deleted the device {}", device.name()),
        &json!({ "deleted": { "id": device.id, "uuid": device.uuid } }),
    );
    Ok(())
}

/// A device, with details that only `device show` prints.
#[derive(Deserialize, Serialize)]
struct DeviceDetails {
    #[serde(flatten)]
    device: DeviceSummary,
    note: Option<String>,
    ip_address: Option<String>,
    mac_address: Option<String>,
    public_address: Option<String>,
    #[serde(skip_serializing)]
    last_connectivity_event: Option<String>,
    created_at: String,
    #[serde(rename(serialize = "memory_usage_mb"))]
    memory_usage: Option<i64>,
    #[serde(rename(serialize = "memory_total_mb"))]
    memory_total: Option<i64>,
    #[serde(rename(serialize = "storage_usage_mb"))]
    storage_usage: Option<i64>,
    #[serde(rename(serialize = "storage_total_mb"))]
    storage_total: Option<i64>,
    #[serde(rename(serialize = "cpu_usage_percent"))]
    cpu_usage: Option<i64>,
    #[serde(rename(serialize = "cpu_temperature_celsius"))]
    cpu_temp: Option<i64>,
    #[serde(rename(serialize = "undervolted"))]
    is_undervolted: bool,
    #[serde(rename(deserialize = "image_install"))]
    services: Vec<DeviceService>,
    #[serde(rename(deserialize = "device_tag"))]
    tags: Vec<Tag>,
    #[serde(rename(deserialize = "device_plugin_field"))]
    plugin_fields: Vec<PluginField>,
}

/// A field that a plugin on the device adds to its report.
#[derive(Deserialize, Serialize)]
struct PluginField {
    plugin: String,
    name: String,
    value: String,
    #[serde(rename(serialize = "type"))]
    value_type: String,
    unit: Option<String>,
    modified_at: String,
}

#[derive(Deserialize)]
struct InstallRow {
    status: String,
    download_progress: Option<i64>,
    #[serde(rename = "installs__image")]
    image: Vec<ServiceImage>,
    #[serde(rename = "is_provided_by__release", deserialize_with = "rows::first")]
    release: Option<ReleaseName>,
}

#[derive(Deserialize)]
struct ServiceImage {
    #[serde(rename = "is_a_build_of__service")]
    service: Vec<ServiceName>,
}

#[derive(Deserialize, Serialize)]
#[serde(from = "InstallRow")]
struct DeviceService {
    service: String,
    status: String,
    progress: Option<i64>,
    commit: Option<String>,
    version: Option<String>,
}

impl From<InstallRow> for DeviceService {
    fn from(install: InstallRow) -> Self {
        let services = install.image.into_iter().flat_map(|image| image.service);
        let service = services.map(|service| service.service_name).next();
        let parts = |release: ReleaseName| (release.commit, release.raw_version);
        let (commit, version) = install.release.map(parts).unzip();
        DeviceService {
            service: service.unwrap_or_default(),
            status: install.status,
            progress: install.download_progress,
            commit,
            version,
        }
    }
}

const MORE: &str = "note,ip_address,mac_address,public_address,last_connectivity_event,created_at,memory_usage,\
    memory_total,storage_usage,storage_total,cpu_usage,cpu_temp,is_undervolted";
const MORE_EXPANDED: &str = "image_install($select=status,download_progress;$filter=status ne 'deleted';\
    $expand=installs__image($select=id;$expand=is_a_build_of__service($select=service_name)),\
    is_provided_by__release($select=commit,raw_version)),device_tag($select=tag_key,value;$orderby=tag_key asc),\
    device_plugin_field($select=plugin,name,value,value_type,unit,modified_at;$orderby=plugin asc,name asc)";

async fn show(cloud: &Cloud, output: &Output, text: &str) -> Result<()> {
    let target = find::device(cloud, text).await?;
    let query = format!("$select={SELECT},{MORE}&$expand={EXPAND},{MORE_EXPANDED}");
    let row: Option<Value> = cloud.row(&target.address(), &query).await?;
    let row = row.ok_or_else(|| Failure::not_found(format!("there is no device `{text}`")))?;
    let mut more: DeviceDetails = serde_json::from_value(row).map_err(|error| {
        Failure::failed("the cloud's answer lacks fields of a device").because(error)
    })?;
    let services = &mut more.services;
    services.sort_by(|one, other| one.service.cmp(&other.service));
    let device = &more.device;
    let used = |used: Option<i64>, of: Option<i64>| Some(format!("{} of {} MB", used?, of?));
    let processor = more.cpu_usage.map(|percent| format!("{percent} %"));
    let temperature = more.cpu_temp.map(|degrees| format!("{degrees} °C"));
    let power = more.is_undervolted.then(|| "voltage too low".to_owned());
    let since = more.last_connectivity_event.as_deref().map(when);
    let connected = match (device.connected, since) {
        (true, Some(since)) => format!("yes, since {since}"),
        (true, None) => "yes".to_owned(),
        (false, Some(since)) => format!("no, since {since}"),
        (false, None) => "not yet".to_owned(),
    };
    output.details(
        &more,
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
            ("addresses", more.ip_address.clone()),
            ("seen from", more.public_address.clone()),
            ("memory", used(more.memory_usage, more.memory_total)),
            ("storage", used(more.storage_usage, more.storage_total)),
            ("processor", processor),
            ("temperature", temperature),
            ("power", power),
            ("tags", Some(Tag::in_a_line(&more.tags))),
            ("note", more.note.clone()),
            ("created", Some(when(&more.created_at))),
        ],
    );
    if !output.json && !more.services.is_empty() {
        output.text("");
        output.rows(
            &more.services,
            &[
                ("SERVICE", |service| plain(&service.service)),
                ("STATUS", |service| {
                    let behaviour = match service.status.as_str() {
                        "Running" => CloudBehaviour::Good,
                        "exited" | "Dead" | "Stopped" => CloudBehaviour::Bad,
                        _ => CloudBehaviour::Warning,
                    };
                    match service.progress {
                        Some(percent) => (format!("{} {percent} %", service.status), behaviour),
                        None => (service.status.clone(), behaviour),
                    }
                }),
                ("RELEASE", |service| {
                    let commit = service.commit.as_deref().map(short).unwrap_or_default();
                    let version = service.version.as_deref().unwrap_or_default();
                    plain(&format!("{commit} {version}"))
                }),
            ],
            "",
        );
    }
    if !output.json && !more.plugin_fields.is_empty() {
        output.text("");
        output.rows(
            &more.plugin_fields,
            &[
                ("PLUGIN", |field| plain(&field.plugin)),
                ("FIELD", |field| plain(&field.name)),
                ("VALUE", |field| match &field.unit {
                    Some(unit) => plain(&format!("{} {unit}", field.value)),
                    None => plain(&field.value),
                }),
                ("CHANGED", |field| plain(&when(&field.modified_at))),
            ],
            "",
        );
    }
    Ok(())
}

//! Reports of version 2: `{"local": {…}}`, with numbers as identifiers.

use cloud_core::answer::Refusal;
use serde_json::{Map, Value};

use super::apps::{
    Apps, ReportedApp, ReportedImage, ReportedRelease, RowName, object, present, progress, status,
    text,
};
use super::changes::Report;
use super::fields::ReportedFields;

/// Fields that such a report does not contain.
const ABSENT_FIELDS: [&str; 2] = ["is_running__release", "update_status"];

/// # Errors
/// 400 if a value has another type.
pub(super) fn read(body: &Map<String, Value>) -> Result<Report, Refusal> {
    let Some(local) = present(body, "local") else {
        return Err(Refusal::Wrong("`local` is required".to_owned()));
    };
    let local = object(local, "local")?;
    let mut fields =
        ReportedFields::read_those(local, |field| !ABSENT_FIELDS.contains(&field.name))?;
    if let (Some(name), false) = (text(local, "name")?, local.contains_key("device_name")) {
        let renamed = Map::from_iter([("device_name".to_owned(), name.into())]);
        let named = ReportedFields::read_those(&renamed, |field| field.name == "device_name")?;
        fields.0.extend(named.0);
    }
    let apps = match present(local, "apps") {
        None => None,
        Some(Value::Object(apps)) => Some(parse_apps(apps.values())?),
        Some(Value::Array(apps)) => Some(parse_apps(apps.iter())?),
        Some(_) => return Err(Refusal::Wrong("`apps` must be an object".to_owned())),
    };
    Ok(Report {
        fields,
        apps,
        running: text(local, "is_on__commit")?.map(str::to_owned),
        plugin_fields: None,
    })
}

fn parse_apps<'a>(apps: impl Iterator<Item = &'a Value>) -> Result<Apps, Refusal> {
    let mut read = Apps::default();
    for app in apps {
        let app = object(app, "an app")?;
        let Some(services) = present(app, "services") else {
            continue;
        };
        for (image, service) in object(services, "services")? {
            let service = object(service, "a service")?;
            let image = number(&Value::String(image.clone()));
            let release = present(service, "releaseId").and_then(number);
            let (Some(image), Some(release)) = (image, release) else {
                return Err(Refusal::Wrong(
                    "a service is named by the number of its image, and has a `releaseId`"
                        .to_owned(),
                ));
            };
            let image = ReportedImage {
                name: RowName::Id(image),
                status: text(service, "status")?.and_then(status),
                progress: progress(service)?,
            };
            let name = RowName::Id(release);
            match read.releases.iter_mut().find(|other| other.name == name) {
                Some(release) => release.images.push(image),
                None => read.releases.push(ReportedRelease {
                    app: ReportedApp::Own,
                    name,
                    update: None,
                    images: vec![image],
                }),
            }
        }
    }
    read.bounded()
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(digits) => digits.parse().ok(),
        _ => None,
    }
}

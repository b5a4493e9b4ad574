//! Compose fields as they appear in a target state, and their results.

mod apps;
mod digests;
mod fields;
mod supervisor;

use serde_json::{Map, Value, json};

use super::*;
use crate::{
    ApiKey, AppId, Branding, DesiredService, LocalDefaults, ServiceConfig, ServiceName,
    TargetErrors, TargetState,
};

/// A source of keys that contain their owner's name.
struct Keys;

impl ApiKeys for Keys {
    fn service_key(&self, app: AppId, service: &ServiceName) -> Result<ApiKey, KeyError> {
        Ok(ApiKey::from_text(format!("key-of-{app}-{service}")))
    }
}

fn facts() -> DeviceFacts {
    DeviceFacts {
        uuid: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        name: "bench".into(),
        hostname: "0123456".into(),
        device_type: "generic-amd64".into(),
        arch: "amd64".into(),
        os_version: "Debian GNU/Linux 12".into(),
        host_root: "/".into(),
        api_port: 48484,
        branding: Branding::default(),
        host: HostFacts::default(),
    }
}

/// A release of app 12 in which each service has these compose fields (labels and environment are the
/// service's own, as local targets have them).
fn release(services: &Value, volumes: &Value, networks: &Value) -> TargetState {
    let services: Map<String, Value> = services
        .as_object()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, (name, fields))| {
            let mut service = fields.as_object().unwrap().clone();
            for (key, value) in [
                ("serviceName", json!(name)),
                ("imageId", json!(100 + index)),
                ("image", json!(format!("{name}:1"))),
                ("environment", json!({})),
                ("labels", json!({})),
            ] {
                service.entry(key).or_insert(value);
            }
            ((index + 1).to_string(), service.into())
        })
        .collect();
    let body = json!({ "local": { "apps": { "12": {
        "name": "shop", "commit": "c0ffee", "releaseId": "7",
        "services": services, "volumes": volumes, "networks": networks,
    } } } });
    let defaults = LocalDefaults {
        device_name: "bench".into(),
        branding: Branding::default(),
    };
    TargetState::from_local_json(&body, &defaults).unwrap()
}

fn resolved(services: &Value) -> ResolvedTarget {
    resolve(&release(services, &json!({}), &json!({})), &facts(), &Keys).unwrap()
}

/// The service `web` with these compose fields.
fn web(fields: &Value) -> DesiredService {
    let resolved = resolved(&json!({ "web": fields }));
    assert_eq!(resolved.problems(), None);
    resolved.desired.apps[&"12".parse().unwrap()].services[&"web".parse().unwrap()].clone()
}

fn config(fields: &Value) -> ServiceConfig {
    web(fields).config
}

fn warnings(fields: &Value) -> Vec<String> {
    resolved(&json!({ "web": fields })).warnings
}

fn refused(fields: &Value) -> TargetErrors {
    let resolved = resolved(&json!({ "web": fields }));
    let app = &resolved.desired.apps[&"12".parse().unwrap()];
    assert!(app.rejected && app.services.is_empty(), "{fields}");
    resolved.problems().unwrap()
}

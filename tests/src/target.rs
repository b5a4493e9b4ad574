//! Local target states with defaults; a test only sets the fields that matter to it.

use std::path::Path;

use serde_json::{Map, Value, json};

/// A service that runs a component file; `more` has its other fields.
#[must_use]
pub fn service(name: &str, component: &Path, more: &Value) -> Value {
    let mut service = json!({
        "serviceName": name,
        "imageId": 1,
        "image": format!("file:{}", component.display()),
        "environment": {},
        "labels": {},
        "running": true,
        "stop_grace_period": "1s",
    });
    merge(&mut service, more);
    service
}

/// A target with one app: its number, and its services, numbered from 1 in their order.
#[must_use]
pub fn target(app: u64, services: &[Value]) -> Value {
    let services: Map<String, Value> = (1..)
        .zip(services)
        .map(|(id, service): (u64, _)| (id.to_string(), service.clone()))
        .collect();
    json!({ "local": { "name": "test", "config": {}, "apps": { app.to_string(): {
        "name": format!("app{app}"),
        "commit": "commit1",
        "releaseId": "1",
        "services": services,
        "volumes": {},
        "networks": {},
    } } } })
}

fn merge(into: &mut Value, more: &Value) {
    if let (Some(into), Some(more)) = (into.as_object_mut(), more.as_object()) {
        for (key, value) in more {
            into.insert(key.clone(), value.clone());
        }
    }
}

//! The schema of a target of local mode, for the description of the API (docs/spec/device.md#target-local).
//! [`model::TargetState`] reads and writes such targets, field by field, so there are no types to derive it from; tests
//! of `local.rs` compare the two.

use schemars::{JsonSchema as _, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::action_body::ForceFlag;

/// Returns the schema of the body of a request: the target, and whether to override update locks.
pub(super) fn request_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut request = schema(generator);
    let flag = ForceFlag::json_schema(generator);
    if let (Some(Value::Object(fields)), Some(Value::Object(flag))) =
        (request.get_mut("properties"), flag.get("properties"))
    {
        fields.extend(flag.clone());
    }
    request
}

/// Returns the schema of `{ "local": … }`. Everything but `apps` is optional; a service may have any compose field in
/// addition to those named.
pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    let number = json_schema!({
        "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": "^[0-9]+$" }]
    });
    let strings = json_schema!({ "type": "object", "additionalProperties": { "type": "string" } });
    let definitions =
        json_schema!({ "type": "object", "additionalProperties": { "type": "object" } });
    let service = json_schema!({
        "type": "object",
        "required": ["imageId", "serviceName", "image", "environment", "labels"],
        "properties": {
            "imageId": number,
            "serviceName": { "type": "string" },
            "serviceId": number,
            "image": { "type": "string" },
            "environment": strings,
            "labels": strings,
            "running": { "type": "boolean", "default": true },
            "contract": {
                "type": "object",
                "description": "what the service requires of the device"
            }
        },
        "additionalProperties": true
    });
    let app = json_schema!({
        "type": "object",
        "required": ["name"],
        "dependentRequired": { "commit": ["releaseId"] },
        "properties": {
            "name": { "type": "string" },
            "commit": { "type": "string", "description": "without it, no service of the app runs" },
            "releaseId": number,
            "services": { "type": "object", "additionalProperties": service },
            "volumes": definitions,
            "networks": definitions
        },
        "additionalProperties": true
    });
    json_schema!({
        "type": "object",
        "required": ["local"],
        "properties": {
            "local": {
                "type": "object",
                "required": ["apps"],
                "properties": {
                    "name": { "type": "string", "description": "of the device" },
                    "config": strings,
                    "apps": {
                        "type": "object",
                        "description": "by their numbers",
                        "additionalProperties": app
                    }
                },
                "additionalProperties": true
            }
        },
        "additionalProperties": true
    })
}

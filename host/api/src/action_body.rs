//! The bodies of actions: read as leniently as clients of this API are used to (docs/spec/device.md#http-lenient), and
//! described from the same declarations.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// Nothing but `force`.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ForceFlag {
    /// whether to override update locks that are held
    #[serde(default, deserialize_with = "lenient::truthy")]
    #[schemars(schema_with = "flag")]
    pub(crate) force: bool,
}

/// An action on all services of an app.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["appId"]))]
pub(crate) struct AppAction {
    /// the number of the app
    #[serde(default, deserialize_with = "lenient::int")]
    #[schemars(schema_with = "integer")]
    pub(crate) app_id: Option<i64>,
    /// whether to override update locks that are held
    #[serde(default, deserialize_with = "lenient::truthy")]
    #[schemars(schema_with = "flag")]
    pub(crate) force: bool,
}

/// An action on one service of an app, which it names in one way or both.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(crate) struct ServiceAction {
    /// the service, by its name
    #[serde(default, deserialize_with = "lenient::string")]
    #[schemars(with = "String")]
    pub(crate) service_name: Option<String>,
    /// the service, by the number of its image
    #[serde(default, deserialize_with = "lenient::int")]
    #[schemars(schema_with = "integer")]
    pub(crate) image_id: Option<i64>,
    /// whether to override update locks that are held
    #[serde(default, deserialize_with = "lenient::truthy")]
    #[schemars(schema_with = "flag")]
    pub(crate) force: bool,
}

/// A check for a new target.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Update {
    /// whether to override update locks that are held
    #[serde(default, deserialize_with = "lenient::truthy")]
    #[schemars(schema_with = "flag")]
    pub(crate) force: bool,
    /// whether to cancel the update in progress
    #[serde(default, deserialize_with = "lenient::truthy")]
    #[schemars(schema_with = "flag")]
    pub(crate) cancel: bool,
}

/// Returns the schema of a whole number, also as a string of digits.
fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string", "pattern": "^-?[0-9]+(\\.0+)?$" }]
    })
}

/// Returns the schema of a flag: `true`, `1`, `"1"`, `"true"` or `"on"`; any other value is false.
fn flag(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["boolean", "integer", "string"] })
}

//! `/v2/local/target-state` and `/v2/local/logs`: the endpoints with which the command line tool operates a device in
//! local mode (docs/spec/device.md#target-local, docs/spec/device.md#local-logs). The other endpoints in `/v2/local/`
//! belong to plugins.

use axum::extract::State;
use device_types::LogEvent;
use model::SetTargetError;
use schemars::JsonSchema;
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value};

use crate::action_body::ForceFlag;
use crate::answer::{Failure, Json};
use crate::body::Document;
use crate::caller::{Caller, KeyScope};
use crate::operation::{Answer, Content, schema};
use crate::route::Route;
use crate::state::Api;
use crate::v2::{local_logs, local_target};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v2/local/target-state", target)
            .summary("the target that was set over this API")
            .answering([Answer::json("the target", schema::<LocalTarget>)]),
        Route::post("/v2/local/target-state", set_target)
            .summary("sets the target of a device in local mode and starts to apply it")
            .taking_document(local_target::request_schema)
            .answering([
                Answer::json(
                    "the target is accepted, and about to be applied",
                    schema::<AcceptedTarget>,
                ),
                Answer::failed(
                    400,
                    "the target is not valid or names no apps, or the device is not in local mode",
                ),
            ]),
        Route::get("/v2/local/logs", local_logs::logs)
            .summary("what services and the supervisor print from now on, one JSON object per line")
            .answering([
                Answer::new(
                    200,
                    "the lines from now on",
                    Content::Lines(schema::<LogEvent>),
                ),
                Answer::failed(503, "too many clients are already reading the log"),
            ]),
    ]
}

/// The target of local mode.
#[derive(Serialize, JsonSchema)]
struct LocalTarget {
    status: &'static str,
    /// `{ "local": … }`.
    #[schemars(schema_with = "local_target::schema")]
    state: Value,
}

/// The target was accepted.
#[derive(Serialize, JsonSchema)]
struct AcceptedTarget {
    status: &'static str,
    message: &'static str,
    /// One sentence for each part of the target that will not be applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

async fn target(State(api): State<Api>, caller: Caller) -> Json<LocalTarget> {
    Json(LocalTarget {
        status: "success",
        state: seen_by(caller.scope, api.device.local_target()),
    })
}

/// Returns whether a target lists its apps, even if the list is empty. If `local` is not an object, the parser reports
/// that.
fn names_apps(target: &Map<String, Value>) -> bool {
    match target.get("local") {
        None => false,
        Some(Value::Object(local)) => local.contains_key("apps"),
        Some(_) => true,
    }
}

/// Removes the apps that a caller's key does not cover: environments contain secrets.
fn seen_by(scope: KeyScope, mut target: Value) -> Value {
    if let KeyScope::App(own) = scope
        && let Some(Value::Object(apps)) = target.pointer_mut("/local/apps")
    {
        let own = own.to_string();
        apps.retain(|app, _| *app == own);
    }
    target
}

async fn set_target(
    State(api): State<Api>,
    // A body of another type would read as a target without apps, and end every service.
    Document {
        fields: target,
        // Held until the target is stored.
        turn: _turn,
    }: Document,
) -> Result<Json<AcceptedTarget>, Failure> {
    if !names_apps(&target) {
        return Err(Failure::invalid(
            "Invalid target state.\n`local.apps` is missing: to remove all services send `{\"local\": {\"apps\": {}}}`",
        ));
    }
    // The target is passed on with all of its fields: reading it as a type too would take its memory twice.
    let forced = ForceFlag::deserialize(&target);
    let ForceFlag { force } = forced.map_err(|error| Failure::invalid(error.to_string()))?;
    match api
        .device
        .set_local_target(Value::Object(target), force)
        .await
    {
        Ok(warnings) => Ok(Json(AcceptedTarget {
            status: "success",
            message: "OK",
            warnings,
        })),
        Err(SetTargetError::Store(cause)) => Err(Failure::Internal {
            doing: "store the target state",
            cause: cause.into(),
        }),
        Err(refused) => Err(Failure::invalid(refused.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use model::{AppId, Branding, LocalDefaults, TargetState};
    use schemars::SchemaGenerator;
    use serde_json::json;

    use super::*;

    /// The places of a target, each with that of its schema.
    const LEVELS: [(&str, &str); 4] = [
        ("", ""),
        ("/local", "/properties/local"),
        (
            "/local/apps/1",
            "/properties/local/properties/apps/additionalProperties",
        ),
        (
            "/local/apps/1/services/2",
            "/properties/local/properties/apps/additionalProperties/properties/services/additionalProperties",
        ),
    ];

    /// Returns a target with every key that has a meaning of its own.
    fn whole_target() -> Value {
        json!({"local": {"name": "a", "config": {}, "apps": {"1": {
            "name": "shop", "commit": "c0ffee", "releaseId": 3, "volumes": {}, "networks": {},
            "services": {"2": {
                "imageId": 5, "serviceName": "web", "serviceId": 2, "image": "nginx", "environment": {},
                "labels": {}, "running": true, "contract": {}
            }}
        }}}})
    }

    /// Reads a target as the device does; `None` if it is refused.
    fn read(target: &Value) -> Option<TargetState> {
        let defaults = LocalDefaults {
            device_name: "a".to_owned(),
            branding: Branding::default(),
        };
        let read = TargetState::from_local_json(target, &defaults).ok();
        read.filter(|_| target.as_object().is_some_and(names_apps))
    }

    fn sorted_keys(object: &Value) -> Vec<&str> {
        let mut keys: Vec<&str> = object
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn the_description_of_a_target_has_the_keys_that_are_read_and_written() {
        let schema = local_target::schema(&mut SchemaGenerator::default()).to_value();
        let target = whole_target();
        let state = read(&target).unwrap();
        let written = state.to_local_json(true);
        for (place, described) in LEVELS {
            let described = schema.pointer(described).unwrap();
            let keys = sorted_keys(&described["properties"]);
            assert_eq!(sorted_keys(target.pointer(place).unwrap()), keys, "{place}");
            assert_eq!(
                sorted_keys(written.pointer(place).unwrap()),
                keys,
                "{place}"
            );
        }
        for app in state.apps.values() {
            for service in app.release.iter().flat_map(|it| it.services.values()) {
                let unread = &service.composition;
                assert!(unread.is_empty(), "counts as compose fields: {unread:?}");
            }
        }
    }

    #[test]
    fn the_description_requires_the_keys_without_which_a_target_is_refused() {
        let schema = local_target::schema(&mut SchemaGenerator::default()).to_value();
        for (place, described) in LEVELS {
            let described = schema.pointer(described).unwrap();
            // The sample has a commit, so it needs what depends on that.
            let dependent = &described["dependentRequired"]["commit"];
            for key in sorted_keys(&described["properties"]) {
                let is_in =
                    |list: &Value| list.as_array().is_some_and(|it| it.contains(&key.into()));
                let is_required = is_in(&described["required"]) || is_in(dependent);
                let mut target = whole_target();
                let object = target.pointer_mut(place).unwrap().as_object_mut();
                object.unwrap().remove(key).unwrap();
                assert_eq!(read(&target).is_none(), is_required, "{place}: {key}");
            }
        }
    }

    #[test]
    fn only_requests_have_force_described_as_for_actions() {
        let generator = &mut SchemaGenerator::default();
        let shown = local_target::schema(generator).to_value();
        let request = local_target::request_schema(generator).to_value();
        let action = ForceFlag::json_schema(generator).to_value();
        assert_eq!(shown["properties"].get("force"), None);
        assert_eq!(request["properties"]["local"], shown["properties"]["local"]);
        assert_eq!(
            request["properties"]["force"],
            action["properties"]["force"]
        );
        assert!(request["properties"]["force"].is_object());
    }

    #[test]
    fn a_key_of_an_app_shows_the_target_of_that_app_alone() {
        let all = json!({"local": {"name": "a", "apps": {"1": {"a": 1}, "12": {}, "2": {}}}});
        assert_eq!(seen_by(KeyScope::All, all.clone()), all);
        assert_eq!(
            seen_by(KeyScope::App(AppId(1)), all.clone()),
            json!({"local": {"name": "a", "apps": {"1": {"a": 1}}}})
        );
        assert_eq!(
            seen_by(KeyScope::App(AppId(3)), all),
            json!({"local": {"name": "a", "apps": {}}})
        );
    }
}
